//! The consumer loop: wires source, core and inbox together and shuts them down in order.

mod answer;
mod banner;
mod builder;
mod driver;
mod error;
mod jobs;
mod notice;
mod opening;
mod ownership;
mod plan;
mod pulse;
mod relay;
mod report;
mod run;
mod shutdown;

pub use builder::{Serves, Worker, WorkerBuilder};
pub use error::WorkerError;
pub use notice::Notice;
