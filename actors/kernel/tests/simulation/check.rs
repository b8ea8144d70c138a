//! What must hold of every decision, worked out anew from the rows and the history.

use std::collections::{BTreeMap, BTreeSet};

use procession_kernel::{
    CauseKind, DispatchEffect, Effect, Family, Kernel, Kind, Mark, OnFailure, ProcedureId, ProcedureState, Record, Row,
    Rules, Scope, StageCall, StageTask, WaitReason, check_rows,
};

use super::again;
use super::disk::Disk;

/// Looks at a decision before it is applied.
pub(crate) fn before(kernel: &Kernel, records: &[Record]) -> Result<(), String> {
    for record in records {
        let Record::Row(row) = record else { continue };
        let Some(old) = kernel.row(row.id) else { continue };
        if !old.state.may_become(row.state) {
            return Err(format!("{} goes from {} to {}", row.id, old.state, row.state));
        }
        if old.is_ended() && (row.in_flight.is_some() || row.ended.is_none()) {
            return Err(format!("{} had ended, and goes on", row.id));
        }
        let bypassed = row.rare().mark == Some(Mark::Bypassed);
        if old.rare().cause.is_some() && old.rare().cause != row.rare().cause && !bypassed {
            return Err(format!(
                "{} changes its cause from {:?} to {:?}",
                row.id,
                old.rare().cause,
                row.rare().cause
            ));
        }
        untouched(old, row)?;
    }
    Ok(())
}

/// What an operator has ended, and what is past its point of no return, is never undone.
fn untouched(old: &Row, row: &Row) -> Result<(), String> {
    let bypassed = old.is_ended() && old.rare().mark == Some(Mark::Bypassed);
    if bypassed && (row.state != old.state || row.standing != old.standing) {
        return Err(format!("{} was bypassed, and is touched again: {row:?}", row.id));
    }
    // Failed attempts no longer stand once the visit has ended with nothing to undo.
    let given_up = u32::from(old.attempt > 0 && row.visit > old.visit);
    let undone = row.standing + given_up < old.standing;
    if old.rare().past_no_return.is_some() && (row.rare().past_no_return != old.rare().past_no_return || undone) {
        return Err(format!("{} is past its point of no return, and is undone", row.id));
    }
    Ok(())
}

/// Tells whether a failure at or above a procedure stops it: one past its point
/// of no return, and all below it, are let end first.
pub(crate) fn is_stopped(kernel: &Kernel, row: &Row) -> bool {
    let family = kernel.families().get(&row.id.family);
    let ancestry = family.into_iter().flat_map(|family| family.ancestry(row.id.member));
    for row in ancestry {
        if row.is_failing() {
            return true;
        }
        if row.is_past_return() {
            return false;
        }
    }
    false
}

/// So many commits after one another look only at the families that they change.
const WHOLE: u64 = 32;

/// Looks at the state after a decision, and at the disk as it will be.
pub(crate) fn after(kernel: &Kernel, ahead: &Disk, records: &[Record]) -> Result<(), String> {
    kernel.validate()?;
    stopped_by_a_scope(kernel)?;
    let changed: BTreeSet<u64> = records.iter().filter_map(family_of).collect();
    readable(kernel, &changed)?;
    if kernel.seq().0.is_multiple_of(WHOLE) {
        ahead.compare(kernel)?;
    } else {
        ahead.compare_some(kernel, &changed)?;
    }
    for record in records {
        if let Record::FamilyEnded(family, _) = record {
            ended(kernel.rules(), ahead, *family)?;
            listed(ahead, *family)?;
            again::first_value_is_kept(ahead, *family)?;
        }
    }
    Ok(())
}

