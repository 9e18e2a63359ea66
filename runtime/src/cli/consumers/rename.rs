use clap::Args;
use sqlx::Pool;

use crate::cli::refused::Refused;
use crate::cli::{database, output};
use crate::inbox::{Store, consumers};

/// Gives a consumer a new name; it keeps its inbox and its progress
#[derive(Debug, Args)]
pub(in crate::cli) struct Rename {
    /// Its name so far
    old: String,
    /// Its name from now on
    new: String,
}

impl database::Command for Rename {
    async fn run<DB: Store>(self, pool: &Pool<DB>) -> Result<(), Refused> {
        let Self { old, new } = self;
        consumers::rename(pool, &old, &new).await?;
        output::text(format_args!(
            "consumer `{old}` is called `{new}` now; workers that still use the old name stop"
        ))
    }
}
