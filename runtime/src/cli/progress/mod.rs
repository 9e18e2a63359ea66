mod adopt;
mod change;
mod list;
mod reset;
mod seen;

use clap::Subcommand;
use sqlx::Pool;

use super::database::Database;
use super::refused::Refused;
use crate::inbox::Store;
use crate::inbox::consumers::{self, Consumer};
use crate::source::kafka::{Admin, Kafka};

/// How far consumers have got, and where they go on
#[derive(Debug, Subcommand)]
pub(super) enum Progress {
    List(list::List),
    Adopt(adopt::Adopt),
    Reset(reset::Reset),
}

impl Progress {
    pub(super) async fn run(self, database: Database) -> Result<(), Refused> {
        match self {
            Self::List(list) => database.run(list).await,
            Self::Adopt(adopt) => database.run(adopt).await,
            Self::Reset(reset) => database.run(reset).await,
        }
    }
}

/// A consumer that reads the topic, and a client that asks about its group.
async fn subject<DB: Store>(
    pool: &Pool<DB>,
    name: &str,
    topic: &str,
    kafka: &Kafka,
) -> Result<(Consumer, Admin), Refused> {
    let consumer = consumers::get(pool, name).await?;
    if !consumer.topics.iter().any(|known| known == topic) {
        let topics = match consumer.topics.join(", ") {
            topics if topics.is_empty() => "none".to_owned(),
            topics => topics,
        };
        return Err(Refused::failed(format!(
            "consumer `{name}` does not read topic `{topic}`; registered are: {topics}. A worker registers its \
             topics when it starts"
        )));
    }
    let Some(group) = &consumer.group else {
        let text = format!("consumer `{name}` has no Kafka group: start its worker once, which registers it");
        return Err(Refused::failed(text));
    };
    let admin = Admin::new(kafka, group).map_err(Refused::failed)?;
    Ok((consumer, admin))
}