/// A family whose root failed is listed, unless somebody aborted it or ended it without its code.
fn listed(ahead: &Disk, family: u64) -> Result<(), String> {
    let Some(root) = ahead.rows.get(&ProcedureId::root(family)) else {
        return Err(format!("family {family} ends without a root"));
    };
    let is_meant = root.rare().mark.is_some()
        || root
            .rare()
            .cause
            .as_ref()
            .is_none_or(|cause| cause.kind == CauseKind::Aborted);
    let is_failure = root.state != ProcedureState::Success && !is_meant;
    match is_failure == ahead.failures.contains_key(&family) {
        true => Ok(()),
        false => Err(format!(
            "family {family} is {}, and its failure is listed wrongly",
            root.state
        )),
    }
}

fn family_of(record: &Record) -> Option<u64> {
    if let Record::Row(row) | Record::FinishedRow(row) = record {
        Some(row.id.family)
    } else if let Record::Signal(id, ..) | Record::SignalDropped(id, ..) = record {
        Some(id.family)
    } else {
        None
    }
}

/// What a start refuses of rows that it reads, no engine leaves behind.
fn readable(kernel: &Kernel, families: &BTreeSet<u64>) -> Result<(), String> {
    let changed = families.iter().filter_map(|number| kernel.families().get(number));
    for family in changed {
        let rows: Vec<&Row> = family.members.iter().map(|row| &**row).collect();
        check_rows(&rows)?;
    }
    Ok(())
}

/// Who is stopped rolls back with a scope, and nobody else does: so an undo of one that
/// has not ended, also of one that did not fail itself, is told from a stage by either,
/// and asks for no permit.
fn stopped_by_a_scope(kernel: &Kernel) -> Result<(), String> {
    for family in kernel.families().values() {
        for row in &family.members {
            let scope = family.scope_of(row.id.member);
            if scope.is_some() != kernel.is_stopped(row.id) {
                return Err(format!("{} rolls back with {scope:?}, and is stopped or not", row.id));
            }
        }
    }
    Ok(())
}

/// Returns those whose stage a decision sets going, save suspects that were held
/// back: they are in doubt, and run to their commit also while their family fails.
pub(crate) fn started(kernel: &Kernel, records: &[Record]) -> Vec<ProcedureId> {
    let run = |row: &Row| row.in_flight.map(|in_flight| in_flight.run);
    let rows = records
        .iter()
        .filter_map(|record| if let Record::Row(row) = record { Some(row) } else { None });
    let suspect = |old: &Row| old.wait == Some(WaitReason::Suspect);
    let anew = |row: &Row| {
        kernel
            .row(row.id)
            .is_none_or(|old| run(old) != run(row) && !suspect(old))
    };
    let started = rows.filter(|row| run(row).is_some() && anew(row));
    let held = |id| kernel.row(id).is_some_and(|old| old.wait == Some(WaitReason::Suspect));
    started.map(|row| row.id).filter(|id| !held(*id)).collect()
}

/// No stage begins where something above it fails.
pub(crate) fn may_start(kernel: &Kernel, started: &[ProcedureId]) -> Result<(), String> {
    let stopped = started
        .iter()
        .find(|id| kernel.row(**id).is_some_and(|row| is_stopped(kernel, row)));
    match stopped {
        Some(id) => Err(format!("a stage of {id} is set going, and it was stopped")),
        None => Ok(()),
    }
}

fn can_undo(rules: &Rules, row: &Row) -> bool {
    let kind = |kind: &Kind| rules.kinds.get(kind).is_none_or(|rules| rules.rollback);
    kind(&row.kind) && row.rare().past_no_return.is_none() && row.rare().mark != Some(Mark::Bypassed)
}

