//! Where results go: a table or JSON on standard output, charts into a folder; progress is on standard error.

use std::fmt::{self, Display};
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use serde::Serialize;

use super::chart::Chart;

#[derive(Debug, Args)]
pub struct Output {
    /// Print JSON objects, one a line, and nothing else.
    #[arg(long)]
    json: bool,
    /// Write an SVG chart into this folder, unless a variant failed to run.
    #[arg(long, value_name = "DIR")]
    charts: Option<PathBuf>,
}

impl Output {
    /// Prints the results, as JSON or as a table.
    pub fn print<T: Serialize>(&self, results: &[T], table: &impl Display) -> Result<()> {
        if self.json {
            for result in results {
                println!("{}", serde_json::to_string(result)?);
            }
        } else {
            print!("{table}");
        }
        Ok(())
    }

    pub fn draw(&self, name: &str, chart: &Chart) -> Result<()> {
        let Some(charts) = &self.charts else { return Ok(()) };
        std::fs::create_dir_all(charts)?;
        let path = charts.join(name).with_extension("svg");
        chart.write(&path)?;
        eprintln!("chart: {}", path.display());
        Ok(())
    }
}

/// Rows of text; the first is the head.
pub struct Table(Vec<Vec<String>>);

impl Table {
    pub fn with_head<const N: usize>(head: [&str; N]) -> Self {
        Self(vec![head.map(str::to_owned).to_vec()])
    }

    pub fn add<const N: usize>(&mut self, row: [String; N]) {
        self.0.push(row.into());
    }
}

impl Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.0.first().map_or(0, Vec::len);
        let width = |column: usize| {
            self.0.iter().map(|row: &Vec<String>| row[column].chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for row in &self.0 {
            for (index, (cell, width)) in row.iter().zip(&widths).enumerate() {
                // The first column is a name.
                if index == 0 {
                    write!(f, "{cell:<width$}")?;
                } else {
                    write!(f, "  {cell:>width$}")?;
                }
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

/// A line a variant, on a terminal only.
#[derive(Clone, Default)]
pub struct Progress(MultiProgress);

impl Progress {
    pub fn line(&self, variant: &str, length: u64) -> ProgressBar {
        let style = ProgressStyle::with_template("  {prefix:<10} {bar:30} {pos}/{len}  {msg}  {elapsed}")
            .unwrap_or_else(|_| ProgressStyle::default_bar());
        self.0.add(ProgressBar::new(length)).with_style(style).with_prefix(variant.to_owned())
    }
}
