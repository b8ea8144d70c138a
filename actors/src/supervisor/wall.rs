//! How far the wall clock is trusted with results that are due.
//!
//! A result goes when its time is up, by the wall clock: that outlives a restart, and can be set. Where it ran
//! ahead of the machine's own time, what was due by its old setting has not been kept for as long as it was
//! promised. So results then go as if the clock had not been set, until the longest time that any is kept has
//! passed: what had ended before goes at its time, and nothing that ended since has been due by then.
//!
//! The store keeps the last look, so that a clock which was set while no engine ran is noticed as well.

use std::time::Duration;

use procession_kernel::{Rules, Timestamp};

use crate::clock::{Clock, MachineTime};
use crate::journal::encode::LastLook;

/// A clock that ran ahead by this much was set. What keeps it right while it runs is far less, however long nobody
/// looked, and results that go this much too early are kept for most of the least that anybody would keep them.
const SET_FORWARD: Duration = Duration::from_mins(1);
/// How often the last look is written at most, but for the first of a life and those of a drain.
const WRITE_EVERY: Duration = Duration::from_mins(1);
/// How often while the engine drains.
const WRITE_DRAINING: Duration = Duration::from_secs(1);

/// That the wall clock is ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ahead {
    /// By how much.
    pub(super) by: Duration,
    /// Since when that is known to this engine.
    pub(super) since: Timestamp,
    /// Until when it counts, unless the clock is set before.
    pub(super) until: Timestamp,
}

/// What is known of the wall clock.
pub(super) struct Wall {
    last: Option<LastLook>,
    since: Timestamp,
    written: Option<Timestamp>,
    /// The longest time that a result is kept.
    kept: u64,
    /// A longer key was asked for than what is written says.
    longer: bool,
    /// The longest time for which a key was to be kept.
    key: u64,
}

impl Wall {
    pub(super) fn new(last: Option<LastLook>, rules: &Rules) -> Self {
        let own = rules.kinds.values().filter_map(|kind| kind.keep_after_end);
        let kept = own.fold(rules.keep_after_end, Duration::max);
        Self {
            last,
            since: Timestamp(0),
            written: None,
            kept: micros(kept),
            longer: false,
            key: last.map_or(0, |last| last.key),
        }
    }

    /// Notes for how long a key is to be kept.
    pub(super) fn note_key(&mut self, keep: Duration) {
        if micros(keep) > self.key {
            self.key = micros(keep);
            self.longer = true;
        }
    }

    /// Looks at the clocks; tells up to when results that are due may go. A clock that does not know the machine's
    /// time is believed.
    pub(super) fn look(&mut self, clock: &dyn Clock) -> Timestamp {
        let wall = clock.now();
        let Some(machine) = clock.machine_time() else {
            return wall;
        };
        let look = self.looked(wall, machine);
        let was_ahead = self.last.replace(look).is_some_and(|last| last.ahead > 0);
        if !was_ahead || self.since.0 == 0 {
            self.since = wall;
        }
        Timestamp(wall.0.saturating_sub(look.ahead))
    }

    fn looked(&self, wall: Timestamp, machine: MachineTime) -> LastLook {
        let mut look = LastLook {
            wall: wall.0,
            boot: machine.boot,
            since: micros(machine.since),
            ahead: 0,
            left: 0,
            key: self.key,
        };
        let Some(last) = self.last else { return look };
        // Nobody knows what passed while the machine was off: nothing, so that results stay rather too long.
        let is_same = last.boot == look.boot && last.since <= look.since;
        let passed = if is_same { look.since - last.since } else { 0 };
        let expected = last.wall.saturating_add(passed);
        look.ahead = last.ahead;
        look.left = last.left.saturating_sub(passed);
        if wall.0.saturating_sub(expected) >= micros(SET_FORWARD) {
            look.ahead = last.ahead.saturating_add(wall.0 - expected);
            look.left = self.kept.max(self.key);
        } else if expected.saturating_sub(wall.0) >= micros(SET_FORWARD) {
            look.ahead = last.ahead.saturating_sub(expected - wall.0);
        }
        if look.left == 0 || look.ahead < micros(SET_FORWARD) {
            (look.ahead, look.left) = (0, 0);
        }
        look
    }

    /// Tells whether the clock was ahead at the last look.
    pub(super) fn ahead(&self) -> Option<Ahead> {
        let last = self.last.filter(|last| last.ahead > 0)?;
        Some(Ahead {
            by: Duration::from_micros(last.ahead),
            since: self.since,
            until: Timestamp(last.wall.saturating_add(last.left)),
        })
    }

    /// Gives what the wall clock shows when a result that is due then may go.
    pub(super) fn goes_at(&self, due: Timestamp) -> Timestamp {
        match self.ahead() {
            Some(ahead) => due.after(ahead.by).min(ahead.until.max(due)),
            None => due,
        }
    }

    /// Looks at the clocks, and gives what is to be written with a commit that is made now, if that is due.
    pub(super) fn take_look(&mut self, clock: &dyn Clock, draining: bool) -> Option<LastLook> {
        let now = clock.now();
        let every = if draining { WRITE_DRAINING } else { WRITE_EVERY };
        let is_due = self
            .written
            .is_none_or(|written| now < written || now.since(written) >= every);
        if !is_due && !self.longer {
            return None;
        }
        self.look(clock);
        (self.written, self.longer) = (Some(now), false);
        self.last
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
