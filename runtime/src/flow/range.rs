use std::fmt;

use super::NextOffset;

/// An offset that is not in the log. The text says how far it is off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfRange {
    /// What was asked for.
    pub asked: NextOffset,
    /// The first offset of the log.
    pub low: NextOffset,
    /// Behind the last one.
    pub high: NextOffset,
}

impl OutOfRange {
    /// `None` for an offset that can be read from: one in the log, or its end.
    #[must_use]
    pub fn find(asked: NextOffset, low: NextOffset, high: NextOffset) -> Option<Self> {
        (asked < low || asked > high).then_some(Self { asked, low, high })
    }

    /// How many offsets below the log's start will never be read.
    #[must_use]
    pub fn gone(&self) -> u64 {
        u64::try_from(self.low.0.saturating_sub(self.asked.0)).unwrap_or(0)
    }
}

impl fmt::Display for OutOfRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { asked, low, high } = self;
        write!(f, "asked for {asked}, the log is {low}..{high}: ")?;
        match asked.0.saturating_sub(high.0) {
            ahead if ahead > 0 => write!(f, "{ahead} ahead of the log end"),
            _ => write!(f, "{} gone", self.gone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c18_offset_off_the_log_says_how_far() {
        let find = |asked| OutOfRange::find(NextOffset(asked), NextOffset(420), NextOffset(850));
        assert_eq!(find(300).unwrap().to_string(), "asked for 300, the log is 420..850: 120 gone");
        assert_eq!(
            find(900).unwrap().to_string(),
            "asked for 900, the log is 420..850: 50 ahead of the log end"
        );
        assert_eq!((find(420), find(850)), (None, None));
    }
}
