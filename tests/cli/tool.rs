//! Runs the tool, and makes what it looks at.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::LazyLock;

use handstamp::internal::consumers::{self, Registration};
use handstamp::{Failure, migrate};
use handstamp_tests::{TestDatabase, built_binary, kafka_brokers};
use serde_json::Value;
use sqlx::PgPool;
use tokio::process::Command;

/// The name of the consumer in these tests; each has a database of its own.
pub const CONSUMER: &str = "cli-credits";

/// The tool, and the environment that it is run in.
pub struct Tool {
    database: Option<String>,
    brokers: Option<String>,
}

/// What a run has said.
#[derive(Debug)]
pub struct Run {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Tool {
    /// Without any environment.
    pub fn bare() -> Self {
        Self { database: None, brokers: None }
    }

    /// With `DATABASE_URL`.
    pub fn on(database: &str) -> Self {
        Self { database: Some(database.to_owned()), brokers: None }
    }

    /// With `KAFKA_BROKERS` as well.
    pub fn and_kafka(self) -> Self {
        Self { brokers: Some(kafka_brokers()), ..self }
    }

    /// Runs `handstamp` with these arguments.
    pub async fn run<const N: usize>(&self, arguments: [&str; N]) -> Run {
        let mut command = Command::new(BINARY.as_path());
        command.args(arguments);
        self.finish(command).await
    }

    /// Runs a command as a person would who pastes it out of an error, with more arguments behind it.
    pub async fn paste(&self, text: &str, command: &str, more: &str) -> Run {
        let quoted = text.split('`').find(|quoted| quoted.starts_with(command));
        let quoted = quoted.unwrap_or_else(|| panic!("no `{command}` in: {text}"));
        let mut shell = Command::new("/bin/sh");
        let folder = BINARY.parent().map(Path::to_path_buf).unwrap_or_default();
        shell.args(["-c", &format!("{quoted} {more}")]).env("PATH", folder);
        self.finish(shell).await
    }

    /// The JSON document that a command prints.
    pub async fn json<const N: usize>(&self, arguments: [&str; N]) -> Value {
        let run = self.run(arguments).await;
        assert_eq!(run.code, 0, "{run:?}");
        serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error} in {run:?}"))
    }

    async fn finish(&self, mut command: Command) -> Run {
        for (name, value) in [("DATABASE_URL", &self.database), ("KAFKA_BROKERS", &self.brokers)] {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let output = command.stdin(Stdio::null()).kill_on_drop(true).output().await;
        let output = output.expect("the tool can be started");
        Run {
            code: output.status.code().expect("the tool is not killed"),
            stdout: String::from_utf8(output.stdout).expect("output is text"),
            stderr: String::from_utf8(output.stderr).expect("errors are text"),
        }
    }
}

impl Run {
    /// It has done what it was asked, and complained of nothing.
    #[track_caller]
    pub fn done(&self) -> &str {
        assert!(self.code == 0 && self.stderr.is_empty(), "{self:?}");
        &self.stdout
    }

    /// It has refused, with one line on standard error.
    #[track_caller]
    pub fn refused(&self) -> &str {
        assert!(self.code == 1 && self.stderr.lines().count() == 1, "{self:?}");
        &self.stderr
    }
}

/// A database with the tables.
pub async fn migrated() -> TestDatabase {
    TestDatabase::migrated(async |pool: &PgPool| migrate(pool).await).await
}

/// Registers [`CONSUMER`] as a worker of `group` on `topic` would.
pub async fn register(pool: &PgPool, key_definition: &str, group: &str, topic: &str) -> Result<(), Failure> {
    let topics = [topic];
    let handler = "tests::credit";
    let registration =
        Registration { name: CONSUMER, key_definition, handler, group: Some(group), topics: &topics };
    consumers::register(pool, &registration).await.map(drop)
}

/// Built here: `cargo test` builds no binaries of other packages, and an old one would tell nothing.
static BINARY: LazyLock<PathBuf> = LazyLock::new(|| {
    let mut build = std::process::Command::new(env!("CARGO"));
    build.args(["build", "--quiet", "--bin", "handstamp"]);
    if !cfg!(debug_assertions) {
        build.arg("--release");
    }
    let built = build.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).status();
    assert!(built.expect("cargo can be run").success(), "the tool cannot be built");
    built_binary("handstamp")
});
