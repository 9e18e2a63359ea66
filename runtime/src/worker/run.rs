use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use sqlx::{ConnectOptions, Pool};
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tracing::{error, info, warn};

use super::banner;
use super::driver::{Driver, Parts};
use super::notice::Observers;
use super::plan::{Plan, Subscription};
use super::{WorkerError, relay, shutdown};
use crate::failure::{Failure, FailureKind};
use crate::flow::{Config, Core};
use crate::inbox::consumers::{self, ConsumerId};
use crate::inbox::{Store, server};
use crate::source::kafka::{self, Broker, Kafka, NotReady, Relay, Topics};

/// Connections beside those of running handlers: for progress, start offsets and dead letters.
const SPARE_CONNECTIONS: usize = 2;
/// How long a good end may take; also bounded by a quarter of `max.poll.interval.ms`.
const DRAIN_LIMIT: Duration = Duration::from_secs(10);
/// How long one connection may take when the pool has got none.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// How many hand-overs may wait between the poll thread and the driver.
const HANDOVERS: usize = 4;

pub(super) async fn run<DB: Store>(mut plan: Plan<DB>) -> Result<(), WorkerError> {
    let kafka = plan.kafka.take().ok_or_else(|| {
        WorkerError::Configuration("the worker has no source: call `.kafka(Kafka::from_env()?)`".to_owned())
    })?;
    let running = check(&plan)?;
    let ids = prepare(&plan.pool, &plan.subscriptions, &kafka).await?;
    announce(&plan);

    let (stop, stopping) = watch::channel(false);
    let observers = Observers::new(std::mem::take(&mut plan.observers));
    let parked = Arc::new(Notify::new());
    let mut drivers = JoinSet::new();
    for (group, subscriptions) in by_group(&plan.subscriptions) {
        let driver = client(&plan, &kafka, &group, &subscriptions, &ids, running, &observers, &parked)?;
        drivers.spawn(driver.run(stopping.clone()));
    }
    let relay = plan.copies.then(|| relay(&plan, &kafka, &ids, &parked, stopping.clone())).transpose()?;

    let stopped = shutdown::wait(plan.shutdown.take());
    tokio::pin!(stopped);
    let mut result = Ok(());
    let mut asked = false;
    while !drivers.is_empty() {
        let ended = tokio::select! {
            signal = &mut stopped, if !asked => {
                asked = true;
                info!("stopping: finishing what runs, then committing and leaving");
                signal
            }
            Some(driver) = drivers.join_next() => {
                driver.unwrap_or_else(|panic| Err(WorkerError::Internal(panic.to_string())))
            }
        };
        stop.send_replace(true);
        result = result.and(ended);
    }
    // What is not copied now is copied after the next start.
    if let Some(relay) = relay
        && let Err(panic) = relay.await
    {
        error!("copying dead letters ended: {panic}; the database has them all");
    }
    result
}

/// What can be judged without asking anybody; the number of handlers that may run at a time in a group.
fn check<DB: Store>(plan: &Plan<DB>) -> Result<usize, WorkerError> {
    let refuse = |text: String| Err(WorkerError::Configuration(text));
    if plan.subscriptions.is_empty() {
        return refuse("the worker has nothing to do: call `.consume::<handler>(\"topic\")`".to_owned());
    }
    for (index, one) in plan.subscriptions.iter().enumerate() {
        for other in &plan.subscriptions[..index] {
            if one.consumer.name() != other.consumer.name() {
                continue;
            }
            let (name, here, there) = (one.consumer.name(), path(one), path(other));
            if here != there {
                return refuse(format!(
                    "`{there}` and `{here}` both say consumer = \"{name}\": each would take the other's messages for \
                     duplicates; give one of them another name"
                ));
            }
            if one.topic == other.topic {
                return refuse(format!("`{here}` is given topic `{}` twice: once is enough", one.topic));
            }
            if one.group != other.group {
                return refuse(format!("`{here}` is put into two groups: a consumer has one"));
            }
        }
    }
    let groups = by_group(&plan.subscriptions).len();
    let connections = usize::try_from(plan.pool.options().get_max_connections()).unwrap_or(usize::MAX);
    let wanted = groups + SPARE_CONNECTIONS;
    if connections < wanted {
        return refuse(format!(
            "the pool has {connections} connections, and {groups} group(s) need at least {wanted} (one for each \
             group's handlers and {SPARE_CONNECTIONS} to spare): raise `max_connections`, better to the number of \
             partitions read at a time and {SPARE_CONNECTIONS}"
        ));
    }
    Ok(((connections - SPARE_CONNECTIONS) / groups).min(DB::WRITERS).max(1))
}

/// Asks the database and Kafka whether they are ready, and registers the consumers.
async fn prepare<DB: Store>(
    pool: &Pool<DB>,
    subscriptions: &[Subscription<DB>],
    kafka: &Kafka,
) -> Result<BTreeMap<&'static str, ConsumerId>, WorkerError> {
    let ready = async {
        let warnings = server::examine(pool).await?;
        crate::migrate::require_current(pool).await?;
        Ok(warnings)
    };
    match ready.await {
        Ok(warnings) => warnings.iter().for_each(|warning| warn!("{warning}")),
        Err(failure) => return Err(unreachable(pool).await.unwrap_or_else(|| database(failure))),
    }
    let topics: Vec<Arc<str>> = subscriptions.iter().map(|s| Arc::clone(&s.topic)).collect();
    let asked = kafka.clone();
    tokio::task::spawn_blocking(move || kafka::check(&asked, &topics))
        .await
        .map_err(|panic| WorkerError::Internal(panic.to_string()))?
        .map_err(|not_ready| match not_ready {
            NotReady::Misconfigured(text) => WorkerError::Configuration(text),
            NotReady::Unavailable(text) => WorkerError::Kafka(text),
        })?;
    let mut ids = BTreeMap::new();
    for subscription in subscriptions {
        let consumer = &subscription.consumer;
        let topics = topics_of(subscriptions, consumer.name());
        let registration = consumer.registration(Some(&subscription.group), &topics);
        let id = consumers::register(pool, &registration).await.map_err(database)?;
        ids.insert(consumer.name(), id);
    }
    Ok(ids)
}

