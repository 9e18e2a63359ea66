//! The demonstration itself, on the embedded broker and database: what it says, and how it ends.

use std::process::{Command, Output};

use serde_json::Value;

/// Runs it with nothing set but `variables`.
fn wallet(arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_wallet"))
        .args(arguments)
        .env_remove("KAFKA_BROKERS")
        .env_remove("DATABASE_URL")
        .envs(variables.iter().copied())
        .output()
        .expect("the demonstration starts")
}

fn verdict(output: &Output) -> Value {
    let said = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}; it said: {said}"))
}

#[test]
fn killed_workers_lose_and_double_nothing() {
    let output = wallet(&["--events=1500", "--kills=2", "--max-pause=1500", "--json"], &[]);
    let verdict = verdict(&output);
    assert_eq!(output.status.code(), Some(0), "{verdict:#}");
    assert_eq!((&verdict["applied"], &verdict["kills"]), (&1500.into(), &2.into()), "{verdict:#}");
    assert_eq!((&verdict["lost"], &verdict["applied_twice"]), (&0.into(), &0.into()), "{verdict:#}");
    assert_eq!(
        (&verdict["balances_exact"], &verdict["drained"]),
        (&true.into(), &true.into()),
        "{verdict:#}"
    );
}

#[test]
fn without_an_inbox_duplicates_are_applied_and_the_run_fails() {
    let arguments = ["--without-inbox", "--events=200", "--duplicates=10", "--kills=0", "--json"];
    let output = wallet(&arguments, &[]);
    let verdict = verdict(&output);
    assert_eq!(output.status.code(), Some(1), "{verdict:#}");
    assert!(verdict["applied_twice"].as_u64() >= Some(20), "{verdict:#}");
    assert_eq!(verdict["balances_exact"], false, "{verdict:#}");
}

#[test]
fn one_service_alone_is_bad_usage() {
    let output = wallet(&[], &[("KAFKA_BROKERS", "localhost:9092")]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("DATABASE_URL is not"));
}

#[test]
fn more_than_the_embedded_broker_keeps_is_bad_usage() {
    let output = wallet(&["--events=1000000"], &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("up to 61440 are possible"));
}
