use serde_json::{Map, Value, json};

use super::super::output::Table;
use super::super::statistics::median;
use super::latency::Idle;
use super::summary::Summary;

/// What is claimed: one variant, so many times another of the same round.
struct Claim {
    name: &'static str,
    of: &'static str,
    to: &'static str,
    at_least: f64,
    /// What bounds it: it may allow less.
    limit: Option<&'static str>,
}

const CLAIMS: [Claim; 11] = [
    claim("batch1_vs_handwritten", "batch1", "handwritten", 0.95),
    claim("batch1_vs_handwritten_kept", "batch1", "handwritten_kept", 0.95),
    Claim { limit: Some("raw"), ..claim("adaptive_vs_seed_loop", "adaptive", "seed_loop", 10.0) },
    claim("adaptive_vs_handwritten_batch", "adaptive", "handwritten_batch", 1.5),
    claim("adaptive_vs_raw", "adaptive", "raw", 0.85),
    Claim { limit: Some("bulk_raw"), ..claim("bulk_vs_seed_loop", "bulk", "seed_loop", 100.0) },
    claim("bulk_vs_handwritten_bulk", "bulk", "handwritten_bulk", 1.1),
    claim("bulk_vs_raw", "bulk", "bulk_raw", 0.8),
    claim("write_only_vs_seed_loop", "write_only", "seed_loop", 30.0),
    claim("adaptive_vs_no_inbox", "adaptive", "no_inbox", 0.95),
    claim("bulk_vs_no_inbox", "bulk", "bulk_no_inbox", 0.5),
];

const IDLE: &str = "idle_latency_vs_handwritten";
const IDLE_AT_MOST: f64 = 1.3;

const fn claim(name: &'static str, of: &'static str, to: &'static str, at_least: f64) -> Claim {
    Claim { name, of, to, at_least, limit: None }
}

/// What came of the claims, in their order; none where a variant was not run.
pub struct Ratios {
    claims: Vec<(&'static Claim, Option<f64>, Option<f64>)>,
    idle: Option<f64>,
}

impl Ratios {
    pub fn of(summaries: &[Summary], idle: Option<&Idle>) -> Self {
        let claims = CLAIMS.iter().map(|claim| {
            let limit = claim.limit.and_then(|limit| ratio(summaries, limit, claim.to));
            (claim, ratio(summaries, claim.of, claim.to), limit)
        });
        Self { claims: claims.collect(), idle: idle.map(Idle::ratio) }
    }

    pub fn json(&self) -> Value {
        let claims =
            self.claims.iter().map(|(claim, ratio, _)| (claim.name.to_owned(), json!(ratio.map(rounded))));
        let idle = (IDLE.to_owned(), json!(self.idle.map(rounded)));
        claims.chain([idle]).collect::<Map<_, _>>().into()
    }

    pub fn table(&self) -> Table {
        let mut table = Table::with_head(["ratio", "measured", "target", "met", "the raw limit allows"]);
        for (claim, ratio, limit) in &self.claims {
            table.add([
                claim.name.to_owned(),
                figure(*ratio),
                format!("at least {}", claim.at_least),
                met(ratio.map(|ratio| ratio >= claim.at_least)),
                figure(*limit),
            ]);
        }
        let idle = self.idle.map(|ratio| ratio <= IDLE_AT_MOST);
        table.add([
            IDLE.to_owned(),
            figure(self.idle),
            format!("at most {IDLE_AT_MOST}"),
            met(idle),
            figure(None),
        ]);
        table
    }
}

/// The median of the rounds that both have.
pub fn ratio(summaries: &[Summary], of: &str, to: &str) -> Option<f64> {
    let find = |name: &str| summaries.iter().find(|summary| summary.variant.name == name);
    let (of, to) = (find(of)?, find(to)?);
    let ratios: Vec<_> = of
        .trials
        .iter()
        .filter_map(|trial| {
            let base = to.trials.iter().find(|base| base.round == trial.round)?;
            Some(trial.messages_per_second() / base.messages_per_second())
        })
        .collect();
    (!ratios.is_empty()).then(|| median(ratios))
}

fn met(met: Option<bool>) -> String {
    met.map_or("-", |met| if met { "yes" } else { "no" }).to_owned()
}

fn figure(ratio: Option<f64>) -> String {
    ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}"))
}

/// As many digits as mean something.
fn rounded(ratio: f64) -> f64 {
    (ratio * 1_000.0).round() / 1_000.0
}

#[cfg(test)]
mod tests {
    use super::super::super::consumers::Reading;
    use super::super::trial::Trial;
    use super::super::variant::VARIANTS;
    use super::*;

    /// A variant that did so many messages in a second, round by round.
    fn summary(name: &str, rounds: &[(u64, u64)]) -> Summary {
        let variant = VARIANTS.iter().find(|variant| variant.name == name).unwrap();
        let reading = Reading { micros: 1_000_000, consumer_cpu_ms: 0, database_cpu_ms: None, peak_kb: 0 };
        let trials = rounds.iter().map(|(round, messages)| Trial {
            round: *round,
            messages: *messages,
            transactions: 1,
            reading,
        });
        Summary { variant, trials: trials.collect() }
    }

    #[test]
    fn every_claim_is_of_variants_that_are_run() {
        let run = |name: &str| VARIANTS.iter().any(|variant| variant.name == name);
        for claim in &CLAIMS {
            assert!(run(claim.of) && run(claim.to) && claim.limit.is_none_or(run), "{}", claim.name);
        }
    }

    #[test]
    fn a_variant_is_compared_with_the_other_of_the_same_round() {
        // Both were slow in the first round, and the third failed on one side.
        let summaries = [
            summary("adaptive", &[(1, 100), (2, 1_000), (3, 9_000)]),
            summary("seed_loop", &[(1, 10), (2, 100)]),
        ];
        assert_eq!(ratio(&summaries, "adaptive", "seed_loop").map(rounded), Some(10.0));
    }

    #[test]
    fn what_was_not_run_has_no_ratio() {
        let summaries = [summary("adaptive", &[(1, 1_000)]), summary("seed_loop", &[])];
        assert_eq!(ratio(&summaries, "adaptive", "seed_loop"), None);
        assert_eq!(ratio(&summaries, "adaptive", "raw"), None);
    }
}
