//! The oracle of the fault laboratory can fail: workers without an inbox are found out.

use std::process::Command;

use serde_json::Value;

/// Kills workers that break the promise in one way, and returns what the oracle says.
fn broken(how: &str) -> Value {
    let state = std::env::temp_dir().join(format!("handstamp-lab-{how}-{}.json", std::process::id()));
    let output = Command::new(env!("CARGO_BIN_EXE_lab"))
        .args(["faults", "--size=smoke", "--only=F1", "--fresh", "--json", "--broken", how, "--state"])
        .arg(&state)
        .output()
        .expect("the laboratory starts");
    for left in [state.clone(), state.with_extension("logs")] {
        let _of_either_kind = std::fs::remove_file(&left).or_else(|_| std::fs::remove_dir_all(&left));
    }
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}; it said: {said}"))
}

#[test]
fn effects_before_offsets_without_an_inbox_are_seen_to_be_applied_twice() {
    let summary = broken("effects-first");
    assert!(summary["applied_twice"].as_u64() > Some(0), "{summary:#}");
    assert_eq!(summary["lost"], 0, "{summary:#}");
}

#[test]
fn offsets_before_effects_are_seen_to_lose() {
    let summary = broken("offset-first");
    assert!(summary["lost"].as_u64() > Some(0), "{summary:#}");
}
