//! Statements that a handler records, and how those of many messages are written in two round trips.

mod arguments;
mod block;
mod statement;

use sqlx::postgres::PgArguments;
use sqlx::{PgConnection, Postgres, SqlSafeStr, SqlStr};

pub use arguments::EffectArguments;
use arguments::Recorded;
use block::Block;

use crate::failure::{Failure, FailureKind};
use crate::inbox::effects::EffectStore;
use crate::inbox::{Access, Inbox};

/// So many statements are sent one by one: putting them together would take as many round trips.
const FEW: usize = 2;

/// What a write-only handler takes instead of a connection: it records statements, and waits for nothing.
///
/// ```
/// use handstamp::{BoxError, Effects, Json, idempotent};
///
/// #[derive(serde::Deserialize)]
/// struct Deposit {
///     account_id: i64,
///     amount: i64,
/// }
///
/// #[idempotent(consumer = "wallet-credits", key = header("event_id"))]
/// fn credit(Json(d): Json<Deposit>, fx: &mut Effects) -> Result<(), BoxError> {
///     fx.execute("UPDATE accounts SET balance = balance + $1 WHERE id = $2", (d.amount, d.account_id))
///         .expect_rows(1);
///     Ok(())
/// }
///
/// // Without a database:
/// let mut fx = Effects::new();
/// credit(Json(Deposit { account_id: 7, amount: 100 }), &mut fx).unwrap();
/// let [update] = fx.recorded() else { panic!("one statement") };
/// assert_eq!(update.arguments(), Some(&(100_i64, 7_i64)));
/// ```
///
/// They are run in the inbox transaction once the handler has returned `Ok`, in the order recorded. Those of all
/// messages of a transaction go to the server together, which runs them one after the other in a `DO` block: two
/// round trips, however many there are. So a handler never learns what a statement did, except that it failed;
/// and one that reads anything takes a connection instead.
///
/// `INSERT`, `UPDATE`, `DELETE`, `MERGE` and `SELECT` (of a function that writes) go together. If any statement
/// is another one, or has `RETURNING`, or a backslash in a plain string, or if there are more than 16 different
/// ones, all of the transaction are sent one by one. `pg_stat_statements` shows those in a block only with `track = all`.
#[derive(Debug, Default)]
pub struct Effects {
    recorded: Vec<Effect>,
}

impl Effects {
    /// Nothing yet; for tests of a handler. The runtime hands in its own.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Records one statement, with a value for each of `$1`, `$2`, … in a tuple.
    pub fn execute(&mut self, sql: impl SqlSafeStr, arguments: impl EffectArguments) -> &mut Effect {
        let effect = Effect { sql: sql.into_sql_str(), arguments: Box::new(arguments), rows: None };
        let index = self.recorded.len();
        self.recorded.push(effect);
        &mut self.recorded[index]
    }

    /// What is recorded, in order.
    #[must_use]
    pub fn recorded(&self) -> &[Effect] {
        &self.recorded
    }
}

/// One recorded statement.
#[derive(Debug)]
pub struct Effect {
    sql: SqlStr,
    arguments: Box<dyn Recorded>,
    rows: Option<u64>,
}

impl Effect {
    /// Fails, as if the handler had, unless the statement affects so many rows. An `UPDATE` of a row that is not
    /// there is no error otherwise.
    pub fn expect_rows(&mut self, rows: u64) {
        self.rows = Some(rows);
    }

    /// The statement.
    #[must_use]
    pub fn sql(&self) -> &str {
        self.sql.as_str()
    }

    /// Its arguments, if this is their type.
    #[must_use]
    pub fn arguments<A: EffectArguments>(&self) -> Option<&A> {
        self.arguments.as_any().downcast_ref()
    }

    /// How many rows it must affect, if that was said.
    #[must_use]
    pub fn expected_rows(&self) -> Option<u64> {
        self.rows
    }
}

impl Access for Effects {
    type Database = Postgres;

    const RECORDS: bool = true;

    fn of(inbox: &mut Inbox<Postgres>) -> &mut Self {
        inbox.effects()
    }
}

impl EffectStore for Postgres {
    type Effects = Effects;

    async fn write(connection: &mut PgConnection, effects: Effects) -> Result<(), Failure> {
        let recorded = &effects.recorded[..];
        if recorded.len() > FEW
            && let Some(block) = Block::of(recorded)
        {
            return block.run(connection).await;
        }
        for effect in recorded {
            run(connection, effect).await?;
        }
        Ok(())
    }
}

/// Runs one statement by itself.
async fn run(connection: &mut PgConnection, effect: &Effect) -> Result<(), Failure> {
    let mut arguments = PgArguments::default();
    effect.arguments.bind(&mut arguments).map_err(unbound)?;
    let done = sqlx::query_with(effect.sql.clone(), arguments).execute(connection).await;
    let refused = |source| Failure::from_handler(Refused::This { sql: effect.sql.clone(), source });
    let affected = done.map_err(refused)?.rows_affected();
    match effect.rows {
        Some(expected) if expected != affected => {
            let text = format!("{}: affected {affected} rows instead of {expected}", effect.sql());
            Err(Failure::new(FailureKind::Handler, text))
        }
        _ => Ok(()),
    }
}

/// A statement that the server refused.
#[derive(Debug, thiserror::Error)]
enum Refused {
    #[error("{}: {source}", sql.as_str())]
    This { sql: SqlStr, source: sqlx::Error },
    /// It does not say which.
    #[error("one of {statements} recorded statements: {source}")]
    OneOf { statements: usize, source: sqlx::Error },
}

/// An argument that cannot be sent.
fn unbound(error: sqlx::error::BoxDynError) -> Failure {
    Failure::from_handler(sqlx::Error::Encode(error))
}
