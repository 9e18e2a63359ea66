use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use futures_util::future::try_join_all;
use rdkafka::types::RDKafkaApiKey::{
    self, Fetch, FindCoordinator, Heartbeat, JoinGroup, OffsetFetch, SyncGroup,
};
use rdkafka::types::RDKafkaRespErr::{
    self, RD_KAFKA_RESP_ERR__TRANSPORT, RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS,
    RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE, RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID,
    RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED, RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION,
    RD_KAFKA_RESP_ERR_KAFKA_STORAGE_ERROR, RD_KAFKA_RESP_ERR_NO_ERROR, RD_KAFKA_RESP_ERR_NOT_COORDINATOR,
    RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION, RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE,
    RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS, RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED,
    RD_KAFKA_RESP_ERR_UNKNOWN_LEADER_EPOCH, RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID,
    RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, RD_KAFKA_RESP_ERR_UNSTABLE_OFFSET_COMMIT,
};

use crate::faults::ledger::index;
use crate::faults::mock::{BROKERS, Mock};
use crate::faults::row::{Ask, Expects, Fault, Row};
use crate::faults::stage::{Post, Setup, Stage};
use crate::faults::tally::Tally;
use crate::faults::trial::Trial;

pub const ROW: Row = Row {
    id: "F15",
    what: "requests to the brokers that are answered with errors, and coordinators that move",
    asks: &[
        Ask::new(Fault::GroupErrors, 18, 90),
        Ask::new(Fault::OffsetReadErrors, 7, 35),
        Ask::new(Fault::FetchErrors, 6, 30),
        Ask::new(Fault::CoordinatorMoves, 3, 15),
    ],
    expects: Expects { duplicates: false, takeovers: false, no_redelivery: false },
    run: |trial| Box::pin(run(trial)),
};

const STAGES: usize = 4;

/// An error and the request that it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kind(RDKafkaApiKey, RDKafkaRespErr);

const KINDS: [Kind; 32] = [
    Kind(Heartbeat, RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID),
    Kind(Heartbeat, RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION),
    Kind(Heartbeat, RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS),
    Kind(Heartbeat, RD_KAFKA_RESP_ERR_NOT_COORDINATOR),
    Kind(Heartbeat, RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE),
    Kind(Heartbeat, RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID),
    Kind(Heartbeat, RD_KAFKA_RESP_ERR__TRANSPORT),
    Kind(JoinGroup, RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID),
    Kind(JoinGroup, RD_KAFKA_RESP_ERR_NOT_COORDINATOR),
    Kind(JoinGroup, RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE),
    Kind(JoinGroup, RD_KAFKA_RESP_ERR__TRANSPORT),
    Kind(SyncGroup, RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID),
    Kind(SyncGroup, RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION),
    Kind(SyncGroup, RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS),
    Kind(SyncGroup, RD_KAFKA_RESP_ERR_NOT_COORDINATOR),
    Kind(SyncGroup, RD_KAFKA_RESP_ERR__TRANSPORT),
    Kind(FindCoordinator, RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE),
    Kind(FindCoordinator, RD_KAFKA_RESP_ERR__TRANSPORT),
    Kind(FindCoordinator, RD_KAFKA_RESP_ERR_NO_ERROR),
    Kind(OffsetFetch, RD_KAFKA_RESP_ERR_NOT_COORDINATOR),
    Kind(OffsetFetch, RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS),
    Kind(OffsetFetch, RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART),
    Kind(OffsetFetch, RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED),
    Kind(OffsetFetch, RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED),
    Kind(OffsetFetch, RD_KAFKA_RESP_ERR_UNSTABLE_OFFSET_COMMIT),
    Kind(OffsetFetch, RD_KAFKA_RESP_ERR__TRANSPORT),
    Kind(Fetch, RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION),
    Kind(Fetch, RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART),
    Kind(Fetch, RD_KAFKA_RESP_ERR_KAFKA_STORAGE_ERROR),
    Kind(Fetch, RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED),
    Kind(Fetch, RD_KAFKA_RESP_ERR_UNKNOWN_LEADER_EPOCH),
    Kind(Fetch, RD_KAFKA_RESP_ERR__TRANSPORT),
];
/// Stops partitions that are within their logs for half a minute: the large size alone has time for it.
const SLOW: Kind = Kind(Fetch, RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE);

