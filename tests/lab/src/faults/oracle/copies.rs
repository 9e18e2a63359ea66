use std::collections::BTreeSet;
use std::time::Duration;

use handstamp_tests::{Record, TestTopic};
use sqlx::PgConnection;
use tokio::time::{Instant, sleep};

/// How long copying may take once nothing is in its way; a worker looks for old letters every 10 s.
const LIMIT: Duration = Duration::from_mins(1);

/// The topic to which dead letters are copied.
pub struct Copies {
    topic: TestTopic,
}

/// A dead letter, or a copy of one: where the record stood and what it was.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Letter {
    partition: i32,
    offset: i64,
    key: Option<Vec<u8>>,
    payload: Option<Vec<u8>>,
}

/// Partition, offset, key and payload.
type Columns = (i32, i64, Option<Vec<u8>>, Option<Vec<u8>>);

impl Copies {
    /// Those of a topic's letters. Their topic has to be made.
    pub fn of(brokers: &str, topic: &str) -> Self {
        Self { topic: TestTopic::named(brokers, &format!("{topic}.dlq")) }
    }

    pub fn topic(&self) -> &TestTopic {
        &self.topic
    }

    /// What the database holds.
    pub async fn letters(&self, connection: &mut PgConnection) -> sqlx::Result<BTreeSet<Letter>> {
        let rows: Vec<Columns> =
            sqlx::query_as(r#"SELECT partition, "offset", message_key, payload FROM handstamp.dead_letters"#)
                .fetch_all(connection)
                .await?;
        let letter = |(partition, offset, key, payload)| Letter { partition, offset, key, payload };
        Ok(rows.into_iter().map(letter).collect())
    }

    /// Waits until each of these was copied as it was; which were not, otherwise.
    pub async fn until_all(&self, letters: &BTreeSet<Letter>) -> Result<(), String> {
        let deadline = Instant::now() + LIMIT;
        loop {
            let records = self.topic.read_all().await;
            let copies: BTreeSet<_> = records.into_iter().filter_map(Letter::of_copy).collect();
            let Some(first) = letters.difference(&copies).next() else { return Ok(()) };
            if Instant::now() > deadline {
                let missing = letters.difference(&copies).count();
                let Letter { partition, offset, .. } = first;
                return Err(format!(
                    "{missing} dead letters were not copied, first that of {partition}@{offset}"
                ));
            }
            sleep(Duration::from_millis(200)).await;
        }
    }
}

impl Letter {
    /// `None` if the record does not say whose copy it is.
    fn of_copy(record: Record) -> Option<Self> {
        let told = |name: &str| {
            let mut headers = record.headers.iter();
            let (_, value) = headers.find(|(known, _)| known == name.as_bytes())?;
            str::from_utf8(value.as_deref()?).ok()?.parse::<i64>().ok()
        };
        let (partition, offset) = (told("handstamp_partition")?, told("handstamp_offset")?);
        let partition = i32::try_from(partition).ok()?;
        Some(Self { partition, offset, key: record.key, payload: record.payload })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copy(payload: &str) -> Record {
        Record::new(payload).key("7").header("handstamp_partition", "3").header("handstamp_offset", "9")
    }

    #[test]
    fn a_copy_with_another_payload_is_another_letter() {
        assert_eq!(Letter::of_copy(copy("a")), Letter::of_copy(copy("a")));
        assert_ne!(Letter::of_copy(copy("a")), Letter::of_copy(copy("b")));
    }

    #[test]
    fn a_record_that_does_not_tell_where_its_letter_stood_is_no_copy() {
        assert_eq!(Letter::of_copy(Record::new("a").header("handstamp_partition", "3")), None);
    }
}
