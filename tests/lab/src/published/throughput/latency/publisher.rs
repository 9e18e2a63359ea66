use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Result;
use rdkafka::ClientConfig;
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{FutureProducer, FutureRecord};
use tokio::time::{Instant, MissedTickBehavior, interval};
use uuid::Uuid;

use super::super::super::consumers::now;
use super::super::super::feed::{self, ACCOUNTS};

/// What is due within this goes out together: a tick for each message would cost more than the message.
const TICK: Duration = Duration::from_millis(5);

/// From how many a second on messages are sent together.
const MANY: u64 = 1_000;

/// Publishes at a rate, whatever becomes of what it has published.
pub struct Publisher<'a> {
    topic: &'a str,
    producer: FutureProducer,
}

impl<'a> Publisher<'a> {
    pub fn to(topic: &'a str, rate: u64) -> Result<Self> {
        let producer = ClientConfig::new()
            .set("bootstrap.servers", handstamp_tests::kafka_brokers())
            // Each message on its own would keep the broker busy, which runs on the same processors as what is measured.
            .set("linger.ms", if rate > MANY { "10" } else { "0" })
            .create()?;
        Ok(Self { topic, producer })
    }

    /// Returns when each was sent, by partition and offset.
    pub async fn publish(&self, first: u64, messages: u64, rate: u64) -> Result<BTreeMap<(i32, i64), u64>> {
        let mut ticks = interval(TICK.max(Duration::from_secs(1) / u32::try_from(rate)?));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let (started, mut sent, mut deliveries) = (Instant::now(), Vec::new(), Vec::new());
        while (sent.len() as u64) < messages {
            ticks.tick().await;
            let due = started.elapsed().as_micros() * u128::from(rate) / 1_000_000 + 1;
            let due = u64::try_from(due)?.min(messages);
            for number in first + sent.len() as u64..first + due {
                sent.push(now());
                deliveries.push(self.send(number)?);
            }
        }
        let mut by_place = BTreeMap::new();
        for (delivery, sent) in deliveries.into_iter().zip(sent) {
            let delivered = delivery.await?.map_err(|(error, _)| error)?;
            by_place.insert((delivered.partition, delivered.offset), sent);
        }
        Ok(by_place)
    }

    fn send(&self, number: u64) -> Result<rdkafka::producer::DeliveryFuture> {
        let deposit = feed::deposit(number, ACCOUNTS)?;
        let (payload, event) = (serde_json::to_vec(&deposit)?, Uuid::new_v4().to_string());
        let header = Header { key: "event_id", value: Some(&event) };
        let record = FutureRecord::to(self.topic)
            .partition(feed::partition(&deposit)?)
            .key("")
            .payload(&payload)
            .headers(OwnedHeaders::new().insert(header));
        Ok(self.producer.send_result(record).map_err(|(error, _)| error)?)
    }
}
