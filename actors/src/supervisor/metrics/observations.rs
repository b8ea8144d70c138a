//! What commits mean for the metrics: observed in the records before they are applied, held with the commit, and
//! counted once its receipt arrives.

use std::time::Duration;

use procession_kernel::{
    Blob, Ending, Family, HistoryEntry, Kernel, Key, ProcedureId, ProcedureState, Record, Row, Timestamp,
};

use super::failure_log::{FailedAttempt, FailureLog, LoggedEnd, NextAttempt};
use super::hook_queue::HookQueue;
use crate::charts::Sample;
use crate::clock::Clock;
use crate::hooks::Finished;
use crate::journal::codec;
use crate::telemetry::{FailedSpan, StagePlace, Telemetry, live_place, wait_place};

/// A call of user code, for a stage or an undo.
pub(crate) struct Ran {
    ending: Ending,
    took: Duration,
    /// How long a stage had waited for its turn. An undo is not counted, and a stage that followed another in its run did
    /// not wait.
    queued: Option<Duration>,
    stage: StagePlace,
    /// The stage that follows.
    next: Option<StagePlace>,
}

/// An end.
pub(crate) struct End {
    state: ProcedureState,
    /// Time from birth to end.
    elapsed: Duration,
    is_root: bool,
    /// The stage that the procedure had reached.
    stage: StagePlace,
    /// For the log and the hooks, if one of them wants it.
    logged: Option<Box<LoggedEnd>>,
}

/// Something to count after the receipt. The first number is the index of the kind's handles.
pub(crate) enum Observation {
    /// With its first stage.
    Born(usize, ProcedureId, Timestamp, StagePlace),
    Moved(usize, Option<usize>, Option<usize>),
    /// User code has run.
    Ran(usize, Ran),
    Waited(usize, usize, Duration),
    Retried(usize),
    /// An attempt of a stage or an undo has failed, and somebody reads the log.
    AttemptFailed(usize, Box<FailedAttempt>),
    /// A report or wake arrived late, of a known kind or of none.
    Late(Option<usize>),
    Ended(usize, End),
}

/// Reads the changes in the records of one decision. The kernel must not have applied them yet.
pub(in crate::supervisor) struct Observer<'a> {
    telemetry: &'a mut Telemetry,
    hooks: &'a HookQueue,
    log: &'a FailureLog,
    rows: Rows<'a>,
    clock: &'a dyn Clock,
    /// The span of the call that has failed, if the decision is about one.
    span: FailedSpan,
    /// The place in `seen` of the attempt that has failed, until the row says what follows.
    failed: Option<usize>,
    /// The place in `seen` of a stage that another may follow, until the row says which: its procedure and its visit.
    passing: Option<(usize, ProcedureId, u32)>,
    seen: &'a mut Vec<Observation>,
}

impl<'a> Observer<'a> {
    pub(super) const fn new(
        telemetry: &'a mut Telemetry,
        hooks: &'a HookQueue,
        log: &'a FailureLog,
        kernel: &'a Kernel,
        clock: &'a dyn Clock,
        span: FailedSpan,
        seen: &'a mut Vec<Observation>,
    ) -> Self {
        Self {
            telemetry,
            hooks,
            log,
            rows: Rows { kernel, at_hand: None },
            clock,
            span,
            failed: None,
            passing: None,
            seen,
        }
    }

    /// Reads the next record.
    pub(in crate::supervisor) fn take(&mut self, record: &Record) {
        if let Record::Row(row) = record {
            self.look_at_next(row);
            let old = self.rows.row(row.id);
            if changes(old, row)
                && let Some(place) = self.telemetry.place(&row.kind)
            {
                row_seen(self.telemetry, place, old, row, self.clock, self.seen);
                if ends(old, row) {
                    self.end_seen(place, row);
                }
                self.look_at_failure(row);
            }
        } else if let Record::History(entry) = record {
            let follows = self.look_at_run(entry);
            if entry_seen(self.telemetry, &mut self.rows, entry, follows, self.seen) && !is_undo(entry.ending) {
                let id = ProcedureId::new(entry.family, entry.member);
                self.passing = Some((self.seen.len() - 1, id, entry.visit));
            }
            if is_failed(entry.ending) {
                self.attempt_seen(entry);
            }
        } else if let Record::Late(id) = record {
            let row = self.rows.row(*id);
            let place = row.and_then(|row| self.telemetry.place(&row.kind));
            self.seen.push(Observation::Late(place));
        }
    }
}

