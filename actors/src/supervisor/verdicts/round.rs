//! One audit, from the limiter's answer to the verdicts: a slice at a time, so that whoever waits for the
//! supervisor waits no longer than for one slice, however many procedures are judged. What an audit tells is told
//! when all are judged, so a verdict stands until a whole audit no longer has it.
//!
//! Between two slices rows change. Each is judged as it is when its turn comes; who looks lost is looked at again at
//! the end, in one turn, before anything is made up for; and a deadlock counts only if its links are still there.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use actix::prelude::*;
use procession_kernel::{Deadlock, Family, ProcedureId, Row, Seq, Timestamp, WaitReason};

use super::super::Supervisor;
use super::super::explain::Search;
use super::super::insight::Queues;
use super::overrun::Asked;
use super::rules::deadlocked;
use crate::clock::machine_now;
use crate::view::Verdict;

/// After so long a slice ends, and others have their turn.
const SLICE: Duration = Duration::from_millis(1);
/// Members that are judged, or procedures that a search looks at, between two looks at the time.
const STEP: usize = 64;
/// Calls that wait to be read for, beyond which nobody is looked for who was not called: most of those who have no
/// actor wait there, and to go through them takes too long. A later audit looks.
const WAITING_MAX: usize = 16_384;
/// Nodes of a graph whose deadlocks are looked for at once; those of a larger one on another thread.
const NODES_AT_ONCE: usize = 1_024;

/// What is done with the verdicts, and how long they took.
type Take = Box<dyn FnOnce(&mut Supervisor, Vec<Verdict>, Duration, &mut Context<Supervisor>)>;

/// An audit that has begun.
pub(super) struct Round {
    take: Take,
    /// The newest commit on disk when it began.
    asked: Seq,
    /// Answers of the limiter that had been looked at before.
    looks: u64,
    queues: Queues,
    usual: Asked,
    /// The family that is judged next, from this member on; none when all are.
    next: Option<(u64, usize)>,
    /// Who waits at the limiter is searched from this place on.
    searched: usize,
    search: Search,
    verdicts: Vec<Verdict>,
    missed: BTreeMap<ProcedureId, Seq>,
    uncalled: Vec<ProcedureId>,
    gone: Vec<ProcedureId>,
    is_lost: bool,
    lock_waiters: u32,
    oldest: Option<Timestamp>,
    took: Duration,
}

impl Round {
    fn new(supervisor: &Supervisor, take: Take) -> Self {
        Self {
            take,
            asked: supervisor.commits.durable,
            looks: supervisor.watch.unserved.looks(),
            queues: Queues::default(),
            usual: Asked::default(),
            next: Some((0, 0)),
            searched: 0,
            search: Search::default(),
            verdicts: Vec::new(),
            missed: BTreeMap::new(),
            uncalled: Vec::new(),
            gone: Vec::new(),
            is_lost: false,
            lock_waiters: 0,
            oldest: None,
            took: Duration::ZERO,
        }
    }

    /// Notes of one who waits whether it could run but for a lock, a permit or its turn.
    fn note_waiter(&mut self, row: &Row) {
        match &row.wait {
            Some(WaitReason::Lock(_)) => self.lock_waiters += 1,
            Some(WaitReason::Permit(_) | WaitReason::Queue | WaitReason::Width) => {}
            Some(_) | None => return,
        }
        let since = row.ready.unwrap_or(row.since);
        self.oldest = self.oldest.into_iter().chain([since]).min();
    }
}

impl Supervisor {
    /// Audits; what it finds is given to `take`.
    pub(super) fn audit(
        &mut self,
        ctx: &mut Context<Self>,
        take: impl FnOnce(&mut Self, Vec<Verdict>, Duration, &mut Context<Self>) + 'static,
    ) {
        self.measure_disk(ctx);
        let mut round = Box::new(Round::new(self, Box::new(take)));
        self.read_queues(ctx, move |supervisor, queues, ctx| {
            round.queues = queues;
            // An engine that commits nothing may have been looked at all the same.
            supervisor.kernel.cool();
            supervisor.go_on(round, ctx);
        });
    }

    /// Judges a slice, and goes on when others have had their turn.
    fn go_on(&mut self, mut round: Box<Round>, ctx: &mut Context<Self>) {
        let begun = machine_now();
        let is_done = self.slice(&mut round, begun);
        round.took += begun.elapsed();
        if is_done {
            self.judged(round, ctx);
            return;
        }
        let others = tokio::task::yield_now();
        ctx.spawn(others.into_actor(self).map(move |(), supervisor, ctx| {
            supervisor.turn(|supervisor| supervisor.go_on(round, ctx));
        }));
    }

