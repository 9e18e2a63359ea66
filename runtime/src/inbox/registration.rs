use super::consumer::{Consumer, ConsumerId};
use crate::failure::{Failure, FailureKind};

/// What a consumer says of itself at start.
#[derive(Clone, Copy, Debug)]
pub struct Registration<'a> {
    /// Its name.
    pub name: &'a str,
    /// Where its keys come from, as the attribute has it.
    pub key_definition: &'a str,
    /// The path of its handler.
    pub handler: &'a str,
    /// Its Kafka group.
    pub group: Option<&'a str>,
    /// The topics it reads; empty for other sources.
    pub topics: &'a [&'a str],
}

/// What a registration calls for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ruling {
    /// It is registered as it is.
    Known(ConsumerId),
    /// It is registered, with another handler, group or topics: a deploy.
    Changed(ConsumerId),
    /// Nobody has that name.
    New,
}

/// Numbers come from the table itself: a sequence would be burnt by every start.
pub(super) fn next_id(consumers: &[Consumer]) -> Result<ConsumerId, Failure> {
    let highest = consumers.iter().map(|consumer| consumer.id.0).max().unwrap_or(0);
    highest.checked_add(1).map(ConsumerId).ok_or_else(|| {
        Failure::new(FailureKind::Configuration, "the inbox holds as many consumers as it can number (32767)")
    })
}

impl Registration<'_> {
    pub(super) fn judge(&self, consumers: &[Consumer]) -> Result<Ruling, Failure> {
        let Some(known) = consumers.iter().find(|consumer| consumer.name == self.name) else {
            return match consumers.iter().find(|consumer| self.is_renamed(consumer)) {
                Some(old) => Err(self.refuse_new_name(old)),
                None => Ok(Ruling::New),
            };
        };
        if known.key_definition != self.key_definition {
            return Err(self.refuse_key(known));
        }
        if self.is_another_owner(known) {
            return Err(self.refuse_owner(known));
        }
        let same = known.handler == self.handler && self.has_topics_of(known) && self.has_group_of(known);
        Ok(if same { Ruling::Known(known.id) } else { Ruling::Changed(known.id) })
    }

    /// Same handler, same topics, another name: the inbox under the old name would not be asked.
    fn is_renamed(&self, known: &Consumer) -> bool {
        let both_without = self.topics.is_empty() && known.topics.is_empty();
        known.handler == self.handler && (both_without || self.shares_topic_with(known))
    }

    /// A deploy may move the handler, or change topics or group, but hardly everything at once.
    fn is_another_owner(&self, known: &Consumer) -> bool {
        let disjoint = !self.topics.is_empty() && !known.topics.is_empty() && !self.shares_topic_with(known);
        !known.handler.is_empty() && known.handler != self.handler && (disjoint || !self.has_group_of(known))
    }

    fn shares_topic_with(&self, known: &Consumer) -> bool {
        known.topics.iter().any(|topic| self.topics.contains(&topic.as_str()))
    }

    /// One without topics (`apply`) says nothing about those that the worker registered.
    fn has_topics_of(&self, known: &Consumer) -> bool {
        self.topics.is_empty() || known.topics == self.topics
    }

    fn has_group_of(&self, known: &Consumer) -> bool {
        match (self.group, known.group.as_deref()) {
            (Some(wanted), Some(known)) => wanted == known,
            (Some(_), None) => known.topics.is_empty(),
            (None, _) => true,
        }
    }

    fn refuse_key(&self, known: &Consumer) -> Failure {
        let Self { name, key_definition, .. } = self;
        let text = format!(
            "consumer `{name}` is registered with key {} and now says {key_definition}: every message that is \
             delivered again would be applied again. Restore the old key, or, if that is meant, run \
             `handstamp consumers accept-key {name} {}`",
            known.key_definition,
            in_shell(key_definition),
        );
        Failure::new(FailureKind::Configuration, text)
    }

    fn refuse_new_name(&self, old: &Consumer) -> Failure {
        let Self { name, handler, .. } = self;
        let old = &old.name;
        let text = format!(
            "handler {handler} is registered as consumer `{old}` and now says `{name}`: under a new name every \
             message that is delivered again would be applied again. Keep the old name, or rename its inbox \
             with it: `handstamp consumers rename {old} {name}`; or, if every message is to be applied anew, run \
             `handstamp consumers release {old}` first"
        );
        Failure::new(FailureKind::Configuration, text)
    }

    fn refuse_owner(&self, known: &Consumer) -> Failure {
        let name = self.name;
        let mine = owner(self.handler, self.group, self.topics.join(", "));
        let theirs = owner(&known.handler, known.group.as_deref(), known.topics.join(", "));
        let text = format!(
            "consumer `{name}` belongs to {theirs}, and {mine} uses the same name: each would skip what the \
             other has applied. Give one of them another name; if it is one consumer that has moved: \
             `handstamp consumers release {name}`"
        );
        Failure::new(FailureKind::Configuration, text)
    }
}

