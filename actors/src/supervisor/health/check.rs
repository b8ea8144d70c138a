//! One health check, from the limiter's answer to the verdicts. It runs a slice at a time, so a message waits for one
//! slice at most, however many procedures are judged. Verdicts are reported when all are judged, so a verdict stands
//! until a whole check no longer finds it.
//!
//! Rows change between two slices. Each row is judged as it is at its turn. What looks lost is looked at again at the
//! end, in one turn, before anything is repaired. The limiter's queues arrive in pages, between which procedures move as
//! well: links of two moments may make a cycle that never was. So a deadlock counts only if none of its members has moved
//! since before the first page, and a second reading of the queues finds it again.
//!
//! A check is a value. Each function of [`Health`] that takes it returns the [`Next`] step. The supervisor, which has
//! the mailbox, the limiter and the threads, takes that step and calls the next function.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::time::{Duration, Instant};

use procession_kernel::{
    Deadlock, Decision, Family, Kernel, ProcedureId, Record, Row, Seq, Timestamp, WaitGraph, WaitReason,
};
use rustc_hash::FxHashSet;
use tokio::sync::oneshot;

use super::diagnosis_input::Queues;
use super::explain::Search;
use super::overrun::UsualTimes;
use super::rules::{self, Findings};
use super::{EngineState, Health};
use crate::clock::machine_now;
use crate::error::AskError;
use crate::supervisor::failure::Failure;
use crate::telemetry::SignalsWaiting;
use crate::view::Verdict;

/// A slice ends after this time, so that other messages have their turn.
const SLICE: Duration = Duration::from_millis(1);
/// Members judged, or procedures visited by a search, between two looks at the time.
const STEP: usize = 64;
/// The supervisor itself frees the memory of up to this many entries, in less than a tenth of a millisecond.
const FREED_AT_ONCE: usize = 1_024;
/// The number of pending reads beyond which no check looks for uncalled procedures. Most procedures without an actor
/// are then waiting for a read, and going through them takes too long. A later check looks.
const PENDING_MAX: usize = 16_384;
/// Graphs up to this many nodes are searched for deadlocks at once; larger graphs on another thread.
const NODES_AT_ONCE: usize = 1_024;

/// The origin of a check.
pub(in crate::supervisor) enum Requester {
    /// The engine's clock. The end of this check sets the time of the next.
    Clock,
    /// A caller. Also receives the wait that must end before the verdicts are reported.
    Caller(oneshot::Sender<Answer>),
}

/// Verdicts, and the wait for the commit of the repairs.
pub(in crate::supervisor) type Answer = (
    Vec<Verdict>,
    Option<futures::future::LocalBoxFuture<'static, Result<(), AskError>>>,
);

/// A check under way.
pub(in crate::supervisor) struct Check {
    requester: Requester,
    /// The newest commit on disk when the check began.
    asked: Seq,
    /// How many answers of the limiter had been looked at when the check began.
    looks: u64,
    queues: Queues,
    usual: UsualTimes,
    /// The family to judge next, starting at this member. `None` when all are judged.
    next: Option<(u64, usize)>,
    /// The search for deadlocks has started from the procedures that wait at the limiter, up to this one.
    searched: Option<ProcedureId>,
    search: Search,
    verdicts: Vec<Verdict>,
    /// Deadlocks that the first reading of the queues shows.
    deadlocks: Vec<Deadlock>,
    missed: BTreeMap<ProcedureId, Seq>,
    uncalled: Vec<ProcedureId>,
    gone: Vec<ProcedureId>,
    is_lost: bool,
    waiters: Waiters,
    signals: SignalsWaiting,
    took: Duration,
}

/// The next step of a check.
pub(in crate::supervisor) enum Next {
    /// Give other messages their turn, then call [`Health::proceed`].
    Yield(Box<Check>),
    /// Search this graph for deadlocks on another thread, then call [`Health::found_deadlocks`].
    Search(Box<Check>, WaitGraph),
    /// Read the limiter's queues again, then call [`Health::look_again`]. Some procedures should wait there, and were
    /// not found, or some seem to wait for each other.
    AskAgain(Box<Check>),
    /// Repair what was lost, then call [`Health::finish`].
    Repair(Box<Check>, Repairs),
}

