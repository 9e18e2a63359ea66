//! How long messages take from their producer to the commit of their effects.

mod idle;
mod publisher;

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Serialize;

pub use self::idle::Idle;
use self::publisher::Publisher;
use super::super::books::Books;
use super::super::consumers::{Consumer, Done};
use super::super::feed::Feed;
use super::super::member::Launch;
use super::super::statistics::per_mille;
use super::trial::options;

/// Published before the clock starts: connections are made and statements prepared.
const WARM_UP: u64 = 120;
/// Parts of a second that are not counted at the start, until the pace is found.
const SETTLING: f64 = 1.0;
/// How long the last message may take.
const PATIENCE: Duration = Duration::from_mins(2);

/// At one rate.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Latency {
    pub messages_per_second: u64,
    pub messages: u64,
    pub p50_ms: f64,
    pub p99_ms: f64,
    pub p999_ms: f64,
}

/// At a part of the consumer's own limit.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Load {
    pub percent: u64,
    #[serde(flatten)]
    pub latency: Latency,
}

/// How many messages a second a consumer applies of more than it can take, beside their producer and the broker, which
/// share its processors.
pub async fn limit(consumer: Consumer, rate: u64, seconds: u64) -> Result<u64> {
    let (sent, done) = run(consumer, rate, seconds).await?;
    let published = |done: &&Done| sent.contains_key(&(done.partition, done.offset));
    let first = sent.values().min().context("nothing was published")?;
    let last = done.iter().filter(published).map(|done| done.micros).max().context("nothing was applied")?;
    Ok(sent.len() as u64 * 1_000_000 / last.saturating_sub(*first).max(1))
}

/// Publishes at a rate for so many seconds to a consumer that has nothing else to do.
pub async fn measure(consumer: Consumer, rate: u64, seconds: u64) -> Result<Latency> {
    let (sent, done) = run(consumer, rate, seconds).await?;
    Latency::of(rate, &sent, &done)
}

/// When each message was sent, and when it was finished.
async fn run(consumer: Consumer, rate: u64, seconds: u64) -> Result<(BTreeMap<(i32, i64), u64>, Vec<Done>)> {
    let mut feed = Feed::open().await;
    let mut books = Books::open().await?;
    books.checkpoint().await?;
    feed.produce(WARM_UP).await?;
    let messages = rate * seconds;
    let folder = tempfile::tempdir()?;
    let times = folder.path().join("times.json");
    let mut options = options(consumer, WARM_UP + messages);
    options.push(format!("--times={}", times.display()));
    let launch = Launch {
        consumer,
        topic: feed.topic().to_owned(),
        group: handstamp_tests::unique("group"),
        database: books.url(),
        options,
    };
    let member = launch.start()?;
    member.working(PATIENCE).await?;
    let sent = Publisher::to(feed.topic(), rate)?.publish(WARM_UP, messages, rate).await?;
    member.finished(PATIENCE).await?;
    member.stop().await;
    let done: Vec<Done> = serde_json::from_slice(&std::fs::read(times)?)?;
    feed.close().await;
    Ok((sent, done))
}

impl Latency {
    fn of(rate: u64, sent: &BTreeMap<(i32, i64), u64>, done: &[Done]) -> Result<Self> {
        let settled = sent.values().min().context("nothing was published")? + micros(SETTLING);
        let mut took: Vec<u64> = done
            .iter()
            .filter_map(|done| {
                let sent = *sent.get(&(done.partition, done.offset))?;
                (sent >= settled).then(|| done.micros.saturating_sub(sent))
            })
            .collect();
        let messages = took.len() as u64;
        let mut at = |rank| milliseconds(per_mille(&mut took, rank));
        Ok(Self { messages_per_second: rate, messages, p50_ms: at(500), p99_ms: at(990), p999_ms: at(999) })
    }
}

fn micros(seconds: f64) -> u64 {
    u64::try_from(Duration::from_secs_f64(seconds).as_micros()).unwrap_or(u64::MAX)
}

fn milliseconds(micros: u64) -> f64 {
    Duration::from_micros(micros).as_secs_f64() * 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_the_first_second_are_not_counted() {
        let sent = BTreeMap::from([((0, 0), 0), ((0, 1), 1_000_000), ((1, 0), 1_500_000)]);
        let done = |partition, offset, micros| Done { partition, offset, micros };
        let all = [done(0, 0, 900_000), done(0, 1, 1_002_000), done(1, 0, 1_504_000), done(1, 7, 9)];
        let latency = Latency::of(2, &sent, &all).unwrap();
        assert_eq!((latency.messages, latency.p50_ms.round(), latency.p99_ms.round()), (2, 2.0, 4.0));
    }
}
