//! When to stop.

use std::pin::Pin;

use super::WorkerError;

/// Resolves when the user's signal does, else at SIGTERM or Ctrl-C.
pub(super) async fn wait(
    signal: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
) -> Result<(), WorkerError> {
    match signal {
        Some(signal) => {
            signal.await;
            Ok(())
        }
        None => of_the_process().await.map_err(|error| {
            WorkerError::Configuration(format!(
                "cannot listen for signals ({error}): call `.with_graceful_shutdown(…)` to say when to stop"
            ))
        }),
    }
}

#[cfg(unix)]
async fn of_the_process() -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        _ = terminate.recv() => Ok(()),
        interrupted = tokio::signal::ctrl_c() => interrupted,
    }
}

#[cfg(not(unix))]
async fn of_the_process() -> std::io::Result<()> {
    tokio::signal::ctrl_c().await
}
