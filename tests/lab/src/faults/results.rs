use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::Arguments;
use super::report::RowReport;
use super::row::Size;
use super::worker::Broken;

/// The rows that are finished, in a file, so that a run that was interrupted goes on where it was. A failed
/// row stays failed: running until it passes would prove nothing.
#[derive(Debug)]
pub struct Results {
    path: PathBuf,
    kept: Kept,
}

#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    origin: Origin,
    rows: BTreeMap<String, RowReport>,
}

#[derive(Deserialize)]
struct Header {
    origin: Origin,
}

/// What rows say something about. Those of another origin say nothing about this one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Origin {
    size: Size,
    seed: u64,
    broken: Option<Broken>,
    build: Build,
}

/// The program. Another one has another length, or was written at another time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Build {
    bytes: u64,
    written: SystemTime,
}

impl Origin {
    /// A run of this program with these arguments.
    pub fn of(arguments: &Arguments) -> Result<Self> {
        let program = fs::metadata(std::env::current_exe()?)?;
        let build = Build { bytes: program.len(), written: program.modified()? };
        let Arguments { size, seed, broken, .. } = *arguments;
        Ok(Self { size, seed, broken, build })
    }
}

impl Results {
    /// Where they are kept if nothing is said.
    pub fn default_path(size: Size) -> PathBuf {
        std::env::temp_dir().join(format!("handstamp-lab-faults-{}.json", size.name()))
    }

    /// Those of an earlier run, if it was of the same origin.
    pub fn open(path: &Path, origin: Origin) -> Result<Self> {
        let mut results = Self::fresh(path, origin);
        if let Ok(text) = fs::read(path) {
            let not_ours = || format!("{} is not ours; --fresh writes it anew", path.display());
            // Another build may have other rows: they are not even read.
            let Header { origin } = serde_json::from_slice(&text).with_context(not_ours)?;
            if origin == results.kept.origin {
                results.kept = serde_json::from_slice(&text).with_context(not_ours)?;
            }
        }
        for report in results.kept.rows.values_mut() {
            report.from_earlier_run = true;
        }
        Ok(results)
    }

    /// None yet.
    pub fn fresh(path: &Path, origin: Origin) -> Self {
        Self { path: path.to_owned(), kept: Kept { origin, rows: BTreeMap::new() } }
    }

    pub fn get(&self, id: &str) -> Option<&RowReport> {
        self.kept.rows.get(id)
    }

    pub fn keep(&mut self, report: RowReport) -> Result<()> {
        self.kept.rows.insert(report.id.clone(), report);
        let half = self.path.with_extension("half");
        fs::write(&half, serde_json::to_vec_pretty(&self.kept)?)?;
        // At once or not at all: the laboratory may be interrupted, too.
        fs::rename(&half, &self.path).with_context(|| format!("writing {}", self.path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin() -> Origin {
        let build = Build { bytes: 1_000, written: SystemTime::UNIX_EPOCH };
        Origin { size: Size::Ci, seed: 1, broken: None, build }
    }

    /// What a run of this origin finds of the one row that a run of [`origin`] finished.
    fn found_by(later: Origin) -> Option<RowReport> {
        let folder = tempfile::tempdir().expect("there is room");
        let path = folder.path().join("rows.json");
        let report = RowReport { id: "F1".to_owned(), ..RowReport::default() };
        Results::fresh(&path, origin()).keep(report).expect("the file can be written");
        let results = Results::open(&path, later).expect("the file can be read");
        results.get("F1").cloned()
    }

    #[test]
    fn a_finished_row_is_taken_over_and_says_so() {
        let row = found_by(origin()).expect("it was finished");
        assert!(row.to_string().contains("(from an earlier run)"), "{row}");
    }

    #[test]
    fn a_row_of_another_build_does_not_pass_for_one_of_this() {
        let written = SystemTime::now();
        assert!(found_by(Origin { build: Build { written, ..origin().build }, ..origin() }).is_none());
    }

    #[test]
    fn a_row_of_another_seed_does_not_pass_for_one_of_this() {
        assert!(found_by(Origin { seed: 2, ..origin() }).is_none());
    }

    #[test]
    fn a_row_of_another_size_does_not_pass_for_one_of_this() {
        assert!(found_by(Origin { size: Size::Full, ..origin() }).is_none());
    }

    #[test]
    fn a_row_of_broken_workers_does_not_pass_for_one_of_sound_ones() {
        assert!(found_by(Origin { broken: Some(Broken::EffectsFirst), ..origin() }).is_none());
    }
}
