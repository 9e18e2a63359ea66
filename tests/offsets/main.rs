//! Where reading starts, how far it has got, and who is told: on a real broker and a real database.

mod ledger;
mod log;
mod member;
mod scene;

mod back_in_time;
mod back_pressure;
mod gaps;
mod membership;
mod newcomers;
mod off_log;
mod partitions_added;
mod poll_thread;
mod rebalance;
mod records;
mod recreated;
mod start;
mod watermark;