/// What looks lost.
#[derive(Default)]
pub(in crate::supervisor) struct Repairs {
    /// Procedures that wait for the limiter, which does not know them.
    pub(in crate::supervisor) unknown: Vec<ProcedureId>,
    /// Procedures whose actors are gone, with calls that were out.
    pub(in crate::supervisor) gone: Vec<ProcedureId>,
    /// Procedures whose stage is out, and which have no actor. Some may wait for a read.
    pub(in crate::supervisor) uncalled: Vec<ProcedureId>,
    /// The kernel has a pending wake that nothing will deliver.
    pub(in crate::supervisor) is_lost: bool,
}

/// Procedures that could run except for a lock, a permit or their turn.
#[derive(Clone, Copy, Default)]
pub(in crate::supervisor) struct Waiters {
    /// How many wait for a lock.
    pub(in crate::supervisor) locks: u32,
    /// When the longest wait began.
    pub(in crate::supervisor) oldest: Option<Timestamp>,
}

impl Waiters {
    fn note(&mut self, row: &Row) {
        match &row.wait {
            Some(WaitReason::Lock(_)) => self.locks += 1,
            Some(WaitReason::Permit(_) | WaitReason::Queue | WaitReason::Width) => {}
            Some(_) | None => return,
        }
        let since = row.ready.unwrap_or(row.since);
        self.oldest = self.oldest.into_iter().chain([since]).min();
    }
}

/// What a check found, and how long it took.
pub(in crate::supervisor) struct Report {
    pub(in crate::supervisor) requester: Requester,
    pub(in crate::supervisor) verdicts: Vec<Verdict>,
    pub(in crate::supervisor) waiters: Waiters,
    pub(in crate::supervisor) signals: SignalsWaiting,
    /// The total time of its slices. The end of the check is not included.
    pub(in crate::supervisor) took: Duration,
}

impl Repairs {
    /// Returns `true` if the kernel should wake what looks lost.
    pub(in crate::supervisor) fn needs_wakes(&self, kernel: &Kernel) -> bool {
        self.is_lost || !self.unknown.is_empty() || kernel.lacks_timers()
    }
}

impl Health {
    /// Begins a check. The caller reads the limiter's queues, and calls [`Self::start_check`].
    pub(in crate::supervisor) fn begin_check(&self, requester: Requester, durable: Seq) -> Box<Check> {
        Box::new(Check {
            requester,
            asked: durable,
            looks: self.unserved.looks(),
            queues: Queues::default(),
            usual: UsualTimes::default(),
            next: Some((0, 0)),
            searched: None,
            search: Search::default(),
            verdicts: Vec::new(),
            deadlocks: Vec::new(),
            missed: BTreeMap::new(),
            uncalled: Vec::new(),
            gone: Vec::new(),
            is_lost: false,
            waiters: Waiters::default(),
            signals: SignalsWaiting::default(),
            took: Duration::ZERO,
        })
    }

    /// Judges the first slice, given the queues that the limiter returned.
    pub(in crate::supervisor) fn start_check(
        &self,
        mut check: Box<Check>,
        queues: Queues,
        state: &EngineState<'_>,
    ) -> Next {
        check.queues = queues;
        self.proceed(check, state)
    }

    /// Judges a slice. When all procedures are judged, searches for deadlocks.
    pub(in crate::supervisor) fn proceed(&self, mut check: Box<Check>, state: &EngineState<'_>) -> Next {
        let begun = machine_now();
        let is_done = self.slice(&mut check, state, begun);
        check.took += begun.elapsed();
        if !is_done {
            return Next::Yield(check);
        }
        let graph = std::mem::take(&mut check.search.graph);
        if graph.len() > NODES_AT_ONCE {
            return Next::Search(check, graph);
        }
        after_search(check, graph.deadlocks(), state)
    }

    /// Takes the deadlocks that another thread has found.
    pub(in crate::supervisor) fn found_deadlocks(
        &self,
        check: Box<Check>,
        found: Vec<Deadlock>,
        state: &EngineState<'_>,
    ) -> Next {
        after_search(check, found, state)
    }

