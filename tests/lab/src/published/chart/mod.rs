//! Bars beside each other: what was published, and what was measured here.

mod axis;
mod draw;

use std::path::Path;

use anyhow::Result;

pub use draw::number;

/// Panels beside each other, each with its own axis.
pub struct Chart {
    pub title: String,
    pub subtitle: String,
    /// What the bars are that are not published ones.
    pub here: String,
    pub panels: Vec<Panel>,
}

pub struct Panel {
    /// What is counted, and in what.
    pub title: String,
    pub groups: Vec<Group>,
}

/// The bars of one variant.
pub struct Group {
    /// Its lines.
    pub label: Vec<String>,
    pub published: Option<f64>,
    /// Every run; the bar is as high as their median.
    pub here: Vec<f64>,
}

impl Chart {
    pub fn write(&self, path: &Path) -> Result<()> {
        draw::write(self, path)
    }
}

/// What bars are whose runs are shown as dots.
pub fn median_of(runs: usize) -> String {
    if runs == 1 { "measured here, once".to_owned() } else { format!("measured here, median of {runs} runs") }
}
