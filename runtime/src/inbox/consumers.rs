//! Who consumes: the registry that keeps a deploy from making every message new again.

use sqlx::{Database, Pool};

use super::Store;
pub use super::consumer::{Consumer, ConsumerId};
pub use super::registration::Registration;
use super::registration::{Ruling, next_id};
use super::transaction::{HOUSEKEEPING, Transaction, acquire, within};
use crate::failure::{Failure, FailureKind};

/// What an operator changes about a consumer.
#[derive(Clone, Copy, Debug)]
pub enum Edit<'a> {
    /// Its key definition.
    KeyDefinition(&'a str),
    /// Its name.
    Name(&'a str),
    /// Handler, group and topics, which are cleared.
    Owner,
}

/// Registers a consumer, or finds it registered.
///
/// # Errors
/// `Configuration` if it would make messages new again that were applied, or take another consumer's
/// name; `Environment` or `Unknown`.
pub async fn register<DB: Store>(
    pool: &Pool<DB>,
    registration: &Registration<'_>,
) -> Result<ConsumerId, Failure> {
    if let Ruling::Known(id) = registration.judge(&list(pool).await?)? {
        return Ok(id);
    }
    let failed = |error| Failure::environment("registering the consumer", error);
    let mut transaction = Transaction::begin(pool, HOUSEKEEPING).await?;
    let connection = transaction.connection();
    within(DB::STATEMENT_LIMIT, DB::lock_consumers(connection)).await.map_err(failed)?;
    let consumers = within(DB::STATEMENT_LIMIT, DB::consumers(connection)).await.map_err(failed)?;
    let id = match registration.judge(&consumers)? {
        Ruling::Known(id) => id,
        Ruling::Changed(id) => {
            let update = DB::update_consumer(connection, id, registration);
            within(DB::STATEMENT_LIMIT, update).await.map_err(failed)?;
            id
        }
        Ruling::New => {
            let id = next_id(&consumers)?;
            let insert = DB::insert_consumer(connection, id, registration);
            within(DB::STATEMENT_LIMIT, insert).await.map_err(failed)?;
            id
        }
    };
    transaction.commit().await?;
    Ok(id)
}

/// All consumers, by name.
///
/// # Errors
/// `Environment`.
pub async fn list<DB: Store>(pool: &Pool<DB>) -> Result<Vec<Consumer>, Failure> {
    let mut connection = acquire(pool).await?;
    within(DB::STATEMENT_LIMIT, DB::consumers(&mut connection))
        .await
        .map_err(|error| Failure::environment("reading the consumers", error))
}

/// Takes a consumer's new key definition. Messages that were applied under the old one are new again if
/// they are redelivered.
///
/// # Errors
/// `Configuration` if there is no such consumer; `Environment` or `Unknown`.
pub async fn accept_key<DB: Store>(pool: &Pool<DB>, name: &str, definition: &str) -> Result<(), Failure> {
    edit(pool, name, Edit::KeyDefinition(definition)).await
}

/// Forgets who owns a consumer's name: the next one to register takes it, with its inbox.
///
/// # Errors
/// `Configuration` if there is no such consumer; `Environment` or `Unknown`.
pub async fn release<DB: Store>(pool: &Pool<DB>, name: &str) -> Result<(), Failure> {
    edit(pool, name, Edit::Owner).await
}

/// Gives a consumer a new name; it keeps its inbox and its progress.
///
/// # Errors
/// `Configuration` if there is no such consumer or the new name is taken; `Environment` or `Unknown`.
pub async fn rename<DB: Store>(pool: &Pool<DB>, old: &str, new: &str) -> Result<(), Failure> {
    if list(pool).await?.iter().any(|consumer| consumer.name == new) {
        let text = format!("there is a consumer `{new}` already; choose another name");
        return Err(Failure::new(FailureKind::Configuration, text));
    }
    edit(pool, old, Edit::Name(new)).await
}

async fn edit<DB: Store>(pool: &Pool<DB>, name: &str, change: Edit<'_>) -> Result<(), Failure> {
    let mut transaction = Transaction::begin(pool, HOUSEKEEPING).await?;
    let connection = transaction.connection();
    let consumer = find::<DB>(connection, name).await?;
    within(DB::STATEMENT_LIMIT, DB::edit_consumer(connection, consumer.id, change))
        .await
        .map_err(|error| Failure::environment("changing the consumer", error))?;
    transaction.commit().await
}

pub(super) async fn find<DB: Store>(
    connection: &mut DB::Connection,
    name: &str,
) -> Result<Consumer, Failure> {
    let consumers = within(DB::STATEMENT_LIMIT, DB::consumers(connection))
        .await
        .map_err(|error| Failure::environment("reading the consumers", error))?;
    let names: Vec<_> = consumers.iter().map(|consumer| consumer.name.clone()).collect();
    consumers.into_iter().find(|consumer| consumer.name == name).ok_or_else(|| {
        let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        let text = format!("there is no consumer `{name}`; registered are: {known}");
        Failure::new(FailureKind::Configuration, text)
    })
}

/// A consumer by its name.
///
/// # Errors
/// `Configuration` if there is none, with the names there are; `Environment`.
pub async fn get<DB: Store>(pool: &Pool<DB>, name: &str) -> Result<Consumer, Failure> {
    find::<DB>(&mut *acquire(pool).await?, name).await
}

/// The statements about consumers.
pub trait ConsumerStore: Database {
    /// Lets no other transaction register until this one ends.
    fn lock_consumers(connection: &mut Self::Connection) -> impl Future<Output = sqlx::Result<()>> + Send;

    /// All of them, by name.
    fn consumers(
        connection: &mut Self::Connection,
    ) -> impl Future<Output = sqlx::Result<Vec<Consumer>>> + Send;

    /// Adds one.
    fn insert_consumer(
        connection: &mut Self::Connection,
        id: ConsumerId,
        registration: &Registration<'_>,
    ) -> impl Future<Output = sqlx::Result<()>> + Send;

    /// Takes over handler, group and topics, where the registration names any.
    fn update_consumer(
        connection: &mut Self::Connection,
        id: ConsumerId,
        registration: &Registration<'_>,
    ) -> impl Future<Output = sqlx::Result<()>> + Send;

    /// Changes one as an operator asked.
    fn edit_consumer(
        connection: &mut Self::Connection,
        id: ConsumerId,
        edit: Edit<'_>,
    ) -> impl Future<Output = sqlx::Result<()>> + Send;
}
