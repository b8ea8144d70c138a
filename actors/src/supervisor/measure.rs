//! What commits mean for the metrics: seen in the records before they are
//! applied, held with the commit, counted when its receipt is there. So what is
//! counted is on disk, and what a crash undoes was never counted.

use std::time::Duration;

use actix::prelude::*;
use procession_kernel::{
    Blob, Ending, Family, HistoryEntry, Kernel, Kind, ProcedureId, Record, Row, Timestamp, WaitReason,
};

use super::Supervisor;
use super::commits::Waiting;
use crate::clock::Clock;
use crate::hooks::{Finished, HookCall, Submitted};
use crate::journal::codec;
use crate::telemetry::{Telemetry, live_place, wait_place};
use crate::view::BatchUse;

/// Something to be counted after the receipt. The first number is the place of the kind.
pub(super) enum Seen {
    Born(usize, ProcedureId, Timestamp),
    Moved(usize, Option<usize>, Option<usize>),
    Ran(usize, Ending, Duration, Blob),
    Waited(usize, usize, Duration),
    Retried(usize),
    /// A report or wake came late, of a kind that is known or of none.
    Late(Option<usize>),
    Ended(usize, Box<Finished>),
}

/// Reads off what a decision changes, while the kernel still stands as before.
pub(super) fn observe(
    telemetry: &Telemetry,
    kernel: &Kernel,
    clock: &dyn Clock,
    records: &[Record],
    seen: &mut Vec<Seen>,
) {
    let mut rows = Rows { kernel, at_hand: None };
    for record in records {
        if let Record::Row(row) = record {
            let old = rows.row(row.id);
            if changes(old, row)
                && let Some(place) = telemetry.place(&row.kind)
            {
                row_seen(place, old, row, clock, seen);
            }
        } else if let Record::History(entry) = record {
            entry_seen(telemetry, &mut rows, entry, seen);
        } else if let Record::Late(id) = record {
            seen.push(Seen::Late(rows.row(*id).and_then(|row| telemetry.place(&row.kind))));
        }
    }
}

/// The kernel's rows; the records of one decision are nearly all of one family.
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

/// Most rows only go from one stage to the next.
fn changes(old: Option<&Row>, new: &Row) -> bool {
    old.is_none_or(|old| old.state != new.state || old.wait != new.wait || old.ended != new.ended)
}

fn row_seen(kind: usize, old: Option<&Row>, new: &Row, clock: &dyn Clock, seen: &mut Vec<Seen>) {
    if old.is_none() {
        seen.push(Seen::Born(kind, new.id, new.submitted));
    }
    let (from, to) = (old.and_then(live), live(new));
    if from != to {
        seen.push(Seen::Moved(kind, from, to));
    }
    if let Some(old) = old
        && let Some(reason) = old.wait.as_ref().filter(|_| old.wait != new.wait)
    {
        seen.push(Seen::Waited(kind, wait_place(reason), clock.now().since(old.since)));
    }
    let tries_again = matches!(new.wait, Some(WaitReason::Backoff(..))) && !new.is_failing();
    if tries_again && old.is_none_or(|old| old.wait != new.wait) {
        seen.push(Seen::Retried(kind));
    }
    // One that is compensated ends a second time, and is counted the first.
    if new.is_ended() && old.is_none_or(|old| !old.is_ended()) {
        seen.push(Seen::Ended(kind, Box::new(finished(new))));
    }
}

fn live(row: &Row) -> Option<usize> {
    live_place(row.state).filter(|_| !row.is_ended())
}

/// An entry is new unless it is written over; a stage has run unless it was
/// only in doubt, and then it was not out.
fn entry_seen(telemetry: &Telemetry, rows: &mut Rows<'_>, entry: &HistoryEntry, seen: &mut Vec<Seen>) {
    let Some(family) = rows.family(entry.family) else {
        return;
    };
    let Some(row) = family.row(entry.member).filter(|_| entry.number > family.history) else {
        return;
    };
    if is_undo(entry.ending) || row.going.is_some() {
        let took = entry.ended.since(entry.begun);
        if let Some(place) = telemetry.place(&row.kind) {
            seen.push(Seen::Ran(place, entry.ending, took, entry.stage.clone()));
        }
    }
}

const fn is_undo(ending: Ending) -> bool {
    matches!(ending, Ending::Undone | Ending::UndoFailed | Ending::UndoSkipped)
}

