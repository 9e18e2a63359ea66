//! What /proc says of this process and of the database's.

use std::fs;

use anyhow::Result;
use sqlx::PgPool;

/// Of a tick, in which /proc counts. It is 100 a second on every machine that Linux runs on today.
const TICK_MS: u64 = 10;

/// Reads the clocks of two programs.
pub struct Meter {
    /// The process that started all others of PostgreSQL; none if it runs on another machine, or in a container.
    postmaster: Option<u32>,
}

/// Processor time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Used {
    pub consumer_ms: u64,
    pub database_ms: Option<u64>,
}

impl Used {
    pub fn since(self, before: Self) -> Self {
        let database = self.database_ms.zip(before.database_ms);
        Self {
            consumer_ms: self.consumer_ms.saturating_sub(before.consumer_ms),
            database_ms: database.map(|(now, before)| now.saturating_sub(before)),
        }
    }
}

impl Meter {
    pub async fn of(pool: &PgPool) -> Result<Self> {
        let backend: i32 = sqlx::query_scalar("SELECT pg_backend_pid()").fetch_one(pool).await?;
        let backend = Stat::of(&backend.to_string()).filter(|stat| stat.program.starts_with("postgres"));
        Ok(Self { postmaster: backend.map(|stat| stat.parent) })
    }

    pub fn used(&self) -> Used {
        let consumer = Stat::of("self").map(|stat| stat.ticks).unwrap_or_default();
        Used {
            consumer_ms: consumer * TICK_MS,
            database_ms: self.database_ticks().map(|ticks| ticks * TICK_MS),
        }
    }

    /// The most memory that this process has had, in KiB.
    pub fn peak_kb() -> u64 {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        peak.and_then(|peak| peak.trim().trim_end_matches(" kB").parse().ok()).unwrap_or_default()
    }

    /// A process that has ended is in the account of its parent, so that nothing is ever missing.
    fn database_ticks(&self) -> Option<u64> {
        let postmaster = self.postmaster?;
        let own = Stat::of(&postmaster.to_string())?;
        let mut ticks = own.ticks + own.ticks_of_ended;
        for entry in fs::read_dir("/proc").ok()?.flatten() {
            let name = entry.file_name();
            let Some(process) = name.to_str().filter(|name| name.starts_with(|c: char| c.is_ascii_digit()))
            else {
                continue;
            };
            let child = Stat::of(process).filter(|stat| stat.parent == postmaster);
            ticks += child.map(|stat| stat.ticks).unwrap_or_default();
        }
        Some(ticks)
    }
}

/// A line of /proc/PID/stat.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    program: String,
    parent: u32,
    ticks: u64,
    /// Of its children that it has waited for.
    ticks_of_ended: u64,
}

impl Stat {
    fn of(process: &str) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{process}/stat")).ok()?)
    }

    fn parse(line: &str) -> Option<Self> {
        // The name of a program may contain anything, also blanks and parentheses.
        let (before, after) = line.rsplit_once(')')?;
        let (_, program) = before.split_once('(')?;
        let fields: Vec<_> = after.split_whitespace().collect();
        let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
        Some(Self {
            program: program.to_owned(),
            parent: fields.get(1)?.parse().ok()?,
            ticks: number(11)? + number(12)?,
            ticks_of_ended: number(13)? + number(14)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_with_parentheses_in_its_name_is_read() {
        let line = "7 (a ) b) S 3 7 7 0 -1 4194560 1 2 3 4 50 6 700 8 20 0 1 0 99 1 1";
        let stat = Stat { program: "a ) b".to_owned(), parent: 3, ticks: 56, ticks_of_ended: 708 };
        assert_eq!(Stat::parse(line), Some(stat));
    }

    #[test]
    fn a_process_sees_what_it_uses() {
        let meter = Meter { postmaster: None };
        let before = meter.used();
        while meter.used().since(before).consumer_ms == 0 {}
        assert!(Meter::peak_kb() > 0);
    }
}
