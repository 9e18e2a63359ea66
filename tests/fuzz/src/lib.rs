//! What reads keys, fed with any bytes: each target panics where a promise about keys is broken.
//!
//! `tests/fuzz/run` runs them under libFuzzer; `cargo test` replays the corpus and tries a few inputs of its own.

mod cloudevents;
mod content_hash;
mod header;
mod input;
mod json;

pub use cloudevents::CLOUDEVENTS;
pub use content_hash::CONTENT_HASH;
pub use header::HEADER;
pub use json::JSON;

/// What is fed with bytes, and the name of its folder in the corpus.
pub struct Target {
    /// Also the name of its program.
    pub name: &'static str,
    /// Panics if a promise is broken.
    pub run: fn(&[u8]),
}

/// All of them.
pub const TARGETS: [Target; 4] = [HEADER, JSON, CONTENT_HASH, CLOUDEVENTS];

/// The program that libFuzzer drives; built without it, it only says how to get it.
#[macro_export]
macro_rules! program {
    ($target:ident) => {
        #[cfg(fuzzing)]
        ::libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ($crate::$target.run)(bytes));

        #[cfg(not(fuzzing))]
        fn main() {
            eprintln!("start it with tests/fuzz/run");
        }
    };
}
