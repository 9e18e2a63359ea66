use std::path::PathBuf;

use handstamp_tests::{PrivateKafka, PrivatePostgres};

use super::Arguments;
use super::worker::Broken;

/// The servers of a run. Nobody else uses them.
#[derive(Debug)]
pub struct Arena {
    pub postgres: PrivatePostgres,
    pub kafka: PrivateKafka,
    /// Where the logs of workers go, by row.
    pub logs: PathBuf,
    /// Also those of rows that pass.
    pub keep_logs: bool,
    pub seed: u64,
    /// Workers that break the promise, in place of the real ones.
    pub broken: Option<Broken>,
}

impl Arena {
    pub async fn open(arguments: &Arguments, logs: PathBuf) -> Self {
        let (postgres, kafka) = tokio::join!(PrivatePostgres::launch(), PrivateKafka::launch());
        let Arguments { keep_logs, seed, broken, .. } = *arguments;
        Self { postgres, kafka, logs, keep_logs, seed, broken }
    }
}
