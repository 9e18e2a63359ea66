//! The operator's tool: `cargo run --bin handstamp -- --help`.

use std::process::ExitCode;

fn main() -> ExitCode {
    handstamp::cli::main()
}
