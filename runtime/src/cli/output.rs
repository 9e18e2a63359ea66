use std::fmt::Display;
use std::io::{self, ErrorKind, Write};

use comfy_table::presets::ASCII_NO_BORDERS;
use comfy_table::{LineStyle, Table, TableStyle};
use serde::Serialize;

use super::refused::Refused;

/// One line a row, so that `grep` finds whole rows.
const STYLE: TableStyle = ASCII_NO_BORDERS.row_separator(LineStyle::none());

/// Prints text. A reader that has seen enough (`| head`) is no error.
pub(super) fn text(text: impl Display) -> Result<(), Refused> {
    match writeln!(io::stdout(), "{text}") {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Refused::failed(format!("cannot write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Prints one JSON document.
pub(super) fn json(value: &impl Serialize) -> Result<(), Refused> {
    let document = serde_json::to_string_pretty(value)
        .map_err(|error| Refused::failed(format!("cannot be written as JSON: {error}")))?;
    text(document)
}

/// A table with these columns and no rows.
pub(super) fn table<const N: usize>(columns: [&str; N]) -> Table {
    let mut table = Table::new();
    table.load_style(STYLE).set_header(columns);
    table
}

/// Prints a table, or a sentence that says what its being empty means.
pub(super) fn table_or(table: &Table, empty: impl Display) -> Result<(), Refused> {
    if table.is_empty() { text(empty) } else { text(table.trim_fmt()) }
}
