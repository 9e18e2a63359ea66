//! Handlers as an attribute would write them, good and bad.

use handstamp::{Access, BoxError, EventId, Handler, Json, KeySource, Message, Options, State, reject};
use serde::Deserialize;
use sqlx::Connection as _;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::Connection;
use crate::database::PATIENCE;

#[derive(Debug, Deserialize)]
pub struct Deposit {
    #[expect(dead_code, reason = "only its decoding matters")]
    amount: i64,
}

/// Holds handlers until they are let go.
#[derive(Clone)]
pub struct Gate {
    pub entered: std::sync::Arc<Semaphore>,
    pub go: std::sync::Arc<Semaphore>,
}

impl Gate {
    pub fn new() -> Self {
        Self { entered: Semaphore::new(0).into(), go: Semaphore::new(0).into() }
    }

    pub async fn wait_until_entered(&self) {
        let entered = timeout(PATIENCE, self.entered.acquire()).await;
        entered.expect("a handler enters the gate").expect("it is open").forget();
    }

    pub fn open(&self) {
        self.go.add_permits(1);
    }
}

macro_rules! handler {
    ($name:ident, $options:expr, |$arguments:tt: $types:ty, $conn:ident| $body:expr) => {
        #[derive(Debug)]
        pub struct $name {}

        impl Handler for $name {
            const CONSUMER: &'static str = stringify!($name);
            const KEY: KeySource = KeySource::Header("event_id");
            const OPTIONS: Options = $options;
            const PATH: &'static str = concat!(module_path!(), "::", stringify!($name));
            type Arguments = $types;
            type Access = Connection;
            type Output = Result<(), BoxError>;

            async fn call($arguments: $types, $conn: &mut Connection) -> Result<(), BoxError> {
                $body
            }
        }
    };
}

pub async fn record(event: &str, connection: &mut Connection) -> sqlx::Result<()> {
    sqlx::query("INSERT INTO effect (event) VALUES ($1)").bind(event.to_owned()).execute(connection).await?;
    Ok(())
}

pub async fn run(sql: &'static str, connection: &mut Connection) -> sqlx::Result<()> {
    sqlx::raw_sql(sql).execute(connection).await?;
    Ok(())
}

#[allow(unused_imports, reason = "only one of the databases has handlers of its own")]
pub(super) use handler;

type Id = (EventId, ());

handler!(Credits, Options::new(), |(EventId(id), ()): Id, conn| Ok(record(&id, conn).await?));

handler!(Decodes, Options::new(), |(Json(_), (EventId(id), ())): (Json<Deposit>, Id), conn| {
    Ok(record(&id, conn).await?)
});

handler!(TakesTombstones, Options::new(), |(deposit, (EventId(id), ())): (Option<Json<Deposit>>, Id),
                                           conn| {
    let event = if deposit.is_none() { format!("{id} is gone") } else { id };
    Ok(record(&event, conn).await?)
});

handler!(
    ParksTombstones,
    Options::new().on_tombstone(handstamp::OnTombstone::Park),
    |(Json(_), (EventId(id), ())): (Json<Deposit>, Id), conn| Ok(record(&id, conn).await?)
);

handler!(Fails, Options::new(), |(EventId(id), ()): Id, conn| {
    record(&id, conn).await?;
    Err("no".into())
});

handler!(Rejects, Options::new(), |(EventId(id), ()): Id, conn| {
    record(&id, conn).await?;
    Err(reject("a deposit is po\0sitive").into())
});

// Does what its event is called.
handler!(Obeys, Options::new(), |(EventId(id), ()): Id, conn| {
    record(&id, conn).await?;
    match id.split('-').next() {
        Some("fail") => Err("no".into()),
        Some("reject") => Err(reject("never").into()),
        Some("commit") => Ok(run("COMMIT", conn).await?),
        _ => Ok(()),
    }
});

// As `Obeys`, with one effect for all of its messages.
handler!(TakesMany, Options::new(), |(ids, ()): (Vec<EventId>, ()), conn| {
    let ids: Vec<_> = ids.into_iter().map(|EventId(id)| id).collect();
    record(&ids.join("+"), conn).await?;
    match ids.iter().find_map(|id| id.strip_suffix("-1")) {
        Some("fail") => Err("no".into()),
        Some("reject") => Err(reject("never").into()),
        Some("commit") => Ok(run("COMMIT", conn).await?),
        _ => Ok(()),
    }
});