fn owner(handler: &str, group: Option<&str>, topics: String) -> String {
    let topics = if topics.is_empty() { "none".to_owned() } else { topics };
    format!("{handler} (group {}, topics {topics})", group.unwrap_or("none"))
}

/// As one word of a shell's command line.
fn in_shell(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registered() -> Consumer {
        Consumer {
            id: ConsumerId(1),
            name: "wallet-credits".into(),
            key_definition: "header(\"event_id\")".into(),
            handler: "wallet::credit".into(),
            group: Some("wallet-credits".into()),
            topics: vec!["deposits".into()],
        }
    }

    const SAME: Registration<'_> = Registration {
        name: "wallet-credits",
        key_definition: "header(\"event_id\")",
        handler: "wallet::credit",
        group: Some("wallet-credits"),
        topics: &["deposits"],
    };

    fn refusal(registration: &Registration<'_>) -> String {
        registration.judge(&[registered()]).unwrap_err().to_string()
    }

    #[test]
    fn a_restart_is_known() {
        assert_eq!(SAME.judge(&[registered()]).unwrap(), Ruling::Known(ConsumerId(1)));
    }

    #[test]
    fn c23_a_rolling_deploy_is_not_reported() {
        let moved = Registration { handler: "wallet::deposits::credit", ..SAME };
        let more = Registration { topics: &["deposits", "refunds"], ..SAME };
        for deploy in [moved, more] {
            assert_eq!(deploy.judge(&[registered()]).unwrap(), Ruling::Changed(ConsumerId(1)));
        }
    }

    #[test]
    fn c23_another_owner_of_the_name_is_refused_with_both_named() {
        let other = Registration { handler: "email::receipt", topics: &["receipts"], ..SAME };
        let text = refusal(&other);
        assert!(text.contains("wallet::credit") && text.contains("email::receipt"), "{text}");
        let other = Registration { handler: "email::receipt", group: Some("email"), ..SAME };
        assert!(refusal(&other).contains("email::receipt"));
    }

    #[test]
    fn a_released_name_is_taken_by_the_next() {
        let released = Consumer { handler: String::new(), group: None, topics: vec![], ..registered() };
        let next = Registration { handler: "email::receipt", topics: &["receipts"], ..SAME };
        assert_eq!(next.judge(&[released]).unwrap(), Ruling::Changed(ConsumerId(1)));
    }

    #[test]
    fn a_changed_key_is_refused_with_the_command_that_accepts_it() {
        let changed = Registration { key_definition: "json(\"/id\")", ..SAME };
        let text = refusal(&changed);
        assert!(text.contains(r#"`handstamp consumers accept-key wallet-credits 'json("/id")'`"#), "{text}");
    }

    #[test]
    fn a_new_name_for_a_known_handler_is_refused_with_the_command_that_renames() {
        let renamed = Registration { name: "credits", ..SAME };
        assert!(refusal(&renamed).contains("handstamp consumers rename wallet-credits credits"));
        let elsewhere = Registration { name: "credits", topics: &["refunds"], ..SAME };
        assert_eq!(elsewhere.judge(&[registered()]).unwrap(), Ruling::New);
    }

    #[test]
    fn applying_by_hand_leaves_topics_and_group_alone() {
        let by_hand = Registration { group: None, topics: &[], ..SAME };
        assert_eq!(by_hand.judge(&[registered()]).unwrap(), Ruling::Known(ConsumerId(1)));
    }

    #[test]
    fn numbers_are_not_burnt() {
        assert_eq!(next_id(&[]).unwrap(), ConsumerId(1));
        assert_eq!(next_id(&[registered()]).unwrap(), ConsumerId(2));
        let last = Consumer { id: ConsumerId(i16::MAX), ..registered() };
        assert!(next_id(&[last]).is_err());
    }
}
