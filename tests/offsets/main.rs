//! Where reading starts, how far it has got, and who is told: on a real broker and a real database.

mod ledger;
mod log;
mod running;
mod scene;

mod back_in_time;
mod gaps;
mod off_log;
mod partitions_added;
mod recreated;
mod start;
