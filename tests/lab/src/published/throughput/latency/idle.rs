use anyhow::Result;
use serde::Serialize;

use super::super::super::consumers::Consumer;
use super::super::super::statistics::median;
use super::{Latency, measure};

/// Messages that come one at a time, with time to spare between them.
const RATE: u64 = 100;

/// What a message takes that meets nobody, by handstamp and by one transaction that was written by hand, round by
/// round.
#[derive(Debug, Default, Serialize)]
pub struct Idle {
    handstamp: Vec<Latency>,
    handwritten: Vec<Latency>,
}

impl Idle {
    pub async fn round(&mut self, seconds: u64) -> Result<()> {
        self.handstamp.push(measure(Consumer::C, RATE, seconds).await?);
        self.handwritten.push(measure(Consumer::Handwritten, RATE, seconds).await?);
        Ok(())
    }

    /// Of the 99th percentiles; the median of the rounds.
    pub fn ratio(&self) -> f64 {
        median(self.handstamp.iter().zip(&self.handwritten).map(|(one, base)| one.p99_ms / base.p99_ms))
    }

    pub fn medians(&self) -> [(&'static str, Latency); 2] {
        [("adaptive", middle(&self.handstamp)), ("handwritten", middle(&self.handwritten))]
    }
}

fn middle(rounds: &[Latency]) -> Latency {
    let of = |figure: fn(&Latency) -> f64| median(rounds.iter().map(figure));
    Latency {
        messages_per_second: RATE,
        messages: rounds.iter().map(|round| round.messages).sum(),
        p50_ms: of(|round| round.p50_ms),
        p99_ms: of(|round| round.p99_ms),
        p999_ms: of(|round| round.p999_ms),
    }
}
