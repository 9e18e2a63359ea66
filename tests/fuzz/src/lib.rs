//! What reads keys, fed with any bytes: each target panics where a promise about keys is broken.
//!
//! `tests/fuzz/run` runs them under libFuzzer; `cargo test` replays the corpus and tries a few inputs of its own.

mod cloudevents;
mod content_hash;
mod header;
mod input;
mod json;

pub use cloudevents::cloudevents;
pub use content_hash::content_hash;
pub use header::header;
pub use json::json;

/// The targets by the names of their folders in the corpus.
pub const TARGETS: [(&str, fn(&[u8])); 4] =
    [("header", header), ("json", json), ("content_hash", content_hash), ("cloudevents", cloudevents)];

/// The program that libFuzzer drives; built without it, it only says how to get it.
#[macro_export]
macro_rules! program {
    ($target:ident) => {
        #[cfg(fuzzing)]
        ::libfuzzer_sys::fuzz_target!(|bytes: &[u8]| $crate::$target(bytes));

        #[cfg(not(fuzzing))]
        fn main() {
            eprintln!("start it with tests/fuzz/run");
        }
    };
}