    /// Looks a second time at procedures that seem to wait for nothing, or for each other. A wake is lost only if nothing
    /// happened to them between the two answers of the limiter, and neither answer names them. A deadlock is one only if
    /// both answers show it.
    pub(in crate::supervisor) fn look_again(
        &self,
        mut check: Box<Check>,
        queues: Queues,
        state: &EngineState<'_>,
    ) -> Next {
        let first = std::mem::replace(&mut check.queues, queues);
        free_memory(first.waiting.len(), first);
        let mut deadlocks = std::mem::take(&mut check.deadlocks);
        deadlocks.retain(|deadlock| self.still_is(&check, deadlock, state));
        check.verdicts.extend(deadlocks.into_iter().map(rules::deadlocked));
        let still = check.missed.iter().filter(|(id, revision)| {
            let row = state.kernel.row(**id).filter(|row| row.revision == **revision);
            row.is_some_and(|row| !row.is_ended() && is_missed(row, &check, state))
        });
        let unknown = still.map(|(id, _)| *id).collect();
        repair(check, unknown)
    }

    /// Ends a check: takes the waiters that, by the limiter's last answer, should have been served.
    pub(in crate::supervisor) fn look_for_unserved(&mut self, check: &mut Check, now: Timestamp, is_serving: bool) {
        // An engine that has failed serves no requests.
        let found = check.queues.free.drain(..).filter(|_| is_serving);
        self.unserved.look(found, check.looks, now);
    }

    /// Ends a check: adds findings that rows do not show to the verdicts, in the order of the rules.
    pub(in crate::supervisor) fn conclude(&self, check: &mut Check, findings: Findings<'_>, state: &EngineState<'_>) {
        let verdicts = std::mem::take(&mut check.verdicts);
        check.verdicts = rules::all_verdicts(self, verdicts, findings, state);
    }

    /// Ends a check: logs new verdicts, and returns all of them.
    pub(in crate::supervisor) fn finish(&mut self, mut check: Box<Check>) -> Report {
        self.tell(&mut check.verdicts);
        let Check {
            requester,
            verdicts,
            waiters,
            signals,
            took,
            queues,
            search,
            ..
        } = *check;
        free_memory(queues.waiting.len() + search.visited(), (queues, search));
        Report {
            requester,
            verdicts,
            waiters,
            signals,
            took,
        }
    }

    /// Continues a check until the slice is over. Returns `true` once all members are judged and the search is
    /// complete.
    fn slice(&self, check: &mut Check, state: &EngineState<'_>, begun: Instant) -> bool {
        while check.next.is_some() {
            self.judge_some(check, state);
            if begun.elapsed() >= SLICE {
                return false;
            }
        }
        while self.search_some(check, state) {
            if begun.elapsed() >= SLICE {
                return false;
            }
        }
        true
    }

    /// Judges the next members.
    fn judge_some(&self, check: &mut Check, state: &EngineState<'_>) {
        let Some((number, from)) = check.next.take() else {
            return;
        };
        let families = state.kernel.families();
        let mut left = STEP;
        let mut judge = |check: &mut Check, number: u64, family: &Family, from: usize| {
            let last = family.members.len().min(from.saturating_add(left));
            for row in family.members.get(from..last).unwrap_or_default() {
                self.judge_member(check, family, row, state);
            }
            left -= (last - from).min(left);
            let is_whole = last == family.members.len();
            if is_whole {
                let verdict = self.family_verdict(check, family, state);
                check.verdicts.extend(verdict);
            }
            check.next = (!is_whole || left == 0).then(|| if is_whole { (number + 1, 0) } else { (number, last) });
            check.next.is_none()
        };
        let from_of = |other: u64| if other == number { from } else { 0 };
        if self.thresholds.may_tell_of_frozen() {
            for (other, family) in families.iter_from(number) {
                if !judge(check, other, &family, from_of(other)) {
                    return;
                }
            }
        } else {
            for (other, family) in families.awake_from(number) {
                if !judge(check, other, family, from_of(other)) {
                    return;
                }
            }
        }
    }

