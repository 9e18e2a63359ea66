//! Publishes the credits, slice by slice, and writes down what was acknowledged.

use anyhow::{Result, bail};
use handstamp::{Kafka, Publisher, Record};
use sqlx::AnyConnection;
use tokio::task::JoinSet;

use crate::database::{self, Database};
use crate::handlers::Deposit;
use crate::options::Plan;
use crate::schedule::Random;

/// An event that Kafka has acknowledged.
#[derive(Clone, Debug)]
pub struct Sent {
    pub event: String,
    pub deposit: Deposit,
}

pub struct Publishing {
    topic: String,
    first: Publisher,
    /// Sends events a second time, as a service does that died before it saw the acknowledgement. The
    /// broker recognises repeats only of one and the same producer.
    second: Publisher,
    ledger: AnyConnection,
    random: Random,
    accounts: u64,
    /// The slices still to come: how many events, and how many of all events so far are sent again.
    slices: Vec<(u32, u32)>,
    /// Events that were sent once.
    once: Vec<Sent>,
    pub records: u32,
}

impl Publishing {
    /// Prepares one slice more than there are kills.
    pub async fn new(plan: &Plan, servers: &str, database: &Database) -> Result<Self> {
        let kafka = Kafka::new(servers);
        let count = plan.kills + 1;
        let share = |total: u32, slice: u32| total / count + u32::from(slice < total % count);
        Ok(Self {
            topic: plan.run.clone(),
            first: Publisher::new(&kafka)?,
            second: Publisher::new(&kafka)?,
            ledger: database.connect().await?,
            // Not the numbers that the kills are drawn from.
            random: Random::new(!plan.seed),
            accounts: u64::from(plan.accounts),
            slices: (0..count)
                .map(|slice| (share(plan.events, slice), share(plan.sent_twice, slice)))
                .collect(),
            once: Vec::new(),
            records: 0,
        })
    }

    /// Publishes the next slice; nothing if there is none left.
    pub async fn slice(&mut self) -> Result<()> {
        let Some((events, twice)) = self.slices.pop() else { return Ok(()) };
        let deposits = (0..events).map(|_| self.deposit()).collect::<Vec<_>>();
        let sent =
            send(&self.first, &self.topic, deposits.into_iter().map(|deposit| (deposit, None))).await?;
        database::enter(&mut self.ledger, &sent).await?;
        self.once.extend(sent);
        let again = (0..twice).filter_map(|_| self.pick()).map(|sent| (sent.deposit, Some(sent.event)));
        let again = again.collect::<Vec<_>>();
        send(&self.second, &self.topic, again.into_iter()).await?;
        self.records += events + twice;
        Ok(())
    }

    /// An event that has been sent once, from this slice or an earlier one.
    fn pick(&mut self) -> Option<Sent> {
        let one = usize::try_from(self.random.below(self.once.len() as u64)).ok()?;
        (one < self.once.len()).then(|| self.once.swap_remove(one))
    }

    fn deposit(&mut self) -> Deposit {
        let account = i64::try_from(self.random.below(self.accounts)).unwrap_or_default();
        let amount = 1 + i64::try_from(self.random.below(1_000)).unwrap_or_default();
        Deposit { account, amount }
    }
}

async fn send(
    publisher: &Publisher,
    topic: &str,
    deposits: impl Iterator<Item = (Deposit, Option<String>)>,
) -> Result<Vec<Sent>> {
    let mut sending = JoinSet::new();
    for (deposit, event) in deposits {
        let mut record = Record::to(topic).key(format!("account-{}", deposit.account)).json(&deposit)?;
        if let Some(event) = event {
            record = record.event_id(event);
        }
        let publisher = publisher.clone();
        sending.spawn(async move { publisher.publish(record).await.map(|event| Sent { event, deposit }) });
    }
    let mut sent = Vec::with_capacity(sending.len());
    for outcome in sending.join_all().await {
        match outcome {
            Ok(event) => sent.push(event),
            Err(error) => bail!("cannot publish: {error}"),
        }
    }
    Ok(sent)
}
