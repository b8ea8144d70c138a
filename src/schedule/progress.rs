//! Where a schedule has come to, and what one turn of it decides. Pure: time is an argument.

use std::time::Duration;

use procession_kernel::Timestamp;
use serde::{Deserialize, Serialize};

use super::policy::{CatchUp, Overlap};
use super::timetable::Ticks;

/// A tick is missed once it is this late. A busy engine is late by less, and an engine that was down by more.
const GRACE: Duration = Duration::from_mins(1);
/// Most ticks that are younger than that: an interval has at least a second.
const IN_TIME_MAX: usize = 60;

/// A run that is due, or waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Due {
    /// The tick's instant; of a run that was asked for, when it was taken.
    pub(super) at: Timestamp,
    /// Somebody asked for it: no tick of the timetable.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) asked: bool,
}

/// The run that others wait for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Running {
    /// Its idempotency key.
    pub(super) key: String,
    /// Its abort was asked for.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) cancelled: bool,
}

/// What is stored beside the plan. Its size does not grow with the number of runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Progress {
    /// Ticks up to this instant were looked at; `None` before the first turn.
    pub(super) upto: Option<Timestamp>,
    /// The next tick.
    pub(super) next: Option<Timestamp>,
    /// The newest run, until it is known to have ended. Runs that may overlap are not followed.
    pub(super) running: Option<Running>,
    /// Runs that wait, the oldest first.
    pub(super) waiting: Vec<Due>,
    /// How many runs were submitted.
    pub(super) runs: u64,
    /// How many ticks were skipped because a run went on.
    pub(super) skipped: u64,
    /// How many of them the newest turn has skipped, and by which policy. They are counted once that turn is on disk: by
    /// the next one, or at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) uncounted: Option<(Overlap, u64)>,
}

/// What one turn has to go by, besides the progress.
pub(super) struct Turn<'a> {
    pub(super) now: Timestamp,
    pub(super) ticks: &'a Ticks,
    pub(super) catch_up: CatchUp,
    pub(super) overlap: Overlap,
    /// No tick after this instant counts.
    pub(super) until: Option<Timestamp>,
    /// Somebody asks for a run.
    pub(super) is_asked: bool,
}

/// What one turn does.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Orders {
    /// Runs to submit, in this order.
    pub(super) start: Vec<Due>,
    /// The run that goes on is to be aborted.
    pub(super) cancel: bool,
}

impl Progress {
    /// Decides on everything that is due by now. The caller has forgotten a run that has ended.
    pub(super) fn turn(&mut self, turn: &Turn<'_>) -> Orders {
        let before = self.skipped;
        let mut due = self.due(turn);
        let mut orders = Orders::default();
        let mut is_busy = self.running.is_some();
        if turn.overlap == Overlap::Cancel {
            // Each tick would cancel the one before it, so only the newest counts, due or waiting. A run that was asked
            // for replaces none.
            let newest = due.iter().rfind(|due| !due.asked).copied();
            due.retain(|due| due.asked || Some(*due) == newest);
            if !is_busy {
                self.skip_waiting(usize::from(newest.is_none()));
            }
            // Only a newly due tick cancels. A run that was asked for waits, and a tick that already waits behind such a
            // run lets it finish.
            let can_cancel = self.running.as_ref().is_some_and(|running| !running.cancelled);
            orders.cancel = newest.is_some() && can_cancel;
        }
        // What waits was promised, whatever the policy is by now.
        if turn.overlap == Overlap::Allow {
            orders.start.append(&mut self.waiting);
        } else if !is_busy && !self.waiting.is_empty() {
            orders.start.push(self.waiting.remove(0));
            is_busy = true;
        }
        for due in due {
            if turn.overlap == Overlap::Allow {
                orders.start.push(due);
            } else if is_busy {
                self.wait(due, turn.overlap);
            } else {
                orders.start.push(due);
                is_busy = true;
            }
        }
        self.runs += orders.start.len() as u64;
        let skipped = self.skipped - before;
        self.uncounted = (skipped > 0).then_some((turn.overlap, skipped));
        orders
    }

    /// Returns the runs that are due, the oldest first, and notes that they were looked at.
    fn due(&mut self, turn: &Turn<'_>) -> Vec<Due> {
        let mut due = Vec::new();
        // A clock that was set back makes no tick due twice.
        let upto = turn.until.map_or(turn.now, |until| until.min(turn.now));
        if let Some(from) = self.upto
            && from < upto
        {
            let ticks = counted(turn, from, upto).into_iter();
            due.extend(ticks.map(|at| Due { at, asked: false }));
        }
        self.upto = self.upto.max(Some(turn.now));
        self.look_ahead(turn.ticks, turn.until);
        if turn.is_asked {
            let at = turn.now;
            due.push(Due { at, asked: true });
        }
        due
    }

    /// Notes the next tick.
    pub(super) fn look_ahead(&mut self, ticks: &Ticks, until: Option<Timestamp>) {
        let next = self.upto.and_then(|upto| ticks.after(upto));
        self.next = next.filter(|next| until.is_none_or(|until| *next <= until));
    }

    /// Lets a run wait for the end of the one that goes on, or skips it.
    fn wait(&mut self, due: Due, overlap: Overlap) {
        if overlap == Overlap::Cancel && !due.asked {
            self.skip_waiting(0);
            self.waiting.push(due);
            return;
        }
        let has_room = self.waiting.len() < overlap.room();
        let is_first_asked = due.asked && !self.waiting.iter().any(|waiting| waiting.asked);
        if has_room || is_first_asked {
            self.waiting.push(due);
        } else {
            self.skipped += u64::from(!due.asked);
        }
    }

    /// Keeps a run that is asked for while none can begin, as it would wait for a run that goes on.
    pub(super) fn keep_asked(&mut self, now: Timestamp) {
        let due = Due { at: now, asked: true };
        self.wait(due, Overlap::Skip);
    }

    /// Skips waiting ticks, except for this many, the newest. Runs that were asked for stay.
    fn skip_waiting(&mut self, kept: usize) {
        let ticks = self.waiting.iter().filter(|due| !due.asked).count();
        let mut surplus = ticks.saturating_sub(kept);
        self.skipped += surplus as u64;
        self.waiting.retain(|due| {
            let is_skipped = !due.asked && surplus > 0;
            surplus -= usize::from(is_skipped);
            !is_skipped
        });
    }

    /// Returns `true` if nothing can be due any more.
    pub(super) fn is_over(&self) -> bool {
        self.next.is_none() && self.waiting.is_empty()
    }
}

/// Returns the ticks after one instant and up to another that count, the oldest first: all ticks in time, and as many
/// missed ones as the policy still admits beside them.
///
/// If the policy admitted missed ticks in addition, the oldest of them would begin, and the tick in time would meet it as
/// an overlapping run.
fn counted(turn: &Turn<'_>, from: Timestamp, upto: Timestamp) -> Vec<Timestamp> {
    let most = turn.catch_up.most();
    let mut ticks = turn.ticks.newest(from, upto, most.max(IN_TIME_MAX));
    let in_time = ticks.iter().filter(|at| turn.now.since(**at) < GRACE).count();
    ticks.split_off(ticks.len().saturating_sub(most.max(in_time)))
}

#[cfg(test)]
mod tests;