impl Kind {
    /// None where a coordinator only moves.
    fn fault(self) -> Option<Fault> {
        match self.0 {
            _ if self.1 == RD_KAFKA_RESP_ERR_NO_ERROR => None,
            OffsetFetch => Some(Fault::OffsetReadErrors),
            Fetch => Some(Fault::FetchErrors),
            _ => Some(Fault::GroupErrors),
        }
    }
}

async fn run(trial: Arc<Trial>) -> Result<()> {
    let each = trial.asked(Fault::CoordinatorMoves).div_ceil(3);
    let slow = (each > 1).then_some(SLOW);
    let tally = Tally::new(each, KINDS.into_iter().chain(slow));
    try_join_all((0..STAGES).map(|_| on_a_stage(&trial, &tally))).await?;
    for kind in tally.split().1 {
        trial.blame(format!("not {each} times: {kind:?}"));
    }
    Ok(())
}

async fn on_a_stage(trial: &Trial, tally: &Tally<Kind>) -> Result<()> {
    let stage = trial.stage(Setup::default().rate(100).mocked()).await?;
    let mut coordinator = 0;
    let mock = stage.mock.as_ref().context("it was set up on one")?;
    mock.coordinate(&stage.group, BROKERS[coordinator])?;
    let members = [Post::fixed("0"), Post::dynamic("1")].map(|post| stage.enlist(&post));
    ensure!(stage.journal.until_applied(20).await, "nothing is applied from the start");
    while let Some(kind) = tally.next() {
        let (floor, starts) = (stage.committed(), stage.journal.starts().len());
        let seen = is_seen(trial, &stage, mock, &mut coordinator, kind).await;
        tally.note(kind, seen.with_context(|| format!("after {kind:?}"))?);
        let starts = stage.journal.starts().split_off(starts);
        let back = |(partition, offset): &&(i32, i64)| *offset < floor[index(*partition)];
        if let Some((partition, offset)) = starts.iter().find(back) {
            trial.blame(format!("{kind:?}: {partition} was started at {offset}, below what was committed"));
        }
    }
    trial.blame_clients_that_do_not_end(&members).await?;
    trial.close(stage, members.into()).await
}

/// Whether a member's request was answered so and the group went on.
async fn is_seen(
    trial: &Trial,
    stage: &Stage,
    mock: &Mock,
    coordinator: &mut usize,
    kind: Kind,
) -> Result<bool> {
    let Kind(request, error) = kind;
    // The oracle's own client would ask as well.
    let unwatched = stage.unwatched().await;
    if let Some(fault) = kind.fault() {
        trial.injected(fault);
    }
    let rebuilds = stage.journal.counts().rebuilds;
    let here = &BROKERS[*coordinator..=*coordinator];
    let given = match request {
        FindCoordinator => {
            // Asked of either.
            let answer = mock.prepare(&BROKERS, request, error)?;
            *coordinator = 1 - *coordinator;
            is_moved(trial, stage, mock, *coordinator).await? && mock.until_given(&answer).await?
        }
        JoinGroup | SyncGroup | OffsetFetch => {
            let answer = mock.prepare(here, request, error)?;
            let prompt = mock.prepare(here, Heartbeat, RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS)?;
            mock.until_given(&prompt).await? && mock.until_given(&answer).await?
        }
        // The other broker leads half of all partitions, and has nothing to say.
        Fetch => mock.until_given(&mock.prepare(&BROKERS[..1], request, error)?).await?,
        _ => mock.until_given(&mock.prepare(here, request, error)?).await?,
    };
    drop(unwatched);
    let fenced = error == RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID;
    ensure!(!fenced || stage.journal.until_rebuilt(rebuilds + 1).await, "the client was not made anew");
    ensure!(stage.until_caught_up().await, "records are not dealt with");
    if given && let Some(fault) = kind.fault() {
        trial.observed(fault);
    }
    Ok(given)
}

/// Makes another broker the coordinator; whether a member found it.
async fn is_moved(trial: &Trial, stage: &Stage, mock: &Mock, broker: usize) -> Result<bool> {
    trial.injected(Fault::CoordinatorMoves);
    let heard = mock.prepare(&BROKERS[broker..=broker], Heartbeat, RD_KAFKA_RESP_ERR_NO_ERROR)?;
    mock.coordinate(&stage.group, BROKERS[broker])?;
    let moved = mock.until_given(&heard).await?;
    if moved {
        trial.observed(Fault::CoordinatorMoves);
    }
    Ok(moved)
}