/// A family has ended: what was to be undone is, and what was to be kept stands.
fn ended(rules: &Rules, disk: &Disk, number: u64) -> Result<(), String> {
    for row in disk.members(number) {
        if !row.is_over() || !row.held().is_empty() {
            return Err(format!("the family of {} has ended, and it has not", row.id));
        }
        let standing = newest(disk, number)
            .filter(|(_, member)| *member == row.id.member)
            .count();
        if standing != row.standing as usize {
            return Err(format!(
                "{standing} stages of {} stand, and {} are counted",
                row.id, row.standing
            ));
        }
        match row.state {
            ProcedureState::RolledBack if standing > 0 && can_undo(rules, row) => {
                return Err(format!("{} is rolled back, and {standing} of its stages stand", row.id));
            }
            ProcedureState::RolledBack | ProcedureState::Success => {}
            ProcedureState::Failed if can_undo(rules, row) => {
                return Err(format!("{} ends Failed, though its kind can be undone", row.id));
            }
            ProcedureState::Failed if row.rare().mark == Some(Mark::Bypassed) => {}
            ProcedureState::Failed if standing > 0 && !is_listed(disk, row) => {
                return Err(format!("{} cannot be undone, and nobody lists it", row.id));
            }
            ProcedureState::Failed => {}
            ProcedureState::Initializing
            | ProcedureState::Runnable
            | ProcedureState::Waiting
            | ProcedureState::WaitingTimeout => return Err(format!("{} ends {}", row.id, row.state)),
        }
    }
    Ok(())
}

/// Where a kind without rollback fails and nothing below it can be undone, it
/// lists nothing: its state says it.
fn is_listed(disk: &Disk, row: &Row) -> bool {
    let names = |other: &Row| other.rare().not_undone.iter().any(|left| left.member == row.id.member);
    let of_scope = |other: &Row| other.rare().cause.is_some() && other.state == ProcedureState::Failed;
    disk.members(row.id.family).any(|other| names(other) || of_scope(other))
}

/// Returns what stands of a family: of each visit the newest attempt, by number.
fn newest(disk: &Disk, family: u64) -> impl Iterator<Item = (u32, u32)> {
    let mut newest: BTreeMap<(u32, u32), (u32, bool)> = BTreeMap::new();
    for entry in disk.of_family(family) {
        use procession_kernel::Ending as E;
        match entry.ending {
            E::Next | E::Done | E::Spawn | E::Sleep | E::Wait | E::Asked | E::Retry | E::Fail | E::Panic => {
                newest.insert((entry.member, entry.visit), (entry.number, entry.stands));
            }
            E::Undone | E::UndoSkipped => {
                newest.remove(&(entry.member, entry.visit));
            }
            E::UndoFailed => {}
            _ => {}
        }
    }
    newest
        .into_iter()
        .filter(|(_, (_, stands))| *stands)
        .map(|((member, _), (number, _))| (number, member))
}

/// A member keeps what it did if it succeeded and is kept, or lies below one
/// such; but whoever has not ended keeps nothing.
fn is_kept(family: &Family, scope: u32, member: u32) -> bool {
    for row in family.ancestry(member).take_while(|row| row.id.member != scope) {
        if !row.is_ended() {
            return false;
        }
        if row.state == ProcedureState::Success
            && row.on_failure == OnFailure::Keep
            && row.rare().past_no_return.is_none()
        {
            return true;
        }
    }
    false
}

/// An undo is the newest of all that is left to undo, and nothing of its scope runs.
pub(crate) fn undo(
    kernel: &Kernel,
    disk: &Disk,
    undo: &StageCall,
    (scope, number): (ProcedureId, u32),
) -> Result<(), String> {
    let family = kernel
        .families()
        .get(&scope.family)
        .ok_or_else(|| format!("{scope} is undone, and has ended"))?;
    let left = newest(disk, scope.family).filter(|(_, member)| {
        let row = family.row(*member);
        family.is_within(scope.member, *member)
            && !is_kept(family, scope.member, *member)
            && row.is_some_and(|row| can_undo(kernel.rules(), row))
    });
    let due = left.map(|(number, _)| number).max();
    if due != Some(number) {
        return Err(format!(
            "entry {} is undone in {scope} where {due:?} was due: {:?}",
            number,
            family.row(undo.id.member)
        ));
    }
    if family.scope_of(undo.id.member) != Some(scope) {
        return Err(format!("{} is undone with {scope}, which is not its scope", undo.id));
    }
    let ran_under = disk
        .ran_under
        .get(&(undo.id, undo.visit))
        .map_or(&[][..], Vec::as_slice);
    let held = family.row(undo.id.member).map_or(&[][..], |row| &row.locked);
    if let Some(lacking) = ran_under.iter().find(|need| !held.contains(need)) {
        return Err(format!(
            "{undo:?} runs without {lacking:?}, which the stage had: {held:?}"
        ));
    }
    let running = family
        .members
        .iter()
        .find(|row| (row.in_flight.is_some() || row.is_past_return()) && family.is_within(scope.member, row.id.member));
    match running {
        Some(row) => Err(format!("{} has not ended its stage while {scope} is undone", row.id)),
        None => Ok(()),
    }
}

