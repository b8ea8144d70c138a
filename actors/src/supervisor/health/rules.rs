//! The rules. Each looks at what is on disk, and states what is wrong, with facts.

use crate::supervisor::failure::FailureCause;
use std::collections::BTreeMap;
use std::time::Duration;

use procession_kernel::{
    Deadlock, FailureStreak, Family, Kind, LatchState, ProcedureId, Row, Timestamp, WaitReason, WakeSource,
};

use super::diagnosis_input::DiagnosisInput;
use super::undecided::{BehindCounter, STEPS_OF_GATE, behind_fact, behind_text, undecided};
use super::{EngineState, Health};
use crate::journal::codec;
use crate::supervisor::dispatch::failed_reads::ReadTrouble;
use crate::supervisor::dispatch::orphaned_calls::OrphanedCall;
use crate::supervisor::lifecycle::wall::WallClockLead;
use crate::view::{Rule, Verdict, WorkerStatus};

type Facts = Vec<(&'static str, String)>;

pub(super) fn verdict(
    rule: Rule,
    procedure: Option<ProcedureId>,
    since: Timestamp,
    facts: Facts,
    text: String,
) -> Verdict {
    Verdict {
        rule,
        procedure,
        since,
        facts,
        deadlock: None,
        text,
    }
}

pub(super) fn of_row(rule: Rule, row: &Row, mut facts: Facts, text: &str) -> Verdict {
    let stage = codec::describe(row.stage.as_slice());
    facts.insert(0, ("kind", row.kind.to_string()));
    facts.insert(1, ("stage", stage.clone()));
    let text = format!("{} of {} at stage {stage} {text}", row.id, row.kind);
    verdict(rule, Some(row.id), row.since, facts, text)
}

/// Families up to which an assertion compares the search for deadlocks with one that starts from everybody.
const COMPARED_MAX: usize = 1_000;

/// Signs of trouble beside rows and queues.
pub(in crate::supervisor) struct Findings<'a> {
    /// Verdicts on actors that are gone with their threads.
    pub(in crate::supervisor) actors_lost: Vec<Verdict>,
    /// Lost wakes and calls that were repaired, each with what was waited for.
    pub(in crate::supervisor) repaired: &'a [(ProcedureId, String)],
    pub(in crate::supervisor) workers: Vec<WorkerStatus>,
    /// When the oldest batch at the journal was appended.
    pub(in crate::supervisor) appending_since: Option<Timestamp>,
    /// Reads that the store does not answer.
    pub(in crate::supervisor) unreadable: Option<ReadTrouble<'a>>,
    pub(in crate::supervisor) clock_ahead: Option<WallClockLead>,
}

/// Merges findings that rows do not show into the rows' verdicts, in the order of the rules.
pub(super) fn all_verdicts(
    health: &Health,
    mut verdicts: Vec<Verdict>,
    findings: Findings<'_>,
    state: &EngineState<'_>,
) -> Vec<Verdict> {
    let Findings {
        actors_lost,
        repaired,
        workers,
        appending_since,
        unreadable,
        clock_ahead: ahead,
    } = findings;
    verdicts.extend(quarantines(state.quarantined, state.now));
    verdicts.extend(actors_lost);
    verdicts.extend(undecided(state.kernel, state.durable, state.now));
    verdicts.extend(health.failures.verdict());
    verdicts.extend(repaired.iter().map(|(id, what)| health.lost_wake(*id, what, state)));
    verdicts.extend(blocked_workers(workers, state.now));
    verdicts.extend(health.store_slow(appending_since, state));
    verdicts.extend(health.disk_nearly_full(state));
    verdicts.extend(unreadable.map(|trouble| store_unreadable(&trouble)));
    verdicts.extend(ahead.map(|ahead| clock_ahead(ahead, state.now)));
    verdicts.extend(state.failed.map(|why| store_failed(why, state.now)));
    in_order(&mut verdicts);
    verdicts
}

