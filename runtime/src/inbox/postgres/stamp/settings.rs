use std::time::Duration;

use sqlx::PgConnection;

/// What the settings of a connection are, outside any transaction.
#[derive(Debug, Default)]
pub enum Acquaintance {
    /// It has not been used.
    #[default]
    None,
    /// It has been used, and will be again.
    Met,
    /// It was asked.
    Known(Settings),
}

/// Settings that its role, its database or its pool made.
#[derive(Debug)]
pub struct Settings {
    synchronous_commit: &'static str,
    statement: Limit,
    lock: Limit,
    idle: Limit,
}

/// Milliseconds; 0 for none.
type Limit = i64;

impl Acquaintance {
    /// BEGIN and the settings of the transaction, for one round trip. They only tighten: what the role has set
    /// shorter stays, and `synchronous_commit` is raised to `on`, never lowered from `remote_apply`.
    ///
    /// The first time the server is left to compare, in SQL, which costs it more than BEGIN itself. The second
    /// time it is asked, once, for what to compare with.
    pub(super) async fn begin(
        &mut self,
        connection: &mut PgConnection,
        limit: Duration,
    ) -> sqlx::Result<String> {
        let limits = Limits::for_handlers_of(limit);
        Ok(match self {
            Self::None => {
                *self = Self::Met;
                limits.compared_by_the_server()
            }
            Self::Met => {
                let settings = Settings::read(connection).await?;
                let begin = limits.compared_with(&settings);
                *self = Self::Known(settings);
                begin
            }
            Self::Known(settings) => limits.compared_with(settings),
        })
    }
}

impl Settings {
    async fn read(connection: &mut PgConnection) -> sqlx::Result<Self> {
        let (remote_apply, statement, lock, idle): (bool, Limit, Limit, Limit) =
            sqlx::query_as(READ).fetch_one(connection).await?;
        let synchronous_commit = if remote_apply { "remote_apply" } else { "on" };
        Ok(Self { synchronous_commit, statement, lock, idle })
    }
}

const READ: &str = "
SELECT current_setting('synchronous_commit') = 'remote_apply',
       (extract(epoch FROM current_setting('statement_timeout')::interval) * 1000)::int8,
       (extract(epoch FROM current_setting('lock_timeout')::interval) * 1000)::int8,
       (extract(epoch FROM current_setting('idle_in_transaction_session_timeout')::interval) * 1000)::int8";

/// What a transaction may take at the most.
struct Limits {
    statement: Limit,
    lock: Limit,
    idle: Limit,
}

impl Limits {
    /// The handler's own limit fires before any of these.
    fn for_handlers_of(limit: Duration) -> Self {
        // The largest value that these settings take.
        let milliseconds = |more: u64| {
            let limit = limit.as_millis().saturating_add(u128::from(more));
            Limit::from(i32::try_from(limit).unwrap_or(i32::MAX))
        };
        Self { statement: milliseconds(1_000), lock: 5_000, idle: milliseconds(5_000) }
    }

    fn compared_with(&self, settings: &Settings) -> String {
        let Settings { synchronous_commit, statement, lock, idle } = settings;
        let (statement, lock, idle) =
            (shorter(self.statement, *statement), shorter(self.lock, *lock), shorter(self.idle, *idle));
        format!(
            "{BEGIN}; SET LOCAL synchronous_commit = {synchronous_commit}; SET LOCAL statement_timeout = {statement}; \
             SET LOCAL lock_timeout = {lock}; SET LOCAL idle_in_transaction_session_timeout = {idle}"
        )
    }

    fn compared_by_the_server(&self) -> String {
        let statement = at_most("statement_timeout", self.statement);
        let lock = at_most("lock_timeout", self.lock);
        let idle = at_most("idle_in_transaction_session_timeout", self.idle);
        format!(
            "{BEGIN}; SELECT set_config('synchronous_commit', CASE current_setting('synchronous_commit') \
             WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true), {statement}, {lock}, {idle}"
        )
    }
}

const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE";

fn shorter(ours: Limit, theirs: Limit) -> Limit {
    if theirs > 0 { ours.min(theirs) } else { ours }
}

fn at_most(setting: &str, milliseconds: Limit) -> String {
    format!(
        "set_config('{setting}', CASE WHEN current_setting('{setting}')::interval > interval '0' AND \
         current_setting('{setting}')::interval < interval '{milliseconds} ms' THEN \
         current_setting('{setting}') ELSE '{milliseconds}ms' END, true)"
    )
}
