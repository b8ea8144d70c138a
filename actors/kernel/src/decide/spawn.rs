//! Children: born in their parent's commit, counted by its latch, and awaited until the join policy is met or can no
//! longer be met.

use std::collections::BTreeSet;

use super::draft::Draft;
use crate::cause::{Cause, CauseKind};
use crate::effect::{DispatchEffect, LifecycleEffect, StageTask};
use crate::event::{Birth, JoinRuling};
use crate::id::ProcedureId;
use crate::label::Labels;
use crate::latch::{Join, Latch, LatchState};
use crate::lifecycle::ProcedureState;
use crate::outstanding::call_of;
use crate::record::Record;
use crate::row::{ChildPermits, JoinPolicy, Round, Row};
use crate::wait::{WaitReason, Wake};

/// What a stage says about its list of children as a whole.
pub(super) struct ListRules {
    pub(super) join: JoinPolicy,
    pub(super) width: u32,
    pub(super) keep_places: bool,
}

impl Draft<'_> {
    /// Checks that a member may spawn these children.
    pub(super) fn check_spawn(&self, parent: ProcedureId, births: &[Birth], added: &[Birth]) -> Result<(), String> {
        let bounds = &self.kernel.rules.bounds;
        let born = births.len() + added.len();
        let children = births.iter().chain(added).filter(|birth| !birth.detached).count();
        if born > bounds.children {
            return Err(format!("{born} children are over the limit of {}", bounds.children));
        }
        let Some(family) = self.family(parent.family) else {
            return Ok(());
        };
        let depth = family.ancestry(parent.member).count();
        if children > 0 && depth >= bounds.depth {
            return Err(format!(
                "a family of depth {} is over the limit of {}",
                depth + 1,
                bounds.depth
            ));
        }
        let members = family.members.len() + children;
        if members > bounds.members {
            return Err(format!(
                "a family of {members} members is over the limit of {}",
                bounds.members
            ));
        }
        self.check_graph(births, added)?;
        let labels = family
            .row(parent.member)
            .map(|row| row.labels.clone())
            .unwrap_or_default();
        let mut all = births.iter().chain(added);
        all.try_for_each(|birth| self.check_birth(birth, &labels))
    }

    pub(super) fn spawn(&mut self, mut parent: Box<Row>, births: Vec<Birth>, list: ListRules) {
        let ListRules {
            join,
            width,
            keep_places,
        } = list;
        self.detach(&births, &parent.labels);
        let join = among_attached(join, &births);
        let children: Vec<Birth> = births.into_iter().filter(|birth| !birth.detached).collect();
        let Some(first) = self.family(parent.id.family).map(|family| family.next_member()) else {
            return;
        };
        let count = u32::try_from(children.len()).unwrap_or(u32::MAX);
        if count == 0 {
            match parent.rare_if_any().and_then(|rare| rare.output.take()) {
                Some(output) => self.done(parent, output),
                None => {
                    self.give_back_locks(&mut parent);
                    self.set_going(&mut parent, None);
                    self.put(parent);
                }
            }
            return;
        }
        let family = self.family(parent.id.family);
        parent.rounds.retain(|round| {
            family
                .and_then(|family| family.latches.get(&round.first))
                .is_some_and(|latch| !latch.is_over())
        });
        let round = Round {
            first,
            count,
            join,
            width,
            keep_places,
        };
        // A policy that requires no child is met before any child moves.
        let waits = Latch::new(&round).join(&round.join) != Join::Met;
        parent.rounds.push(round);
        if !waits {
            parent.wake = Some(Wake::Children(first, count));
            self.give_back_locks(&mut parent);
            self.set_going(&mut parent, None);
        } else if children
            .iter()
            .any(|birth| birth.permits == Some(ChildPermits::Inherited))
        {
            self.park_holding(&mut parent, ProcedureState::Waiting, WaitReason::Children);
        } else {
            self.park(&mut parent, ProcedureState::Waiting, WaitReason::Children);
        }
        let parent_id = parent.id;
        self.put(parent);
        // A value and a row for each, and a call for each child that begins at once.
        self.expect_records(2 * children.len());
        let most = if width == 0 { u32::MAX } else { width };
        self.expect_effects(children.len().min(most as usize));
        self.begin_children(parent_id, first, &children, width);
    }

    /// Lets the children of a list be born. Those behind a gate wait there; of the others the width holds some back.
    pub(super) fn begin_children(&mut self, parent: ProcedureId, first: u32, children: &[Birth], width: u32) {
        let mut begun = 0;
        for (index, birth) in (0..).zip(children) {
            let held = if birth.is_gated() {
                // It takes no place in the width before its gate opens.
                Some(WaitReason::Gate)
            } else {
                begun += 1;
                (width != 0 && begun > width).then_some(WaitReason::Width)
            };
            self.begin_child(parent, first, index, birth, held);
        }
    }

    fn begin_child(&mut self, parent: ProcedureId, first: u32, index: u32, birth: &Birth, held: Option<WaitReason>) {
        let id = ProcedureId::new(parent.family, first + index);
        self.record(Record::Payload(id, birth.payload.clone()));
        let mut row = self.born(id, birth);
        row.parent = Some(parent.member);
        if let Some(node) = &birth.graph {
            row.rare_mut().graph = Some(Box::new(node.placed(first)));
        }
        let inherited = self.row(parent).filter(|_| birth.inherits_labels);
        let inherited = inherited.map(|parent| parent.labels.clone()).unwrap_or_default();
        row.labels = if birth.labels.is_empty() && !inherited.is_in_row() {
            // It names the entry that its parent names.
            inherited.clone()
        } else {
            self.store_labels(id, inherited.with(&birth.labels))
        };
        // The index has those of its parent, unless a release before format 7 wrote them.
        let of_index: &Labels = if inherited.is_in_row() {
            &row.labels
        } else {
            &birth.labels
        };
        self.labelled(id.family, of_index);
        if held.is_some() {
            row.wait = held;
        } else if row.wait.is_none() {
            self.set_going(&mut row, Some(birth.payload.clone()));
        }
        if row.deadline.is_some() {
            self.effect(LifecycleEffect::ArmTimer);
        }
        self.put(row);
    }

    /// Handles a child that has ended, or has failed and is being rolled back. It updates the count, settles the gates
    /// behind the child, starts the next child within the width, and decides whether the parent goes on. Returns the
    /// parent if the policy can no longer be met, or if the child is vital and has failed.
    pub(super) fn child_moved(&mut self, child: ProcedureId) -> Option<ProcedureId> {
        let row = self.row(child)?;
        let parent = self.parent(row)?;
        let round = self
            .row(parent)?
            .rounds
            .iter()
            .rev()
            .find(|round| round.contains(child.member))?
            .clone();
        if self.is_stopped(parent) {
            return None;
        }
        let waits = self.row(parent).is_some_and(|row| {
            row.wait == Some(WaitReason::Children) && row.rounds.last().is_some_and(|last| last.first == round.first)
        });
        let mut join = self.join_after(child, &round);
        let fails = waits && self.row(parent).is_some_and(|row| !row.is_past_return());
        if fails && join == Join::Unmeetable {
            // The parent fails, so no child that is still held back may begin. Hence this comes before all that begins
            // one, and again once children have ended at their gates.
            return Some(parent);
        }
        let followed = self.follow_gates(child);
        if followed.has_shut {
            join = if followed.has_shut_vital {
                Join::Unmeetable
            } else {
                self.join_after(child, &round)
            };
            if fails && join == Join::Unmeetable {
                return Some(parent);
            }
        }
        self.ask_gates(followed.asked);
        self.open_gates(followed.opened, &round);
        if self.latch(child.family, &round).has_room(&round) {
            self.fill_width(child.family, &round);
        }
        if !waits {
            return None;
        }
        match join {
            Join::Met | Join::Unmeetable => self.go_on(parent, &round),
            Join::Pending => {}
            Join::Ask => self.ask(parent, &round),
        }
        None
    }

    /// Returns what the join policy says after the move of a child. A vital child that fails settles it.
    fn join_after(&mut self, child: ProcedureId, round: &Round) -> Join {
        let is_lost = |row: &Row| row.is_vital() && LatchState::of(row).is_unsuccessful();
        if self.row(child).is_some_and(is_lost) {
            return Join::Unmeetable;
        }
        self.latch(child.family, round).join(&round.join)
    }

    /// Starts the children that the width holds back, lowest number first, while it has room. Each start is a move that
    /// counts before the next one. Those that left their gates in this decision are held back by it alone.
    pub(super) fn fill_width(&mut self, family: u64, round: &Round) {
        let Some(held) = self.family(family).map(|family| &family.held) else {
            return;
        };
        let members = held.range(round.first..round.first.saturating_add(round.count));
        let mut held = members.map(|member| ProcedureId::new(family, *member)).peekable();
        while self.latch(family, round).has_room(round) {
            let opened = self.first_held(family, round);
            let Some(id) = held.peek().copied().into_iter().chain(opened).min() else {
                return;
            };
            if opened == Some(id) {
                self.no_longer_held(id);
            } else {
                held.next();
            }
            let is_held = self.row(id).is_some_and(|row| row.wait == Some(WaitReason::Width));
            if let Some(mut row) = is_held.then(|| self.take(id)).flatten() {
                self.set_going(&mut row, None);
                self.put(row);
            }
        }
    }

    /// Lets a parent go on after its children. Past its point of no return it goes on even if its policy cannot be
    /// met: it can no longer fail, and its next stage sees the children's states.
    pub(super) fn go_on(&mut self, parent: ProcedureId, round: &Round) {
        let Some(mut row) = self.take(parent) else { return };
        if let Some(output) = row.rare_if_any().and_then(|rare| rare.output.take()) {
            self.done(row, output);
            return;
        }
        row.wake = Some(Wake::Children(round.first, round.count));
        self.set_going(&mut row, None);
        self.put(row);
    }

    pub(super) fn ask(&mut self, parent: ProcedureId, round: &Round) {
        if let Some(row) = self.row(parent) {
            let call = call_of(row, StageTask::Join(round.clone()));
            self.effect(DispatchEffect::call(call));
        }
    }

    pub(super) fn join_ruled(&mut self, parent: ProcedureId, first: u32, seen: u32, ruling: JoinRuling) {
        let waiting = self.row(parent).filter(|row| row.wait == Some(WaitReason::Children));
        let round = waiting
            .and_then(|row| row.rounds.last())
            .filter(|round| round.first == first && round.join == JoinPolicy::Custom)
            .cloned();
        let Some(round) = round.filter(|_| !self.is_stopped(parent)) else {
            self.late(parent);
            return;
        };
        match ruling {
            JoinRuling::Met => self.go_on(parent, &round),
            JoinRuling::Unmeetable(text) => {
                let cause = self
                    .first_child_cause(parent, &round)
                    .unwrap_or_else(|| Cause::new(CauseKind::JoinUnmet, text, parent));
                self.fail_or_go_on(parent, &round, cause);
            }
            // A ruling that saw fewer ends is outdated: each end asks the rule again.
            JoinRuling::Pending if seen < round.count => {}
            JoinRuling::Pending => self.pending_for_good(parent, &round),
        }
    }

    /// Settles the join of a parent whose children have all reported, when the report was lost. The latch, rebuilt
    /// from the rows, has the result.
    pub(super) fn joined_late(&mut self, parent: ProcedureId, round: &Round) {
        match self.latch(parent.family, round).join(&round.join) {
            Join::Met => self.go_on(parent, round),
            Join::Unmeetable => {
                let cause = self.first_child_cause(parent, round);
                self.fail_or_go_on(parent, round, cause.unwrap_or_else(|| unmet(parent)));
            }
            Join::Pending | Join::Ask => {}
        }
    }

    fn fail_or_go_on(&mut self, parent: ProcedureId, round: &Round, cause: Cause) {
        if self.row(parent).is_some_and(Row::is_past_return) {
            self.go_on(parent, round);
        } else if let Some(row) = self.take(parent) {
            self.fail(row, cause);
        }
    }

    /// Fails the join: a rule that is pending after every child has ended can never be met.
    fn pending_for_good(&mut self, parent: ProcedureId, round: &Round) {
        let text = "every child has ended, and the join rule is still pending";
        let cause = Cause::new(CauseKind::JoinUnmet, text, parent);
        self.fail_or_go_on(parent, round, cause);
    }

    /// Returns the cause with which a parent fails because this child has moved. A child that succeeds has none: a stored
    /// policy of an engine that did not check it may ask for more successes than its list has children.
    pub(super) fn cause_by_child(&self, parent: ProcedureId, child: ProcedureId) -> Cause {
        let cause = self.row(child).and_then(|row| row.rare().cause.as_deref().cloned());
        cause.unwrap_or_else(|| unmet(parent))
    }

    fn first_child_cause(&self, parent: ProcedureId, round: &Round) -> Option<Cause> {
        let family = self.family(parent.family)?;
        family
            .members
            .iter()
            .skip(round.first as usize)
            .take(round.count as usize)
            .find_map(|row| row.rare().cause.as_deref().cloned())
    }
}