impl Health {
    fn lost_wake(&self, id: ProcedureId, what: &str, state: &EngineState<'_>) -> Verdict {
        let facts = vec![
            ("lost", what.to_owned()),
            ("count", self.lost_wakes(state.kernel).to_string()),
        ];
        let text = format!("{id} would never have gone on ({what}), so it was woken. This is a defect of the engine");
        verdict(Rule::LostWake, Some(id), state.now, facts, text)
    }

    fn store_slow(&self, since: Option<Timestamp>, state: &EngineState<'_>) -> Option<Verdict> {
        let since = since?;
        let time = state.now.since(since);
        if state.failed.is_some() || time < self.thresholds.engine().store {
            return None;
        }
        let waiting = state.kernel.seq().0.saturating_sub(state.durable.0);
        let facts = vec![("time", format!("{time:?}")), ("commits", waiting.to_string())];
        let text = format!("the store has not answered for {time:?}; {waiting} commits wait for it");
        Some(verdict(Rule::StoreSlow, None, since, facts, text))
    }
}

fn blocked_workers(workers: Vec<WorkerStatus>, now: Timestamp) -> Vec<Verdict> {
    let blocked = workers
        .into_iter()
        .filter_map(|status| Some((status.worker, status.blocked?)));
    blocked
        .map(|(worker, blocked)| {
            let facts = vec![
                ("worker", worker.to_string()),
                ("stage", blocked.stage.clone()),
                ("call", format!("{:?}", blocked.call)),
                ("time", format!("{:?}", blocked.time)),
            ];
            let text = format!(
                "{} at stage {} has held worker {worker} for {:?}",
                blocked.procedure, blocked.stage, blocked.time
            );
            let since = ago(now, blocked.time);
            verdict(Rule::BlockedWorker, Some(blocked.procedure), since, facts, text)
        })
        .collect()
}

fn store_unreadable(trouble: &ReadTrouble<'_>) -> Verdict {
    let facts = vec![
        ("reads", trouble.waiting.to_string()),
        ("failures", trouble.failures.to_string()),
        ("error", trouble.error.to_owned()),
    ];
    let text = format!(
        "the store cannot be read: {} reads wait for it, and {} attempts have failed; the last error: {}",
        trouble.waiting, trouble.failures, trouble.error
    );
    verdict(Rule::StoreUnreadable, None, trouble.since, facts, text)
}

fn clock_ahead(ahead: WallClockLead, now: Timestamp) -> Verdict {
    let (by, until) = (Duration::from_secs(ahead.by.as_secs()), ahead.until);
    let left = Duration::from_secs(until.since(now).as_secs());
    let facts = vec![
        ("ahead", format!("{by:?}")),
        ("until", until.0.to_string()),
        ("left", format!("{left:?}")),
    ];
    let text = format!(
        "the wall clock is {by:?} ahead of the machine's own time: it was set forward, or the machine was off. \
         For {left:?} results and keys are evicted as if it had not been. Correct the clock if it is wrong; otherwise \
         do nothing"
    );
    verdict(Rule::ClockAhead, None, ahead.since, facts, text)
}

fn store_failed(why: &FailureCause, now: Timestamp) -> Verdict {
    let text = format!("the engine takes no more commits: {why}");
    let facts = vec![("why", why.to_string())];
    verdict(Rule::StoreFailed, None, now, facts, text)
}

