use std::str::FromStr;
use std::time::Duration;

use sqlx::pool::PoolOptions;
use sqlx::postgres::PgConnectOptions;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection, Pool};
use tokio::time::timeout;

use super::refused::Refused;
use crate::inbox::Store;
use crate::migrate::require_current;

/// How long a database may take to let us in.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// One for a transaction, one for what is asked meanwhile.
const CONNECTIONS: u32 = 2;

/// Where the tables are.
#[derive(Debug)]
pub(super) enum Database {
    Postgres(PgConnectOptions),
    Sqlite(SqliteConnectOptions),
}

/// What a command does in a database, whichever kind it is.
pub(super) trait Command {
    /// Whether it makes the tables; any other command is refused where they are missing or too old.
    const MAKES_TABLES: bool = false;

    async fn run<DB: Store>(self, pool: &Pool<DB>) -> Result<(), Refused>;
}

impl Database {
    /// The errors never show the URL: it may hold a password.
    pub(super) fn parse(url: &str) -> Result<Self, Refused> {
        let scheme = url.split_once(':').map_or("", |(scheme, _)| scheme);
        let parsed = match scheme {
            "postgres" | "postgresql" => PgConnectOptions::from_str(url).map(Self::Postgres),
            "sqlite" => SqliteConnectOptions::from_str(url).map(Self::Sqlite),
            _ => {
                let text = "the database's URL begins with neither postgres: nor sqlite:, and handstamp knows no \
                            other: correct --database or DATABASE_URL";
                return Err(Refused::usage(text));
            }
        };
        parsed.map_err(|error| {
            Refused::usage(format!(
                "the database's URL is malformed ({error}): correct --database or DATABASE_URL"
            ))
        })
    }

    pub(super) async fn run<C: Command>(self, command: C) -> Result<(), Refused> {
        match self {
            Self::Postgres(options) => {
                let whom = match options.get_socket() {
                    Some(socket) => format!("PostgreSQL at {}", socket.display()),
                    None => format!("PostgreSQL at {}:{}", options.get_host(), options.get_port()),
                };
                on::<sqlx::Postgres, _>(options.application_name("handstamp"), &whom, command).await
            }
            Self::Sqlite(options) => {
                let whom = format!("SQLite file {}", options.get_filename().display());
                let options = if C::MAKES_TABLES { options.create_if_missing(true) } else { options };
                on::<sqlx::Sqlite, _>(options, &whom, command).await
            }
        }
    }
}

/// The database, where a command cannot do without.
pub(super) fn given(database: Option<Database>) -> Result<Database, Refused> {
    database.ok_or_else(|| {
        Refused::usage(
            "which database? Set DATABASE_URL or give --database (postgres://user@host/name or sqlite:path)",
        )
    })
}

async fn on<DB, C>(
    options: <DB::Connection as Connection>::Options,
    whom: &str,
    command: C,
) -> Result<(), Refused>
where
    DB: Store,
    <DB::Connection as Connection>::Options: ConnectOptions<Connection = DB::Connection>,
    C: Command,
{
    // The pool would try again until it times out, and then not say why.
    let answer = timeout(CONNECT_LIMIT, options.connect()).await;
    let why = match answer {
        Ok(Ok(connection)) => {
            // It has answered; how it takes its leave does not matter.
            let _closed = connection.close().await;
            None
        }
        Ok(Err(error)) => Some(error.to_string()),
        Err(_) => Some(format!("no answer within {} s", CONNECT_LIMIT.as_secs())),
    };
    if let Some(why) = why {
        let text =
            format!("cannot open {whom}: {why}; check --database or DATABASE_URL, and that it is there");
        return Err(Refused::failed(text));
    }
    let pool = PoolOptions::<DB>::new()
        .max_connections(CONNECTIONS)
        .acquire_timeout(CONNECT_LIMIT)
        .connect_lazy_with(options);
    let ready = if C::MAKES_TABLES { Ok(()) } else { require_current(&pool).await };
    let done = match ready {
        Ok(()) => command.run(&pool).await,
        Err(failure) => Err(failure.into()),
    };
    pool.close().await;
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_never_shown() {
        for url in ["mysql://root:secret@h/db", "postgres://root:secret@h:port/db", "secret"] {
            let refused = Database::parse(url).unwrap_err().to_string();
            assert!(!refused.contains("secret"), "{refused}");
        }
    }
}
