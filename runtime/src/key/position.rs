use super::{Key, KeyError};
use crate::message::Message;

/// Makes a key of where the message stands. The topic's id is part of it where it is known: a topic made
/// anew under its name begins again at offset 0.
pub(super) fn read(message: &Message) -> Result<Key, KeyError> {
    let Some(position) = message.position() else {
        return Err(KeyError::new("the message's source has no positions: take another key for it"));
    };
    let mut parts = vec![Key::text(&position.topic)?];
    if let Some(topic_id) = position.topic_id {
        parts.push(Key::uuid(topic_id)?);
    }
    parts.push(Key::text(&position.partition.to_string())?);
    parts.push(Key::text(&position.offset.to_string())?);
    Key::composite(parts)
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use crate::key::KeySource;
    use crate::message::{Message, Position};

    #[test]
    fn a_position_is_shown_by_its_parts() {
        let message = Message::builder().position(Position::new("deposits", 3, 42)).build();
        assert_eq!(KeySource::Position.read(&message).unwrap().to_string(), "deposits/3/42");
    }

    #[test]
    fn c15_positions_of_a_topic_made_anew_are_other_keys() {
        let key = |topic_id| {
            let position = Position::new("deposits", 3, 42).with_topic_id(Uuid::from_u128(topic_id));
            KeySource::Position.read(&Message::builder().position(position).build()).unwrap()
        };
        assert_eq!(key(7), key(7));
        assert_ne!(key(7), key(8));
        assert_eq!(key(7).to_string(), "deposits/00000000-0000-0000-0000-000000000007/3/42");
    }

    #[test]
    fn a_source_without_positions_is_told_to_take_another_key() {
        let error = KeySource::Position.read(&Message::builder().build()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "position: the message's source has no positions: take another key for it"
        );
    }
}
