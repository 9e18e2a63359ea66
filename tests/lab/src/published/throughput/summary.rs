use serde_json::{Value, json};

use super::super::statistics::median;
use super::trial::Trial;
use super::variant::Variant;

/// All rounds of a variant; figures are medians.
pub struct Summary {
    pub variant: &'static Variant,
    pub trials: Vec<Trial>,
}

impl Summary {
    pub fn messages_per_second(&self) -> f64 {
        median(self.trials.iter().map(Trial::messages_per_second))
    }

    pub fn messages_per_transaction(&self) -> f64 {
        median(self.trials.iter().map(Trial::messages_per_transaction))
    }

    /// Milliseconds of processor time of the consumer for 1,000 messages.
    pub fn consumer_cpu_ms(&self) -> f64 {
        median(self.trials.iter().map(|trial| per_thousand(trial.reading.consumer_cpu_ms, trial.messages)))
    }

    /// The same of PostgreSQL, where it can be seen.
    pub fn database_cpu_ms(&self) -> Option<f64> {
        let seen = self
            .trials
            .iter()
            .map(|trial| trial.reading.database_cpu_ms.map(|spent| per_thousand(spent, trial.messages)));
        seen.collect::<Option<Vec<_>>>().map(median)
    }

    /// The most that the consumer had in any round.
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    pub fn peak_mb(&self) -> f64 {
        self.trials.iter().map(|trial| trial.reading.peak_kb).max().unwrap_or_default() as f64 / 1_024.0
    }

    pub fn messages(&self) -> u64 {
        self.trials.first().map_or(0, |trial| trial.messages)
    }

    pub fn json(&self) -> Value {
        json!({
            "name": self.variant.name,
            "what": self.variant.what,
            "messages": self.messages(),
            "messages_per_second": self.messages_per_second(),
            "messages_per_transaction": self.messages_per_transaction(),
            "consumer_cpu_ms_per_1000": self.consumer_cpu_ms(),
            "database_cpu_ms_per_1000": self.database_cpu_ms(),
            "peak_memory_mb": self.peak_mb(),
            "published_messages_per_second": self.variant.published,
            "trials": self.trials,
        })
    }
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
fn per_thousand(spent: u64, messages: u64) -> f64 {
    spent as f64 * 1_000.0 / messages as f64
}
