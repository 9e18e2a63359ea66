//! The tables, and how they get into a database.

use sha2::{Digest, Sha256};
use sqlx::error::DatabaseError;
use sqlx::{Database, Pool};

use crate::failure::{Failure, FailureKind};
use crate::inbox::Store;
use crate::inbox::transaction::{HOUSEKEEPING, Transaction, acquire, within};

/// One step of the schema.
#[derive(Clone, Copy, Debug)]
pub struct Migration {
    /// Its number, from 1.
    pub version: i32,
    /// What it is about.
    pub name: &'static str,
    /// Its statements; the last ones write its row in the bookkeeping table.
    pub sql: &'static str,
}

impl Migration {
    fn checksum(&self) -> [u8; 32] {
        Sha256::digest(self.sql).into()
    }
}

/// A migration that a database has had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Migrated {
    /// Its number.
    pub version: i32,
    /// Of its file; `None` if somebody ran the file by other means.
    pub checksum: Option<Vec<u8>>,
}

/// Brings the inbox tables up to date. Safe to call from several processes at once; without anything to
/// do it changes nothing and needs no right to create.
///
/// # Errors
/// `Configuration` if the role may not create, naming the right, or if an applied migration was changed;
/// `Environment` or `Unknown`.
pub async fn migrate<DB: Store>(pool: &Pool<DB>) -> Result<(), Failure> {
    if pending::<DB>(&migrated(pool).await?)?.is_empty() {
        return Ok(());
    }
    within(DB::STATEMENT_LIMIT, DB::prepare(&mut *acquire(pool).await?)).await.map_err(failed)?;
    let mut transaction = Transaction::begin(pool, HOUSEKEEPING).await?;
    let connection = transaction.connection();
    within(HOUSEKEEPING, DB::lock_migrations(connection)).await.map_err(failed)?;
    let migrated = within(DB::STATEMENT_LIMIT, DB::migrated(connection)).await.map_err(failed)?;
    for migration in pending::<DB>(&migrated)? {
        if let Err(error) = within(HOUSEKEEPING, DB::run(connection, migration)).await {
            drop(transaction);
            return Err(refused(pool, error).await);
        }
        let checksum = migration.checksum();
        let record = DB::record_checksum(connection, migration.version, &checksum);
        within(DB::STATEMENT_LIMIT, record).await.map_err(failed)?;
    }
    transaction.commit().await
}

/// Checks that the inbox tables are what this program needs, by reading alone. A newer schema is
/// accepted: old and new programs run together during a deploy.
///
/// # Errors
/// `Configuration` if they are not; `Environment`.
pub async fn require_current<DB: Store>(pool: &Pool<DB>) -> Result<(), Failure> {
    let have = migrated(pool).await?.iter().map(|migration| migration.version).max().unwrap_or(0);
    let need = DB::MIGRATIONS.iter().map(|migration| migration.version).max().unwrap_or(0);
    if have >= need {
        return Ok(());
    }
    let text = format!(
        "the inbox tables are at version {have} and this program needs {need}: run `handstamp migrate` (or \
         call `handstamp::migrate(&pool)`) with a role that may create tables"
    );
    Err(Failure::new(FailureKind::Configuration, text))
}

/// The SQL of all migrations, and the GRANTs that `role`, the one services connect as, needs to work: for
/// those who let nobody but themselves create tables.
#[must_use]
pub fn migration_sql<DB: Store>(role: &str) -> String {
    let mut sql = String::from("BEGIN;\n");
    for migration in DB::MIGRATIONS {
        sql.push('\n');
        sql.push_str(migration.sql);
    }
    sql.push_str(&DB::grants(role));
    sql.push_str("\nCOMMIT;\n");
    sql
}

async fn migrated<DB: Store>(pool: &Pool<DB>) -> Result<Vec<Migrated>, Failure> {
    let mut connection = acquire(pool).await?;
    within(DB::STATEMENT_LIMIT, DB::migrated(&mut connection)).await.map_err(failed)
}

fn pending<DB: Store>(migrated: &[Migrated]) -> Result<Vec<&'static Migration>, Failure> {
    let mut pending = Vec::new();
    for migration in DB::MIGRATIONS {
        let Some(done) = migrated.iter().find(|done| done.version == migration.version) else {
            pending.push(migration);
            continue;
        };
        if done.checksum.as_deref().is_some_and(|checksum| checksum != migration.checksum()) {
            let Migration { version, name, .. } = migration;
            let text = format!(
                "migration {version} ({name}) is not the one that was applied to this database; use a release \
                 of handstamp, whose migrations never change"
            );
            return Err(Failure::new(FailureKind::Configuration, text));
        }
    }
    Ok(pending)
}

fn failed(error: sqlx::Error) -> Failure {
    Failure::environment("migrating", error)
}

async fn refused<DB: Store>(pool: &Pool<DB>, error: sqlx::Error) -> Failure {
    let denied = error.as_database_error().and_then(DatabaseError::code).as_deref() == Some("42501");
    if !denied {
        return failed(error);
    }
    let right = match acquire(pool).await {
        Ok(mut connection) => DB::missing_right(&mut connection).await,
        Err(failure) => return failure,
    };
    let right = right.unwrap_or_else(|_| "a right that it lacks".to_owned());
    let text = format!(
        "migrate needs {right}. Run it with a role that has the right, or give the output of \
         `handstamp migrate --print` to whoever may create tables: {error}"
    );
    Failure::new(FailureKind::Configuration, text)
}

/// The statements about the schema itself.
pub trait MigrationStore: Database {
    /// All migrations, in order.
    const MIGRATIONS: &'static [Migration];

    /// Those the database has had; none if it has never been migrated.
    fn migrated(
        connection: &mut Self::Connection,
    ) -> impl Future<Output = sqlx::Result<Vec<Migrated>>> + Send;

    /// What must be set on the database before the first migration and outside a transaction.
    fn prepare(connection: &mut Self::Connection) -> impl Future<Output = sqlx::Result<()>> + Send;

    /// Waits for other migrations; held until the transaction ends.
    fn lock_migrations(connection: &mut Self::Connection) -> impl Future<Output = sqlx::Result<()>> + Send;

    /// Runs one.
    fn run(
        connection: &mut Self::Connection,
        migration: &'static Migration,
    ) -> impl Future<Output = sqlx::Result<()>> + Send;

    /// Notes what its file was.
    fn record_checksum(
        connection: &mut Self::Connection,
        version: i32,
        checksum: &[u8],
    ) -> impl Future<Output = sqlx::Result<()>> + Send;

    /// Names the right that this role lacks to migrate, and the role.
    fn missing_right(connection: &mut Self::Connection) -> impl Future<Output = sqlx::Result<String>> + Send;

    /// What a role needs that does not own the tables.
    fn grants(role: &str) -> String;
}
