use crate::failure::BoxError;

/// Why a worker did not start, or stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkerError {
    /// Something must be changed before the worker can start; the text says what.
    #[error("{0}")]
    Configuration(String),
    /// The database did not answer at start, or is not ready for us.
    #[error("the database is not ready: {0}")]
    Database(#[source] BoxError),
    /// Kafka did not answer at start, or is not ready for us.
    #[error("Kafka is not ready: {0}")]
    Kafka(String),
    /// A handler ended its own inbox transaction. Its messages are listed in the dead letters with
    /// the reason `transaction_ended_by_handler`; nothing else was read after them.
    #[error(
        "consumer `{consumer}` stopped: its handler `{handler}` ended the inbox transaction by itself ({error}). \
         Remove COMMIT, ROLLBACK and the like from it, check what it wrote for the messages listed as dead \
         letters (reason transaction_ended_by_handler), then start again"
    )]
    TransactionEnded {
        /// The consumer.
        consumer: String,
        /// The path of the handler.
        handler: String,
        /// What was found.
        error: String,
    },
    /// A part of handstamp ended that should not have. Nothing is lost: what was not committed comes again.
    #[error("handstamp itself failed: {0}. Nothing is lost; start the worker again, and please report this")]
    Internal(String),
}