/// Why no connection can be made, if that is so: a pool that waits for one only says that it has waited.
async fn unreachable<DB: Store>(pool: &Pool<DB>) -> Option<WorkerError> {
    let options = pool.connect_options();
    let connecting = options.connect();
    let error = match timeout(CONNECT_LIMIT, connecting).await {
        Ok(Ok(_)) => return None,
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("no answer within {} s", CONNECT_LIMIT.as_secs()),
    };
    let url = options.to_url_lossy();
    let address = match (url.host_str(), url.port()) {
        (Some(host), Some(port)) => format!("{host}:{port}"),
        (host, _) => host.unwrap_or(url.path()).to_owned(),
    };
    let text =
        format!("no connection to {address}: {error}; check the address, the role and that the server runs");
    Some(WorkerError::Database(text.into()))
}

fn database(failure: Failure) -> WorkerError {
    match failure.kind() {
        FailureKind::Configuration => WorkerError::Configuration(failure.to_string()),
        _ => WorkerError::Database(failure.into()),
    }
}

fn announce<DB: Store>(plan: &Plan<DB>) {
    let mut said = Vec::new();
    for subscription in &plan.subscriptions {
        let consumer = &subscription.consumer;
        if said.contains(&consumer.name()) {
            continue;
        }
        said.push(consumer.name());
        let topics = topics_of(&plan.subscriptions, consumer.name());
        let registration = consumer.registration(Some(&subscription.group), &topics);
        for line in banner::lines(&registration, &consumer.options(), &DB::TABLES, plan.copies) {
            info!("{line}");
        }
    }
}

fn path<DB: Store>(subscription: &Subscription<DB>) -> &str {
    subscription.consumer.registration(None, &[]).handler
}

fn topics_of<'a, DB: Store>(subscriptions: &'a [Subscription<DB>], consumer: &str) -> Vec<&'a str> {
    subscriptions.iter().filter(|s| s.consumer.name() == consumer).map(|s| &*s.topic).collect()
}

fn by_group<DB: Store>(subscriptions: &[Subscription<DB>]) -> BTreeMap<Arc<str>, Vec<&Subscription<DB>>> {
    let mut groups: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for subscription in subscriptions {
        groups.entry(Arc::clone(&subscription.group)).or_default().push(subscription);
    }
    groups
}

#[expect(clippy::too_many_arguments, reason = "each is a part of the driver that is made here")]
fn client<DB: Store>(
    plan: &Plan<DB>,
    kafka: &Kafka,
    group: &Arc<str>,
    subscriptions: &[&Subscription<DB>],
    ids: &BTreeMap<&'static str, ConsumerId>,
    running: usize,
    observers: &Observers,
    parked: &Arc<Notify>,
) -> Result<Driver<DB>, WorkerError> {
    let mut topics: Vec<Arc<str>> = subscriptions.iter().map(|s| Arc::clone(&s.topic)).collect();
    topics.sort();
    topics.dedup();
    let handlers = topics
        .iter()
        .map(|topic| {
            let here = subscriptions.iter().filter(|s| s.topic == *topic);
            here.filter_map(|s| Some((Arc::clone(&s.consumer), *ids.get(s.consumer.name())?))).collect()
        })
        .collect();
    let topics = Topics::new(topics);
    let drain_limit = DRAIN_LIMIT.min(kafka.max_poll_interval() / 4);
    let (sender, inputs) = mpsc::channel(HANDOVERS);
    let (broker, poll) = Broker::new(kafka, group, &topics, sender, drain_limit);
    std::thread::Builder::new()
        .name("handstamp-poll".to_owned())
        .spawn(move || poll.run())
        .map_err(|error| WorkerError::Configuration(format!("no thread can be started: {error}")))?;
    let seed = u64::from(std::process::id());
    let batch = subscriptions.iter().map(|subscription| subscription.consumer.options().batch_size()).max();
    let config =
        Config { max_running: running, seed, ..Config::default() }.with_batches_of(batch.unwrap_or(1));
    Ok(Driver::new(Parts {
        group: Arc::clone(group),
        topics,
        handlers,
        pool: plan.pool.clone(),
        broker,
        inputs,
        core: Core::new(config),
        drain_limit,
        session_timeout: kafka.session_timeout(),
        observers: observers.clone(),
        parked: Arc::clone(parked),
    }))
}

fn relay<DB: Store>(
    plan: &Plan<DB>,
    kafka: &Kafka,
    ids: &BTreeMap<&'static str, ConsumerId>,
    parked: &Arc<Notify>,
    stopping: watch::Receiver<bool>,
) -> Result<tokio::task::JoinHandle<()>, WorkerError> {
    let relay = Relay::new(kafka).map_err(|error| WorkerError::Configuration(error.to_string()))?;
    let consumers = ids.values().copied().collect();
    Ok(tokio::spawn(relay::run(plan.pool.clone(), relay, consumers, Arc::clone(parked), stopping)))
}
