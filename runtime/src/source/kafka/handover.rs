//! What the poll thread and the worker tell each other.

use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use rdkafka::error::RDKafkaErrorCode;
use uuid::Uuid;

use crate::flow::{Epoch, Tp};
use crate::message::Message;

/// What the poll thread tells.
#[derive(Debug)]
pub(crate) enum Input {
    /// The group gave us these partitions; nothing of them is fetched before [`Command::Assign`].
    Owned(Vec<Tp>),
    /// The group wants these back; the callback waits for the answer, with a limit.
    Revoking { tps: Vec<Tp>, released: Released },
    /// These are gone already: another member may have them.
    Lost(Vec<Tp>),
    /// Records, in the order of each partition.
    Records(Vec<Fetched>),
    /// Where the client stands in partitions that deliver nothing, behind transaction markers too.
    Positions(Vec<(Tp, Epoch, i64)>),
    /// The offset of some partition is not in its log; librdkafka does not say which. Where each
    /// partition would go on.
    OffLog(Vec<(Tp, Epoch, i64)>),
    /// These could not be taken into the assignment.
    NotAssigned(Vec<Tp>),
    /// Something to tell the operator.
    Trouble(Trouble),
    /// The client was closed.
    Closed,
}

/// A record and the epoch it was fetched in.
#[derive(Debug)]
pub(crate) struct Fetched {
    pub(crate) tp: Tp,
    pub(crate) epoch: Epoch,
    pub(crate) offset: i64,
    pub(crate) message: Arc<Message>,
}

/// What goes wrong with the client. It recovers by itself unless said otherwise.
#[derive(Clone, Debug)]
pub(crate) enum Trouble {
    /// Brokers or the coordinator do not answer.
    Broker { code: RDKafkaErrorCode },
    /// The poll thread was late and the group went on without us.
    Evicted,
    /// We may not do what we are configured for.
    NotAllowed { code: RDKafkaErrorCode },
    /// The group or the brokers refuse our settings.
    Settings { code: RDKafkaErrorCode },
    /// librdkafka refused our answer to a rebalance.
    Rebalance { what: &'static str, error: String },
    /// The client was beyond repair and is made anew.
    Rebuilt { error: String },
}

/// Where a partition is to be read from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start {
    pub(crate) tp: Tp,
    pub(crate) epoch: Epoch,
    /// The first offset to fetch.
    pub(crate) next: i64,
    /// Nil where the broker has none.
    pub(crate) topic_id: Uuid,
}

/// What the poll thread is told.
#[derive(Debug)]
pub(crate) enum Command {
    /// Fetch these from these offsets on.
    Assign(Vec<Start>),
    /// Stop fetching this one; the group still counts it as ours.
    LeaveOut(Tp),
    /// Hand over no more of its records for now.
    Pause(Tp, Epoch),
    /// Hand them over again.
    Resume(Tp, Epoch),
    /// Leave the group and end.
    Close,
}

/// Says to the waiting callback that the partitions may be given back.
#[derive(Debug)]
pub(crate) struct Released(pub(super) SyncSender<()>);

impl Released {
    pub(crate) fn tell(self) {
        // The callback may have stopped waiting: the partitions are gone then, too.
        let _late = self.0.send(());
    }
}
