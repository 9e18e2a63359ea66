use serde::Serialize;

use super::super::chart::{Chart, Group, Panel, median_of, number};
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
    // It commits every few seconds: kills that double nothing struck nobody at work, or nobody counts.
    if variant == "a1" && summary.duplicates_total == 0 {
        failings.push("a1 doubled nothing: these kills show nothing".to_owned());
    }
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

pub fn chart(summaries: &[Summary], messages: u64, kills: usize) -> Chart {
    let runs = summaries.iter().map(|summary| summary.runs).max().unwrap_or(0);
    let groups = |published: fn(&Published) -> u64, here: fn(&Trial) -> u64| {
        summaries
            .iter()
            .map(|summary| Group {
                label: name(summary.variant),
                published: Some(count(published(&summary.published))),
                here: summary.trials.iter().map(|trial| count(here(trial))).collect(),
            })
            .collect()
    };
    Chart {
        title: format!(
            "A consumer that is killed {kills} times while it credits {} deposits",
            number(count(messages))
        ),
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
fn count(of: u64) -> f64 {
    of as f64
}

#[cfg(test)]
mod tests {
    use super::super::super::books::Counts;
    use super::*;

    const ASKED: u64 = 20;

    fn failings(variant: &'static str, kills: u64, duplicates: u64, lost: u64) -> usize {
        let counts = Counts { events: 10, duplicates, lost, unknown: 0 };
        let trials = vec![Trial { run: 1, kills, counts, seconds: 1.0 }];
        failing(&Summary::of(variant, Published { duplicates: 0, lost: 0 }, trials), ASKED).len()
    }

    #[test]
    fn one_duplicate_or_one_loss_of_handstamp_fails_the_experiment() {
        assert_eq!(failings("c", ASKED, 0, 0), 0);
        assert_eq!(failings("c", ASKED, 1, 0), 1);
        assert_eq!(failings("c", ASKED, 0, 1), 1);
    }

    #[test]
    fn what_the_others_double_and_lose_is_a_result() {
        assert_eq!(failings("a2", ASKED, 2_881, 63), 0);
    }

    #[test]
    fn a_run_with_fewer_kills_than_asked_for_fails() {
        assert_eq!(failings("b", ASKED - 1, 5, 0), 1);
    }
}
