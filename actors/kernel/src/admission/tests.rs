//! The rules of `admission`, one at a time. Tests run with a small `MAX_OVERTAKES`.

use super::*;
use crate::lock::LockNeed;

mod bound;
mod locks;
mod model;
mod parts;
mod permits;
mod rates;
mod work;

/// Reads a list of needs: `x path` and `s path` are locks, all others are limits.
pub(super) fn needs(texts: &[&str]) -> Needs {
    let mut needs = Needs::default();
    for text in texts {
        match text.split_once(' ') {
            Some(("x", path)) => needs.locks.push(LockNeed::exclusive(LockPath::parse(path))),
            Some((_, path)) => needs.locks.push(LockNeed::shared(LockPath::parse(path))),
            None => needs.limits.push(LimitKey::from(*text)),
        }
    }
    needs
}

/// Creates a request with priority 0. The first limit is its kind's own.
pub(super) fn request(claim: u64, texts: &[&str]) -> Request {
    let needs = needs(texts);
    Request {
        claim: Claim::first(ClaimId(claim)),
        kind: needs.limits.first().cloned(),
        needs,
        priority: 0,
        within: Vec::new(),
    }
}

pub(super) fn limited(limits: &[(&str, u32)]) -> Admissions {
    Admissions::new(limits.iter().map(|(key, limit)| (LimitKey::from(*key), Some(*limit))))
}

impl Admissions {
    /// Returns `true` if nothing is left of any claim except the names of limits.
    pub(super) fn is_empty(&self) -> bool {
        let of_waiters = self.nested.is_empty() && self.permit_queues.is_empty() && self.recheck_queue.is_empty();
        of_waiters && self.claims.is_empty() && self.tree.is_empty() && !self.limits.is_any_due()
    }

    /// Makes a request. Returns `true` if it was granted. No other claim may be served.
    fn ask(&mut self, claim: u64, texts: &[&str]) -> bool {
        self.ask_for(request(claim, texts))
    }

    fn ask_within(&mut self, claim: u64, within: &[u64], texts: &[&str]) -> bool {
        let within = within.iter().copied().map(ClaimId).collect();
        self.ask_for(Request {
            within,
            ..request(claim, texts)
        })
    }

    fn ask_with(&mut self, claim: u64, priority: i16, texts: &[&str]) -> bool {
        self.ask_for(Request {
            priority,
            ..request(claim, texts)
        })
    }

    fn ask_for(&mut self, request: Request) -> bool {
        let (grant, served) = self.request(request);
        assert_eq!(served, []);
        grant == Grant::Granted
    }

    /// Releases a claim. Returns the numbers of the claims that are served.
    fn end(&mut self, claim: u64) -> Vec<u64> {
        numbers(&self.release(ClaimId(claim)))
    }

    fn lacking(&self, claim: u64) -> Vec<(Lacking, Vec<u64>, bool)> {
        self.blockers(ClaimId(claim))
            .into_iter()
            .map(|blocker| (blocker.lacking, ids(&blocker.by), blocker.any))
            .collect()
    }
}

/// Returns the numbers of claims that were served.
pub(super) fn numbers(claims: &[Claim]) -> Vec<u64> {
    claims.iter().map(|claim| claim.id.0).collect()
}

/// Returns the numbers of claims.
pub(super) fn ids(claims: &[ClaimId]) -> Vec<u64> {
    claims.iter().map(|id| id.0).collect()
}

pub(super) fn permit(key: &str) -> Lacking {
    Lacking::Permit(key.into())
}

pub(super) fn lock(path: &str) -> Lacking {
    Lacking::Lock(LockPath::parse(path))
}
