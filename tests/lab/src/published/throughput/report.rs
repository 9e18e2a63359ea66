use std::fmt::{self, Display};

use serde_json::{Value, json};

use super::super::chart::{Chart, Group, Panel, median_of, number};
use super::super::output::Table;
use super::latency::{Idle, Latency, Load};
use super::ratios::{Ratios, ratio};
use super::summary::Summary;
use super::variant::Kind;

/// Everything that a run has found.
pub struct Report {
    pub messages: u64,
    pub rounds: u64,
    pub summaries: Vec<Summary>,
    pub loads: Vec<Load>,
    pub idle: Option<Idle>,
}

impl Report {
    pub fn json(&self) -> Value {
        json!({
            "experiment": "throughput",
            "messages": self.messages,
            "rounds": self.rounds,
            "variants": self.summaries.iter().map(Summary::json).collect::<Vec<_>>(),
            "latency": self.loads,
            "idle_latency": self.idle,
            "ratios": self.ratios().json(),
        })
    }

    fn ratios(&self) -> Ratios {
        Ratios::of(&self.summaries, self.idle.as_ref())
    }

    fn variants(&self) -> Table {
        let mut table = Table::with_head([
            "variant",
            "messages",
            "messages/s",
            "to seed_loop",
            "published",
            "a transaction",
            "CPU ms per 1,000",
            "of PostgreSQL",
            "peak MB",
            "every round",
        ]);
        let figure = |figure: Option<f64>, digits| {
            figure.map_or_else(|| "-".to_owned(), |figure| format!("{figure:.digits$}"))
        };
        for summary in &self.summaries {
            let variant = summary.variant;
            let rounds = summary.trials.iter().map(|trial| format!("{:.0}", trial.messages_per_second()));
            table.add([
                format!("{:<17}  {}", variant.name, variant.what),
                summary.messages().to_string(),
                figure(Some(summary.messages_per_second()), 0),
                figure(ratio(&self.summaries, variant.name, "seed_loop"), 2),
                figure(variant.published, 1),
                figure(Some(summary.messages_per_transaction()), 1),
                figure(Some(summary.consumer_cpu_ms()), 1),
                figure(summary.database_cpu_ms(), 1),
                figure(Some(summary.peak_mb()), 0),
                rounds.collect::<Vec<_>>().join(" "),
            ]);
        }
        table
    }

    fn latency(&self) -> Table {
        let mut table =
            Table::with_head(["latency, publish to commit", "messages/s", "p50 ms", "p99 ms", "p99.9 ms"]);
        let mut add = |what: String, latency: &Latency| {
            table.add([
                what,
                latency.messages_per_second.to_string(),
                format!("{:.1}", latency.p50_ms),
                format!("{:.1}", latency.p99_ms),
                format!("{:.1}", latency.p999_ms),
            ]);
        };
        for Load { percent, latency } in &self.loads {
            add(format!("adaptive at {percent} % of its limit"), latency);
        }
        for (name, of) in self.idle.iter().flat_map(Idle::medians) {
            add(format!("{name}, idle"), &of);
        }
        table
    }

    /// By name: those with a transaction for each message were published in part.
    pub fn charts(&self) -> [(&'static str, Chart); 2] {
        let each = [("messages a second, a transaction for each message", Kind::Each)];
        let many = [
            ("messages a second, a statement after the other", Kind::Batch),
            ("messages a second, a statement for all", Kind::Bulk),
        ];
        [("throughput", self.chart(&each)), ("throughput-batches", self.chart(&many))]
    }

    fn chart(&self, panels: &[(&str, Kind)]) -> Chart {
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
        let messages = self.messages as f64;
        let rounds = self.summaries.iter().map(|summary| summary.trials.len()).max().unwrap_or(0);
        let panel = |(title, kind): &(&str, Kind)| Panel {
            title: (*title).to_owned(),
            groups: self
                .summaries
                .iter()
                .filter(|summary| summary.variant.kind == *kind)
                .map(group)
                .collect(),
        };
        Chart {
            title: format!("One consumer reads up to {} deposits into PostgreSQL", number(messages)),
            subtitle: "published figures are of a consumer in Python on another machine: compare the ratios"
                .to_owned(),
            here: median_of(rounds),
            panels: panels.iter().map(panel).collect(),
        }
    }
}

impl Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n{}\n{}", self.variants(), self.latency(), self.ratios().table())
    }
}

fn group(summary: &Summary) -> Group {
    let label = summary.variant.name.split('_').map(str::to_owned);
    Group {
        label: label.collect(),
        published: summary.variant.published,
        here: summary.trials.iter().map(|trial| trial.messages_per_second().round()).collect(),
    }
}
