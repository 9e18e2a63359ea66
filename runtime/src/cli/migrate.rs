use clap::{Args, ValueEnum};
use sqlx::{Pool, Postgres, Sqlite};

use super::database::{self, Database};
use super::output;
use super::refused::Refused;
use crate::inbox::Store;
use crate::migrate::{migrate, migration_sql, require_current};

/// Brings the tables up to date, or prints the SQL that does
#[derive(Debug, Args)]
pub(super) struct Migrate {
    /// Print the SQL and the GRANTs instead, for whoever may create tables; needs no database
    #[arg(long, value_name = "DIALECT")]
    #[expect(clippy::option_option, reason = "the option can be given without its value")]
    print: Option<Option<Dialect>>,
    /// The role that services connect as, for the GRANTs
    #[arg(long, default_value = "app")]
    role: String,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Dialect {
    Postgres,
    Sqlite,
}

impl Migrate {
    pub(super) async fn run(self, database: Option<Database>) -> Result<(), Refused> {
        let Some(dialect) = self.print else {
            return database::given(database)?.run(Tables).await;
        };
        let dialect = dialect.unwrap_or(match database {
            Some(Database::Sqlite(_)) => Dialect::Sqlite,
            Some(Database::Postgres(_)) | None => Dialect::Postgres,
        });
        output::text(match dialect {
            Dialect::Postgres => migration_sql::<Postgres>(&self.role),
            Dialect::Sqlite => migration_sql::<Sqlite>(&self.role),
        })
    }
}

struct Tables;

impl database::Command for Tables {
    const MAKES_TABLES: bool = true;

    async fn run<DB: Store>(self, pool: &Pool<DB>) -> Result<(), Refused> {
        let was_current = require_current(pool).await.is_ok();
        migrate(pool).await?;
        output::text(if was_current {
            "the inbox tables were up to date: nothing has changed"
        } else {
            "the inbox tables are up to date now"
        })
    }
}