impl DiagnosisInput<'_> {
    /// Returns all verdicts on the rows and the queues, in the order of the rules.
    pub(crate) fn verdicts(&self) -> Vec<Verdict> {
        let mut verdicts = Vec::new();
        for (_, family) in self.kernel.families().iter() {
            for row in &family.members {
                self.of_member(&family, row, &mut verdicts);
            }
            verdicts.extend(self.family_size(&family));
        }
        verdicts.extend(self.deadlocks());
        verdicts.extend(undecided(self.kernel, self.durable, self.now));
        verdicts.extend(quarantines(self.quarantined, self.now));
        in_order(&mut verdicts);
        verdicts
    }

    /// Judges one member, if it is on disk and has not ended.
    pub(super) fn of_member(&self, family: &Family, row: &Row, verdicts: &mut Vec<Verdict>) {
        if row.is_ended() || row.revision > self.durable {
            return;
        }
        verdicts.extend(self.overrun(row));
        verdicts.extend(self.retry_storm(row));
        verdicts.extend(self.no_progress(row).or_else(|| waits_for_closed(row)));
        verdicts.extend(self.starved(row));
        verdicts.extend(self.waits_for_operator(row));
        self.sizes(family, row, verdicts);
    }

    /// Judges repeated failures. They count as one streak while their messages differ in numbers only. A budget
    /// counts only beyond the point of no return, whatever the messages were: elsewhere it ends the storm.
    fn retry_storm(&self, row: &Row) -> Option<Verdict> {
        if row.wait == Some(WaitReason::RollbackFailed) || self.is_stopped(row) {
            return None;
        }
        let rules = self.kernel.rules().kinds.get(&row.kind);
        let budget = rules.map_or(u32::MAX, |rules| rules.retry.attempts);
        let past_budget = !row.is_failing() && row.rare().past_no_return.is_some() && row.attempt >= budget;
        let streak = row.rare().failure_streak.as_deref();
        if streak.map_or(0, |streak| streak.times) < self.thresholds.of(&row.kind).retries && !past_budget {
            return None;
        }
        let failed = row.failed_in_a_row();
        let mut facts = vec![("attempts", failed.to_string())];
        if past_budget {
            facts.push(("budget", budget.to_string()));
        }
        if let Some(WaitReason::Backoff(_, at)) = &row.wait {
            facts.push(("next", at.0.to_string()));
        }
        let what = if row.is_failing() { "its undo" } else { "it" };
        let mut text = format!("keeps retrying: {what} has failed {failed} times");
        if let Some(streak) = streak {
            facts.push(("alike", streak.times.to_string()));
        }
        if let Some((streak, kind)) = streak.zip(self.sayer(row)) {
            text.push_str(&alike(streak));
            facts.push(("error", streak.text.clone()));
            facts.extend((*kind != row.kind).then(|| ("error_kind", kind.to_string())));
        }
        let verdict = of_row(Rule::RetryStorm, row, facts, &text);
        // The row changes with each attempt; the storm began with the first of them.
        let since = streak.and_then(|streak| streak.first).unwrap_or(verdict.since);
        Some(Verdict { since, ..verdict })
    }

    /// Returns the kind whose code reported the last failure; the message is shown or hidden by this kind's rule. For
    /// an undo it is the kind of the member whose stage is undone. Until the stack is read, that is known only for
    /// families of one kind.
    fn sayer<'r>(&'r self, row: &'r Row) -> Option<&'r Kind> {
        if !row.is_failing() {
            return Some(&row.kind);
        }
        if let Some((member, _)) = self.kernel.next_undo(row.id) {
            return self.kernel.row(member).map(|member| &member.kind);
        }
        let family = self.kernel.families().get(&row.id.family)?;
        let is_of_one = family.members.iter().all(|member| member.kind == row.kind);
        is_of_one.then_some(&row.kind)
    }

    /// Returns `true` if the procedure makes no more attempts: a failure of its family has stopped it, or its
    /// rollback is part of a larger one. Its row still keeps its own progress.
    fn is_stopped(&self, row: &Row) -> bool {
        let scope = self
            .kernel
            .families()
            .get(&row.id.family)
            .and_then(|family| family.scope_of(row.id.member));
        if row.is_failing() {
            return scope != Some(row.id);
        }
        row.rare().past_no_return.is_none() && scope.is_some()
    }

    fn no_progress(&self, row: &Row) -> Option<Verdict> {
        let is_at_limit = row.wait == Some(WaitReason::RepeatLimit);
        if !is_at_limit && row.same_stage < self.thresholds.of(&row.kind).same_stage {
            return None;
        }
        let times = match self
            .kernel
            .rules()
            .kinds
            .get(&row.kind)
            .and_then(|rules| rules.repeat_limit)
        {
            Some(bound) if is_at_limit => bound,
            Some(_) | None => row.same_stage,
        };
        let facts = vec![("times", times.to_string()), ("parked", is_at_limit.to_string())];
        let text = format!("makes no progress: the stage was run {times} times in a row");
        Some(of_row(Rule::NoProgress, row, facts, &text))
    }

    fn waits_for_operator(&self, row: &Row) -> Option<Verdict> {
        match &row.wait {
            Some(WaitReason::Poison) => Some(of_row(
                Rule::Poison,
                row,
                Vec::new(),
                "is paused as poison: the process died each time while it ran",
            )),
            Some(WaitReason::RollbackFailed) if !self.is_stopped(row) => {
                let undo = self.kernel.next_undo(row.id);
                let mut facts = vec![("attempts", row.rare().undo_attempts.to_string())];
                if let Some((member, stage)) = undo {
                    facts.push(("member", member.to_string()));
                    facts.push(("undo", codec::describe(stage.as_slice())));
                }
                if let Some(cause) = &row.rare().cause {
                    facts.push(("cause", cause.text.clone()));
                }
                let text = format!(
                    "cannot be rolled back: an undo has failed {} times",
                    row.rare().undo_attempts
                );
                Some(of_row(Rule::RollbackFailed, row, facts, &text))
            }
            Some(WaitReason::Gate) => self.undecided(row),
            Some(WaitReason::Quarantined) => Some(self.incomplete(row)),
            _ => None,
        }
    }

    /// Returns the verdict on a rollback whose history has a hole.
    fn incomplete(&self, row: &Row) -> Verdict {
        let hole = self.holes.get(&row.id);
        let facts = hole.map(|hole| ("hole", hole.clone()));
        let hole = hole.map(|hole| format!(": {hole}")).unwrap_or_default();
        let text = format!("cannot be rolled back: its history is incomplete{hole}");
        of_row(Rule::Quarantined, row, facts.into_iter().collect(), &text)
    }

    /// Returns the verdicts on rollbacks that will park once an engine goes on with them, for a caller that has compared all
    /// histories. An engine has only compared those that have parked.
    pub(crate) fn rollbacks_that_will_park(&self) -> Vec<Verdict> {
        let rows = self.holes.keys().filter_map(|id| self.kernel.row(*id));
        let rows = rows.filter(|row| row.wait != Some(WaitReason::Quarantined));
        rows.map(|row| self.incomplete(row)).collect()
    }

    /// Judges a child that waits at a gate which can no longer open. While a sibling before it still rolls back, what
    /// there is to decide on may change.
    fn undecided(&self, row: &Row) -> Option<Verdict> {
        if self.kernel.wake_source_of(row.id) != WakeSource::Operator(WaitReason::Gate) || self.is_stopped(row) {
            return None;
        }
        let siblings = row.closed_gate()?.after.iter();
        let siblings = siblings.filter_map(|sibling| self.kernel.row(ProcedureId::new(row.id.family, *sibling)));
        let lost: Vec<&Row> = siblings.filter(|row| LatchState::of(row).is_unsuccessful()).collect();
        if lost.iter().any(|row| !row.is_ended()) {
            return None;
        }
        let rule = self.kernel.families().get(&row.id.family);
        if let Some(why) = rule.and_then(|family| family.gates.unmeetable(row.id.member)) {
            let facts = vec![("unsuccessful", lost.len().to_string()), ("cause", why.to_owned())];
            let text = format!(
                "waits for a person to decide: all before it have ended, and its gate does not open by itself: {why}"
            );
            return Some(of_row(Rule::Undecided, row, facts, &text));
        }
        let (blamed, count) = (lost.first()?, lost.len());
        let mut facts = vec![("sibling", blamed.id.to_string()), ("unsuccessful", count.to_string())];
        if let Some(cause) = &blamed.rare().cause {
            facts.push(("cause", cause.text.clone()));
        }
        let behind = BehindCounter::new(self.kernel, STEPS_OF_GATE).count(row.id);
        facts.extend(behind_fact(behind));
        let text = format!(
            "waits for a person to decide{}: {} before it did not succeed, so it cannot begin by itself",
            behind_text(behind),
            blamed.id
        );
        Some(of_row(Rule::Undecided, row, facts, &text))
    }

    /// Returns the deadlocks.
    fn deadlocks(&self) -> Vec<Verdict> {
        let waiting = self.queues.waiting.iter();
        let starts = waiting.flat_map(|(id, waiting)| self.starts(*id, waiting));
        let found = self.graph(starts, Some(self.durable)).deadlocks();
        debug_assert!(
            self.kernel.families().iter().nth(COMPARED_MAX).is_some()
                || found == self.graph(self.live(), Some(self.durable)).deadlocks(),
            "a search from every live procedure finds as much"
        );
        found.into_iter().map(deadlocked).collect()
    }

    /// Returns all procedures that have not ended.
    fn live(&self) -> impl Iterator<Item = ProcedureId> {
        let families = self.kernel.families().iter();
        families.flat_map(|(_, family)| {
            let live = family.members.iter().filter(|row| !row.is_ended());
            live.map(|row| row.id).collect::<Vec<_>>()
        })
    }
}

