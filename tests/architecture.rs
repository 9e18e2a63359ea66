//! Which code may live where. A rule that fails here is changed on purpose or not at all.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const SQL: &[&str] = &["INSERT INTO ", "SELECT ", "UPDATE ", "DELETE FROM ", "CREATE TABLE "];

#[test]
fn only_the_kafka_source_knows_rdkafka() {
    assert_confined(&["rdkafka"], "runtime/src", &["runtime/src/source/kafka"]);
}

#[test]
fn only_the_inbox_speaks_sql() {
    assert_confined(SQL, "runtime/src", &["runtime/src/inbox"]);
}

#[test]
fn the_core_depends_on_nothing_of_ours() {
    // Nothing is left of a mutant outside of the laboratory.
    let allowed = ["crate::flow", "crate::laboratory::mutant"];
    let own = |line: &str| {
        allowed.iter().fold(line.to_owned(), |line, one| line.replace(one, "")).contains("crate::")
    };
    assert_eq!(offending(&sources("runtime/src/flow"), own), [] as [String; 0]);
}

#[test]
fn only_the_entry_of_the_macros_names_the_compilers_tokens() {
    assert_confined(&["proc_macro::"], "macros/src", &["macros/src/lib.rs"]);
}

#[test]
fn unsafe_code_is_in_one_file() {
    let unsafe_code = ["unsafe {", "unsafe fn", "unsafe impl", "unsafe extern"];
    assert_confined(&unsafe_code, "runtime/src", &["runtime/src/source/kafka/ffi.rs"]);
    assert_confined(&unsafe_code, "macros/src", &[]);
}

#[test]
fn names_say_what_is_inside() {
    let vague = ["utils", "util", "helpers", "helper", "common", "manager"];
    let named = |path: &PathBuf| vague.iter().any(|name| path.file_stem().is_some_and(|stem| stem == *name));
    let files = ["runtime/src", "macros/src", "examples", "tests"].map(sources).concat();
    let paths = files.iter().flat_map(|file| file.ancestors().map(Path::to_path_buf));
    assert_eq!(paths.filter(named).collect::<BTreeSet<_>>(), BTreeSet::new());
}

#[test]
fn both_databases_are_laid_out_alike() {
    assert_eq!(names("runtime/src/inbox/postgres"), names("runtime/src/inbox/sqlite"));
}

#[test]
fn both_databases_have_the_same_migrations() {
    let migrations = names("migrations/postgres");
    assert!(!migrations.is_empty(), "migrations/postgres is empty");
    assert_eq!(migrations, names("migrations/sqlite"));
}

/// Asserts that code below `folder` has these words in `homes` alone.
fn assert_confined(words: &[&str], folder: &str, homes: &[&str]) {
    let mut files = sources(folder);
    assert!(!files.is_empty(), "{folder} has no sources");
    files.retain(|file| !homes.iter().any(|home| file.starts_with(home)));
    let found = offending(&files, |line| words.iter().any(|word| line.contains(word)));
    assert_eq!(found, [] as [String; 0], "allowed only in {homes:?}");
}

/// `file:line` of every line of code that the rule objects to; comments may say anything.
fn offending(files: &[PathBuf], objects: impl Fn(&str) -> bool) -> Vec<String> {
    let mut found = Vec::new();
    for file in files {
        let text = fs::read_to_string(root().join(file)).expect("a source is text");
        for (number, line) in (1..).zip(text.lines()) {
            if !line.trim_start().starts_with("//") && objects(line) {
                found.push(format!("{}:{number}", file.display()));
            }
        }
    }
    found
}

/// Every Rust file below a folder, as paths from the root of the repository.
fn sources(folder: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::from(folder)];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(root().join(&folder)) else { continue };
        for entry in entries {
            let entry = entry.expect("a folder can be read");
            let path = folder.join(entry.file_name());
            if entry.file_type().expect("an entry has a type").is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    found
}

/// What a folder holds, modules by their name whether they are a file or a folder.
fn names(folder: &str) -> BTreeSet<PathBuf> {
    let entries = fs::read_dir(root().join(folder)).into_iter().flatten();
    let paths = entries.map(|entry| entry.expect("a folder can be read").path());
    paths.filter_map(|path| path.file_stem().map(PathBuf::from)).collect()
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}
