use super::{BoxError, Failure, FailureKind};

impl Failure {
    /// Classifies what a handler returned, by its concrete type.
    pub(crate) fn from_handler<E: Into<BoxError> + 'static>(error: E) -> Self {
        Self::new(FailureKind::Handler, error)
    }
}
