use std::env;
use std::str::FromStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Error, Result};
use handstamp::laboratory::{Point, on_reach};

use super::told::Told;

/// Something that a worker process does to itself when it reaches a point for the nth time. Given in the
/// environment: `CRASH_AT=before-commit:3`, `FREEZE_AT=in-handler:1`, `STALL_AT=after-poll:2:12000` (ms).
#[derive(Clone, Copy, Debug)]
pub struct Trigger {
    pub act: Act,
    pub point: Point,
    pub nth: u32,
}

#[derive(Clone, Copy, Debug)]
pub enum Act {
    /// SIGKILL.
    Crash,
    /// SIGSTOP.
    Freeze,
    /// The thread that is there sleeps.
    Stall(Duration),
}

static SET: OnceLock<Trigger> = OnceLock::new();
static REACHED: AtomicU32 = AtomicU32::new(0);

impl Trigger {
    pub fn crash(point: Point, nth: u32) -> Self {
        Self { act: Act::Crash, point, nth }
    }

    pub fn freeze(point: Point, nth: u32) -> Self {
        Self { act: Act::Freeze, point, nth }
    }

    pub fn stall(point: Point, nth: u32, span: Duration) -> Self {
        Self { act: Act::Stall(span), point, nth }
    }

    /// The variable that gives it to a process.
    pub fn variable(self) -> (&'static str, String) {
        let place = format!("{}:{}", self.point.name(), self.nth);
        match self.act {
            Act::Crash => ("CRASH_AT", place),
            Act::Freeze => ("FREEZE_AT", place),
            Act::Stall(span) => ("STALL_AT", format!("{place}:{}", span.as_millis())),
        }
    }

    /// Arms this process with what its environment says.
    pub fn arm_from_env() -> Result<()> {
        for name in ["CRASH_AT", "FREEZE_AT", "STALL_AT"] {
            if let Ok(value) = env::var(name) {
                let trigger = Self::parse(name, &value).with_context(|| format!("{name}={value}"))?;
                SET.set(trigger).map_err(|_| Error::msg("more than one trigger"))?;
                on_reach(reached);
            }
        }
        Ok(())
    }

    fn parse(name: &str, value: &str) -> Result<Self> {
        let mut parts = value.split(':');
        let mut next = || parts.next().context("point:nth[:milliseconds] is expected");
        let point = next()?;
        let point = Point::find(point).with_context(|| format!("there is no point {point}"))?;
        let nth = u32::from_str(next()?)?;
        let act = match name {
            "CRASH_AT" => Act::Crash,
            "FREEZE_AT" => Act::Freeze,
            _ => Act::Stall(Duration::from_millis(next()?.parse()?)),
        };
        Ok(Self { act, point, nth })
    }
}

fn reached(point: Point) {
    let Some(trigger) = SET.get() else { return };
    if point != trigger.point || REACHED.fetch_add(1, Ordering::SeqCst) + 1 != trigger.nth {
        return;
    }
    Told::Reached { point: point.name().to_owned() }.say();
    match trigger.act {
        Act::Crash => signal_self(libc::SIGKILL),
        Act::Freeze => signal_self(libc::SIGSTOP),
        Act::Stall(span) => thread::sleep(span),
    }
}

fn signal_self(signal: libc::c_int) {
    // SAFETY: neither call has a precondition.
    unsafe { libc::kill(libc::getpid(), signal) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_process_is_given_is_what_it_reads() {
        for trigger in [
            Trigger::crash(Point::CommitSent, 3),
            Trigger::freeze(Point::InHandler, 1),
            Trigger::stall(Point::AfterPoll, 2, Duration::from_secs(12)),
        ] {
            let (name, value) = trigger.variable();
            let read = Trigger::parse(name, &value).expect("it is a trigger");
            assert_eq!(format!("{read:?}"), format!("{trigger:?}"));
        }
    }
}
