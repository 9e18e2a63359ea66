use clap::Args;
use sqlx::Pool;

use crate::cli::refused::Refused;
use crate::cli::{database, output};
use crate::inbox::{Store, consumers};

/// Forgets which handler, group and topics a name belongs to: the next to register takes it over
#[derive(Debug, Args)]
pub(in crate::cli) struct Release {
    /// The consumer's name
    name: String,
}

impl database::Command for Release {
    async fn run<DB: Store>(self, pool: &Pool<DB>) -> Result<(), Refused> {
        let Self { name } = self;
        consumers::release(pool, &name).await?;
        output::text(format_args!(
            "consumer `{name}` belongs to nobody: the next worker that starts with the name takes it over, with its \
             inbox and its progress"
        ))
    }
}
