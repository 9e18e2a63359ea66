//! The runs of an experiment that are done, so that an experiment that was interrupted goes on where it stopped.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A file of finished runs, a line each; without a path nothing is remembered.
pub struct Record {
    path: Option<PathBuf>,
    done: Vec<Entry>,
}

#[derive(Clone, Deserialize, Serialize)]
struct Entry {
    /// Everything that the run was asked for.
    of: String,
    trial: Value,
}

impl Record {
    pub fn open(path: Option<&Path>) -> Result<Self> {
        let mut done = Vec::new();
        if let Some(path) = path.filter(|path| path.exists()) {
            for line in fs::read_to_string(path)?.lines() {
                let entry = serde_json::from_str(line)
                    .with_context(|| format!("{} holds a line that is no run: {line}", path.display()))?;
                done.push(entry);
            }
        }
        Ok(Self { path: path.map(Path::to_path_buf), done })
    }

    /// The run of this description, made now unless it is there already.
    pub async fn get_or_make<T: Serialize + DeserializeOwned>(
        &self,
        of: String,
        make: impl AsyncFnOnce() -> Result<T>,
    ) -> Result<T> {
        if let Some(trial) = self.find(&of) {
            return Ok(serde_json::from_value(trial)?);
        }
        let trial = make().await?;
        if let Some(path) = &self.path {
            let entry = Entry { of, trial: serde_json::to_value(&trial)? };
            let mut file = File::options().create(true).append(true).open(path)?;
            writeln!(file, "{}", serde_json::to_string(&entry)?)?;
        }
        Ok(trial)
    }

    fn find(&self, of: &str) -> Option<Value> {
        self.done.iter().find(|entry| entry.of == of).map(|entry| entry.trial.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_run_that_is_on_record_is_not_made_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs.jsonl");
        let first = Record::open(Some(&path)).unwrap();
        assert_eq!(first.get_or_make("b run 1".to_owned(), async || Ok(7)).await.unwrap(), 7);
        let again = Record::open(Some(&path)).unwrap();
        assert_eq!(again.get_or_make("b run 1".to_owned(), async || Ok(8)).await.unwrap(), 7);
        assert_eq!(again.get_or_make("b run 2".to_owned(), async || Ok(8)).await.unwrap(), 8);
    }
}
