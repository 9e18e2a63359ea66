//! The rows, in the order in which they run.

mod kills;

use super::row::Row;

pub const ALL: &[Row] = &[kills::ROW];
