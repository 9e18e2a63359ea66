use handstamp_tests::{PrivateKafka, PrivatePostgres};

use super::worker::Broken;

/// The servers of a run. Nobody else uses them.
#[derive(Debug)]
pub struct Arena {
    pub postgres: PrivatePostgres,
    pub kafka: PrivateKafka,
    pub seed: u64,
    /// Workers that break the promise, in place of the real ones.
    pub broken: Option<Broken>,
}

impl Arena {
    pub async fn open(seed: u64, broken: Option<Broken>) -> Self {
        let (postgres, kafka) = tokio::join!(PrivatePostgres::launch(), PrivateKafka::launch());
        Self { postgres, kafka, seed, broken }
    }
}
