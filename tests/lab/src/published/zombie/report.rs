use serde::Serialize;

use super::super::chart::{Chart, Group, Panel};
use super::super::output::Table;
use super::trial::Trial;

/// What was published of a variant, in five runs together.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Published {
    pub evictions: u64,
    pub duplicates: u64,
}

/// All runs of a variant together, as they were published.
#[derive(Serialize)]
pub struct Summary {
    experiment: &'static str,
    pub variant: &'static str,
    runs: usize,
    kills: u64,
    stalls: u64,
    evictions: u64,
    duplicates: u64,
    lost: u64,
    #[serde(skip)]
    evicted: bool,
    published: Option<Published>,
    trials: Vec<Trial>,
}

impl Summary {
    pub fn of(
        variant: &'static str,
        evicted: bool,
        published: Option<Published>,
        trials: Vec<Trial>,
    ) -> Self {
        let sum = |what: fn(&Trial) -> u64| trials.iter().map(what).sum();
        Self {
            experiment: "zombie",
            variant,
            runs: trials.len(),
            kills: 0,
            stalls: sum(|trial| trial.stalls),
            evictions: sum(|trial| trial.evictions),
            duplicates: sum(|trial| trial.counts.duplicates),
            lost: sum(|trial| trial.counts.lost),
            evicted,
            published,
            trials,
        }
    }
}

/// What is wrong with a variant's runs: handstamp's own mistakes, and runs that show nothing.
pub fn failing(summary: &Summary) -> Vec<String> {
    let variant = summary.variant;
    let mut failings = Vec::new();
    if variant == "b" && summary.duplicates == 0 {
        failings.push("b doubled nothing: these stalls show nothing".to_owned());
    }
    for Trial { run, stalls, evictions, counts, .. } in &summary.trials {
        let mut fail = |what: String| failings.push(format!("{variant}, run {run}: {what}"));
        if variant != "b" && (counts.duplicates, counts.lost) != (0, 0) {
            fail(format!("{} applied twice, {} lost", counts.duplicates, counts.lost));
        }
        if counts.unknown > 0 {
            fail(format!("{} effects of no event", counts.unknown));
        }
        if *stalls == 0 {
            fail("no message stalled".to_owned());
        }
        if summary.evicted && evictions < stalls {
            fail(format!("{stalls} stalls led to {evictions} evictions only"));
        }
        if !summary.evicted && *evictions > 0 {
            fail(format!("a stalled handler got its process evicted, {evictions} times"));
        }
    }
    failings
}

pub fn table(summaries: &[Summary]) -> Table {
    let mut table = Table::with_head([
        "variant",
        "stalls",
        "evictions",
        "published",
        "duplicates",
        "published",
        "lost",
        "every run (evictions/duplicates/lost)",
    ]);
    for summary in summaries {
        let published = |what: fn(Published) -> u64| {
            summary.published.map_or_else(|| "-".to_owned(), |published| what(published).to_string())
        };
        let runs: Vec<_> = summary
            .trials
            .iter()
            .map(|Trial { evictions, counts, .. }| {
                format!("{evictions}/{}/{}", counts.duplicates, counts.lost)
            })
            .collect();
        table.add([
            summary.variant.to_owned(),
            summary.stalls.to_string(),
            summary.evictions.to_string(),
            published(|published| published.evictions),
            summary.duplicates.to_string(),
            published(|published| published.duplicates),
            summary.lost.to_string(),
            runs.join(" "),
        ]);
    }
    table
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
pub fn chart(summaries: &[Summary], stall_every: u64) -> Chart {
    let runs = summaries.iter().map(|summary| summary.runs).max().unwrap_or(0);
    let groups = |published: fn(Published) -> u64, here: fn(&Summary) -> u64| {
        let group = |summary: &Summary| Group {
            label: name(summary.variant),
            published: summary.published.map(|figures| published(figures) as f64),
            here: vec![here(summary) as f64],
        };
        summaries.iter().map(group).collect()
    };
    Chart {
        title: format!("Three consumers, of which one stalls 12 s at one message in {stall_every}"),
        subtitle: format!("max.poll.interval.ms = 10 s; published: 5 runs together; here: {runs}"),
        here: "measured here".to_owned(),
        panels: vec![
            Panel {
                title: "evictions".to_owned(),
                groups: groups(|published| published.evictions, |summary| summary.evictions),
            },
            Panel {
                title: "credited twice".to_owned(),
                groups: groups(|published| published.duplicates, |summary| summary.duplicates),
            },
        ],
    }
}

fn name(variant: &str) -> Vec<String> {
    let explained: &[&str] = match variant {
        "b" => &["offset after", "the database"],
        "c" => &["handstamp,", "polling stalls", "as well"],
        _ => &["handstamp,", "as it ships"],
    };
    std::iter::once(variant).chain(explained.iter().copied()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::super::super::books::Counts;
    use super::*;

    fn failings(variant: &'static str, evicted: bool, evictions: u64, duplicates: u64) -> usize {
        let counts = Counts { events: 10, duplicates, lost: 0, unknown: 0 };
        let trials = vec![Trial { run: 1, stalls: 10, evictions, counts, seconds: 1.0 }];
        failing(&Summary::of(variant, evicted, None, trials)).len()
    }

    #[test]
    fn one_duplicate_of_handstamp_fails_the_experiment() {
        assert_eq!(failings("c", true, 10, 0), 0);
        assert_eq!(failings("c", true, 10, 1), 1);
    }

    #[test]
    fn stalls_that_evict_nobody_show_nothing() {
        assert_eq!(failings("b", true, 9, 9), 1);
    }

    #[test]
    fn a_stalled_handler_that_gets_its_process_evicted_fails_the_experiment() {
        assert_eq!(failings("c_handler", false, 1, 0), 1);
    }
}
