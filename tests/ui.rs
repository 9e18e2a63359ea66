//! What `#[idempotent]` accepts, and what it says to everything else.

#[test]
fn handlers_compile_without_warnings_however_they_are_written() {
    trybuild::TestCases::new().pass("ui/pass/*.rs");
}

#[test]
fn every_mistake_is_reported_once_at_its_own_token() {
    let cases = trybuild::TestCases::new();
    for theme in ["attribute", "key", "function", "types"] {
        cases.compile_fail(format!("ui/{theme}/*.rs"));
    }
}
