//! Rollback: every executed stage of the failing part is undone, newest first, one commit per undo, once nothing of
//! that part runs any more.

use std::collections::BTreeMap;

use super::draft::Draft;
use super::stage::attempt_stands;
use crate::cause::NotUndone;
use crate::effect::DispatchEffect;
use crate::family::Scope;
use crate::history::{Ending, HistoryEntry, settle};
use crate::id::ProcedureId;
use crate::lifecycle::ProcedureState;
use crate::lock::LockNeed;
use crate::record::Record;
use crate::row::{Mark, OnFailure, Row};
use crate::wait::WaitReason;

impl Draft<'_> {
    /// Begins the rollback of the part of the family that this member fails with, if nothing of it runs.
    pub(super) fn begin_rollback_if_quiet(&mut self, member: ProcedureId) {
        let Some(scope) = self.scope_of(member) else { return };
        if self.begins_rollback(scope) || self.is_busy(scope) {
            return;
        }
        let Some(root) = self.row(scope) else { return };
        if matches!(
            root.wait,
            Some(
                WaitReason::Backoff(..)
                    | WaitReason::RollbackFailed
                    | WaitReason::Lock(_)
                    | WaitReason::Permit(_)
                    | WaitReason::Paused
            )
        ) {
            return;
        }
        self.count_poison(scope);
        if self.nothing_to_undo(scope) {
            self.finish_scope(scope, Vec::new());
            return;
        }
        if self.kernel.draining {
            return;
        }
        match self.stack_at_hand(scope) {
            Some(standing) => self.hold_stack(scope, standing),
            None => self.ask_stack(scope),
        }
    }

    /// Counts poisoned stages as executed. Such a stage may have done its work before the process died, and it must
    /// not run again. So its undo has to repair what it did.
    fn count_poison(&mut self, scope: ProcedureId) {
        let Some(family) = self.family(scope.family) else {
            return;
        };
        for id in family.within(scope.member).map(|row| row.id) {
            if self.row(id).is_none_or(|row| row.wait != Some(WaitReason::Poison)) {
                continue;
            }
            let Some(mut row) = self.take(id) else { continue };
            row.wait = None;
            self.stage_in_doubt(&mut row);
            self.put(row);
        }
    }

    fn stage_in_doubt(&mut self, row: &mut Row) {
        let number = self.next_history(row.id.family);
        // As its failed attempts, if its kind keeps only the newest entries.
        let stands = self.window(row).is_none();
        self.record(Record::History(Box::new(HistoryEntry {
            family: row.id.family,
            number,
            member: row.id.member,
            stage: row.stage.clone(),
            visit: row.visit,
            attempt: row.attempt + 1,
            ending: Ending::Panic,
            error: Some("the process died while it ran".to_owned()),
            stands,
            queued: row.ready.unwrap_or(row.since),
            admitted: row.ready.map(|_| row.since),
            begun: row.since,
            ended: self.now,
            locks: None,
            limits: row.stage_limits.to_vec(),
            note: None,
            value: self.value_left(row, None),
            submitted: None,
        })));
        match row.attempt {
            0 => row.standing += u32::from(stands),
            1.. if stands => attempt_stands(row),
            1.. => {}
        }
        row.history = number;
        self.attempts_settled(row);
    }

    pub(super) fn ask_stack(&mut self, scope: ProcedureId) {
        let loading = self
            .family(scope.family)
            .and_then(|family| family.scopes.get(&scope.member));
        if loading != Some(&Scope::Loading) {
            self.rollback_begun(scope, false);
            self.close_with(Record::StackAsked(scope));
            if let Some(top) = self.newest_standing(scope) {
                self.keep_reporter(top);
            }
            self.effect(DispatchEffect::LoadStack(scope));
        }
    }

    /// Returns the live member of the scope whose standing entry this decision has written last. That entry is on top of
    /// the stack, so its undo is the first.
    fn newest_standing(&self, scope: ProcedureId) -> Option<ProcedureId> {
        let newest = self.newest_added_entry(scope.family).filter(|entry| entry.stands)?;
        let is_within = self.family(scope.family)?.is_within(scope.member, newest.member);
        let row = self.row(ProcedureId::new(scope.family, newest.member))?;
        (is_within && !row.is_ended() && self.can_undo(row)).then_some(row.id)
    }

    pub(super) fn waits_for_operator(&self, scope: ProcedureId) -> bool {
        self.row(scope)
            .is_some_and(|row| row.wait == Some(WaitReason::RollbackFailed))
    }

    fn is_busy(&self, scope: ProcedureId) -> bool {
        let Some(family) = self.family(scope.family) else {
            return false;
        };
        if scope.is_root() && self.leaves_stages_out(family) {
            return true;
        }
        let stage_out = family
            .within(scope.member)
            // A parked suspect has lost its mark but not the doubt: it must run to its commit first, too. A member
            // past its point of no return may end first, with all its descendants.
            .any(|row| {
                self.row(row.id).is_some_and(|row| {
                    let shielded = !row.is_ended() && !self.is_stopping(row);
                    row.in_flight.is_some() || row.wait == Some(WaitReason::Suspect) || shielded
                })
            });
        let mut scopes = family.within(scope.member).filter_map(|row| {
            let state = family.scopes.get(&row.id.member)?;
            Some((row.id, state))
        });
        let undo_out = scopes.any(|(id, state)| {
            matches!(state, Scope::Held { out: true, .. })
                && !self.undo_reported(id)
                // An operator ends the scope in this very decision: its undo's report will be late.
                && self.row(id).is_some_and(|row| !row.is_ended())
        });
        let mut begun = self.begun_undos(scope.family);
        stage_out || undo_out || begun.any(|inner| family.is_within(scope.member, inner))
    }

    fn nothing_to_undo(&self, scope: ProcedureId) -> bool {
        let Some(family) = self.family(scope.family) else {
            return true;
        };
        let executed = |row: &Row| row.standing > 0 && !self.is_kept(scope, row);
        // A root that has run no stage, because its children were born with it, ends as rolled back as well. So it names
        // what was not undone.
        let names_rest = |row: &Row| self.kernel.can_undo(row) || (row.visit == 0 && row.history == 0);
        let root_names = self.row(scope).is_some_and(names_rest);
        !family
            .within(scope.member)
            .filter_map(|row| self.row(row.id))
            .any(|row| executed(row) && (root_names || self.can_undo(row)))
    }

    /// Returns `true` if the stages of a member can be undone: its kind supports it, it is not past its point of no
    /// return, and no operator has bypassed it.
    pub(super) fn can_undo(&self, row: &Row) -> bool {
        row.rare().past_no_return.is_none() && row.rare().mark != Some(Mark::Bypassed) && self.kernel.can_undo(row)
    }

    /// Returns `true` if the row, or an ended ancestor within the scope, is a success that is kept. A live descendant
    /// of a kept success fails with the scope, and is undone like the rest.
    pub(super) fn is_kept(&self, scope: ProcedureId, row: &Row) -> bool {
        let mut at = Some(row);
        while let Some(row) = at.filter(|row| row.id != scope && row.is_ended()) {
            // A success that cannot be undone is not covered here: it stays, and is reported as not undone.
            if row.state == ProcedureState::Success
                && row.on_failure == OnFailure::Keep
                && row.rare().past_no_return.is_none()
            {
                return true;
            }
            at = self.parent(row).and_then(|parent| self.row(parent));
        }
        false
    }

    pub(super) fn stack_loaded(&mut self, scope: ProcedureId, entries: Vec<HistoryEntry>) {
        let asked = self
            .family(scope.family)
            .and_then(|family| family.scopes.get(&scope.member))
            == Some(&Scope::Loading);
        if !asked || self.kernel.draining || self.scope_of(scope) != Some(scope) {
            self.late(scope);
            return;
        }
        let left_over = self.attempts_left_over(scope, &entries);
        let standing = self.standing_within(scope, entries);
        if self.is_complete(scope, &standing) {
            for number in left_over {
                self.record(Record::HistoryDropped(scope.family, number));
            }
            self.hold_stack(scope, standing);
        } else {
            self.park_broken(scope);
        }
    }

    /// Returns the older attempts of members that keep only their stack now, and kept all entries when the attempts were
    /// made. The undo of such a visit drops its newest attempt, and an older one would stand again behind it.
    fn attempts_left_over(&self, scope: ProcedureId, entries: &[HistoryEntry]) -> Vec<u32> {
        let of_stages = || entries.iter().filter(|entry| entry.ending.is_stage());
        let Some(family) = self
            .family(scope.family)
            .filter(|_| of_stages().any(|entry| entry.attempt > 1))
        else {
            return Vec::new();
        };
        let mut newest = BTreeMap::new();
        for entry in of_stages() {
            let number: &mut u32 = newest.entry((entry.member, entry.visit)).or_default();
            *number = entry.number.max(*number);
        }
        let is_left_over = |entry: &&HistoryEntry| {
            let row = family.row(entry.member).filter(|row| self.keeps_only_stack(row));
            newest.get(&(entry.member, entry.visit)) != Some(&entry.number)
                && family.is_within(scope.member, entry.member)
                // The undo of the newest visit drops these.
                && row.is_some_and(|row| !row.rare().attempts_kept.contains(&entry.number))
        };
        of_stages().filter(is_left_over).map(|entry| entry.number).collect()
    }

    /// Returns the standing entries of the scope, oldest first, if this decision has written all of them and their undos
    /// can begin. The failure of a first stage is the usual case: the store has nothing to add to what is known here.
    fn stack_at_hand(&self, scope: ProcedureId) -> Option<Vec<HistoryEntry>> {
        let added = self.entries_added(scope.family);
        let standing = (added > 0).then(|| self.standing_count(scope))?;
        if standing > added {
            return None;
        }
        let entries = self.standing_within(scope, self.added_entries(scope.family));
        let top = entries.iter().rev().find(|entry| self.is_undoable(scope, entry));
        // An undo that has to wait asks the limiter, in a decision of its own: this one still releases what the stage held.
        let can_begin = top.is_none_or(|top| self.undo_can_begin(top));
        (entries.len() == standing && can_begin).then_some(entries)
    }

    fn is_undoable(&self, scope: ProcedureId, entry: &HistoryEntry) -> bool {
        self.row(ProcedureId::new(scope.family, entry.member))
            .is_some_and(|row| self.can_undo(row))
    }

    /// Keeps the stack of a scope in memory and starts the undo of its top. The scope ends at once if none of its standing
    /// entries can be undone.
    fn hold_stack(&mut self, scope: ProcedureId, standing: Vec<HistoryEntry>) {
        let (stack, left): (Vec<_>, Vec<_>) = standing.into_iter().partition(|entry| self.is_undoable(scope, entry));
        let not_undone: Vec<NotUndone> = left
            .into_iter()
            .map(|entry| NotUndone {
                member: entry.member,
                stage: entry.stage,
            })
            .collect();
        match stack.last() {
            None => self.finish_scope(scope, not_undone),
            // The stack was read again after a restart, so that an operator can retry or skip its top.
            Some(_) if self.waits_for_operator(scope) => {
                self.close_with(Record::StackHeld(scope, stack, not_undone));
                self.close_with(Record::UndoOut(scope, false));
            }
            Some(top) => {
                self.release_idle_stage_permits(scope, top.member);
                let out = self.undo(scope, top);
                self.rollback_begun(scope, out);
                self.close_with(Record::StackHeld(scope, stack, not_undone));
                self.close_with(Record::UndoOut(scope, out));
            }
        }
    }

    /// Releases the permits of stages and undos that members of the scope hold without a call: of a stage that yielded to
    /// the failure or that a drain held back, of an undo that a larger rollback or a restart cut off. They would keep them
    /// to the end of the rollback, and an undo before may need one.
    fn release_idle_stage_permits(&mut self, scope: ProcedureId, next: u32) {
        let Some(family) = self.family(scope.family) else {
            return;
        };
        let holds = |row: &&Row| row.stage_permits && row.id.member != next;
        let holders: Vec<ProcedureId> = family.within(scope.member).filter(holds).map(|row| row.id).collect();
        for id in holders {
            if let Some(mut row) = self.take(id) {
                self.give_back_stage_permits(&mut row);
                self.put(row);
            }
        }
    }

    /// Returns the standing entries of the scope, oldest first: of each visit the newest attempt.
    pub(super) fn standing_within(&self, scope: ProcedureId, mut entries: Vec<HistoryEntry>) -> Vec<HistoryEntry> {
        let Some(family) = self.family(scope.family) else {
            return Vec::new();
        };
        let newest = settle(&mut entries);
        entries.sort_by_key(|entry| entry.number);
        let is_newest = |entry: &HistoryEntry| {
            let visit = (entry.family, entry.member, entry.visit);
            newest.get(&visit) == Some(&entry.number)
        };
        pass_locks_on(entries.iter_mut().filter(|entry| is_newest(entry)));
        entries.retain(|entry| {
            entry.stands
                && family.is_within(scope.member, entry.member)
                && self
                    .row(ProcedureId::new(scope.family, entry.member))
                    .is_some_and(|row| !self.is_kept(scope, row))
        });
        entries
    }

    /// Returns how many entries of the scope stand on the rollback stack, as its rows count them.
    fn standing_count(&self, scope: ProcedureId) -> usize {
        let Some(family) = self.family(scope.family) else {
            return 0;
        };
        family
            .within(scope.member)
            .filter_map(|row| self.row(row.id))
            .filter(|row| row.standing > 0 && !self.is_kept(scope, row))
            .map(|row| row.standing as usize)
            .sum()
    }

    /// Returns `false` if the history has a hole: fewer entries stand than the rows count, or more, since that of an undo is
    /// missing, or an entry is newer than any that a row names.
    pub(super) fn is_complete(&self, scope: ProcedureId, within: &[HistoryEntry]) -> bool {
        let Some(family) = self.family(scope.family) else {
            return false;
        };
        self.standing_count(scope) == within.len() && within.iter().all(|entry| entry.number <= family.history)
    }

    fn park_broken(&mut self, scope: ProcedureId) {
        let now = self.now;
        self.change(scope, |row| {
            row.wait = Some(WaitReason::Quarantined);
            row.since = now;
        });
        // One of them may have kept its actor for the undo that does not come.
        let family = self.family(scope.family);
        let members: Vec<ProcedureId> = family
            .into_iter()
            .flat_map(|family| family.within(scope.member))
            .filter(|row| !row.is_ended())
            .map(|row| row.id)
            .collect();
        for id in members {
            self.effect(DispatchEffect::Stop(id));
        }
    }

    pub(super) fn held(&self, scope: ProcedureId) -> Option<(&[HistoryEntry], &[NotUndone], bool)> {
        match self.family(scope.family)?.scopes.get(&scope.member)? {
            Scope::Held { stack, not_undone, out } => Some((stack, not_undone, *out)),
            Scope::Loading => None,
        }
    }

    /// Ends every member of this part of the family. Nothing is left to undo.
    pub(super) fn finish_scope(&mut self, scope: ProcedureId, not_undone: Vec<NotUndone>) {
        let Some(family) = self.family(scope.family) else {
            return;
        };
        // Who is kept is decided before anybody ends: below a kept success, a live ancestor is why a member is not.
        let members = family.within(scope.member).filter_map(|row| self.row(row.id));
        let undone: Vec<ProcedureId> = members
            .filter(|row| !self.is_kept(scope, row))
            .map(|row| row.id)
            .collect();
        for id in undone {
            self.end_member(scope, id, &not_undone);
        }
        if let Some(parent) = self.child_moved(scope) {
            let cause = self.cause_by_child(parent, scope);
            if let Some(row) = self.take(parent) {
                self.fail(row, cause);
            }
        }
        self.end_family_if_over(scope.family);
    }

    fn end_member(&mut self, scope: ProcedureId, id: ProcedureId, not_undone: &[NotUndone]) {
        let Some(row) = self.row(id) else { return };
        let ended_before = row.is_ended();
        let compensated = row.state == ProcedureState::Success && row.on_failure == OnFailure::Compensate;
        if ended_before && !compensated {
            return;
        }
        let can_undo = self.can_undo(row);
        if compensated && !can_undo {
            return;
        }
        let Some(mut row) = self.take(id) else { return };
        let executed = row.visit > 0 || row.history > 0;
        row.state = if can_undo || !executed {
            ProcedureState::RolledBack
        } else {
            ProcedureState::Failed
        };
        row.since = self.now;
        row.wait = None;
        row.wake = None;
        if id == scope && !(not_undone.is_empty() && row.rare().not_undone.is_empty()) {
            row.rare_mut().not_undone = not_undone.to_vec().into();
        }
        if ended_before {
            row.ended = Some(self.now);
            self.effect(DispatchEffect::Stop(id));
            self.release(&mut row);
        } else {
            self.ended(&mut row, None);
        }
        self.put(row);
    }

    pub(super) fn undo_reported(&self, scope: ProcedureId) -> bool {
        self.reported_scopes().contains(&scope)
    }
}

