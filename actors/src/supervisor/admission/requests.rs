//! Builds requests to the limiter from rows: for the limiter of a running engine, or to show the state of a closed
//! journal.

use std::cmp::Reverse;

use procession_kernel::{
    Claim, ClaimId, Kernel, LimitKey, LockNeed, Needs, ProcedureId, Request, Row, Seq, Timestamp, WaitReason,
};

use super::claims::Claims;

/// The rows, and the claims of the procedures in them.
pub(crate) struct AdmissionRequests<'a> {
    pub(crate) kernel: &'a Kernel,
    pub(crate) claims: &'a mut Claims,
}

impl AdmissionRequests<'_> {
    /// Builds the request for everything that a procedure lacks for its next stage; for an undo, its locks and the
    /// permits that the stage ran under. The request is the newest one that was decided.
    pub(crate) fn request_of(&mut self, id: ProcedureId) -> Option<Request> {
        let row = self.kernel.row(id)?;
        let is_undone = row.is_ended() || self.kernel.is_stopped(id);
        let (limits, locks): (Vec<LimitKey>, Vec<LockNeed>) = if is_undone {
            let limits = row.lacking_stage_limits().cloned();
            (limits.collect(), row.lacking_locks_of_undo().cloned().collect())
        } else {
            let limits = row.lacking_limits().cloned();
            (limits.collect(), row.lacking_locks().cloned().collect())
        };
        // An undo moves the rollback, so it has the priority of that root. Nobody can change that of a member that ended.
        let rolls_back = is_undone.then(|| self.kernel.row(self.kernel.waits_as(id))).flatten();
        let priority = rolls_back.unwrap_or(row).priority;
        let kind = LimitKey::new(row.kind.as_str());
        Some(Request {
            claim: self.claims.current(id),
            kind: limits.contains(&kind).then_some(kind),
            needs: Needs { limits, locks },
            priority,
            within: self.entered_by(id),
        })
    }

    /// Returns what recorded holders get back, parents first. Also returns the waiting procedures, by priority and
    /// then in the order of the commits in which their waits began. Among them are roots of parts that roll back: the
    /// member whose undo waits is known only once the stack is read, and asks then, in the place of its root.
    pub(crate) fn restored(
        &mut self,
        quarantined: Vec<(ProcedureId, Row)>,
        claimants: &[ProcedureId],
    ) -> (Vec<Request>, Vec<ProcedureId>) {
        let mut held = Vec::new();
        for (id, row) in quarantined {
            let claim = self.claims.current(id);
            held.push(restored(claim, &row, Vec::new()));
        }
        let mut waiting = Vec::new();
        for id in claimants {
            let Some(row) = self.kernel.row(*id) else { continue };
            let claim = self.claims.current(row.id);
            if is_holder(row) {
                held.push(restored(claim, row, within_above(self.kernel, self.claims, row.id)));
            }
            // A procedure stopped by a failure above it no longer runs, and needs nothing.
            let is_stopped = self.kernel.is_stopped(row.id);
            if waits(row) && (!is_stopped || self.kernel.waits_as(row.id) == row.id) {
                waiting.push((Reverse(row.priority), began_to_wait(row), row.id));
            }
        }
        waiting.sort_unstable();
        (held, waiting.into_iter().map(|(_, _, id)| id).collect())
    }

    /// Returns the claims that do not keep a procedure out: the claims of its ancestors. For its undo, the claims of
    /// all members that roll back with it are added.
    fn entered_by(&self, id: ProcedureId) -> Vec<ClaimId> {
        let mut within = within_above(self.kernel, self.claims, id);
        for other in self.kernel.rolled_back_with(id) {
            let claim = self.claims.claim(other);
            within.extend(claim.filter(|claim| !within.contains(claim)));
        }
        within
    }
}

/// Returns the claims of a procedure and of its ancestors, nearest first.
pub(super) fn within(kernel: &Kernel, claims: &Claims, id: ProcedureId) -> Vec<ClaimId> {
    let Some(family) = kernel.families().get(&id.family) else {
        return Vec::new();
    };
    family
        .ancestry(id.member)
        .filter_map(|row| claims.claim(row.id))
        .collect()
}

/// Returns the claims of a procedure's ancestors, nearest first.
pub(super) fn within_above(kernel: &Kernel, claims: &Claims, id: ProcedureId) -> Vec<ClaimId> {
    let parent = kernel.row(id).and_then(|row| row.parent);
    parent
        .map(|parent| within(kernel, claims, ProcedureId::new(id.family, parent)))
        .unwrap_or_default()
}

/// Returns `true` if a procedure's row holds a permit or a lock.
pub(crate) fn is_holder(row: &Row) -> bool {
    row.holds || row.stage_permits || !row.locked.is_empty()
}

/// Returns `true` if a procedure's row holds a permit or a lock, or waits for one.
pub(crate) fn claims(row: &Row) -> bool {
    is_holder(row) || waits(row)
}

/// Returns the commit in which a wait for a permit or a lock began, or 0 and the time if it is older than the record of
/// that.
fn began_to_wait(row: &Row) -> (Seq, Option<(Timestamp, Seq)>) {
    let is_recorded = row.waits_after != Seq::default();
    (row.waits_after, (!is_recorded).then_some((row.since, row.revision)))
}

fn waits(row: &Row) -> bool {
    row.wait.as_ref().is_some_and(WaitReason::is_admission)
}

fn restored(claim: Claim, row: &Row, within: Vec<ClaimId>) -> Request {
    Request {
        claim,
        needs: row.held(),
        kind: None,
        priority: row.priority,
        within,
    }
}
