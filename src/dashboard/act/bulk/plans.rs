//! What plans of bulks were for. A bulk is held to the set that its plan counted: as many others are not what was approved.
//!
//! The revision of a plan is a digest over the set, so it tells any other set. The newest plans are kept in memory as well:
//! only they tell who came and who went.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Mutex, PoisonError};

use procession_kernel::{Blob, ProcedureId};

/// Plans that are kept: of 5,000 procedures each they take some megabytes.
const KEPT: usize = 32;

/// The newest plans.
#[derive(Default)]
pub(in crate::dashboard) struct Plans(Mutex<VecDeque<(String, BTreeSet<ProcedureId>)>>);

/// How a set that a filter admits stands to the one that was planned.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fits {
    /// It has nothing that the plan did not have. What has gone since is left alone.
    Within,
    /// Procedures came that the plan did not have, or the plan is not known: then nobody can say how many.
    Beyond(Option<Difference>),
}

/// What has become of a set since its plan.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::dashboard) struct Difference {
    pub(in crate::dashboard) came: usize,
    pub(in crate::dashboard) went: usize,
}

impl Plans {
    /// Keeps a plan. The oldest goes for it.
    pub(super) fn keep(&self, revision: &str, ids: &[ProcedureId]) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|(known, _)| known != revision);
        kept.truncate(KEPT - 1);
        kept.push_front((revision.to_owned(), ids.iter().copied().collect()));
    }

    /// Compares a set with the one of a plan.
    pub(super) fn compare(&self, planned: &str, ids: &[ProcedureId]) -> Fits {
        if planned == revision(ids) {
            return Fits::Within;
        }
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((_, old)) = kept.iter().find(|(known, _)| known == planned) else {
            return Fits::Beyond(None);
        };
        let stayed = ids.iter().filter(|id| old.contains(id)).count();
        match ids.len().saturating_sub(stayed) {
            0 => Fits::Within,
            came => Fits::Beyond(Some(Difference {
                came,
                went: old.len().saturating_sub(stayed),
            })),
        }
    }
}

/// Returns the revision of a set of procedures: their number, and a digest of their ids in any order.
pub(super) fn revision(ids: &[ProcedureId]) -> String {
    let sorted: BTreeSet<ProcedureId> = ids.iter().copied().collect();
    let bytes = sorted.iter().flat_map(|id| {
        let (family, member) = (id.family.to_be_bytes(), id.member.to_be_bytes());
        family.into_iter().chain(member)
    });
    let digest = Blob::from(bytes.collect::<Vec<u8>>()).digest();
    format!("{}-{digest:016x}", ids.len())
}

#[cfg(test)]
mod tests;