    /// Tells whether all are judged.
    fn slice(&self, round: &mut Round, begun: Instant) -> bool {
        while round.next.is_some() {
            self.judge_some(round);
            if begun.elapsed() >= SLICE {
                return false;
            }
        }
        while self.search_some(round) {
            if begun.elapsed() >= SLICE {
                return false;
            }
        }
        true
    }

    /// Judges the next members.
    fn judge_some(&self, round: &mut Round) {
        let Some((number, from)) = round.next.take() else {
            return;
        };
        let families = self.kernel.families();
        let mut left = STEP;
        let mut judge = |round: &mut Round, number: u64, family: &Family, from: usize| {
            let last = family.members.len().min(from.saturating_add(left));
            for row in family.members.get(from..last).unwrap_or_default() {
                self.judge_member(round, family, row);
            }
            left -= (last - from).min(left);
            let is_whole = last == family.members.len();
            if is_whole {
                let verdict = self.family_verdict(round, family);
                round.verdicts.extend(verdict);
            }
            round.next = (!is_whole || left == 0).then(|| if is_whole { (number + 1, 0) } else { (number, last) });
            round.next.is_none()
        };
        let from_of = |other: u64| if other == number { from } else { 0 };
        if self.watch.thresholds().may_tell_of_frozen() {
            for (other, family) in families.iter_from(number) {
                if !judge(round, other, &family, from_of(other)) {
                    return;
                }
            }
        } else {
            for (other, family) in families.awake_from(number) {
                if !judge(round, other, family, from_of(other)) {
                    return;
                }
            }
        }
    }

    fn family_verdict(&self, round: &Round, family: &Family) -> Option<Verdict> {
        let called = |id| self.called_words(id);
        let insight = self.insight(&round.queues, &called, &|_| None);
        insight.family_size(family)
    }

    fn judge_member(&self, round: &mut Round, family: &Family, row: &Row) {
        let mut verdicts = std::mem::take(&mut round.verdicts);
        let called = |id| self.called_words(id);
        let usual = |row: &Row| round.usual.usual(self, row);
        self.insight(&round.queues, &called, &usual)
            .of_member(family, row, &mut verdicts);
        round.verdicts = verdicts;
        if self.actors.get(&row.id).is_some_and(|active| !active.lost().is_empty()) {
            round.gone.push(row.id);
        }
        if row.is_ended() {
            return;
        }
        round.note_waiter(row);
        if self.is_missed(row, round) {
            round.missed.insert(row.id, row.revision);
        }
        if self.is_uncalled(row) {
            round.uncalled.push(row.id);
        }
        round.is_lost |= self.kernel.has_lost_wake(family, row);
    }

    /// Tells whether one waits for the limiter and is not in its queues, though it asked before that answered.
    fn is_missed(&self, row: &Row, round: &Round) -> bool {
        let waits = row.wait.as_ref().is_some_and(WaitReason::is_admission) && row.revision <= round.asked;
        let asker = waits.then(|| self.kernel.asks_as(row.id)).flatten();
        asker.is_some_and(|asker| round.queues.of(asker).is_none())
    }

    /// Tells whether the stage of one is out, by a commit whose effects were released, and it has no actor.
    fn is_uncalled(&self, row: &Row) -> bool {
        let is_out = row.going.is_some_and(|going| going.run <= self.commits.durable);
        is_out && self.loads.len() <= WAITING_MAX && !self.actors.contains_key(&row.id)
    }

    /// Goes on with the search for who waits for whom. A circle leads through the limiter's queues, so it begins with
    /// those who wait there. Tells whether there is more.
    fn search_some(&self, round: &mut Round) -> bool {
        let called = |id| self.called_words(id);
        let Round {
            queues,
            search,
            searched,
            ..
        } = round;
        let insight = self.insight(queues, &called, &|_| None);
        let mut left = STEP;
        while left > 0 {
            let looked_at = insight.search(search, Some(self.commits.durable), left);
            left -= looked_at.min(left);
            if left > 0 {
                let Some((id, _)) = queues.waiting.get(*searched) else {
                    return false;
                };
                *searched += 1;
                left -= 1;
                search.begin(*id);
            }
        }
        true
    }