/// Judges a wait for an event whose last signal was sent: no signal can end it, and it has no time limit.
fn waits_for_closed(row: &Row) -> Option<Verdict> {
    let Some(WaitReason::Event(event, None)) = &row.wait else {
        return None;
    };
    if !row.rare().closed.contains(event) {
        return None;
    }
    let facts = vec![("event", event.to_string()), ("parked", true.to_string())];
    let text = format!(
        "waits for the event {event} without a time limit, and the last signal of it was sent: only a broadcast of \
         {event}, an abort or a bypass ends the wait"
    );
    Some(of_row(Rule::NoProgress, row, facts, &text))
}

fn quarantines(quarantined: &BTreeMap<u64, String>, now: Timestamp) -> impl Iterator<Item = Verdict> {
    quarantined.iter().map(move |(family, why)| {
        let text = format!("the family {family} is quarantined: {why}");
        let facts = vec![("why", why.clone())];
        verdict(Rule::Quarantined, Some(ProcedureId::root(*family)), now, facts, text)
    })
}

/// Sorts by rule and procedure. Verdicts on sizes of one procedure are sorted by name.
pub(crate) fn in_order(verdicts: &mut [Verdict]) {
    verdicts.sort_by(|one, other| {
        let by = (one.rule, one.procedure).cmp(&(other.rule, other.procedure));
        by.then_with(|| one.fact("what").cmp(&other.fact("what")))
    });
}