handler!(DecodesMany, Options::new(), |(deposits, (ids, ())): (Vec<Json<Deposit>>, (Vec<EventId>, ())),
                                       conn| {
    let ids: Vec<_> = deposits.into_iter().zip(ids).map(|(_, EventId(id))| id).collect();
    Ok(record(&ids.join("+"), conn).await?)
});

handler!(Panics, Options::new(), |(EventId(id), ()): Id, conn| {
    record(&id, conn).await?;
    panic!("at the disco")
});

handler!(Dawdles, Options::new().timeout_ms(50), |(EventId(id), ()): Id, conn| {
    record(&id, conn).await?;
    std::future::pending().await
});

handler!(Waits, Options::new(), |(State(gate), (EventId(id), ())): (State<Gate>, Id), conn| {
    record(&id, conn).await?;
    gate.entered.add_permits(1);
    gate.go.acquire().await?.forget();
    Ok(())
});

handler!(ForgetsNested, Options::new(), |(EventId(id), ()): Id, conn| {
    record(&id, conn).await?;
    std::mem::forget(conn.begin().await?);
    Ok(())
});

handler!(DropsNested, Options::new(), |(EventId(id), ()): Id, conn| {
    record(&id, conn).await?;
    let mut nested = conn.begin().await?;
    record("undone", &mut nested).await?;
    Ok(())
});

handler!(BreaksDeferred, Options::new(), |(EventId(id), ()): Id, conn| {
    record(&id, conn).await?;
    Ok(run("INSERT INTO child VALUES (1)", conn).await?)
});

handler!(Commits, Options::new(), |(EventId(id), ()): Id, conn| {
    record(&id, conn).await?;
    Ok(run("COMMIT", conn).await?)
});

handler!(CommitsAndBegins, Options::new(), |(EventId(id), ()): Id, conn| {
    record(&id, conn).await?;
    run("COMMIT", conn).await?;
    run("BEGIN", conn).await?;
    Ok(record("of the second transaction", conn).await?)
});

handler!(CommitsAndFails, Options::new(), |(EventId(id), ()): Id, conn| {
    record(&id, conn).await?;
    run("COMMIT", conn).await?;
    Err("and then it fails".into())
});

handler!(CommitsBeginsAndErrs, Options::new(), |(EventId(id), ()): Id, conn| {
    record(&id, conn).await?;
    run("COMMIT", conn).await?;
    run("BEGIN", conn).await?;
    Ok(run("SELECT * FROM nowhere", conn).await?)
});

// Its error looks like that of a lost connection, and is another's.
handler!(CommitsAndLosesAnother, Options::new(), |(EventId(id), ()): Id, conn| {
    record(&id, conn).await?;
    run("COMMIT", conn).await?;
    Err(sqlx::Error::PoolTimedOut.into())
});

handler!(CommitsAndDawdles, Options::new().timeout_ms(50), |(EventId(id), ()): Id, conn| {
    record(&id, conn).await?;
    run("COMMIT", conn).await?;
    std::future::pending().await
});

handler!(CommitsAndWaits, Options::new(), |(State(gate), (EventId(id), ())): (State<Gate>, Id), conn| {
    record(&id, conn).await?;
    run("COMMIT", conn).await?;
    gate.entered.add_permits(1);
    gate.go.acquire().await?.forget();
    Ok(())
});

handler!(RollsBack, Options::new(), |(EventId(id), ()): Id, conn| {
    record(&id, conn).await?;
    Ok(run("ROLLBACK", conn).await?)
});

/// Takes the whole message, for its access's sake.
#[derive(Debug)]
pub struct SeesInbox {}

impl Handler for SeesInbox {
    const CONSUMER: &'static str = "SeesInbox";
    const KEY: KeySource = KeySource::Header("event_id");
    const OPTIONS: Options = Options::new();
    const PATH: &'static str = concat!(module_path!(), "::SeesInbox");
    type Arguments = (Message, ());
    type Access = handstamp::Inbox<<Connection as Access>::Database>;
    type Output = Result<(), BoxError>;

    async fn call(_: Self::Arguments, inbox: &mut Self::Access) -> Result<(), BoxError> {
        let key = inbox.idempotency_key().ok_or("it has a key")?;
        Ok(record(&format!("{key} at attempt {}", inbox.attempt()), inbox).await?)
    }
}
