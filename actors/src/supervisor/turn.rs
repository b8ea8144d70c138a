//! How long the supervisor was away at most: the longest that it did one thing, while everybody else waited.
//!
//! By the machine's time, so that it tells of a busy machine as well: a turn in which the
//! supervisor's thread was not run counts in full, as it does for whoever waits.

use std::time::Duration;

use super::Supervisor;
use crate::clock::machine_now;

/// The longest turn since the engine began.
#[derive(Default)]
pub(super) struct Turn {
    pub(super) longest: Duration,
}

impl Supervisor {
    /// Does one thing, and notes how long it took. A turn within a turn counts as part of it.
    pub(super) fn turn<R>(&mut self, work: impl FnOnce(&mut Self) -> R) -> R {
        let begun = machine_now();
        let done = work(self);
        self.turn.longest = self.turn.longest.max(begun.elapsed());
        done
    }
}
