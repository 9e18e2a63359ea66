//! R34 with a report or a backup beside it: a snapshot that is held open keeps every dead version of every row.

use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::json;
use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection, PgConnection};
use tokio::time::{Instant, sleep};

use super::super::books::Books;
use super::super::consumers::Consumer;
use super::super::feed::Feed;
use super::super::group::Group;
use super::super::member::Launch;
use super::super::output::{Output, Progress, Table};
use super::trial::LANES;

/// So many that none gets many deposits: the versions that pile up are those of the progress rows.
const ACCOUNTS: i64 = 600_000;
/// How many messages are always there to be read.
const BACKLOG: u64 = 200_000;
/// How many are added at a time.
const MORE: u64 = 20_000;
/// Not counted: the pace has to be found first.
const WARM_UP: Duration = Duration::from_secs(10);
const MINUTE: Duration = Duration::from_mins(1);
/// The last minute's part of the first.
const AT_LEAST: f64 = 0.8;

/// How many messages were done when.
struct Course(Vec<(Duration, u64)>);

pub async fn run(minutes: f64, output: &Output) -> Result<Vec<String>> {
    let long = Duration::from_secs_f64(minutes * 60.0);
    let mut books = Books::of(ACCOUNTS).await?;
    books.require_durability().await?;
    let mut feed = Feed::over(ACCOUNTS).await;
    feed.produce(BACKLOG).await?;
    let mut snapshot = hold(&books.url()).await?;
    let group = handstamp_tests::unique("group");
    let launch = Launch {
        consumer: Consumer::C,
        topic: feed.topic().to_owned(),
        group: group.clone(),
        database: books.url(),
        options: vec![LANES.to_owned()],
    };
    let member = launch.start()?;
    let group = Group::of(&group, feed.topic())?;
    let course = watch(&group, &mut feed, long).await?;
    member.stop().await;
    sqlx::query("SELECT 1").execute(&mut snapshot).await?;
    let applied = group.committed().await?.unwrap_or_default();
    let failings = books.balance(applied, true).await?.into_iter().collect();
    feed.close().await;
    report(minutes, &course, output)?;
    Ok(failings)
}

/// Takes a snapshot, which lives as long as the connection.
async fn hold(url: &str) -> Result<PgConnection> {
    let mut connection = PgConnection::connect_with(&url.parse::<PgConnectOptions>()?).await?;
    sqlx::raw_sql("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM accounts")
        .execute(&mut connection)
        .await?;
    Ok(connection)
}

/// Keeps the backlog up and looks at what is committed, for so long after the first messages were.
async fn watch(group: &Group, feed: &mut Feed, long: Duration) -> Result<Course> {
    let line = Progress::default().line("snapshot", long.as_secs());
    let (mut started, mut seen) = (None, Vec::new());
    loop {
        sleep(Duration::from_millis(200)).await;
        let Some(done) = group.committed().await?.filter(|done| *done > 0) else { continue };
        let started = *started.get_or_insert_with(Instant::now) + WARM_UP;
        ensure!(done < feed.produced(), "the backlog ran dry: the producer is slower than the consumer");
        if started <= Instant::now() {
            seen.push((started.elapsed(), done));
            line.set_position(started.elapsed().as_secs());
        }
        if started + long <= Instant::now() {
            line.finish_and_clear();
            return Ok(Course(seen));
        }
        if done + BACKLOG > feed.produced() {
            feed.produce(MORE).await?;
            feed.forget_ledger();
        }
    }
}

fn report(minutes: f64, course: &Course, output: &Output) -> Result<()> {
    let [first, last] = course.ends();
    let ratio = last / first;
    let mut table = Table::with_head(["", "messages/s"]);
    table.add(["first minute".to_owned(), format!("{first:.0}")]);
    table.add(["last minute".to_owned(), format!("{last:.0}")]);
    let met = if ratio >= AT_LEAST { "met" } else { "not met" };
    table.add([format!("ratio, at least {AT_LEAST}: {met}"), format!("{ratio:.2}")]);
    let result = json!({
        "experiment": "old_snapshot",
        "minutes": minutes,
        "first_minute_messages_per_second": first,
        "last_minute_messages_per_second": last,
        "ratio": ratio,
        "at_least": AT_LEAST,
    });
    output.print(&[result], &table)
}

impl Course {
    /// Messages a second in the first minute and in the last, or in the first third and the last.
    fn ends(&self) -> [f64; 2] {
        let end = self.0.last().map_or(Duration::ZERO, |(at, _)| *at);
        let window = MINUTE.min(end / 3);
        [self.rate(Duration::ZERO, window), self.rate(end.saturating_sub(window), end)]
    }

    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    fn rate(&self, from: Duration, to: Duration) -> f64 {
        let mut within = self.0.iter().filter(|(at, _)| (from..=to).contains(at));
        let first = within.next();
        let last = within.next_back();
        match (first, last) {
            (Some((from, before)), Some((to, after))) => {
                after.saturating_sub(*before) as f64 / to.saturating_sub(*from).as_secs_f64()
            }
            _ => 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_of_a_course_are_its_first_minute_and_its_last() {
        let seconds = |range: std::ops::RangeInclusive<u64>, rate: u64, before: u64| {
            let start = *range.start();
            range.map(move |second| (Duration::from_secs(second), before + (second - start) * rate))
        };
        let course: Vec<_> = seconds(0..=100, 1_000, 0).chain(seconds(101..=300, 500, 100_500)).collect();
        assert_eq!(Course(course).ends().map(|rate| format!("{rate:.0}")), ["1000", "500"]);
    }
}
