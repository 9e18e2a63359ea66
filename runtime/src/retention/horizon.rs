use std::time::Duration;

use sqlx::Pool;

use crate::failure::{Failure, FailureKind};
use crate::inbox::Store;
use crate::inbox::sweep::StampedAt;
use crate::inbox::transaction::{acquire, within};

/// A key is stamped when its transaction begins, and a handler's `timeout` goes up to a day: below that a key
/// could be forgotten as soon as it is committed.
const SHORTEST_WINDOW: Duration = Duration::from_hours(24);

/// Keys stamped before it may be forgotten.
///
/// Only the database's clock makes one, the clock that stamped the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Horizon(StampedAt);

impl Horizon {
    /// The database's now, less `window`: for how long keys are remembered at the least.
    ///
    /// # Errors
    /// `Configuration` if the window is shorter than a day; `Environment`.
    pub async fn behind<DB: Store>(pool: &Pool<DB>, window: Duration) -> Result<Self, Failure> {
        if window < SHORTEST_WINDOW {
            let text = format!(
                "keys cannot be forgotten after {window:?}: remember them for a day at the least, and for longer \
                 than their messages can be delivered again"
            );
            return Err(Failure::new(FailureKind::Configuration, text));
        }
        let mut connection = acquire(pool).await?;
        let now = within(DB::STATEMENT_LIMIT, DB::now(&mut connection))
            .await
            .map_err(|error| Failure::environment("reading the database's clock", error))?;
        let window = window.as_secs() + u64::from(window.subsec_nanos() > 0);
        let window = i32::try_from(window).unwrap_or(i32::MAX);
        Ok(Self(StampedAt(now.0.saturating_sub(window))))
    }

    /// As keys are stamped.
    #[must_use]
    pub fn stamped_at(self) -> StampedAt {
        self.0
    }
}
