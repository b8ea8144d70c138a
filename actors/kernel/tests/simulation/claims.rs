//! Locks and permits: who holds what by the rows, and by the limiter.

use std::collections::{BTreeMap, BTreeSet};

use procession_kernel::{Kernel, LimitKey, LockNeed, Needs, ProcedureId, Row, WaitReason};

use super::check::is_stopped;
use super::desk::Desk;
use super::queues::waits;

/// No two rows hold conflicting locks, unless one is above the other, or both are of one
/// part of a family that rolls back: there one undo runs at a time, and nothing else.
pub(crate) fn conflicts<'a>(rows: impl Iterator<Item = &'a Row>) -> Result<(), String> {
    let rows: BTreeMap<ProcedureId, &Row> = rows.map(|row| (row.id, row)).collect();
    let holders: Vec<&Row> = rows.values().copied().filter(|row| !row.locked.is_empty()).collect();
    let is_above = |above: &Row, below: &Row| {
        let up = |row: &&Row| {
            let parent = ProcedureId::new(row.id.family, row.parent?);
            rows.get(&parent).copied()
        };
        std::iter::successors(Some(below), up).any(|row| row.id == above.id)
    };
    let failing: Vec<&Row> = rows.values().copied().filter(|row| row.is_failing()).collect();
    let undone_together = |one: &Row, other: &Row| {
        failing
            .iter()
            .any(|scope| is_above(scope, one) && is_above(scope, other))
    };
    for (place, one) in holders.iter().enumerate() {
        for other in holders.iter().skip(place + 1) {
            let clash = one
                .locked
                .iter()
                .find(|lock| other.locked.iter().any(|held| held.conflicts(lock)));
            if let Some(lock) = clash
                && !is_above(one, other)
                && !is_above(other, one)
                && !undone_together(one, other)
            {
                return Err(format!("{} and {} both hold {lock}", one.id, other.id));
            }
        }
    }
    Ok(())
}

/// With no message on its way, the limiter says of every claim what the row says.
pub(crate) fn told(kernel: &Kernel, desk: &Desk) -> Result<(), String> {
    let mut undone_next = BTreeSet::new();
    for family in kernel.families().values() {
        for (scope, state) in &family.scopes {
            if let procession_kernel::Scope::Held { stack, .. } = state
                && let Some(row) = family.row(*scope)
                && row.wait.as_ref().is_some_and(WaitReason::is_admission)
                && family.scope_of(*scope) == Some(row.id)
                && let Some(top) = stack.last()
            {
                undone_next.insert(ProcedureId::new(row.id.family, top.member));
            }
        }
    }
    let (mut permits, mut locks) = (BTreeMap::new(), 0);
    for row in kernel.families().values().flat_map(|family| &family.members) {
        let held = desk.claim(row.id).map(|claim| desk.admissions.held(claim));
        let (limits, locked) = sets(&held.unwrap_or_default());
        let (own_limits, own_locked) = own(row);
        if limits != own_limits || locked != own_locked {
            return Err(format!(
                "by its row {} holds {own_limits:?} {own_locked:?}, by the limiter {limits:?} {locked:?}",
                row.id
            ));
        }
        let queued = desk
            .claim(row.id)
            .is_some_and(|claim| desk.admissions.is_waiting(claim));
        // One that a failure above it has stopped keeps its reason, and waits no more.
        let due = (waits(row) && !is_stopped(kernel, row)) || undone_next.contains(&row.id);
        if queued && !due {
            return Err(format!(
                "{} is in the limiter's queue, and its row says {:?}",
                row.id, row.wait
            ));
        }
        if due && !queued {
            return Err(format!("{} is in no queue, and its row says {:?}", row.id, row.wait));
        }
        own_limits
            .into_iter()
            .for_each(|key| *permits.entry(key).or_insert(0) += 1);
        locks += own_locked.len();
    }
    for limit in desk.admissions.usage() {
        if permits.get(&limit.key).copied().unwrap_or(0) != limit.used {
            return Err(format!("{} permits of {} are nobody's", limit.used, limit.key));
        }
    }
    let held: usize = desk.admissions.locks().iter().map(|lock| lock.holders.len()).sum();
    if held != locks {
        return Err(format!("{held} locks are out, and {locks} are somebody's"));
    }
    Ok(())
}

fn own(row: &Row) -> (BTreeSet<LimitKey>, BTreeSet<LockNeed>) {
    sets(&row.held())
}

fn sets(needs: &Needs) -> (BTreeSet<LimitKey>, BTreeSet<LockNeed>) {
    (
        needs.limits.iter().cloned().collect(),
        needs.locks.iter().cloned().collect(),
    )
}

/// Returns those who wait for the limiter and hold all that they wait for, and
/// those who are in no queue: what the shell tells the health check.
pub(crate) fn lost(kernel: &Kernel, desk: &Desk) -> (Vec<ProcedureId>, Vec<ProcedureId>) {
    let (mut granted, mut unknown) = (Vec::new(), Vec::new());
    for row in kernel.families().values().flat_map(|family| &family.members) {
        if !waits(row) || is_stopped(kernel, row) {
            continue;
        }
        let needs = Needs {
            limits: row.limits.iter().chain(&row.stage_limits).cloned().collect(),
            locks: row.locks.to_vec(),
        };
        match desk.claim(row.id) {
            Some(claim) if desk.admissions.holds_all(claim, &needs) => granted.push(row.id),
            Some(claim) if desk.admissions.is_waiting(claim) => {}
            Some(_) | None => unknown.push(row.id),
        }
    }
    (granted, unknown)
}