    fn family_verdict(&self, check: &Check, family: &Family, state: &EngineState<'_>) -> Option<Verdict> {
        let called = |id| state.progress(id);
        self.input(state, &check.queues, &called, &|_| None).family_size(family)
    }

    fn judge_member(&self, check: &mut Check, family: &Family, row: &Row, state: &EngineState<'_>) {
        let mut verdicts = std::mem::take(&mut check.verdicts);
        let called = |id| state.progress(id);
        let usual = |row: &Row| check.usual.of(row, state);
        self.input(state, &check.queues, &called, &usual)
            .of_member(family, row, &mut verdicts);
        check.verdicts = verdicts;
        if state.actors.get(row.id).is_some_and(|active| !active.lost().is_empty()) {
            check.gone.push(row.id);
        }
        if row.is_ended() {
            return;
        }
        check.waiters.note(row);
        if !family.signals.is_empty() {
            let member = row.id.member;
            let (waiting, oldest) = (family.signals.waiting(member), family.signals.oldest_sent(member));
            check.signals.note(&row.kind, waiting, oldest);
        }
        if is_missed(row, check, state) {
            check.missed.insert(row.id, row.revision);
        }
        if is_uncalled(row, state) {
            check.uncalled.push(row.id);
        }
        check.is_lost |= state.kernel.has_lost_wake(family, row);
    }

    /// Continues building the graph of waits. The search has
    /// [few starts](DiagnosisInput::starts). Returns `true` if there is more to search.
    fn search_some(&self, check: &mut Check, state: &EngineState<'_>) -> bool {
        let called = |id| state.progress(id);
        let Check {
            queues,
            search,
            searched,
            ..
        } = check;
        let input = self.input(state, queues, &called, &|_| None);
        let mut left = STEP;
        while left > 0 {
            let visited = input.search(search, Some(state.durable), left);
            left -= visited.min(left);
            if left > 0 {
                let rest = searched.map_or(Bound::Unbounded, Bound::Excluded);
                let Some((id, waiting)) = queues.waiting.range((rest, Bound::Unbounded)).next() else {
                    return false;
                };
                *searched = Some(*id);
                left -= 1;
                for start in input.starts(*id, waiting) {
                    search.begin(start);
                }
            }
        }
        true
    }

    /// Returns `true` if the links of a deadlock still exist, and none of its members has moved.
    fn still_is(&self, check: &Check, deadlock: &Deadlock, state: &EngineState<'_>) -> bool {
        if !are_unmoved(members(deadlock), check.asked, state.kernel) {
            return false;
        }
        let called = |id| state.progress(id);
        let input = self.input(state, &check.queues, &called, &|_| None);
        let again = input.graph(members(deadlock), Some(state.durable)).deadlocks();
        again.iter().any(|again| again.victim == deadlock.victim)
    }
}

/// Frees the memory of a value with this many entries. Freeing many takes long, so another thread does it.
fn free_memory(entries: usize, value: impl Send + 'static) {
    if entries > FREED_AT_ONCE {
        drop(actix_rt::task::spawn_blocking(move || drop(value)));
    }
}

/// Returns `true` if no decision since this commit has touched one of these.
fn are_unmoved(mut members: impl Iterator<Item = ProcedureId>, since: Seq, kernel: &Kernel) -> bool {
    members.all(|id| kernel.row(id).is_some_and(|row| row.revision <= since))
}

fn members(deadlock: &Deadlock) -> impl Iterator<Item = ProcedureId> {
    deadlock.cycle.iter().map(|link| link.from)
}

fn after_search(mut check: Box<Check>, mut deadlocks: Vec<Deadlock>, state: &EngineState<'_>) -> Next {
    deadlocks.retain(|deadlock| are_unmoved(members(deadlock), check.asked, state.kernel));
    check.deadlocks = deadlocks;
    if check.missed.is_empty() && check.deadlocks.is_empty() {
        repair(check, Vec::new())
    } else {
        Next::AskAgain(check)
    }
}

fn repair(mut check: Box<Check>, unknown: Vec<ProcedureId>) -> Next {
    let repairs = Repairs {
        unknown,
        gone: std::mem::take(&mut check.gone),
        uncalled: std::mem::take(&mut check.uncalled),
        is_lost: check.is_lost,
    };
    Next::Repair(check, repairs)
}