impl Observer<'_> {
    /// Observes a failed attempt, if anybody reads of it.
    #[inline(never)]
    fn attempt_seen(&mut self, entry: &HistoryEntry) {
        if !tracing::level_enabled!(tracing::Level::WARN) {
            return;
        }
        let Some(family) = self.rows.family(entry.family) else {
            return;
        };
        let row = family.row(entry.member).filter(|_| entry.number > family.history);
        let Some((row, place)) = row.and_then(|row| Some((row, self.telemetry.place(&row.kind)?))) else {
            return;
        };
        self.failed = Some(self.seen.len());
        let failed = FailedAttempt {
            id: row.id,
            kind: row.kind.clone(),
            key: key_of(family),
            call: if is_undo(entry.ending) { "undo" } else { "stage" },
            stage: codec::describe(entry.stage.as_slice()),
            attempt: entry.attempt,
            text: entry.error.clone().unwrap_or_default(),
            next: NextAttempt::Now,
            span: self.span.take(),
        };
        self.seen.push(Observation::AttemptFailed(place, Box::new(failed)));
    }

    /// Notes if this stage follows the one whose entry was observed before, in one run; returns `true` if it does.
    fn look_at_run(&mut self, entry: &HistoryEntry) -> bool {
        let Some((place, id, visit)) = self.passing else {
            return false;
        };
        let follows = (id.family, id.member, visit + 1) == (entry.family, entry.member, entry.visit);
        if follows && let Some(Observation::Ran(kind, ran)) = self.seen.get_mut(place) {
            ran.next = stage_place(self.telemetry, *kind, &entry.stage);
        }
        follows
    }

    /// Notes which stage follows the one that has ended. In a family that fails, and after a last stage, none does.
    fn look_at_next(&mut self, row: &Row) {
        let Some((place, ..)) = self
            .passing
            .take_if(|(_, id, visit)| *id == row.id && row.visit > *visit)
        else {
            return;
        };
        if let Some(Observation::Ran(kind, ran)) = self.seen.get_mut(place)
            && ran.ending != Ending::Done
            && !row.is_failing()
            && !row.is_ended()
        {
            ran.next = stage_place(self.telemetry, *kind, &row.stage);
        }
    }

    /// Notes what follows a failed attempt. The row of its procedure says so, or that of the part of the family that
    /// is rolled back. A decision records rows behind history entries.
    fn look_at_failure(&mut self, row: &Row) {
        let Some(Observation::AttemptFailed(_, failed)) = self.failed.and_then(|place| self.seen.get_mut(place)) else {
            return;
        };
        let is_own = failed.id == row.id && failed.call == "stage";
        let is_scope = failed.call == "undo" && row.is_failing() && row.rare().undo_attempts > 0;
        if is_own || is_scope {
            failed.next = NextAttempt::of(row);
            self.failed = None;
        }
    }

    /// Observes an end.
    #[inline(never)]
    fn end_seen(&mut self, kind: usize, row: &Row) {
        let Some(stage) = stage_place(self.telemetry, kind, &row.stage) else {
            return;
        };
        let is_wanted = self.log.wants_end(kind, row.state) || self.hooks.wants_end(kind);
        let end = End {
            state: row.state,
            elapsed: elapsed(row),
            is_root: row.id.is_root(),
            stage,
            logged: is_wanted.then(|| Box::new(self.logged_end(row))),
        };
        self.seen.push(Observation::Ended(kind, end));
    }

    fn logged_end(&mut self, row: &Row) -> LoggedEnd {
        let key = match (row.id.is_root(), row.state.is_failure()) {
            (true, _) => row.key.clone(),
            (false, true) => self.rows.family(row.id.family).and_then(key_of),
            (false, false) => None,
        };
        let origin = row.rare().cause.as_ref().map(|cause| cause.origin);
        LoggedEnd {
            finished: finished(row),
            key,
            is_dragged_along: !row.id.is_root() && origin != Some(row.id),
        }
    }
}

fn stage_place(telemetry: &mut Telemetry, kind: usize, stage: &Blob) -> Option<StagePlace> {
    telemetry.stage_place(kind, codec::variant(stage.as_slice()))
}

