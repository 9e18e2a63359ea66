use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use futures_util::future::try_join_all;
use rdkafka::types::RDKafkaApiKey::OffsetCommit;
use rdkafka::types::RDKafkaRespErr::{
    self, RD_KAFKA_RESP_ERR__TRANSPORT, RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS,
    RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID, RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION,
    RD_KAFKA_RESP_ERR_NOT_COORDINATOR, RD_KAFKA_RESP_ERR_OFFSET_METADATA_TOO_LARGE,
    RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS, RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT,
    RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID,
};

use crate::faults::row::{Ask, Expects, Fault, Row};
use crate::faults::stage::{Post, Setup, Stage};
use crate::faults::tally::Tally;
use crate::faults::trial::Trial;

pub const ROW: Row = Row {
    id: "F14",
    what: "offset commits that are answered with errors",
    asks: &[Ask::new(Fault::CommitErrors, 20, 300), Ask::new(Fault::CommitErrorKinds, 10, 10)],
    expects: Expects { duplicates: false, takeovers: false, no_redelivery: false },
    run: |trial| Box::pin(run(trial)),
};

const STAGES: usize = 4;
const COORDINATOR: &[i32] = &[1];
const ERRORS: [RDKafkaRespErr; 10] = [
    RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID,
    RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION,
    RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS,
    RD_KAFKA_RESP_ERR_NOT_COORDINATOR,
    RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS,
    RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT,
    RD_KAFKA_RESP_ERR_OFFSET_METADATA_TOO_LARGE,
    RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED,
    RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID,
    RD_KAFKA_RESP_ERR__TRANSPORT,
];

async fn run(trial: Arc<Trial>) -> Result<()> {
    let each = trial.asked(Fault::CommitErrors).div_ceil(u64::try_from(ERRORS.len())?);
    let tally = Tally::new(each, ERRORS);
    try_join_all((0..STAGES).map(|_| on_a_stage(&trial, &tally))).await?;
    let (seen, missed) = tally.split();
    for _ in seen {
        trial.injected(Fault::CommitErrorKinds);
        trial.observed(Fault::CommitErrorKinds);
    }
    for error in missed {
        trial.blame(format!("not {each} times: {error:?}"));
    }
    Ok(())
}

async fn on_a_stage(trial: &Trial, tally: &Tally<RDKafkaRespErr>) -> Result<()> {
    let stage = trial.stage(Setup::default().rate(100).mocked()).await?;
    let mock = stage.mock.as_ref().context("it was set up on one")?;
    mock.coordinate(&stage.group, COORDINATOR[0])?;
    let members = [Post::fixed("0"), Post::dynamic("1")].map(|post| stage.enlist(&post));
    ensure!(stage.journal.until_applied(20).await, "nothing is applied from the start");
    while let Some(error) = tally.next() {
        trial.injected(Fault::CommitErrors);
        let seen = is_seen(&stage, error).await.with_context(|| format!("after {error:?}"))?;
        tally.note(error, seen);
        if seen {
            trial.observed(Fault::CommitErrors);
        }
    }
    trial.blame_clients_that_do_not_end(&members).await?;
    trial.close(stage, members.into()).await
}

/// Whether a commit was answered so and the group went on. Only a fenced client has to be made anew.
async fn is_seen(stage: &Stage, error: RDKafkaRespErr) -> Result<bool> {
    let mock = stage.mock.as_ref().context("it was set up on one")?;
    let rebuilds = stage.journal.counts().rebuilds;
    let answer = mock.prepare(COORDINATOR, OffsetCommit, error)?;
    let given = mock.until_given(&answer).await?;
    let fenced = error == RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID;
    ensure!(!fenced || stage.journal.until_rebuilt(rebuilds + 1).await, "the client was not made anew");
    ensure!(stage.until_caught_up().await, "records are not dealt with");
    Ok(given)
}
