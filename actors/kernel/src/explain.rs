//! Explains what a procedure waits for, from the rows alone: which other procedures, or what else will move it.
//! Operators and the deadlock search use it. It changes nothing.
//!
//! Waits in the limiter's queues are known only to the limiter; [`Kernel::asks_as`] names the procedure to ask it
//! about.

use std::collections::BTreeSet;
use std::fmt;

use crate::decide::Draft;
use crate::family::{Family, Scope};
use crate::id::{Blob, EventName, ProcedureId, Timestamp};
use crate::kernel::Kernel;
use crate::latch::{Join, LatchState};
use crate::needs::Lacking;
use crate::row::{JoinPolicy, Round, Row};
use crate::wait::{PauseScope, WaitReason};
use crate::waits::{Need, WaitNode, WaitingFor};

/// What will move a procedure that waits for no other procedure. Stages are encoded as stored, or given as text.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WakeSource<S = Blob> {
    /// The end of its running stage.
    Stage(S),
    /// The end of the running undo of this stage of a member.
    Undo(ProcedureId, S),
    /// A timer.
    Timer(Timestamp),
    /// A signal or a broadcast, or the given instant at the latest.
    Event(EventName, Option<Timestamp>),
    /// An operator, for this reason.
    Operator(WaitReason),
    /// The next start, because the engine drains.
    Start,
    /// Nothing holds it back: it continues by itself, at once.
    Nothing,
}

/// How far the children of one list are.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Siblings {
    /// How many have ended.
    pub done: u32,
    /// How many there are.
    pub total: u32,
    /// How many may be in progress at once; 0 means no limit.
    pub width: u32,
    /// How many are in progress: they run, wait for something of their own, or are rolled back.
    pub running: u32,
    /// How many the width holds back.
    pub held: u32,
    /// The first of those in progress, 10 at most.
    pub named: Vec<ProcedureId>,
}

/// Children in progress that [`Siblings`] names.
const NAMED_MAX: usize = 10;

impl Siblings {
    fn of(family: &Family, round: &Round) -> Self {
        let mut found = Self {
            done: 0,
            total: round.count,
            width: round.width,
            running: 0,
            held: 0,
            named: Vec::new(),
        };
        let children = family.members.iter().skip(round.first as usize);
        for row in children.take(round.count as usize) {
            match LatchState::of(row) {
                LatchState::Failed | LatchState::Succeeded => found.done += u32::from(row.is_ended()),
                LatchState::Held => found.held += 1,
                LatchState::Active | LatchState::Failing => {
                    found.running += 1;
                    if found.named.len() < NAMED_MAX {
                        found.named.push(row.id);
                    }
                }
                LatchState::Idle => {}
            }
        }
        found
    }
}

impl<S> WakeSource<S> {
    /// Converts the stage, for instance to text.
    pub fn map<T>(self, say: impl FnOnce(S) -> T) -> WakeSource<T> {
        match self {
            Self::Stage(stage) => WakeSource::Stage(say(stage)),
            Self::Undo(member, stage) => WakeSource::Undo(member, say(stage)),
            Self::Timer(at) => WakeSource::Timer(at),
            Self::Event(name, at) => WakeSource::Event(name, at),
            Self::Operator(reason) => WakeSource::Operator(reason),
            Self::Start => WakeSource::Start,
            Self::Nothing => WakeSource::Nothing,
        }
    }
}

impl<S: fmt::Display> fmt::Display for WakeSource<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stage(stage) => write!(f, "once stage {stage} ends"),
            Self::Undo(member, stage) => write!(f, "once the undo of stage {stage} of {member} ends"),
            Self::Timer(at) => write!(f, "at {}", at.0),
            Self::Event(name, Some(at)) => write!(f, "once event {name} arrives, or at {}", at.0),
            Self::Event(name, None) => write!(f, "once event {name} arrives"),
            Self::Operator(reason) => write!(f, "once an operator acts: {reason}"),
            Self::Start => f.write_str("at the next start"),
            Self::Nothing => f.write_str("on its own"),
        }
    }
}

impl Kernel {
    /// Returns what a procedure needs from others before it can move, without what it waits for in the limiter's
    /// queues. Returns `None` if the procedure is not live.
    #[must_use]
    pub fn needs_of(&self, id: ProcedureId) -> Option<WaitNode> {
        let family = self.families.get(&id.family)?;
        let row = family.row(id.member).filter(|row| !row.is_ended())?;
        let draft = Draft::new(self, Timestamp::default());
        let is_stopping = draft.is_stopping(row);
        let needs = match family.scope_of(id.member) {
            _ if row.in_flight.is_some() || undo_is_out(family, row) => Vec::new(),
            Some(scope) if is_stopping => self.needs_of_failing(&draft, family, row, scope),
            Some(_) | None => self.needs_of_waiting(family, row),
        };
        // No abort reaches a part that fails already. The parent of one of its members may have ended, so the way up
        // begins at the head of the part.
        let scope = family.scope_of(id.member).filter(|_| is_stopping);
        let (head, can_abort) = head_of(family, scope.and_then(|scope| family.row(scope.member)).unwrap_or(row));
        Some(WaitNode {
            since: row.since,
            needs,
            priority: row.priority,
            head,
            can_abort: can_abort && !is_stopping,
        })
    }

