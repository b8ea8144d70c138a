//! Maps each claim of the limiter to its procedure, and knows the newest request of each.
//!
//! A procedure has one claim. Each of its requests has its own generation, and the limiter answers with that
//! generation, at once or when the request is served later. A grant counts only if it answers the newest request:
//! [`Claims::accept`] is the one place that drops all others. The generation rises with the request, which is sent in the
//! turn of the supervisor that decides it: no answer can be taken between the two.

use std::collections::BTreeSet;

use procession_kernel::{Birth, ChildPermits, Claim, ClaimId, Kind, LimitKey, ProcedureId};
use rustc_hash::FxHashMap;

/// The limit from which every root takes a permit, if it is set.
pub const GLOBAL_LIMIT: &str = "*";

/// The claims of all procedures that hold or want anything.
pub(crate) struct Claims {
    limited: BTreeSet<LimitKey>,
    /// Kinds with a child that named a limit and took no permit. Each was logged once.
    logged: BTreeSet<Kind>,
    /// The newest request of each procedure.
    of: FxHashMap<ProcedureId, Claim>,
    by: FxHashMap<ClaimId, ProcedureId>,
    /// The newest number given out.
    last: u64,
}

impl Claims {
    pub(crate) fn new(limited: Vec<LimitKey>) -> Self {
        Self {
            limited: limited.into_iter().collect(),
            logged: BTreeSet::new(),
            of: FxHashMap::default(),
            by: FxHashMap::default(),
            last: 0,
        }
    }

    /// Records that a limit of this name is set.
    pub(super) fn limited(&mut self, key: &LimitKey) {
        self.limited.insert(key.clone());
    }

    /// Returns `true` if a limit of this name is set, or was: then whoever needs a permit of it asks.
    pub(super) fn is_limited(&self, key: &LimitKey) -> bool {
        self.limited.contains(key)
    }

    // Which procedure a claim belongs to.

    /// Returns the procedure that has a claim.
    pub(in crate::supervisor) fn procedure(&self, claim: ClaimId) -> Option<ProcedureId> {
        self.by.get(&claim).copied()
    }

    /// Returns the claim of a procedure.
    pub(crate) fn claim(&self, id: ProcedureId) -> Option<ClaimId> {
        self.of.get(&id).map(|claim| claim.id)
    }

    /// Returns the claims of a family.
    pub(super) fn of_family(&self, family: u64) -> Vec<(ProcedureId, ClaimId)> {
        let of_family = self.of.iter().filter(|(id, _)| id.family == family);
        of_family.map(|(id, claim)| (*id, claim.id)).collect()
    }

    /// Returns a new claim, which belongs to no procedure yet.
    pub(super) const fn new_claim(&mut self) -> ClaimId {
        self.last += 1;
        ClaimId(self.last)
    }

    /// Binds a claim to a procedure that has none.
    pub(in crate::supervisor) fn bind(&mut self, claim: Claim, id: ProcedureId) {
        self.of.insert(id, claim);
        self.by.insert(claim.id, id);
    }

    /// Removes the claim of a procedure. If it asks again, it does so under a new one, and grants of this one are stale.
    pub(super) fn unbind(&mut self, id: ProcedureId) -> Option<ClaimId> {
        let claim = self.of.remove(&id)?.id;
        self.by.remove(&claim);
        Some(claim)
    }

    // Which request is the newest.

    /// Returns the claim for a request that is sent now. From here on, grants of older requests are stale.
    pub(super) fn renew(&mut self, id: ProcedureId) -> Claim {
        let claim = self.entry(id);
        claim.generation += 1;
        *claim
    }

    /// Returns the claim of the newest request, or of a holder that is restored.
    pub(super) fn current(&mut self, id: ProcedureId) -> Claim {
        *self.entry(id)
    }

    /// Returns the procedure that a grant belongs to. Returns `None` if the grant is stale: it answers an older
    /// request, or its claim was released. A stale grant is not lost: the answer to the newest request counts what the
    /// claim holds.
    pub(super) fn accept(&self, grant: Claim) -> Option<ProcedureId> {
        let id = self.procedure(grant.id)?;
        let is_newest = self.of.get(&id) == Some(&grant);
        is_newest.then_some(id)
    }

    fn entry(&mut self, id: ProcedureId) -> &mut Claim {
        let Self { of, by, last, .. } = self;
        of.entry(id).or_insert_with(|| {
            *last += 1;
            let claim = ClaimId(*last);
            by.insert(claim, id);
            Claim {
                id: claim,
                generation: 0,
            }
        })
    }

    // What a birth needs.

    /// Drops the names of limits that are not set: they allow everything.
    pub(super) fn retain_limited(&self, limits: &mut Vec<LimitKey>) {
        limits.retain(|key| self.limited.contains(key));
    }

    /// Returns the limits from which a birth needs a permit each, its kind's own first.
    pub(super) fn limits_of(&mut self, birth: &Birth, is_child: bool) -> Vec<LimitKey> {
        if self.limited.is_empty() {
            return Vec::new();
        }
        if is_child && birth.permits != Some(ChildPermits::Own) {
            self.log_if_ineffective(birth);
            return Vec::new();
        }
        let mut limits: Vec<LimitKey> = std::iter::once(LimitKey::new(birth.kind.as_str()))
            .chain(birth.limit.clone())
            .chain(std::iter::once(LimitKey::new(GLOBAL_LIMIT)))
            .filter(|key| self.limited.contains(key))
            .collect();
        limits.dedup();
        limits
    }

    /// Logs a child that names a limit, although nobody said whose permits it uses: it takes none.
    fn log_if_ineffective(&mut self, birth: &Birth) {
        let limit = birth.limit.as_ref().filter(|_| birth.permits.is_none());
        let Some(limit) = limit.filter(|key| self.limited.contains(*key)) else {
            return;
        };
        if self.logged.insert(birth.kind.clone()) {
            let kind = &birth.kind;
            tracing::warn!(%kind, %limit, "a child names a limit and takes no permit; set the permits of its list, or name the limit for a stage");
        }
    }
}

#[cfg(test)]
mod tests;
