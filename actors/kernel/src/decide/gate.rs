//! Gates: a child that begins only after some of its siblings. Its gate is looked at in each commit in which one of
//! them moves, and opens once; or it can no longer open, and the child ends without a call.
//!
//! A gate with a rule of its own is decided by user code, which is asked after the commit of each end before it.
//!
//! Dependants are followed with a list, never by recursion, because a chain may be as long as a list.

use std::collections::BTreeSet;

use super::draft::Draft;
use crate::cause::{Cause, CauseKind};
use crate::effect::{DispatchEffect, NotNow, Refusal, StageTask};
use crate::event::{Birth, JoinRuling};
use crate::family::Family;
use crate::id::ProcedureId;
use crate::latch::{Join, Latch, LatchState};
use crate::lifecycle::ProcedureState;
use crate::outstanding::call_of;
use crate::record::Record;
use crate::row::{CHILD_NAME_MAX, Gate, GraphNode, JoinPolicy, Round, Row};
use crate::wait::WaitReason;

/// What the gates behind a member that has moved have come to.
#[derive(Default)]
pub(super) struct Followed {
    /// Members whose gates open. They may begin once it is known that their parent does not fail.
    pub(super) opened: Vec<ProcedureId>,
    /// Members whose own rules must be asked, because a sibling before them has ended.
    pub(super) asked: Vec<ProcedureId>,
    /// `true` if a member has ended at its gate.
    pub(super) has_shut: bool,
    /// `true` if one of these is vital.
    pub(super) has_shut_vital: bool,
}

