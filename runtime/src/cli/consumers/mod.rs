mod accept_key;
mod list;
mod release;
mod rename;

use clap::Subcommand;

use super::database::Database;
use super::refused::Refused;

/// Who consumes, and what they may change
#[derive(Debug, Subcommand)]
pub(super) enum Consumers {
    List(list::List),
    AcceptKey(accept_key::AcceptKey),
    Rename(rename::Rename),
    Release(release::Release),
}

impl Consumers {
    pub(super) async fn run(self, database: Database) -> Result<(), Refused> {
        match self {
            Self::List(list) => database.run(list).await,
            Self::AcceptKey(accept_key) => database.run(accept_key).await,
            Self::Rename(rename) => database.run(rename).await,
            Self::Release(release) => database.run(release).await,
        }
    }
}