    /// Returns the member under whose name the limiter was asked: the procedure itself or, during a rollback, the
    /// member whose undo is next.
    #[must_use]
    pub fn asks_as(&self, id: ProcedureId) -> Option<ProcedureId> {
        let family = self.families.get(&id.family)?;
        let row = family.row(id.member).filter(|row| !row.is_ended())?;
        if !row.wait.as_ref().is_some_and(WaitReason::is_admission) {
            return None;
        }
        if !Draft::new(self, Timestamp::default()).is_stopping(row) {
            return Some(id);
        }
        // A part that rolled back until a larger one took it over keeps its last wait, and asks for nothing any more.
        if self.waits_as(id) != id {
            return None;
        }
        self.next_undo(id).map(|(member, _)| member)
    }

    /// Returns what a procedure was told it lacks, and [the member that asked for it](Self::asks_as).
    #[must_use]
    pub fn lacks(&self, id: ProcedureId) -> Option<(ProcedureId, Lacking)> {
        let asker = self.asks_as(id)?;
        let row = self.families.get(&id.family)?.row(id.member)?;
        Some((asker, row.wait.as_ref()?.lacking()?))
    }

    /// Returns how far the children of a waiting parent are. `None` if it does not wait for children.
    #[must_use]
    pub fn children_of(&self, id: ProcedureId) -> Option<Siblings> {
        let family = self.families.get(&id.family)?;
        let row = family.row(id.member)?;
        let round = row.rounds.last().filter(|_| row.wait == Some(WaitReason::Children))?;
        Some(Siblings::of(family, round))
    }

    /// Returns how far the siblings of a child are that the width holds back, and its place among those held back,
    /// counted from 1. `None` for any other procedure.
    #[must_use]
    pub fn held_among(&self, id: ProcedureId) -> Option<(Siblings, usize)> {
        let family = self.families.get(&id.family)?;
        let row = family.row(id.member)?;
        let round = family.round_of(row).filter(|_| row.wait == Some(WaitReason::Width))?;
        let before = family.held.range(round.first..id.member).count();
        Some((Siblings::of(family, round), before + 1))
    }

    /// Counts the procedures that wait behind this one at gates, directly or behind others that do. Stops at `most`, and
    /// after as many steps from a member to its dependants as `steps` has left; each step is taken from it.
    #[must_use]
    pub fn waiting_behind(&self, id: ProcedureId, most: usize, steps: &mut usize) -> usize {
        let gates = match self.families.get(&id.family) {
            Some(family) if !family.gates.is_empty() => &family.gates,
            Some(_) | None => return 0,
        };
        let mut seen = BTreeSet::new();
        let mut next = vec![id.member];
        while let Some(member) = next.pop() {
            for dependant in gates.dependants(member) {
                if seen.len() >= most || *steps == 0 {
                    return seen.len();
                }
                *steps -= 1;
                if seen.insert(dependant) {
                    next.push(dependant);
                }
            }
        }
        seen.len()
    }

    /// Returns the procedure that must move before a holder releases what it holds. That is the holder itself or, if
    /// it has ended and is being compensated, the root of the part that rolls back.
    #[must_use]
    pub fn gives_back_as(&self, id: ProcedureId) -> ProcedureId {
        let family = self.families.get(&id.family);
        let ended = family.filter(|family| family.row(id.member).is_some_and(Row::is_ended));
        ended.and_then(|family| family.scope_of(id.member)).unwrap_or(id)
    }

    /// Returns the procedure that moves when a request is granted: the requester or, for an undo, the root of the part
    /// that rolls back. This is the reverse of [`asks_as`](Self::asks_as).
    #[must_use]
    pub fn waits_as(&self, id: ProcedureId) -> ProcedureId {
        let family = self.families.get(&id.family);
        family.and_then(|family| family.scope_of(id.member)).unwrap_or(id)
    }

