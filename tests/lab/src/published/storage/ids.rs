use anyhow::Result;
use handstamp::Key;
use uuid::Uuid;

/// What messages are known by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ids {
    /// A random UUID in its text form.
    Text,
    UuidV4,
    UuidV7,
}

impl Ids {
    pub const ALL: [Self; 3] = [Self::Text, Self::UuidV4, Self::UuidV7];

    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::UuidV4 => "uuid_v4",
            Self::UuidV7 => "uuid_v7",
        }
    }

    /// Bytes per remembered id, in the plain table, as published.
    pub fn published(self) -> f64 {
        match self {
            Self::Text => 194.5,
            Self::UuidV4 => 134.0,
            Self::UuidV7 => 118.1,
        }
    }

    /// The type of a column that holds them.
    pub fn column(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::UuidV4 | Self::UuidV7 => "uuid",
        }
    }

    /// A new one.
    pub fn draw(self) -> Uuid {
        match self {
            Self::Text | Self::UuidV4 => Uuid::new_v4(),
            Self::UuidV7 => Uuid::now_v7(),
        }
    }

    /// As the inbox stores it.
    pub fn stored(self, id: Uuid) -> Result<Vec<u8>> {
        let key = match self {
            Self::Text => Key::text(&id.to_string()),
            Self::UuidV4 | Self::UuidV7 => Key::uuid(id),
        };
        Ok(key?.stored())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inbox_stores_a_uuid_in_17_bytes_and_its_text_in_37() {
        let lengths = Ids::ALL.map(|ids| ids.stored(ids.draw()).unwrap().len());
        assert_eq!(lengths, [37, 17, 17]);
    }
}
