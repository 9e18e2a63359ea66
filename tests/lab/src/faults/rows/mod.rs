//! The rows, in the order in which they run.

mod backlog;
mod broker;
mod commit_errors;
mod contention;
mod crash_points;
mod database;
mod evictions;
mod freezes;
mod kills;
mod letters;
mod misbehaviour;
mod moved_offsets;
mod poison;
mod rebalances;
mod requests;
mod restores;
mod silence;
mod stops;
mod terminations;
mod unheard_commits;
mod vanished_offsets;

use super::row::Row;

pub const ALL: &[Row] = &[
    kills::ROW,
    crash_points::ROW,
    freezes::ROW,
    evictions::ROW,
    rebalances::ROW,
    stops::ROW,
    database::ROW,
    terminations::ROW,
    unheard_commits::ROW,
    silence::ROW,
    contention::ROW,
    misbehaviour::ROW,
    broker::ROW,
    commit_errors::ROW,
    requests::ROW,
    moved_offsets::ROW,
    vanished_offsets::ROW,
    restores::ROW,
    poison::ROW,
    letters::ROW,
    backlog::ROW,
];
