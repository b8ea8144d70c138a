//! What is asked of the limiter and told to it by decisions, and at the start.

use std::cmp::Reverse;

use procession_kernel::{
    Admissions, Claim, ClaimId, Limit, LimitKey, LockNeed, ProcedureId, Request, Row, Timestamp, WaitReason,
};

use super::desk::{Desk, Word, needs, own_of};
use super::draw::limits;
use super::shell::Shell;

impl Shell {
    pub(crate) fn ask(&mut self, id: ProcedureId) -> Result<(), String> {
        if !self.kernel.waits_for_admission(id) {
            return Err(format!("{id} asks, and waits for nothing"));
        }
        let claim = self.desk.renew(id);
        let Some(request) = self.request_of(id, claim) else {
            return Ok(());
        };
        let (grant, served) = self.desk.work(|limiter| limiter.request(request))?;
        self.desk.words.push_back(Word::Answers(vec![(claim, grant)], served));
        Ok(())
    }

    pub(crate) fn release(&mut self, id: ProcedureId) -> Result<(), String> {
        match self.desk.unbind(id) {
            Some(claim) => self.desk.tell(|limiter| limiter.release(claim)),
            None => Ok(()),
        }
    }

    pub(crate) fn change(
        &mut self,
        id: ProcedureId,
        change: impl FnOnce(&mut Admissions, ClaimId) -> Vec<Claim>,
    ) -> Result<(), String> {
        match self.desk.claim(id) {
            Some(claim) => self.desk.tell(|limiter| change(limiter, claim)),
            None => Ok(()),
        }
    }

    pub(crate) fn capacity(&mut self, key: LimitKey, limit: Limit) -> Result<(), String> {
        self.desk.tell(|limiter| limiter.set_limit(key, limit))
    }

    /// Moves the clock, and lets the limiter serve those whom the time serves.
    pub(crate) fn move_to(&mut self, now: Timestamp) -> Result<(), String> {
        self.now = now;
        self.desk.tell(|limiter| limiter.move_to(now))
    }

    // Who asks.

    pub(crate) fn within(&self, id: ProcedureId) -> Vec<ClaimId> {
        let family = self.kernel.families().get(&id.family);
        let ancestry = family.into_iter().flat_map(|family| family.ancestry(id.member));
        ancestry.filter_map(|row| self.desk.claim(row.id)).collect()
    }

    pub(crate) fn within_above(&self, id: ProcedureId) -> Vec<ClaimId> {
        let parent = self.kernel.row(id).and_then(|row| row.parent);
        let parent = parent.map(|parent| ProcedureId::new(id.family, parent));
        parent.map(|parent| self.within(parent)).unwrap_or_default()
    }

    /// Those above it, and for an undo all of the part that rolls back, keep it from nothing.
    fn entered_by(&self, id: ProcedureId) -> Vec<ClaimId> {
        let mut within = self.within_above(id);
        for other in self.kernel.rolled_back_with(id) {
            let claim = self.desk.claim(other);
            within.extend(claim.filter(|claim| !within.contains(claim)));
        }
        within
    }

    fn request_of(&self, id: ProcedureId, claim: Claim) -> Option<Request> {
        let row = self.kernel.row(id)?.clone();
        let is_undone = row.is_ended() || self.kernel.is_stopped(id);
        let (limits, locks): (Vec<LimitKey>, Vec<LockNeed>) = if is_undone {
            let limits = row.lacking_stage_limits().cloned();
            (limits.collect(), row.lacking_locks_of_undo().cloned().collect())
        } else {
            let limits = row.lacking_limits().cloned();
            (limits.collect(), row.lacking_locks().cloned().collect())
        };
        let rolls_back = is_undone.then(|| self.kernel.row(self.kernel.waits_as(id))).flatten();
        Some(Request {
            claim,
            kind: own_of(&row.kind, &limits),
            needs: needs(limits, locks),
            priority: rolls_back.unwrap_or(&row).priority,
            within: self.entered_by(id),
        })
    }

    // The start.

    /// Recorded holders get theirs back, parents first; then those who wait queue up again.
    pub(crate) fn restore(&mut self) -> Result<(), String> {
        let set = self.kernel.limits().clone();
        let limits = limits().map(|(key, limit)| {
            let limit = set.get(&key).copied().unwrap_or(limit);
            (key, limit)
        });
        self.desk = Desk::default();
        self.desk.admissions = Admissions::new(limits);
        self.desk.admissions.move_to(self.now);
        for (key, window) in self.kernel.rates().windows() {
            self.desk.admissions.restore_window(key, window.clone());
        }
        let members = self.kernel.families().values().flat_map(|family| &family.members);
        let concerned = members.filter(|row| !row.held().is_empty() || waits(row));
        let rows: Vec<Row> = concerned.map(|row| (**row).clone()).collect();
        let mut waiting = Vec::new();
        for row in rows {
            let claim = self.desk.current(row.id);
            if !row.held().is_empty() {
                let request = Request {
                    claim,
                    needs: row.held(),
                    kind: None,
                    priority: row.priority,
                    within: self.within_above(row.id),
                };
                if !self.desk.admissions.restore(request).is_empty() {
                    return Err("somebody is served before the start".to_owned());
                }
            }
            if waits(&row) && !self.kernel.is_stopped(row.id) {
                waiting.push((Reverse(row.priority), row.waits_after, row.id));
            }
        }
        waiting.sort_unstable();
        self.queue_again(waiting.into_iter().map(|(_, _, id)| id).collect())
    }

    fn queue_again(&mut self, waiting: Vec<ProcedureId>) -> Result<(), String> {
        let (mut grants, mut served) = (Vec::new(), Vec::new());
        for id in waiting {
            let claim = self.desk.renew(id);
            if let Some(request) = self.request_of(id, claim) {
                let (grant, others) = self.desk.work(|limiter| limiter.request(request))?;
                grants.push((claim, grant));
                served.extend(others);
            }
        }
        self.desk.words.push_back(Word::Answers(grants, served));
        Ok(())
    }
}

/// Tells whether a row waits for a permit or a lock.
pub(crate) fn waits(row: &Row) -> bool {
    row.wait.as_ref().is_some_and(WaitReason::is_admission)
}