/// Passes the locks of a stage that does not stand on to the stage before it. An entry without locks ran under those of
/// the stage that came next; if that one is passed over, nothing else says which they were. The entries are the newest
/// attempts, oldest first.
fn pass_locks_on<'a>(entries: impl DoubleEndedIterator<Item = &'a mut HistoryEntry>) {
    let mut passed: BTreeMap<u32, Vec<LockNeed>> = BTreeMap::new();
    for entry in entries.rev() {
        if entry.stands {
            let locks = passed.remove(&entry.member);
            entry.locks = entry.locks.take().or(locks);
        } else if let Some(locks) = &entry.locks {
            passed.insert(entry.member, locks.clone());
        }
    }
}

impl Ending {
    /// Returns `true` if it ends a stage rather than an undo.
    #[must_use]
    pub const fn is_stage(self) -> bool {
        match self {
            Self::Next
            | Self::Done
            | Self::Spawn
            | Self::Sleep
            | Self::Wait
            | Self::Asked
            | Self::Retry
            | Self::Fail
            | Self::Panic => true,
            Self::Undone | Self::UndoFailed | Self::UndoSkipped => false,
        }
    }

    /// Returns `true` if it takes the stage of its visit off the rollback stack.
    #[must_use]
    pub const fn takes_off(self) -> bool {
        matches!(self, Self::Undone | Self::UndoSkipped)
    }
}

#[cfg(test)]
mod tests;