impl Supervisor {
    /// Counts what a batch held, now that it is on disk.
    pub(super) fn count(&mut self, waiting: &mut Waiting, ctx: &mut Context<Self>) {
        let commits: usize = waiting.commits.iter().map(procession_kernel::Commit::decisions).sum();
        let telemetry = &self.telemetry;
        telemetry.commits.increment(commits as u64);
        telemetry.batch_commits.record(commits as f64);
        telemetry.batch_records.record(waiting.writes as f64);
        let now = self.clock.now();
        let took = now.since(waiting.appended);
        telemetry.commit_seconds.record(took);
        self.counts.commit_times.note(took);
        self.last_batch = BatchUse {
            commits,
            writes: waiting.writes,
            took,
        };
        self.telemetry.late(None, std::mem::take(&mut self.late_unnamed));
        for seen in std::mem::take(&mut waiting.seen) {
            self.count_one(seen);
        }
        self.run_hooks(ctx);
        self.mail.show_soon(&self.telemetry, now);
    }

    /// Counts what came late and changed nothing else, while the kernel still stands as before.
    pub(super) fn count_late(&mut self, records: &[Record]) {
        for record in records {
            let Record::Late(id) = record else { continue };
            match self.kernel.row(*id) {
                Some(row) => self.telemetry.late(self.telemetry.place(&row.kind), 1),
                // Whoever reported it knows.
                None => self.late_unnamed += 1,
            }
        }
    }

    /// Says of which kind the one is that has just reported, late or not.
    pub(super) fn name_late(&mut self, kind: &Kind) {
        if self.late_unnamed > 0 {
            let late = std::mem::take(&mut self.late_unnamed);
            self.telemetry.late(self.telemetry.place(kind), late);
        }
    }

    /// Counts wakes that were lost and made up for, by the kinds of those who waited.
    pub(super) fn count_lost(&self, found: &[(ProcedureId, String)]) {
        for (id, _) in found {
            let kind = self.kernel.row(*id).and_then(|row| self.telemetry.place(&row.kind));
            self.telemetry.lost(kind);
        }
    }

    fn count_one(&mut self, seen: Seen) {
        let (Seen::Late(Some(place))
        | Seen::Born(place, ..)
        | Seen::Moved(place, ..)
        | Seen::Ran(place, ..)
        | Seen::Waited(place, ..)
        | Seen::Retried(place)
        | Seen::Ended(place, _)) = seen
        else {
            return self.telemetry.late(None, 1);
        };
        let Some(kind) = self.telemetry.kind(place) else { return };
        match seen {
            Seen::Born(_, id, at) => {
                kind.born();
                self.hook(place, |kind| HookCall::Submitted(kind, Submitted { id, at }));
            }
            Seen::Moved(_, from, to) => kind.moved(from, to),
            Seen::Ran(_, ending, took, stage) => kind.ran(codec::variant(stage.as_slice()), ending, took),
            Seen::Waited(_, reason, took) => kind.waited(reason, took),
            Seen::Retried(_) => kind.retried(),
            Seen::Late(_) => kind.late(1),
            Seen::Ended(_, finished) => {
                kind.finished(finished.state, finished.elapsed);
                self.hook(place, |kind| HookCall::Finished(kind, *finished));
            }
        }
    }

    /// A family that is set aside is active no more; counted behind all that was decided before.
    pub(super) fn count_forgotten(&mut self, family: u64) {
        let Some(family) = self.kernel.families().get(&family) else {
            return;
        };
        let mut gone = Vec::new();
        for row in &family.members {
            if let (Some(kind), Some(from)) = (self.telemetry.place(&row.kind), live(row)) {
                gone.push(Seen::Moved(kind, Some(from), None));
            }
        }
        match self.commits.last_seen() {
            Some(seen) => seen.append(&mut gone),
            None => gone.into_iter().for_each(|seen| self.count_one(seen)),
        }
    }

    /// Sets the gauges to what the start has found.
    pub(super) fn count_recovered(&mut self) {
        self.telemetry.recovered(&std::mem::take(&mut self.survey.unfinished));
        self.telemetry.quarantined.set(self.quarantined.len() as f64);
    }
}

fn finished(row: &Row) -> Finished {
    Finished {
        id: row.id,
        state: row.state,
        cause: row.cause.clone(),
        elapsed: row.ended.unwrap_or(row.submitted).since(row.submitted),
    }
}