    /// Everybody is judged: looks for circles.
    fn judged(&mut self, mut round: Box<Round>, ctx: &mut Context<Self>) {
        let graph = std::mem::take(&mut round.search.graph);
        if graph.len() <= NODES_AT_ONCE {
            self.searched(round, graph.deadlocks(), ctx);
            return;
        }
        // A panic there tells of none.
        let work = actix_rt::task::spawn_blocking(move || graph.deadlocks());
        ctx.spawn(work.into_actor(self).map(move |found, supervisor, ctx| {
            supervisor.turn(|supervisor| {
                let mut found = found.unwrap_or_default();
                found.retain(|deadlock| supervisor.still_is(&round, deadlock));
                supervisor.searched(round, found, ctx);
            });
        }));
    }

    /// Tells whether the links of a deadlock that took long to find are there.
    fn still_is(&self, round: &Round, deadlock: &Deadlock) -> bool {
        let called = |id| self.called_words(id);
        let insight = self.insight(&round.queues, &called, &|_| None);
        let members = deadlock.cycle.iter().map(|link| link.from);
        let again = insight.graph(members, Some(self.commits.durable)).deadlocks();
        again.iter().any(|again| again.victim == deadlock.victim)
    }

    /// Looks a second time where somebody seems to be waited for by nobody.
    fn searched(&mut self, mut round: Box<Round>, deadlocks: Vec<Deadlock>, ctx: &mut Context<Self>) {
        round.verdicts.extend(deadlocks.into_iter().map(deadlocked));
        if round.missed.is_empty() {
            self.audited(round, Vec::new(), ctx);
            return;
        }
        self.read_queues(ctx, move |supervisor, queues, ctx| {
            round.queues = queues;
            let still = round.missed.iter().filter(|(id, revision)| {
                let row = supervisor.kernel.row(**id).filter(|row| row.revision == **revision);
                row.is_some_and(|row| !row.is_ended() && supervisor.is_missed(row, &round))
            });
            let unknown = still.map(|(id, _)| *id).collect();
            supervisor.audited(round, unknown, ctx);
        });
    }

    /// Makes up for what was lost, and tells.
    fn audited(&mut self, mut round: Box<Round>, unknown: Vec<ProcedureId>, ctx: &mut Context<Self>) {
        let begun = machine_now();
        let mut found = Vec::new();
        if self.poisoned.is_none() && !self.stopped {
            self.look_for_lost(std::mem::take(&mut round.gone), ctx);
            if !self.kernel.is_draining() {
                self.arm();
                if round.is_lost || !unknown.is_empty() || self.kernel.lacks_timers() {
                    found = self.wake_lost(unknown, ctx);
                }
                let uncalled = self.still_uncalled(std::mem::take(&mut round.uncalled));
                found.extend(self.call_uncalled(uncalled, ctx));
                self.metrics.lost_wakes(&self.kernel, &found);
            }
        }
        self.look_for_unserved(&mut round.queues, round.looks);
        let mut verdicts = self.all_verdicts(std::mem::take(&mut round.verdicts), &found);
        self.watch.tell(&mut verdicts);
        let told: Vec<&str> = verdicts.iter().map(|verdict| verdict.rule.as_str()).collect();
        self.metrics.telemetry().verdicts(&told);
        if let Some(bytes) = self.reader.size_bytes() {
            self.metrics.telemetry().bytes.set(bytes as f64);
        }
        self.show_waiters(&round);
        self.metrics.show_mailboxes(self.clock.now());
        let took = round.took + begun.elapsed();
        (round.take)(self, verdicts, took, ctx);
    }

    /// Gives those of them who are still not called, nor read for.
    fn still_uncalled(&self, mut uncalled: Vec<ProcedureId>) -> Vec<ProcedureId> {
        if uncalled.is_empty() || self.loads.len() > WAITING_MAX {
            return Vec::new();
        }
        let mut read_for = self.loads.waiting();
        read_for.extend(self.unreadable.calls());
        uncalled.retain(|id| {
            let is_stranded = self.watch.stranded.iter().any(|(other, _)| other == id);
            let row = self.kernel.row(*id).filter(|_| !is_stranded);
            !read_for.contains(id) && row.is_some_and(|row| self.is_uncalled(row))
        });
        uncalled
    }

    /// Shows who could run but for a lock, a permit or its turn.
    fn show_waiters(&self, round: &Round) {
        let waited = round
            .oldest
            .map_or(Duration::ZERO, |since| self.clock.now().since(since));
        self.metrics.telemetry().lock_waiters.set(round.lock_waiters);
        self.metrics.telemetry().oldest_runnable.set(waited);
    }
}
