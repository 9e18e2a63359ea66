use super::{JobId, Millis};

/// What a job is tried again for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Cause {
    Environment,
    Unknown,
    Failure,
}

/// How long to wait before the retry after `failed` failures in a row, from 1.
///
/// Doubles up to a cap. The upper half is random, so that lanes that failed together do not come back
/// together.
pub(super) fn delay(cause: Cause, failed: u32, seed: u64, job: JobId) -> Millis {
    let (first, cap) = match cause {
        Cause::Environment => (100, 10_000),
        Cause::Unknown => (50, 10_000),
        Cause::Failure => (100, 30_000),
    };
    let doublings = failed.saturating_sub(1).min(20);
    let full = (first << doublings).min(cap);
    let half = full / 2;
    Millis(half + splitmix64(seed ^ job.0) % (full - half + 1))
}

/// <https://prng.di.unimi.it/splitmix64.c>
fn splitmix64(seed: u64) -> u64 {
    let mut mixed = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_their_cap() {
        for (cause, first, cap) in
            [(Cause::Environment, 100, 10_000), (Cause::Unknown, 50, 10_000), (Cause::Failure, 100, 30_000)]
        {
            for failed in 1..40 {
                let full = (first << (failed - 1).min(20)).min(cap);
                let Millis(delay) = delay(cause, failed, 7, JobId(u64::from(failed)));
                assert!((full / 2..=full).contains(&delay), "{cause:?} {failed}: {delay} of {full}");
            }
        }
    }

    #[test]
    fn jobs_that_fail_together_do_not_return_together() {
        let delays: std::collections::BTreeSet<_> =
            (0..50).map(|job| delay(Cause::Environment, 8, 1, JobId(job))).collect();
        assert!(delays.len() > 40);
    }
}
