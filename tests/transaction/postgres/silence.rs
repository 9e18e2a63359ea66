//! A link that falls silent under a statement: the job ends, the connection goes, and the message is
//! applied once afterwards.
//!
//! The limits are long, so once nothing answers any more the clock runs ahead to the next one.

use std::time::Duration;

use handstamp::{Disposition, FailureKind, apply};
use tokio::time::{self, Instant, timeout};

use super::handlers::Credits;
use super::{effects, new_database};
use crate::database::{PATIENCE, server};
use crate::link::{Cut, Link};
use crate::messages::{kind, message};

/// How the job ended whose statement with these bytes was not answered, and how long that took.
///
/// Run again it finds no trace of the first run, and a connection that answers.
async fn silence_at(statement: &'static [u8]) -> (FailureKind, Duration) {
    let database = new_database().await;
    let link = Link::to(&server()).await;
    let pool = database.pool_as(|options| link.route(options)).await;
    apply::<Credits>(&pool, &message("warm-up")).await.unwrap();
    link.cut(Cut::Silent(statement));
    let event = message("evt-1");
    let run = async {
        let failed = timeout(2 * PATIENCE, apply::<Credits>(&pool, &event)).await;
        (kind(failed.expect("it does not hang")), Instant::now())
    };
    let silence = async {
        link.silenced().await;
        time::pause();
        Instant::now()
    };
    let ((kind, ended), silent) = tokio::join!(run, silence);
    time::resume();
    assert_eq!(apply::<Credits>(&pool, &event).await.unwrap(), Disposition::Applied);
    assert_eq!(effects(&database).await, ["warm-up", "evt-1"]);
    (kind, ended - silent)
}

/// With what passed between the statement and the moment its silence was noticed.
fn assert_about(took: Duration, limit: Duration) {
    let second = Duration::from_secs(1);
    assert!(took + second > limit && took < limit + second, "{took:?}");
}

#[tokio::test]
async fn a_begin_without_an_answer_is_the_environment_after_five_seconds() {
    let (kind, took) = silence_at(b"BEGIN").await;
    assert_eq!(kind, FailureKind::Environment);
    assert_about(took, Duration::from_secs(5));
}

#[tokio::test]
async fn a_claim_without_an_answer_is_the_environment_after_ten_seconds() {
    // The first statement that carries the key.
    let (kind, took) = silence_at(b"evt-1").await;
    assert_eq!(kind, FailureKind::Environment);
    assert_about(took, Duration::from_secs(10));
}

#[tokio::test]
async fn a_commit_without_an_answer_is_unknown_after_thirty_seconds() {
    let (kind, took) = silence_at(b"COMMIT\0").await;
    assert_eq!(kind, FailureKind::Unknown);
    assert_about(took, Duration::from_secs(30));
}