fn unmet(parent: ProcedureId) -> Cause {
    let text = "its children can no longer meet the join policy";
    Cause::new(CauseKind::JoinUnmet, text, parent)
}

/// Checks that the children of a list can meet its join policy. Children that were added one by one come after the
/// listed ones.
pub(super) fn check_join(join: &JoinPolicy, births: &[Birth], added: &[Birth]) -> Result<(), String> {
    match join {
        JoinPolicy::AllSucceeded | JoinPolicy::AllFinished | JoinPolicy::Custom => Ok(()),
        JoinPolicy::AtLeast(least) => check_least(*least, births, added),
        JoinPolicy::Named(places) => check_places(places, births, added),
    }
}

/// Checks that a list has as many attached children as are to succeed. Nobody waits for a list without any, whatever
/// its policy says.
fn check_least(least: u32, births: &[Birth], added: &[Birth]) -> Result<(), String> {
    let attached = births.iter().chain(added).filter(|birth| !birth.detached).count();
    if attached > 0 && least as usize > attached {
        return Err(format!(
            "AtLeast({least}) can never be met: the list has {attached} children that its parent waits for"
        ));
    }
    Ok(())
}

/// Checks that each place of a named set is an attached child.
fn check_places(places: &[u32], births: &[Birth], added: &[Birth]) -> Result<(), String> {
    let listed = |place: usize| births.get(place).or_else(|| added.get(place - births.len()));
    for place in places {
        match listed(*place as usize) {
            Some(birth) if birth.detached => {
                return Err(format!(
                    "place {place} of the join policy is that of a detached child, which no parent waits for"
                ));
            }
            Some(_) => {}
            None => {
                return Err(format!(
                    "place {place} of the join policy names no child: the list has {} children, counted from 0",
                    births.len() + added.len()
                ));
            }
        }
    }
    Ok(())
}

/// Renumbers the places of a named set to count attached children only, since rows know no others. Duplicates are
/// dropped.
pub(super) fn among_attached(join: JoinPolicy, births: &[Birth]) -> JoinPolicy {
    let JoinPolicy::Named(places) = join else { return join };
    let named: BTreeSet<u32> = places.into_iter().collect();
    let attached = (0_u32..).zip(births).filter(|(_, birth)| !birth.detached);
    let places = (0_u32..).zip(attached);
    let named = places.filter(|(_, (listed, _))| named.contains(listed));
    JoinPolicy::Named(named.map(|(place, _)| place).collect())
}

#[cfg(test)]
mod tests;