    /// Returns every pause that covers a procedure: of everything, of its kind, its own, and those of its ancestors.
    #[must_use]
    pub fn pauses_of(&self, id: ProcedureId) -> Vec<PauseScope> {
        let family = self.families.get(&id.family);
        let Some((family, row)) = family.and_then(|family| Some((family, family.row(id.member)?))) else {
            return Vec::new();
        };
        let wide = [PauseScope::All, PauseScope::Kind(row.kind.clone())];
        let mut pauses: Vec<PauseScope> = wide.into_iter().filter(|what| self.pauses.contains(what)).collect();
        let mut at = Some(row);
        while let Some(row) = at {
            pauses.extend(row.rare().paused.then_some(PauseScope::One(row.id)));
            // A child has a higher number than its parent: a damaged tree ends here, too.
            let above = row.parent.filter(|parent| *parent < row.id.member);
            at = above.and_then(|parent| family.row(parent));
        }
        pauses
    }

    /// Returns what will move a procedure that waits for no other procedure.
    #[must_use]
    pub fn wake_source_of(&self, id: ProcedureId) -> WakeSource {
        let row = self
            .families
            .get(&id.family)
            .and_then(|family| Some((family, family.row(id.member)?)));
        let Some((family, row)) = row else {
            return WakeSource::Nothing;
        };
        if row.is_ended() {
            return WakeSource::Nothing;
        }
        if row.in_flight.is_some() {
            return WakeSource::Stage(row.stage.clone());
        }
        if let Some((member, stage)) = self.next_undo(id).filter(|_| undo_is_out(family, row)) {
            return WakeSource::Undo(member, stage);
        }
        match &row.wait {
            Some(WaitReason::Timer(at) | WaitReason::Backoff(_, at)) => WakeSource::Timer(*at),
            Some(WaitReason::Event(name, at)) => WakeSource::Event(name.clone(), *at),
            Some(
                reason @ (WaitReason::Poison
                | WaitReason::RollbackFailed
                | WaitReason::Paused
                | WaitReason::RepeatLimit
                | WaitReason::Quarantined
                | WaitReason::Decision(_)),
            ) => WakeSource::Operator(reason.clone()),
            // Its siblings open a gate, as long as they can.
            Some(reason @ WaitReason::Gate) if is_gate_shut(family, row) => WakeSource::Operator(reason.clone()),
            Some(WaitReason::Queue) if self.draining => WakeSource::Start,
            Some(
                WaitReason::Queue
                | WaitReason::Width
                | WaitReason::Permit(_)
                | WaitReason::Lock(_)
                | WaitReason::Children
                | WaitReason::Suspect
                | WaitReason::Gate,
            )
            | None => WakeSource::Nothing,
        }
    }

    /// Returns the next undo of a part of a family that rolls back: the member, and its stage.
    #[must_use]
    pub fn next_undo(&self, scope: ProcedureId) -> Option<(ProcedureId, Blob)> {
        match self.families.get(&scope.family)?.scopes.get(&scope.member)? {
            Scope::Held { stack, .. } => {
                let top = stack.last()?;
                Some((ProcedureId::new(scope.family, top.member), top.stage.clone()))
            }
            Scope::Loading => None,
        }
    }

    fn needs_of_waiting(&self, family: &Family, row: &Row) -> Vec<Need> {
        match &row.wait {
            Some(WaitReason::Children) => row.rounds.last().map_or_else(Vec::new, |round| latch(family, round)),
            Some(WaitReason::Width) => width(family, row),
            Some(WaitReason::Gate) => gate(family, row),
            Some(WaitReason::Suspect) => self.suspect(row),
            Some(
                WaitReason::Permit(_)
                | WaitReason::Lock(_)
                | WaitReason::Timer(_)
                | WaitReason::Event(..)
                | WaitReason::Backoff(..)
                | WaitReason::Queue
                | WaitReason::Poison
                | WaitReason::RollbackFailed
                | WaitReason::Paused
                | WaitReason::RepeatLimit
                | WaitReason::Quarantined
                | WaitReason::Decision(_),
            )
            | None => Vec::new(),
        }
    }

    fn suspect(&self, row: &Row) -> Vec<Need> {
        let alone = self.alone.filter(|alone| *alone != row.id);
        alone.map(|alone| one(WaitingFor::Suspect, alone)).into_iter().collect()
    }

    /// A failing part of a family waits until nothing of it runs. Each of its members waits for its rollback.
    fn needs_of_failing(&self, draft: &Draft<'_>, family: &Family, row: &Row, scope: ProcedureId) -> Vec<Need> {
        if row.wait == Some(WaitReason::Suspect) {
            return self.suspect(row);
        }
        if row.id != scope {
            return vec![one(WaitingFor::Rollback, scope)];
        }
        if row.wait.is_some() {
            return Vec::new();
        }
        let holds_up = |other: &&Row| {
            let runs =
                other.in_flight.is_some() || other.wait == Some(WaitReason::Suspect) || undo_is_out(family, other);
            // A member past its point of no return may end first, with all its descendants.
            other.id != scope && !other.is_ended() && (runs || !draft.is_stopping(other))
        };
        let members = family.within(scope.member).filter(holds_up);
        members.map(|other| one(WaitingFor::Stage, other.id)).collect()
    }
}

