//! What a message costs in code of handstamp's alone, without Kafka and a database:
//!
//! - `core`: the decisions, from the record that was read to the one that is done;
//! - `course`: the same for the steps of its transaction;
//! - `read`: its key and what the handler takes of it, by the code that the attribute wrote.
//!
//! `cargo bench -p handstamp-tests --bench costs` tells times. With `COST=core:500 MESSAGES=100000` in its environment the
//! program does that once, for one that counts instructions.

use std::hint::black_box;

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput};
use handstamp::flow::{
    Action, Answer, Config, Core, Course, Epoch, Event, Found, Intent, LaneStart, Member, Millis, NextOffset,
    Offset, Order, Outcome, Place, Step, Tp,
};
use handstamp::{Arguments, Handler, Json, Message, Position, idempotent};
use serde::Deserialize;
use sqlx::PgConnection;

const BATCHES: [usize; 2] = [1, 500];
/// Messages to a measurement.
const MESSAGES: usize = 5_000;

#[derive(Deserialize)]
#[expect(dead_code, reason = "reading it is what is measured")]
struct Deposit {
    account_id: i64,
    amount: i64,
}

#[expect(clippy::unused_async, reason = "handlers are async, and this one is never called")]
#[idempotent(consumer = "credits", key = header("event_id"))]
async fn credit(Json(_): Json<Deposit>, _: &mut PgConnection) -> sqlx::Result<()> {
    Ok(())
}

fn main() {
    if let Ok(cost) = std::env::var("COST") {
        return once(&cost);
    }
    let mut criterion = Criterion::default().configure_from_args();
    bench(&mut criterion, "core", core);
    bench(&mut criterion, "course", course);
    bench(&mut criterion, "read", |messages, _| read(&messages));
    criterion.final_summary();
}

fn bench(criterion: &mut Criterion, name: &str, cost: fn(Vec<Message>, usize)) {
    let mut group = criterion.benchmark_group(name);
    group.throughput(Throughput::Elements(MESSAGES as u64));
    for batch in BATCHES {
        group.bench_with_input(BenchmarkId::from_parameter(batch), &batch, |bencher, &batch| {
            bencher.iter_batched(
                || messages(MESSAGES),
                |messages| cost(messages, batch),
                BatchSize::LargeInput,
            );
        });
    }
    group.finish();
}

/// A given number of messages once, for a program that counts.
fn once(cost: &str) {
    let count = std::env::var("MESSAGES").ok().and_then(|count| count.parse().ok());
    let messages = messages(count.expect("MESSAGES is how many"));
    let (name, batch) = cost.split_once(':').unwrap_or((cost, "1"));
    let batch = batch.parse().expect("COST ends with the size of a batch");
    match name {
        "core" => core(messages, batch),
        "course" => course(messages, batch),
        "read" => read(&messages),
        // What the messages cost themselves.
        "none" => drop(black_box(messages)),
        _ => panic!("COST is core, course, read or none, not {name}"),
    }
}

fn messages(count: usize) -> Vec<Message> {
    let message = |number: usize| {
        Message::builder()
            .header("event_id", format!("0199aaaa-0000-7000-8000-{number:012x}"))
            .key(b"account-7")
            .payload(br#"{"account_id": 7, "amount": 5}"#)
            .position(Position::new("deposits", 0, i64::try_from(number).expect("they are few")))
            .build()
    };
    (0..count).map(message).collect()
}

/// As the worker does: records are read ahead, and the jobs that run end well.
fn core(messages: Vec<Message>, batch: usize) {
    const AHEAD: usize = 1_000;
    let (tp, epoch) = (Tp { topic: 0, partition: 0 }, Epoch(1));
    let mut core: Core<Message> = Core::new(Config::default());
    let mut actions = Vec::new();
    let lane = LaneStart {
        acknowledged: NextOffset(0),
        order: Order::Partition,
        attempts: 5,
        batch,
        together: false,
    };
    let assigned = Event::Assigned { tp, epoch, start: Some(NextOffset(0)), lanes: vec![lane] };
    core.step(Millis(0), assigned, &mut actions);
    let (mut running, mut held, mut now) = (None, 0_usize, 0);
    let mut messages = (0..).zip(messages).peekable();
    while messages.peek().is_some() || held > 0 {
        now += 1;
        while held < AHEAD
            && let Some((offset, handle)) = messages.next()
        {
            let record =
                Event::Record { tp, epoch, offset: Offset(offset), key: None, bytes: handle.size(), handle };
            core.step(Millis(now), record, &mut actions);
            held += 1;
            running = running.or_else(|| started(&mut actions));
        }
        let (job, records) = running.take().expect("something runs while something is held");
        held -= records;
        let finished = Event::Finished { job, outcome: Outcome::Done, handlers: Millis(1) };
        core.step(Millis(now), finished, &mut actions);
        running = started(&mut actions);
    }
    black_box(core.snapshot());
}

fn started(actions: &mut Vec<Action<Message>>) -> Option<(handstamp::flow::JobId, usize)> {
    actions.drain(..).find_map(|action| match action {
        Action::Start(job) => Some((job.id, job.records.len())),
        _ => None,
    })
}

#[expect(clippy::needless_pass_by_value, reason = "all costs are alike")]
fn course(messages: Vec<Message>, batch: usize) {
    let mut offset = 0;
    for messages in messages.chunks(batch) {
        let members = (0..messages.len()).map(|index| {
            offset += 1;
            let place = Place { offset: Offset(offset), acknowledged: NextOffset(0) };
            Member { intent: Intent::Apply, place: Some(place), key: Some(index) }
        });
        let mut course = Course::new(members.collect());
        loop {
            course.answer(match course.step() {
                Step::Claim => {
                    let found = Found { stamped: true, parked: false, ahead: false };
                    Answer::Claimed { found: vec![found; messages.len()], row: None }
                }
                Step::End(_) => break,
                _ => Answer::Done,
            });
        }
        black_box(course.dispositions().count());
    }
}

fn read(messages: &[Message]) {
    for message in messages {
        let key = <credit as Handler>::KEY.read(message).expect("it has a key");
        let each = <credit as Handler>::Arguments::read(message, &key).ok();
        black_box((key.stored(), each));
    }
}