impl Draft<'_> {
    /// Checks the names and gates of a list of children.
    pub(super) fn check_graph(&self, births: &[Birth], added: &[Birth]) -> Result<(), String> {
        let attached = births.iter().chain(added).filter(|birth| !birth.detached);
        let mut edges = 0;
        for (place, birth) in attached.enumerate() {
            let Some(node) = &birth.graph else { continue };
            if let Some(characters) = node.name_over_limit() {
                return Err(format!(
                    "a name of {characters} characters is over the limit of {CHILD_NAME_MAX}"
                ));
            }
            if let Some(gate) = &node.gate {
                self.check_gate(place, gate)?;
                edges += gate.after.len();
            }
        }
        let most = self.kernel.rules.bounds.edges;
        if edges > most {
            return Err(format!(
                "the gates of the list name {edges} children, over the limit of {most}; let one child stand between many"
            ));
        }
        births
            .iter()
            .chain(added)
            .filter(|birth| birth.detached)
            .find(|birth| birth.graph.is_some())
            .map_or(Ok(()), |birth| {
                Err(format!(
                    "a detached child of kind \"{}\" cannot have a name or a gate",
                    birth.kind
                ))
            })
    }

    fn check_gate(&self, place: usize, gate: &Gate) -> Result<(), String> {
        let most = self.kernel.rules.bounds.gate;
        if gate.after.len() > most {
            return Err(format!(
                "child {place} waits for {} children, over the limit of {most}",
                gate.after.len()
            ));
        }
        if gate.after.is_empty() {
            return Err(format!("child {place} has a gate and waits for no child"));
        }
        let mut named = BTreeSet::new();
        for other in &gate.after {
            if *other as usize == place {
                return Err(format!("child {place} waits for itself"));
            }
            if *other as usize > place {
                return Err(format!(
                    "child {place} waits for child {other}, which is not listed before it"
                ));
            }
            if !named.insert(other) {
                return Err(format!("child {place} waits for child {other} twice"));
            }
        }
        gate.check_policy().map_err(|why| format!("child {place}: {why}"))
    }

    /// Settles the gates that wait for a member that has moved: ends the children whose gates can no longer open, and
    /// their dependants in turn, and returns those whose gates open, or whose rules must be asked.
    ///
    /// Gates are looked at in the order of their numbers. A gate waits for lower numbers alone, so each is looked at
    /// once, when everything before it is settled.
    pub(super) fn follow_gates(&mut self, moved: ProcedureId) -> Followed {
        let mut followed = Followed::default();
        let Some(family) = self.family(moved.family) else {
            return followed;
        };
        if family.gates.is_empty() {
            return followed;
        }
        let mut next: BTreeSet<u32> = family.gates.dependants(moved.member).collect();
        while let Some(member) = next.pop_first() {
            let id = ProcedureId::new(moved.family, member);
            match self.gate_of(family, id) {
                Some((Join::Met, _)) => followed.opened.push(id),
                Some((Join::Unmeetable, false)) => {
                    self.end_at_gate(id);
                    followed.has_shut = true;
                    followed.has_shut_vital |= self.row(id).is_some_and(Row::is_vital);
                    next.extend(family.gates.dependants(member));
                }
                Some((Join::Ask, _)) if self.has_more_ended(family, id) => followed.asked.push(id),
                Some((Join::Unmeetable, true) | (Join::Pending | Join::Ask, _)) | None => {}
            }
        }
        followed
    }

    /// Returns `true` if a sibling before a gate ends in this decision.
    fn has_more_ended(&self, family: &Family, id: ProcedureId) -> bool {
        let before = family.gates.latch(id.member).map(|latch| latch.ended);
        self.latch_at_gate(family, id).map(|latch| latch.ended) > before
    }

    /// Returns what the gate of a member says, with every move of this decision, and whether the member waits for an
    /// operator if the gate can no longer open. `None` if the member does not wait at a gate.
    fn gate_of(&self, family: &Family, id: ProcedureId) -> Option<(Join, bool)> {
        let gate = self.row(id)?.closed_gate()?;
        Some((self.latch_at_gate(family, id)?.join(&gate.opens), gate.or_wait))
    }

    /// Returns the counts of the siblings before a member that waits at its gate, with every move of this decision.
    fn latch_at_gate(&self, family: &Family, id: ProcedureId) -> Option<Latch> {
        let gate = self.row(id)?.closed_gate()?;
        let mut latch = family.gates.latch(id.member)?.clone();
        let mut count = |member: u32, row: &Row| {
            let before = self.row_before(row.id).map(LatchState::of);
            let after = LatchState::of(row);
            if before != Some(after) {
                latch.count_before(gate, member, before, after);
            }
        };
        // Many siblings before the gate and few moves, or the other way round: the shorter list is visited.
        let most = gate.after.len();
        let changed = self.changed_rows(id.family, id.member).take(most).count();
        if changed < most {
            for row in self.changed_rows(id.family, id.member) {
                if family.gates.waits_for(id.member, row.id.member) {
                    count(row.id.member, row);
                }
            }
        } else {
            for sibling in &gate.after {
                if let Some(row) = self.row_after(ProcedureId::new(id.family, *sibling)) {
                    count(*sibling, row);
                }
            }
        }
        Some(latch)
    }

    /// Ends a child whose gate can no longer open by what has ended before it.
    fn end_at_gate(&mut self, id: ProcedureId) {
        if let Some(cause) = self.row(id).map(|row| self.cause_at_gate(row)) {
            self.end_uncalled(id, cause);
        }
    }

    /// Ends a child at its gate. It was never called, so there is nothing to undo.
    fn end_uncalled(&mut self, id: ProcedureId, cause: Cause) {
        let Some(mut row) = self.take(id) else { return };
        row.state = ProcedureState::RolledBack;
        row.rare_mut().cause = Some(cause.into());
        row.wait = None;
        row.since = self.now;
        self.ended(&mut row, None);
        self.put(row);
    }

    /// Returns the cause of a child that ends at its gate: that of the first sibling to blame.
    fn cause_at_gate(&self, row: &Row) -> Cause {
        let Some(blamed) = self.blamed_at_gate(row) else {
            return Cause::new(CauseKind::GateShut, "its gate can no longer open", row.id);
        };
        match &blamed.rare().cause {
            // The first failure is what people look for, however many gates lie between.
            Some(cause) if cause.kind == CauseKind::GateShut => (**cause).clone(),
            Some(cause) => {
                let text = format!("its gate can no longer open: {}", cause.text);
                Cause::new(CauseKind::GateShut, text, cause.origin)
            }
            None => {
                let text = format!("its gate can no longer open: {} did not succeed", blamed.id);
                Cause::new(CauseKind::GateShut, text, blamed.id)
            }
        }
    }

    /// Returns the first sibling before a gate that has failed and that its policy counts.
    fn blamed_at_gate(&self, row: &Row) -> Option<&Row> {
        let gate = row.gate()?;
        let counts = |sibling: &&u32| !matches!(gate.opens, JoinPolicy::Named(_)) || gate.names(**sibling);
        let counted = gate.after.iter().filter(counts);
        let mut siblings = counted.filter_map(|sibling| self.row(ProcedureId::new(row.id.family, *sibling)));
        siblings.find(|sibling| LatchState::of(sibling).is_unsuccessful())
    }

    /// Asks the own rules of children at their gates.
    pub(super) fn ask_gates(&mut self, asked: Vec<ProcedureId>) {
        for id in asked {
            if let Some(call) = self.row(id).map(|row| call_of(row, StageTask::Gate)) {
                self.effect(DispatchEffect::call(call));
            }
        }
    }

    /// Follows what the own rule of a gate says, which saw this many siblings ended.
    pub(super) fn gate_ruled(&mut self, id: ProcedureId, seen: u32, ruling: JoinRuling) {
        let waits = self.family(id.family).and_then(|family| {
            let gate = family.row(id.member)?.closed_gate()?;
            let latch = family.gates.latch(id.member)?;
            (gate.opens == JoinPolicy::Custom).then_some((gate.or_wait, latch))
        });
        let Some((or_wait, latch)) = waits.filter(|_| !self.is_stopped(id)) else {
            self.late(id);
            return;
        };
        if seen < latch.ended {
            // The rule did not see the newest end, which has it asked again.
            return;
        }
        let why = match ruling {
            JoinRuling::Met => return self.open_gate(id),
            JoinRuling::Pending if !latch.is_over() => return,
            JoinRuling::Pending => "all children before it have ended, and its own rule is still pending".to_owned(),
            JoinRuling::Unmeetable(why) => why,
        };
        if !or_wait {
            let cause = self.cause_by_rule(id, &why);
            self.shut_gate(id, cause);
        } else if latch.is_over() {
            // Before that, the next end may make the rule say otherwise.
            let text = Cause::new(CauseKind::GateShut, why, id).text;
            self.record(Record::GateUnmeetable(id, text));
        }
    }

    /// Returns the cause of a child whose own rule says that its gate can no longer open, for this reason. The failure
    /// began in the first sibling that has failed. If none has, it began in the child itself.
    fn cause_by_rule(&self, id: ProcedureId, why: &str) -> Cause {
        let blamed = self.row(id).and_then(|row| self.blamed_at_gate(row));
        let origin = blamed.map_or(id, |row| row.rare().cause.as_ref().map_or(row.id, |cause| cause.origin));
        Cause::new(
            CauseKind::GateShut,
            format!("its gate can no longer open: {why}"),
            origin,
        )
    }

    /// Ends a child at its gate, and follows its end.
    fn shut_gate(&mut self, id: ProcedureId, cause: Cause) {
        self.end_uncalled(id, cause);
        if let Some(parent) = self.child_moved(id) {
            self.fail_upwards(parent, id);
        }
        self.begin_rollback_if_quiet(id);
        self.end_family_if_over(id.family);
    }

    /// Lets children whose gates have opened begin. Where a width limits the list they join those that it holds back.
    pub(super) fn open_gates(&mut self, opened: Vec<ProcedureId>, round: &Round) {
        for id in opened {
            let Some(mut row) = self.take(id) else { continue };
            if round.width == 0 {
                self.set_going(&mut row, None);
            } else {
                row.wait = Some(WaitReason::Width);
                row.since = self.now;
                self.held_by_width(id);
            }
            self.put(row);
        }
    }

    /// Opens the gate of a child for an operator, whatever stands before it.
    pub(super) fn open_by_request(&mut self, id: ProcedureId) -> Result<(), Refusal> {
        if self.is_stopped(id) {
            let text = format!("the family of {id} fails; it does not begin any more");
            return Err(Refusal::NotNow(NotNow::Failing, text));
        }
        self.open_gate(id);
        Ok(())
    }

    fn open_gate(&mut self, id: ProcedureId) {
        let round = self.row(id).and_then(|row| self.family(id.family)?.round_of(row));
        if let Some(round) = round.cloned() {
            self.open_gates(vec![id], &round);
            self.fill_width(id.family, &round);
        }
    }

    /// Returns `true` if a member waits at a gate that is open, or that should have ended it: a move was not followed.
    pub(super) fn is_gate_overdue(&self, family: &Family, id: ProcedureId) -> bool {
        matches!(
            self.gate_of(family, id),
            Some((Join::Met, _) | (Join::Unmeetable, false))
        )
    }

    /// Follows a move that was lost.
    pub(super) fn settle_gate(&mut self, id: ProcedureId) {
        let Some(family) = self.family(id.family) else { return };
        match self.gate_of(family, id) {
            Some((Join::Met, _)) => self.open_gate(id),
            Some((Join::Unmeetable, false)) => {
                if let Some(cause) = self.row(id).map(|row| self.cause_at_gate(row)) {
                    self.shut_gate(id, cause);
                }
            }
            Some((Join::Unmeetable, true) | (Join::Pending | Join::Ask, _)) | None => {}
        }
    }
}

impl GraphNode {
    /// Returns the node as a row has it: places of the list become member numbers.
    pub(super) fn placed(&self, first: u32) -> Self {
        let mut node = self.clone();
        if let Some(gate) = &mut node.gate {
            for place in &mut gate.after {
                *place = place.saturating_add(first);
            }
        }
        node
    }
}