/// Returns the topmost live procedure that is reached from this member through live parents. Also returns whether an
/// abort of that procedure stops this member.
fn head_of(family: &Family, row: &Row) -> (ProcedureId, bool) {
    let is_open = |row: &Row| row.rare().past_no_return.is_none() && !row.is_failing();
    let mut head = row;
    let mut can_abort = is_open(row);
    while let Some(above) = head
        .parent
        .and_then(|parent| family.row(parent))
        .filter(|above| is_live(above))
    {
        head = above;
        can_abort &= is_open(head);
    }
    (head.id, can_abort)
}

const fn is_live(row: &Row) -> bool {
    row.ended.is_none()
}

fn one(why: WaitingFor, of: ProcedureId) -> Need {
    Need {
        why,
        of: vec![of],
        queued_ahead: false,
    }
}

/// Returns one need per child if each of them must succeed or end. If some of them suffice, returns one need that any
/// of them can meet.
fn latch(family: &Family, round: &Round) -> Vec<Need> {
    let members = family
        .members
        .iter()
        .skip(round.first as usize)
        .take(round.count as usize);
    let live = members.map(|row| &**row).filter(|row| is_live(row));
    let succeeded = family.latches.get(&round.first).map_or(0, |latch| latch.succeeded);
    let names = |row: &Row| round.names(row.id.member);
    joined(&WaitingFor::Latch, &round.join, succeeded, &names, live)
}

/// Returns what a child at its gate waits for: as a parent for its children. Nothing, if the gate can no longer open.
fn gate(family: &Family, row: &Row) -> Vec<Need> {
    let Some(gate) = row.closed_gate().filter(|_| !is_gate_shut(family, row)) else {
        return Vec::new();
    };
    let siblings = gate.after.iter().filter_map(|sibling| family.row(*sibling));
    let live = siblings.filter(|row| is_live(row));
    let succeeded = family.gates.latch(row.id.member).map_or(0, |latch| latch.succeeded);
    let names = |row: &Row| gate.names(row.id.member);
    joined(&WaitingFor::Gate, &gate.opens, succeeded, &names, live)
}

/// Returns `true` if a child waits at a gate that can no longer open.
fn is_gate_shut(family: &Family, row: &Row) -> bool {
    let gate = row.closed_gate().zip(family.gates.latch(row.id.member));
    gate.is_some_and(|(gate, latch)| latch.join(&gate.opens) == Join::Unmeetable)
        || family.gates.unmeetable(row.id.member).is_some()
}

fn joined<'a>(
    why: &WaitingFor,
    policy: &JoinPolicy,
    succeeded: u32,
    names: &dyn Fn(&Row) -> bool,
    live: impl Iterator<Item = &'a Row>,
) -> Vec<Need> {
    let named = |row: &&Row| !matches!(policy, JoinPolicy::Named(_)) || names(row);
    let of: Vec<ProcedureId> = live.filter(named).map(|row| row.id).collect();
    let all = match policy {
        JoinPolicy::AllSucceeded | JoinPolicy::AllFinished | JoinPolicy::Named(_) => true,
        JoinPolicy::AtLeast(least) => least.saturating_sub(succeeded) as usize >= of.len(),
        // With all of them ended, its rule is being asked.
        JoinPolicy::Custom => of.is_empty(),
    };
    if all {
        return of.into_iter().map(|id| one(why.clone(), id)).collect();
    }
    vec![Need {
        why: why.clone(),
        of,
        queued_ahead: false,
    }]
}

/// Returns what a child held back by the width waits for. The first one waits for any active sibling; each other one
/// waits for the one before it.
fn width(family: &Family, row: &Row) -> Vec<Need> {
    let Some(round) = family.round_of(row) else {
        return Vec::new();
    };
    if let Some(before) = family.held.range(round.first..row.id.member).next_back() {
        return vec![one(WaitingFor::Width, ProcedureId::new(row.id.family, *before))];
    }
    let members = family
        .members
        .iter()
        .skip(round.first as usize)
        .take(round.count as usize);
    let takes_place = |row: &Row| !matches!(LatchState::of(row), LatchState::Held | LatchState::Idle);
    let active = members.filter(|other| is_live(other) && takes_place(other));
    vec![Need {
        why: WaitingFor::Width,
        of: active.map(|other| other.id).collect(),
        queued_ahead: false,
    }]
}

fn undo_is_out(family: &Family, row: &Row) -> bool {
    matches!(family.scopes.get(&row.id.member), Some(Scope::Held { out: true, .. }))
}
