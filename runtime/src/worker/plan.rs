use std::pin::Pin;
use std::sync::Arc;

use sqlx::Pool;

use super::notice::Observer;
use crate::apply::Consumer;
use crate::inbox::Store;
use crate::source::kafka::Kafka;

/// Everything that a run needs.
pub(super) struct Plan<DB: Store> {
    pub(super) pool: Pool<DB>,
    pub(super) kafka: Option<Kafka>,
    /// Of the handlers that follow.
    pub(super) group: Option<Arc<str>>,
    pub(super) subscriptions: Vec<Subscription<DB>>,
    pub(super) copies: bool,
    pub(super) observers: Vec<Observer>,
    pub(super) shutdown: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

/// One handler on one topic.
pub(super) struct Subscription<DB: Store> {
    pub(super) consumer: Arc<dyn Consumer<DB>>,
    pub(super) group: Arc<str>,
    pub(super) topic: Arc<str>,
}
