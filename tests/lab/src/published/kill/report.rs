use serde::Serialize;

use super::super::chart::{Chart, Group, Panel, median_of};
use super::super::output::Table;
use super::super::statistics::median;
use super::trial::Trial;

/// What was published of a variant: medians.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Published {
    pub duplicates: u64,
    pub lost: u64,
}

/// All runs of a variant.
#[derive(Serialize)]
pub struct Summary {
    experiment: &'static str,
    pub variant: &'static str,
    runs: usize,
    /// In all runs together.
    kills: u64,
    /// Medians of the runs.
    duplicates: u64,
    lost: u64,
    messages_per_second: f64,
    /// In all runs together.
    duplicates_total: u64,
    lost_total: u64,
    published: Published,
    trials: Vec<Trial>,
}

impl Summary {
    pub fn of(variant: &'static str, published: Published, trials: Vec<Trial>) -> Self {
        let sum = |what: fn(&Trial) -> u64| trials.iter().map(what).sum();
        let middle = |what: fn(&Trial) -> u64| median(trials.iter().map(what));
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
        let rate = |trial: &Trial| trial.counts.events as f64 / trial.seconds;
        Self {
            experiment: "kill",
            variant,
            runs: trials.len(),
            kills: sum(|trial| trial.kills),
            duplicates: middle(|trial| trial.counts.duplicates),
            lost: middle(|trial| trial.counts.lost),
            messages_per_second: median(trials.iter().map(rate)),
            duplicates_total: sum(|trial| trial.counts.duplicates),
            lost_total: sum(|trial| trial.counts.lost),
            published,
            trials,
        }
    }
}

/// What is wrong with a variant's runs: handstamp's own mistakes, and runs that show nothing.
pub fn failing(summary: &Summary, asked: u64) -> Vec<String> {
    let variant = summary.variant;
    let mut failings = Vec::new();
    for Trial { run, kills, counts, .. } in &summary.trials {
        if variant == "c" && (counts.duplicates, counts.lost) != (0, 0) {
            failings.push(format!(
                "{variant}, run {run}: {} applied twice, {} lost",
                counts.duplicates, counts.lost
            ));
        }
        if counts.unknown > 0 {
            failings.push(format!("{variant}, run {run}: {} effects of no event", counts.unknown));
        }
        if *kills < asked {
            failings.push(format!("{variant}, run {run}: all was done after {kills} kills of {asked}"));
        }
    }
    failings
}

pub fn table(summaries: &[Summary]) -> Table {
    let mut table = Table::with_head([
        "variant",
        "duplicates",
        "published",
        "lost",
        "published",
        "kills",
        "every run (duplicates/lost)",
    ]);
    for summary in summaries {
        let runs: Vec<_> = summary
            .trials
            .iter()
            .map(|trial| format!("{}/{}", trial.counts.duplicates, trial.counts.lost))
            .collect();
        table.add([
            summary.variant.to_owned(),
            summary.duplicates.to_string(),
            summary.published.duplicates.to_string(),
            summary.lost.to_string(),
            summary.published.lost.to_string(),
            summary.kills.to_string(),
            runs.join(" "),
        ]);
    }
    table
}

pub fn chart(summaries: &[Summary]) -> Chart {
    let runs = summaries.iter().map(|summary| summary.runs).max().unwrap_or(0);
    let groups = |published: fn(&Published) -> u64, here: fn(&Trial) -> u64| {
        summaries
            .iter()
            .map(|summary| Group {
                label: name(summary.variant),
                published: Some(number(published(&summary.published))),
                here: summary.trials.iter().map(|trial| number(here(trial))).collect(),
            })
            .collect()
    };
    Chart {
        title: "A consumer that is killed 20 times while it credits 10,000 deposits".to_owned(),
        subtitle: "session.timeout.ms = 6 s, the handler sleeps 10 ms, each lives 1 to 8 s at work"
            .to_owned(),
        here: median_of(runs),
        panels: vec![
            Panel {
                title: "credited twice".to_owned(),
                groups: groups(|published| published.duplicates, |trial| trial.counts.duplicates),
            },
            Panel {
                title: "lost".to_owned(),
                groups: groups(|published| published.lost, |trial| trial.counts.lost),
            },
        ],
    }
}

fn name(variant: &str) -> Vec<String> {
    let explained: &[&str] = match variant {
        "a1" => &["auto-commit,", "one by one"],
        "a2" => &["auto-commit,", "100 at a time"],
        "b" => &["offset after", "the database"],
        _ => &["handstamp"],
    };
    std::iter::once(variant).chain(explained.iter().copied()).map(str::to_owned).collect()
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
fn number(count: u64) -> f64 {
    count as f64
}