/// Returns the newest failure's message as the end of a sentence.
fn alike(streak: &FailureStreak) -> String {
    let text = &streak.text;
    match streak.times {
        1 => format!("; the last error: {text}"),
        times => format!("; the last error {times} times in a row: {text}"),
    }
}

pub(in crate::supervisor) fn actor_lost(id: ProcedureId, lost: &OrphanedCall) -> Verdict {
    let stage = &lost.stage;
    let call = format!("{:?}", lost.call).to_lowercase();
    let text = format!("the actor of {id} was lost with its thread during its {call} call at stage {stage}");
    let facts = vec![
        ("stage", stage.clone()),
        ("call", call),
        ("times", lost.times.to_string()),
    ];
    verdict(Rule::ActorLost, Some(id), lost.at, facts, text)
}

fn ago(now: Timestamp, time: Duration) -> Timestamp {
    let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    Timestamp(now.0.saturating_sub(micros))
}

/// Builds the verdict on a deadlock, which is as old as its youngest link.
pub(super) fn deadlocked(deadlock: Deadlock) -> Verdict {
    let links: Vec<String> = deadlock
        .cycle
        .iter()
        .map(|link| format!("{} waits for {} ({})", link.from, link.to, link.why))
        .collect();
    let since = deadlock.cycle.iter().map(|link| link.since).max().unwrap_or_default();
    let cycle = links.join(", ");
    let remedy = deadlock.remedy();
    let text = format!("a deadlock: {cycle}; {remedy}");
    let facts = vec![("cycle", cycle), ("victim", deadlock.victim.to_string())];
    Verdict {
        deadlock: Some(deadlock.clone()),
        ..verdict(Rule::Deadlock, Some(deadlock.victim), since, facts, text)
    }
}