/// Returns `true` if a procedure waits for the limiter and is missing from its queues, although it asked before the
/// limiter answered.
fn is_missed(row: &Row, check: &Check, state: &EngineState<'_>) -> bool {
    let waits = row.wait.as_ref().is_some_and(WaitReason::is_admission) && row.revision <= check.asked;
    let asker = waits.then(|| state.kernel.asks_as(row.id)).flatten();
    asker.is_some_and(|asker| check.queues.of(asker).is_none())
}

/// Returns `true` if a procedure has no actor although its stage is out, by a commit whose effects were released.
fn is_uncalled(row: &Row, state: &EngineState<'_>) -> bool {
    let is_out = row.in_flight.is_some_and(|in_flight| in_flight.run <= state.durable);
    is_out && state.pending_reads <= PENDING_MAX && !state.actors.contains(row.id)
}

/// Returns the procedures that this decision wakes, each with what it waited for. Must run before the kernel applies
/// the decision, because the row then forgets the wait.
pub(in crate::supervisor) fn woken(kernel: &Kernel, decision: &Decision) -> Vec<(ProcedureId, String)> {
    let woken = decision.records().iter().filter_map(|record| {
        let Record::WakeFound(id) = record else { return None };
        Some(*id)
    });
    let waited = |id: ProcedureId| {
        let wait = kernel.row(id).and_then(|row| row.wait.as_ref());
        wait.map_or_else(|| "its locks".to_owned(), ToString::to_string)
    };
    woken.map(|id| (id, waited(id))).collect()
}

/// Waits for the verdicts of a check that a caller asked for, and until its repairs are on disk.
pub(in crate::supervisor) async fn answer(
    checked: oneshot::Receiver<Answer>,
    failure: Failure,
) -> Result<Vec<Verdict>, AskError> {
    let (verdicts, settled) = checked.await.map_err(|_| failure.unanswered())?;
    if let Some(settled) = settled {
        settled.await?;
    }
    Ok(verdicts)
}

/// Returns the procedures that are still uncalled and not pending: they wait for no read and no worker. `pending` is
/// called at most once, and only if it is needed.
pub(in crate::supervisor) fn still_uncalled(
    mut uncalled: Vec<ProcedureId>,
    state: &EngineState<'_>,
    pending: impl FnOnce() -> FxHashSet<ProcedureId>,
) -> Vec<ProcedureId> {
    if uncalled.is_empty() || state.pending_reads > PENDING_MAX {
        return Vec::new();
    }
    let pending = pending();
    uncalled.retain(|id| {
        let row = state.kernel.row(*id).filter(|_| !pending.contains(id));
        row.is_some_and(|row| is_uncalled(row, state))
    });
    uncalled
}

#[cfg(test)]
mod tests {
    //! Which deadlocks count.

    use procession_kernel::{Birth, Blob, Commit, Epoch, Event, Kind, KindRules, RequestId, Rules};

    use super::*;

    #[test]
    fn a_deadlock_with_a_member_that_has_moved_since_it_was_asked_for_does_not_count() {
        let rules = Rules {
            kinds: [(Kind::from("k"), KindRules::new(1))].into(),
            ..Rules::default()
        };
        let mut kernel = Kernel::new(rules, Epoch(1), 0);
        for request in [1, 2] {
            let birth = Birth::new(Kind::from("k"), 1, Blob::default(), Blob::default());
            let decision = kernel.decide(Timestamp(1), Event::Submitted(RequestId(request), vec![birth.into()]));
            kernel.apply(decision, &mut Commit::new());
        }
        let members = || [1, 2].map(ProcedureId::root).into_iter();
        let newest = kernel.seq();
        assert!(are_unmoved(members(), newest, &kernel));
        assert!(
            !are_unmoved(members(), Seq(newest.0 - 1), &kernel),
            "the second has moved since"
        );
        let with_one_that_is_gone = members().chain([ProcedureId::root(3)]);
        assert!(!are_unmoved(with_one_that_is_gone, newest, &kernel));
    }
}
