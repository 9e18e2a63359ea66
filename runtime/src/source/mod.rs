//! Where messages come from.

#[cfg(feature = "kafka")]
pub(crate) mod kafka;
