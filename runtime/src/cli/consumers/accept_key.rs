use clap::Args;
use sqlx::Pool;

use crate::cli::refused::Refused;
use crate::cli::{database, output};
use crate::inbox::{Store, consumers};

/// Takes a consumer's new key definition: what was applied under the old one is new again if redelivered
#[derive(Debug, Args)]
pub(in crate::cli) struct AcceptKey {
    /// The consumer's name
    name: String,
    /// The new definition, as the attribute has it
    definition: String,
}

impl database::Command for AcceptKey {
    async fn run<DB: Store>(self, pool: &Pool<DB>) -> Result<(), Refused> {
        let Self { name, definition } = self;
        consumers::accept_key(pool, &name, &definition).await?;
        output::text(format_args!(
            "consumer `{name}` now has the key {definition}; workers that still have the old one stop"
        ))
    }
}
