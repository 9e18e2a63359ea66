use super::call::caught;
use super::park::Parting;
use super::{Job, Task};
use crate::flow::Intent;
use crate::handler::{Handler, OnTombstone};
use crate::inbox::dead_letters::Reason;
use crate::key::Key;
use crate::message::{Arguments, Message};

/// What a handler is given of one message, or why it is not.
pub(super) struct Reading<'a, H: Handler<Arguments: Arguments>> {
    pub(super) message: &'a Message,
    pub(super) intent: Intent,
    pub(super) key: Option<Key>,
    /// The key as it is stored.
    pub(super) stored: Option<Vec<u8>>,
    /// What the handler takes of it, until it is called.
    pub(super) each: Option<<H::Arguments as Arguments>::Each>,
    /// Why the message is given up, should it be.
    pub(super) parting: Option<Parting>,
}

impl<'a, H: Handler<Arguments: Arguments>> Reading<'a, H> {
    /// Reads everything that is needed before a transaction is opened.
    pub(super) fn of(message: &'a Message, job: &Job) -> Self {
        let nothing =
            Self { message, intent: Intent::Skip, key: None, stored: None, each: None, parting: None };
        if message.payload().is_none() && (H::Arguments::NEEDS_PAYLOAD || H::KEY.needs_payload()) {
            // Before the key is read: one inside the payload cannot be read from a tombstone.
            return match H::OPTIONS.on_tombstone {
                OnTombstone::Skip => nothing,
                OnTombstone::Park => nothing.unreadable(
                    job,
                    Reason::Tombstone,
                    "the message has no payload (a tombstone)".to_owned(),
                ),
            };
        }
        let key = match caught(|| H::KEY.read(message)) {
            Ok(key) => key,
            Err(error) => return nothing.unreadable(job, Reason::Key, error),
        };
        let keyed = Self { stored: Some(key.stored()), key: Some(key.clone()), ..nothing };
        if let Task::Park { reason, error, attempts } = &job.task {
            return keyed.given_up(Parting { reason: *reason, error: error.clone(), attempts: *attempts });
        }
        match caught(|| H::Arguments::read(message, &key)) {
            Ok(each) => Self { intent: Intent::Apply, each: Some(each), ..keyed },
            Err(error) => keyed.unreadable(job, Reason::Decode, error),
        }
    }

    fn unreadable(self, job: &Job, reason: Reason, error: String) -> Self {
        self.given_up(Parting { reason, error, attempts: job.attempt })
    }

    fn given_up(self, parting: Parting) -> Self {
        Self { intent: Intent::Park, parting: Some(parting), ..self }
    }
}
