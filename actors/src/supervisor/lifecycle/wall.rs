//! How far the wall clock is trusted for results that are due.
//!
//! A result is evicted when its time is up by the wall clock, which outlives a restart but can be set. If it was set
//! forward, earlier results have not been kept for as long as promised. So results are evicted as if the clock had
//! not been set, until the longest retention time of any success has passed. By then the successes that ended before the
//! change have been evicted at their time, and none that ended since has been due earlier. Failures are kept far longer:
//! to wait for them would keep every success as long after each restart of the machine. They lose what the clock is
//! ahead.
//!
//! The store keeps the last look, so a clock that was set while no engine ran is noticed as well.

use std::time::Duration;

use procession_kernel::{Rules, Timestamp};

use crate::clock::{Clock, MachineTime};
use crate::journal::encode::LastLook;

/// A clock that ran ahead by this much was set forward. Corrections of a running clock are far smaller, however long
/// ago the last look was. Results evicted this much too early were still kept for most of the shortest useful time.
const SET_FORWARD: Duration = Duration::from_mins(1);
/// Bounds how often the last look is written, except for the first look of a run and the looks during a drain.
const WRITE_EVERY: Duration = Duration::from_mins(1);
/// Bounds how often it is written during a drain.
const WRITE_DRAINING: Duration = Duration::from_secs(1);

/// How far the wall clock is ahead of the machine's own time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::supervisor) struct WallClockLead {
    /// How far it is ahead.
    pub(in crate::supervisor) by: Duration,
    /// When this engine noticed.
    pub(in crate::supervisor) since: Timestamp,
    /// When the lead stops counting, unless the clock is set before then.
    pub(in crate::supervisor) until: Timestamp,
}

/// How far the wall clock is trusted, according to the last look at it.
pub(super) struct Wall {
    last: Option<LastLook>,
    since: Timestamp,
    written: Option<Timestamp>,
    /// The longest time that any success is kept.
    kept: u64,
    /// A key was requested for longer than the written look says.
    longer: bool,
    /// The longest time that any key is to be kept.
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

    /// Records how long a key is to be kept.
    pub(super) fn note_key(&mut self, keep: Duration) {
        if micros(keep) > self.key {
            self.key = micros(keep);
            self.longer = true;
        }
    }

    /// Looks at the clocks. Returns the time up to which results may be evicted. A clock that does not know the
    /// machine's time is believed.
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
        // How long the machine was off is unknown. It counts as no time at all, so results stay too long rather than
        // too short.
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

    /// Returns how far the clock was ahead at the last look.
    pub(super) fn ahead(&self) -> Option<WallClockLead> {
        let last = self.last.filter(|last| last.ahead > 0)?;
        Some(WallClockLead {
            by: Duration::from_micros(last.ahead),
            since: self.since,
            until: Timestamp(last.wall.saturating_add(last.left)),
        })
    }

    /// Returns the wall-clock time at which a result that is due then may be evicted.
    pub(super) fn goes_at(&self, due: Timestamp) -> Timestamp {
        match self.ahead() {
            Some(ahead) => due.after(ahead.by).min(ahead.until.max(due)),
            None => due,
        }
    }

    /// Looks at the clocks if that is due at the time of a decision. Returns the look to write with its commit.
    pub(super) fn take_look(&mut self, clock: &dyn Clock, now: Timestamp, draining: bool) -> Option<LastLook> {
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