fn key_of(family: &Family) -> Option<Key> {
    family.members.first()?.key.clone()
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

#[inline(never)]
fn row_seen(
    telemetry: &mut Telemetry,
    kind: usize,
    old: Option<&Row>,
    new: &Row,
    clock: &dyn Clock,
    seen: &mut Vec<Observation>,
) {
    if old.is_none() {
        let stage = stage_place(telemetry, kind, &new.stage);
        seen.extend(stage.map(|stage| Observation::Born(kind, new.id, new.submitted, stage)));
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
}

/// Returns `true` if the procedure ends with this row. A compensated procedure ends a second time, but is counted only
/// the first time.
fn ends(old: Option<&Row>, new: &Row) -> bool {
    new.is_ended() && old.is_none_or(|old| !old.is_ended())
}

fn live(row: &Row) -> Option<usize> {
    live_place(row.state).filter(|_| !row.is_ended())
}

/// Observes a history entry. An entry is new unless it overwrites another. A stage has run unless it was only in
/// doubt, in which case it was not out. `follows` says that it ran after another in one run. Returns `true` if something was
/// observed.
fn entry_seen(
    telemetry: &mut Telemetry,
    rows: &mut Rows<'_>,
    entry: &HistoryEntry,
    follows: bool,
    seen: &mut Vec<Observation>,
) -> bool {
    let Some(family) = rows.family(entry.family) else {
        return false;
    };
    let row = family.row(entry.member).filter(|_| entry.number > family.history);
    let Some(row) = row.filter(|row| is_undo(entry.ending) || row.in_flight.is_some()) else {
        return false;
    };
    let place = telemetry.place(&row.kind);
    let found = place.and_then(|place| Some((place, stage_place(telemetry, place, &entry.stage)?)));
    let Some((place, stage)) = found else {
        return false;
    };
    let ran = Ran {
        ending: entry.ending,
        took: entry.ended.since(entry.begun),
        queued: (!is_undo(entry.ending) && !follows).then(|| entry.begun.since(entry.queued)),
        stage,
        next: None,
    };
    seen.push(Observation::Ran(place, ran));
    true
}

const fn is_undo(ending: Ending) -> bool {
    matches!(ending, Ending::Undone | Ending::UndoFailed | Ending::UndoSkipped)
}

const fn is_failed(ending: Ending) -> bool {
    matches!(
        ending,
        Ending::Retry | Ending::Fail | Ending::Panic | Ending::UndoFailed
    )
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
    /// Returns what charts count of it.
    pub(super) fn sample(&self) -> Option<Sample> {
        match self {
            Self::Ended(place, end) => Some(Sample::Ended {
                place: *place,
                is_root: end.is_root,
                has_failed: end.state != ProcedureState::Success,
                took: end.elapsed,
            }),
            Self::Ran(place, ran) => ran.queued.map(|time| Sample::Queued { place: *place, time }),
            Self::Born(..)
            | Self::Moved(..)
            | Self::Waited(..)
            | Self::Retried(_)
            | Self::AttemptFailed(..)
            | Self::Late(_) => None,
        }
    }

    /// Counts the observation, logs a failure, and queues the hook call that it leads to.
    pub(super) fn count(self, telemetry: &mut Telemetry, hooks: &mut HookQueue, log: &mut FailureLog, now: Timestamp) {
        let (Self::Late(Some(place))
        | Self::Born(place, ..)
        | Self::Moved(place, ..)
        | Self::Ran(place, ..)
        | Self::Waited(place, ..)
        | Self::Retried(place)
        | Self::AttemptFailed(place, _)
        | Self::Ended(place, _)) = self
        else {
            return telemetry.late(None, 1);
        };
        let Some(kind) = telemetry.kind(place) else { return };
        let queued = match self {
            Self::Born(_, id, at, stage) => {
                kind.born(stage, now);
                hooks.submitted(place, id, at)
            }
            Self::Ended(_, end) => {
                kind.finished(end.state, end.elapsed, end.stage, now);
                let Some(logged) = end.logged else { return };
                log.ended(place, &logged, now);
                hooks.finished(place, logged.finished)
            }
            Self::AttemptFailed(_, failed) => return log.attempt_failed(&failed, now),
            Self::Moved(_, from, to) => return kind.moved(from, to),
            Self::Ran(_, ran) => return kind.ran(ran.stage, ran.ending, ran.took, ran.next),
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
        cause: row.rare().cause.as_deref().cloned(),
        elapsed: elapsed(row),
    }
}

fn elapsed(row: &Row) -> Duration {
    row.ended.unwrap_or(row.submitted).since(row.submitted)
}
