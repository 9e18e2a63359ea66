use serde::Serialize;

use super::super::chart::{Chart, Group, Panel, median_of, number};
use super::super::output::Table;
use super::super::statistics::median;
use super::Variant;
use super::trial::Trial;

/// All runs of a variant.
#[derive(Serialize)]
pub struct Summary {
    experiment: &'static str,
    pub variant: &'static str,
    runs: usize,
    lanes: u32,
    kills: u64,
    duplicates: u64,
    lost: u64,
    /// The median of the runs.
    messages_per_second: f64,
    /// To a1 in the same run; the median of the runs.
    ratio_to_a1: f64,
    published_messages_per_second: Option<f64>,
    published_ratio_to_a1: Option<f64>,
    trials: Vec<Trial>,
}

impl Summary {
    pub fn of_all<'a>(of: impl Iterator<Item = (&'a Variant, Vec<Trial>)>) -> Vec<Self> {
        let mut summaries: Vec<Self> = Vec::new();
        for (variant, trials) in of {
            // a1 is the first.
            let base = summaries.first().map_or(&trials, |first| &first.trials);
            let published_base =
                summaries.first().map_or(variant.published, |first| first.published_messages_per_second);
            let ratios = trials
                .iter()
                .zip(base)
                .map(|(trial, base)| trial.messages_per_second / base.messages_per_second);
            let summary = Self {
                experiment: "throughput",
                variant: variant.name,
                runs: trials.len(),
                lanes: variant.lanes,
                kills: 0,
                duplicates: trials.iter().map(|trial| trial.counts.duplicates).sum(),
                lost: trials.iter().map(|trial| trial.counts.lost).sum(),
                messages_per_second: median(trials.iter().map(|trial| trial.messages_per_second)),
                ratio_to_a1: median(ratios),
                published_messages_per_second: variant.published,
                published_ratio_to_a1: variant.published.zip(published_base).map(|(one, base)| one / base),
                trials,
            };
            summaries.push(summary);
        }
        summaries
    }
}

/// Nobody is killed here: whatever is doubled or lost is a mistake, also of the experiment.
pub fn failing(summary: &Summary, messages: u64) -> Vec<String> {
    let mut failings = Vec::new();
    for Trial { run, counts, .. } in &summary.trials {
        if (counts.events, counts.duplicates, counts.lost, counts.unknown) != (messages, 0, 0, 0) {
            failings.push(format!("{}, run {run}: {counts:?}", summary.variant));
        }
    }
    failings
}

pub fn table(summaries: &[Summary]) -> Table {
    let mut table = Table::with_head([
        "variant",
        "messages/s",
        "published",
        "ratio to a1",
        "published",
        "every run (messages/s)",
    ]);
    let figure = |figure: Option<f64>, digits| {
        figure.map_or_else(|| "-".to_owned(), |figure| format!("{figure:.digits$}"))
    };
    for summary in summaries {
        let runs: Vec<_> =
            summary.trials.iter().map(|trial| format!("{:.0}", trial.messages_per_second)).collect();
        table.add([
            summary.variant.to_owned(),
            figure(Some(summary.messages_per_second), 0),
            figure(summary.published_messages_per_second, 1),
            figure(Some(summary.ratio_to_a1), 2),
            figure(summary.published_ratio_to_a1, 2),
            runs.join(" "),
        ]);
    }
    table
}

pub fn chart(summaries: &[Summary], messages: u64) -> Chart {
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    let messages = messages as f64;
    let runs = summaries.iter().map(|summary| summary.runs).max().unwrap_or(0);
    let base = summaries.first().map(|summary| &summary.trials);
    let rates = |summary: &Summary| Group {
        label: name(summary.variant),
        published: summary.published_messages_per_second,
        here: summary.trials.iter().map(|trial| trial.messages_per_second.round()).collect(),
    };
    let ratios = |summary: &Summary| Group {
        label: name(summary.variant),
        published: summary.published_ratio_to_a1,
        here: summary
            .trials
            .iter()
            .zip(base.into_iter().flatten())
            .map(|(trial, base)| trial.messages_per_second / base.messages_per_second)
            .collect(),
    };
    Chart {
        title: format!("One consumer reads a topic of {} deposits into PostgreSQL", number(messages)),
        subtitle: "published figures are of a consumer in Python on another machine: compare the ratios"
            .to_owned(),
        here: median_of(runs),
        panels: vec![
            Panel { title: "messages a second".to_owned(), groups: summaries.iter().map(rates).collect() },
            Panel {
                title: "ratio to a1 of the same run".to_owned(),
                groups: summaries.iter().map(ratios).collect(),
            },
        ],
    }
}

fn name(variant: &str) -> Vec<String> {
    let explained: &[&str] = match variant {
        "a1" => &["auto-commit,", "one by one"],
        "a2" => &["auto-commit,", "100 at a time"],
        "b" => &["offset after", "the database"],
        "c_one_lane" => &["handstamp,", "one at a time"],
        _ => &["handstamp"],
    };
    std::iter::once(variant).chain(explained.iter().copied()).map(str::to_owned).collect()
}
