//! Waiting for something to become true.

use std::panic::Location;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

/// Asks again and again until the probe gives `Ok`, and panics with its last error after `within`.
///
/// ```
/// # use std::time::Duration;
/// # use anyhow::ensure;
/// # use handstamp_tests::eventually;
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// # async fn balance() -> i64 { 5 }
/// eventually(Duration::from_secs(10), async || {
///     let balance = balance().await;
///     ensure!(balance == 5, "the balance is {balance}, not 5");
///     Ok(())
/// })
/// .await;
/// # }
/// ```
#[track_caller]
pub fn eventually<T>(
    within: Duration,
    mut probe: impl AsyncFnMut() -> anyhow::Result<T>,
) -> impl Future<Output = T> {
    let caller = Location::caller();
    async move {
        let deadline = Instant::now() + within;
        let mut last = None;
        while Instant::now() < deadline {
            match timeout_at(deadline, probe()).await {
                Ok(Ok(value)) => return value,
                Ok(Err(error)) => last = Some(error),
                Err(_) => break,
            }
            sleep(Duration::from_millis(20)).await;
        }
        match last {
            Some(error) => panic!("waited {within:?} at {caller}: {error:#}"),
            None => panic!("waited {within:?} at {caller}: not one answer"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use anyhow::{bail, ensure};

    use super::*;

    #[tokio::test]
    async fn what_becomes_true_is_returned() {
        let mut asked = 0;
        let answer = eventually(Duration::from_secs(10), async || {
            asked += 1;
            ensure!(asked == 3, "asked {asked} times");
            Ok(asked)
        })
        .await;
        assert_eq!(answer, 3);
    }

    #[tokio::test]
    #[should_panic(expected = "the balance is 3, not 5")]
    async fn the_last_error_is_told() {
        eventually::<()>(Duration::from_millis(50), async || bail!("the balance is 3, not 5")).await;
    }

    #[tokio::test]
    #[should_panic(expected = "not one answer")]
    async fn a_probe_that_hangs_does_not_hang_the_test() {
        eventually::<()>(Duration::from_millis(50), async || pending().await).await;
    }
}