/// Says where a kernel that should have come to rest has not.
pub(crate) fn at_rest(kernel: &Kernel) -> Result<(), String> {
    let stuck: Vec<(ProcedureId, &Row)> = kernel
        .families()
        .values()
        .flat_map(|family| &family.members)
        .filter(|row| !row.is_ended())
        .map(|row| (row.id, &**row))
        .collect();
    if stuck.is_empty() {
        Ok(())
    } else {
        Err(format!("nothing moves these any more: {stuck:#?}"))
    }
}

/// A commit that sends a stage or an undo out does not stop the actor behind the call: the call would be lost.
pub(crate) fn calls_are_not_stopped(effects: &[Effect]) -> Result<(), String> {
    let mut called = BTreeSet::new();
    for effect in effects {
        if let Some(call) = effect
            .call()
            .filter(|call| call.run().is_some() || call.undone().is_some())
        {
            called.insert(call.id);
        }
        if let Effect::Dispatch(DispatchEffect::Stop(id)) = effect
            && called.contains(id)
        {
            return Err(format!("{id} is called and then stopped: {effects:#?}"));
        }
    }
    Ok(())
}

/// A stage that is called ahead of the disk is pure, and the decision that calls it does not stop its actor.
pub(crate) fn goes_on(effects: &[Effect], call: &StageCall) -> Result<(), String> {
    let stops = |effect: &Effect| matches!(effect, Effect::Dispatch(DispatchEffect::Stop(id)) if *id == call.id);
    let is_plain = matches!(
        &call.task,
        StageTask::Execute {
            wake: None,
            out_of_time: false,
            repeated: 0,
            ..
        }
    );
    if effects.iter().any(stops) || !is_plain || call.attempt != 1 {
        return Err(format!("{call:?} runs ahead of the disk, and {effects:#?} leave later"));
    }
    Ok(())
}

/// Where nothing moves, a rollback waits for somebody: it says for whom, or one
/// past its point of no return has not ended.
pub(crate) fn rollbacks_wait(kernel: &Kernel) -> Result<(), String> {
    for family in kernel.families().values() {
        for row in family
            .members
            .iter()
            .filter(|row| row.is_failing() && row.wait.is_none())
        {
            let outermost = family.scope_of(row.id.member) == Some(row.id);
            let let_end = |other: &Row| {
                !other.is_ended() && !is_stopped(kernel, other) && family.is_within(row.id.member, other.id.member)
            };
            if outermost && !family.members.iter().any(|other| let_end(other)) {
                return Err(format!(
                    "the rollback of {} waits for nothing, and does not go on",
                    row.id
                ));
            }
        }
    }
    Ok(())
}

/// Where a part of a family is being undone, no other member of it keeps the permits of a stage: the undo may need them,
/// and that member would give them back at the end of the whole rollback.
pub(crate) fn undos_meet_no_permits(kernel: &Kernel) -> Result<(), String> {
    for family in kernel.families().values() {
        for (scope, state) in &family.scopes {
            let Scope::Held { stack, .. } = state else { continue };
            let top = stack.last().map(|top| top.member);
            let keeps = |row: &&Row| row.stage_permits && Some(row.id.member) != top;
            if let Some(row) = family.within(*scope).find(keeps) {
                return Err(format!(
                    "{} keeps permits of a stage while others are undone: {row:?}",
                    row.id
                ));
            }
        }
    }
    Ok(())
}
