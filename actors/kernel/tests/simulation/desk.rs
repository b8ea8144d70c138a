//! The limiter as a value, the claims of procedures, and what it has said.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use procession_kernel::{
    Admissions, Claim, ClaimId, Event, Grant, Kind, LimitKey, LimitUse, LockNeed, Needs, ProcedureId,
};

/// What the limiter has said, and nobody has heard yet.
#[derive(Debug)]
pub(crate) enum Word {
    /// An event can be decided: its admissions are written into it.
    Ahead(Box<Ahead>),
    /// Answers to requests that left after a receipt, or at the start, and the claims that these requests served.
    Answers(Vec<(Claim, Grant)>, Vec<Claim>),
    /// Claims that were served later.
    Served(Vec<Claim>),
}

/// An event that waits for the limiter's answer.
#[derive(Debug)]
pub(crate) struct Ahead {
    pub(crate) event: Event,
    pub(crate) asked: BTreeSet<ClaimId>,
    pub(crate) exchange: Option<(Claim, ProcedureId)>,
    pub(crate) served: Vec<Claim>,
}

/// The limiter, the claims of procedures, and what the limiter has said.
#[derive(Debug, Default)]
pub(crate) struct Desk {
    pub(crate) admissions: Admissions,
    /// The claim of each procedure, with the generation of its newest request.
    of: BTreeMap<ProcedureId, Claim>,
    by: BTreeMap<ClaimId, ProcedureId>,
    last: u64,
    pub(crate) words: VecDeque<Word>,
}

impl Desk {
    /// Lets the limiter work, and checks that no permit goes out beyond a capacity.
    pub(crate) fn work<T>(&mut self, work: impl FnOnce(&mut Admissions) -> T) -> Result<T, String> {
        let before: BTreeMap<LimitKey, u32> = self.uses().map(|(key, used, _)| (key, used)).collect();
        let said = work(&mut self.admissions);
        for (key, used, limit) in self.uses() {
            let more = used > before.get(&key).copied().unwrap_or(0);
            if more && limit.is_some_and(|limit| used > limit) {
                return Err(format!("{used} permits of {key} are out, and the limit is {limit:?}"));
            }
        }
        Ok(said)
    }

    fn uses(&self) -> impl Iterator<Item = (LimitKey, u32, Option<u32>)> {
        let usage = self.admissions.usage().into_iter();
        usage.map(|limit| (limit.key, limit.used, limit.limit))
    }

    pub(crate) fn tell(&mut self, change: impl FnOnce(&mut Admissions) -> Vec<Claim>) -> Result<(), String> {
        let served = self.work(change)?;
        if !served.is_empty() {
            self.words.push_back(Word::Served(served));
        }
        Ok(())
    }

    pub(crate) const fn new_claim(&mut self) -> ClaimId {
        self.last += 1;
        ClaimId(self.last)
    }

    /// Returns the claim of a procedure, if it has one.
    pub(crate) fn claim(&self, id: ProcedureId) -> Option<ClaimId> {
        self.of.get(&id).map(|claim| claim.id)
    }

    /// Returns the procedure that has a claim.
    pub(crate) fn procedure(&self, claim: ClaimId) -> Option<ProcedureId> {
        self.by.get(&claim).copied()
    }

    fn known(&mut self, id: ProcedureId) -> &mut Claim {
        let Self { of, by, last, .. } = self;
        of.entry(id).or_insert_with(|| {
            *last += 1;
            let claim = Claim {
                id: ClaimId(*last),
                generation: 0,
            };
            by.insert(claim.id, id);
            claim
        })
    }

    /// Returns the claim for a request that is made now. Grants of older requests are stale from here on.
    pub(crate) fn renew(&mut self, id: ProcedureId) -> Claim {
        let known = self.known(id);
        known.generation += 1;
        *known
    }

    /// Returns the claim of a holder that is restored.
    pub(crate) fn current(&mut self, id: ProcedureId) -> Claim {
        *self.known(id)
    }

    /// Returns the procedure to which a grant belongs; none if the grant is of an older request.
    pub(crate) fn accept(&self, claim: Claim) -> Option<ProcedureId> {
        let id = self.procedure(claim.id)?;
        self.of.get(&id).filter(|known| **known == claim).map(|_| id)
    }

    pub(crate) fn bind(&mut self, claim: Claim, id: ProcedureId) {
        self.of.insert(id, claim);
        self.by.insert(claim.id, id);
    }

    /// Takes the claim from a procedure.
    pub(crate) fn unbind(&mut self, id: ProcedureId) -> Option<ClaimId> {
        let claim = self.of.remove(&id)?.id;
        self.by.remove(&claim);
        Some(claim)
    }

    /// Tells whether a permit or a lock is out, or somebody waits.
    pub(crate) fn is_idle(&self) -> bool {
        let free = |limit: &LimitUse| limit.used == 0 && limit.waiting == 0;
        self.admissions.usage().iter().all(free) && self.admissions.locks().is_empty()
    }
}

/// Returns the limit of a kind itself, if it is among these.
pub(crate) fn own_of(kind: &Kind, limits: &[LimitKey]) -> Option<LimitKey> {
    limits.iter().find(|key| key.as_str() == kind.as_str()).cloned()
}

pub(crate) fn needs(limits: Vec<LimitKey>, locks: Vec<LockNeed>) -> Needs {
    Needs { limits, locks }
}
