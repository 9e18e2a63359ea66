//! How long keys are remembered, and how they are forgotten.

mod horizon;
mod sweep;

pub use horizon::Horizon;
pub use sweep::{Batch, Sweep};
