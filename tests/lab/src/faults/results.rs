use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::report::RowReport;
use super::row::Size;

/// The rows that are finished, in a file, so that a run that was interrupted goes on where it was. A failed
/// row stays failed: running until it passes would prove nothing.
#[derive(Debug)]
pub struct Results {
    path: PathBuf,
    rows: BTreeMap<String, RowReport>,
}

impl Results {
    /// Where they are kept if nothing is said.
    pub fn default_path(size: Size) -> PathBuf {
        std::env::temp_dir().join(format!("handstamp-lab-faults-{}.json", size.name()))
    }

    /// Those of an earlier run.
    pub fn open(path: &Path) -> Result<Self> {
        let rows = match fs::read(path) {
            Ok(text) => serde_json::from_slice(&text)
                .with_context(|| format!("{} is not ours; --fresh writes it anew", path.display()))?,
            Err(_) => BTreeMap::new(),
        };
        Ok(Self { path: path.to_owned(), rows })
    }

    /// None yet.
    pub fn fresh(path: &Path) -> Self {
        Self { path: path.to_owned(), rows: BTreeMap::new() }
    }

    pub fn get(&self, id: &str) -> Option<&RowReport> {
        self.rows.get(id)
    }

    pub fn keep(&mut self, report: RowReport) -> Result<()> {
        self.rows.insert(report.id.clone(), report);
        let half = self.path.with_extension("half");
        fs::write(&half, serde_json::to_vec_pretty(&self.rows)?)?;
        // At once or not at all: the laboratory may be interrupted, too.
        fs::rename(&half, &self.path).with_context(|| format!("writing {}", self.path.display()))
    }
}
