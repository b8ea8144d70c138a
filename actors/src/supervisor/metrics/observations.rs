//! What commits mean for the metrics: observed in the records before they are applied, held with the commit, and
//! counted once its receipt arrives.

use std::time::Duration;

use procession_kernel::{Blob, Ending, Family, HistoryEntry, Kernel, ProcedureId, Record, Row, Timestamp};

use super::hook_queue::HookQueue;
use crate::clock::Clock;
use crate::hooks::Finished;
use crate::journal::codec;
use crate::telemetry::{Telemetry, live_place, wait_place};

/// Something to count after the receipt. The first number is the index of the kind's handles.
pub(crate) enum Observation {
    Born(usize, ProcedureId, Timestamp),
    Moved(usize, Option<usize>, Option<usize>),
    Ran(usize, Ending, Duration, Blob),
    Waited(usize, usize, Duration),
    Retried(usize),
    /// A report or wake arrived late, of a known kind or of none.
    Late(Option<usize>),
    Ended(usize, Box<Finished>),
}

/// Reads the changes in the records of one decision. The kernel must not have applied them yet.
pub(in crate::supervisor) struct Observer<'a> {
    telemetry: &'a Telemetry,
    rows: Rows<'a>,
    clock: &'a dyn Clock,
    seen: &'a mut Vec<Observation>,
}

impl<'a> Observer<'a> {
    pub(super) const fn new(
        telemetry: &'a Telemetry,
        kernel: &'a Kernel,
        clock: &'a dyn Clock,
        seen: &'a mut Vec<Observation>,
    ) -> Self {
        Self {
            telemetry,
            rows: Rows { kernel, at_hand: None },
            clock,
            seen,
        }
    }

    /// Reads the next record.
    pub(in crate::supervisor) fn take(&mut self, record: &Record) {
        if let Record::Row(row) = record {
            let old = self.rows.row(row.id);
            if changes(old, row)
                && let Some(place) = self.telemetry.place(&row.kind)
            {
                row_seen(place, old, row, self.clock, self.seen);
            }
        } else if let Record::History(entry) = record {
            entry_seen(self.telemetry, &mut self.rows, entry, self.seen);
        } else if let Record::Late(id) = record {
            let row = self.rows.row(*id);
            let place = row.and_then(|row| self.telemetry.place(&row.kind));
            self.seen.push(Observation::Late(place));
        }
    }
}

/// The kernel's rows. Nearly all records of one decision belong to one family.
struct Rows<'a> {
    kernel: &'a Kernel,
    at_hand: Option<(u64, &'a Family)>,
}

impl<'a> Rows<'a> {
    fn family(&mut self, number: u64) -> Option<&'a Family> {
        match self.at_hand {
            Some((known, family)) if known == number => Some(family),
            Some(_) | None => {
                let family = self.kernel.families().get(&number)?;
                self.at_hand = Some((number, family));
                Some(family)
            }
        }
    }

    fn row(&mut self, id: ProcedureId) -> Option<&'a Row> {
        self.family(id.family)?.row(id.member)
    }
}

/// Returns `true` if a row's change is counted. Most rows only move from one stage to the next.
fn changes(old: Option<&Row>, new: &Row) -> bool {
    old.is_none_or(|old| old.state != new.state || old.wait != new.wait || old.ended != new.ended)
}

fn row_seen(kind: usize, old: Option<&Row>, new: &Row, clock: &dyn Clock, seen: &mut Vec<Observation>) {
    if old.is_none() {
        seen.push(Observation::Born(kind, new.id, new.submitted));
    }
    let (from, to) = (old.and_then(live), live(new));
    if from != to {
        seen.push(Observation::Moved(kind, from, to));
    }
    if let Some(old) = old
        && let Some(reason) = old.wait.as_ref().filter(|_| old.wait != new.wait)
    {
        seen.push(Observation::Waited(
            kind,
            wait_place(reason),
            clock.now().since(old.since),
        ));
    }
    // An attempt without a delay leaves no backoff behind, and a clock that is set back moves one.
    let has_failed = old.is_some_and(|old| new.attempt > old.attempt);
    if has_failed && !new.is_failing() && !new.is_ended() {
        seen.push(Observation::Retried(kind));
    }
    // A compensated procedure ends a second time, but is counted only the first time.
    if new.is_ended() && old.is_none_or(|old| !old.is_ended()) {
        seen.push(Observation::Ended(kind, Box::new(finished(new))));
    }
}

fn live(row: &Row) -> Option<usize> {
    live_place(row.state).filter(|_| !row.is_ended())
}

/// Observes a history entry. An entry is new unless it overwrites another. A stage has run unless it was only in
/// doubt, in which case it was not out.
fn entry_seen(telemetry: &Telemetry, rows: &mut Rows<'_>, entry: &HistoryEntry, seen: &mut Vec<Observation>) {
    let Some(family) = rows.family(entry.family) else {
        return;
    };
    let Some(row) = family.row(entry.member).filter(|_| entry.number > family.history) else {
        return;
    };
    if is_undo(entry.ending) || row.in_flight.is_some() {
        let took = entry.ended.since(entry.begun);
        if let Some(place) = telemetry.place(&row.kind) {
            seen.push(Observation::Ran(place, entry.ending, took, entry.stage.clone()));
        }
    }
}

const fn is_undo(ending: Ending) -> bool {
    matches!(ending, Ending::Undone | Ending::UndoFailed | Ending::UndoSkipped)
}

/// Returns what a quarantine changes: the members of the family are no longer active.
pub(super) fn of_quarantine(telemetry: &Telemetry, kernel: &Kernel, family: u64) -> Vec<Observation> {
    let Some(family) = kernel.families().get(&family) else {
        return Vec::new();
    };
    let left = family.members.iter().filter_map(|row| {
        let (kind, from) = telemetry.place(&row.kind).zip(live(row))?;
        Some(Observation::Moved(kind, Some(from), None))
    });
    left.collect()
}

impl Observation {
    /// Counts the observation, and queues the hook call that it leads to.
    pub(super) fn count(self, telemetry: &mut Telemetry, hooks: &mut HookQueue) {
        let (Self::Late(Some(place))
        | Self::Born(place, ..)
        | Self::Moved(place, ..)
        | Self::Ran(place, ..)
        | Self::Waited(place, ..)
        | Self::Retried(place)
        | Self::Ended(place, _)) = self
        else {
            return telemetry.late(None, 1);
        };
        let Some(kind) = telemetry.kind(place) else { return };
        let queued = match self {
            Self::Born(_, id, at) => {
                kind.born();
                hooks.submitted(place, id, at)
            }
            Self::Ended(_, finished) => {
                kind.finished(finished.state, finished.elapsed);
                hooks.finished(place, *finished)
            }
            Self::Moved(_, from, to) => return kind.moved(from, to),
            Self::Ran(_, ending, took, stage) => return kind.ran(codec::variant(stage.as_slice()), ending, took),
            Self::Waited(_, reason, took) => return kind.waited(reason, took),
            Self::Retried(_) => return kind.retried(),
            Self::Late(_) => return kind.late(1),
        };
        if !queued {
            telemetry.hooks_dropped.increment(1);
        }
    }
}

fn finished(row: &Row) -> Finished {
    Finished {
        id: row.id,
        kind: row.kind.clone(),
        state: row.state,
        cause: row.cause.clone(),
        elapsed: row.ended.unwrap_or(row.submitted).since(row.submitted),
    }
}
