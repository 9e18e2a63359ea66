//! The operator's tool: says how far consumers have got and what was given up, and changes what only a
//! person may change. One file per command; each reads, decides and prints, the work is done elsewhere.
//!
//! It exits with 0 when it has done what was asked, with 1 when it could not, saying why in one sentence
//! on standard error, and with 2 when it did not understand.

mod brokers;
mod consumers;
mod database;
mod dlq;
mod migrate;
mod output;
mod printable;
mod progress;
mod refused;
mod utc;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use self::database::Database;
use self::refused::Refused;

/// Looks after handstamp's tables: consumers, progress and dead letters.
#[derive(Debug, Parser)]
#[command(name = "handstamp", version, disable_help_subcommand = true)]
struct Arguments {
    /// The database, as a postgres: or sqlite: URL
    #[arg(long, env = "DATABASE_URL", hide_env_values = true, value_name = "URL", global = true)]
    database: Option<String>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Migrate(migrate::Migrate),
    #[command(subcommand)]
    Consumers(consumers::Consumers),
    #[command(subcommand)]
    Progress(progress::Progress),
    #[command(subcommand)]
    Dlq(dlq::Dlq),
}

impl Arguments {
    async fn run(self) -> Result<(), Refused> {
        let database = self.database.as_deref().map(Database::parse).transpose()?;
        match self.command {
            Command::Migrate(migrate) => migrate.run(database).await,
            Command::Consumers(consumers) => consumers.run(database::given(database)?).await,
            Command::Progress(progress) => progress.run(database::given(database)?).await,
            Command::Dlq(dlq) => dlq.run(database::given(database)?).await,
        }
    }
}

/// Runs the tool on the arguments of this process; a binary needs nothing else:
///
/// ```no_run
/// fn main() -> std::process::ExitCode {
///     handstamp::cli::main()
/// }
/// ```
#[must_use]
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let done = match runtime {
        Ok(runtime) => runtime.block_on(arguments.run()),
        Err(error) => Err(Refused::failed(format!("cannot start: {error}"))),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(refused) => {
            eprintln!("handstamp: {refused}");
            refused.exit_code()
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_arguments_contradict_nothing() {
        Arguments::command().debug_assert();
    }
}
