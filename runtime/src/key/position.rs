use super::{Key, KeyError};
use crate::message::Message;

/// Makes a key of where the message stands.
pub(super) fn read(message: &Message) -> Result<Key, KeyError> {
    let Some(position) = message.position() else {
        return Err(KeyError::new("the message's source has no positions: take another key for it"));
    };
    Key::composite([
        Key::text(&position.topic)?,
        Key::text(&position.partition.to_string())?,
        Key::text(&position.offset.to_string())?,
    ])
}

#[cfg(test)]
mod tests {
    use crate::key::KeySource;
    use crate::message::{Message, Position};

    #[test]
    fn a_position_is_shown_by_its_parts() {
        let message = Message::builder().position(Position::new("deposits", 3, 42)).build();
        assert_eq!(KeySource::Position.read(&message).unwrap().to_string(), "deposits/3/42");
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
