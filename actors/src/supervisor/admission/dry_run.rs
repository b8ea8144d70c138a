//! Dry runs: the changes that the limiter would receive, and the procedures that would move next.

use std::collections::BTreeSet;

use procession_kernel::{AdmissionEffect, Freed, Kernel, Limit, Plan, ProcedureId};

use super::Admission;
use crate::limiter::{Change, Simulated};

/// What to mind about a limit that is new: nobody has asked for a permit of it, and no answer to that can be changed.
const NOT_FOR_THE_LIVE: &str = "nothing had this limit until now: procedures that live already take no permit of it for \
                                themselves, and their stages do from the next one on";

impl<A> Admission<A> {
    /// Returns `true` if a plan gives a name its first limit, and that limit restricts anything.
    fn makes_limit(&self, plan: &Plan) -> bool {
        plan.told.iter().any(|effect| match effect {
            AdmissionEffect::SetLimit(key, limit) => *limit != Limit::UNLIMITED && !self.claims.is_limited(key),
            AdmissionEffect::Bind(..)
            | AdmissionEffect::Ask(_)
            | AdmissionEffect::Release(_)
            | AdmissionEffect::ReleaseFamily(_)
            | AdmissionEffect::GiveBack(..)
            | AdmissionEffect::Cancel(_)
            | AdmissionEffect::Keep(..)
            | AdmissionEffect::SetPriority(..) => false,
        })
    }

    /// Returns the changes that the limiter would receive, from the act's own commit and at the end of the rollback.
    pub(super) fn changes_of(&self, plan: &Plan) -> Vec<Change> {
        let claim = |id: &ProcedureId| self.claims.claim(*id);
        let mut changes = Vec::new();
        for effect in &plan.told {
            match effect {
                AdmissionEffect::Release(id) => changes.extend(claim(id).map(Change::Release)),
                AdmissionEffect::Cancel(id) => changes.extend(claim(id).map(Change::Cancel)),
                AdmissionEffect::Keep(id, needs) => {
                    changes.extend(claim(id).map(|claim| Change::Keep(claim, needs.clone())))
                }
                AdmissionEffect::GiveBack(id, needs) => {
                    changes.extend(claim(id).map(|claim| Change::GiveBack(claim, needs.clone())));
                }
                AdmissionEffect::SetPriority(id, priority) => {
                    changes.extend(claim(id).map(|claim| Change::Priority(claim, *priority)));
                }
                AdmissionEffect::SetLimit(key, limit) => changes.push(Change::Limit(key.clone(), *limit)),
                AdmissionEffect::ReleaseFamily(family) => {
                    let of_family = self.claims.of_family(*family).into_iter();
                    changes.extend(of_family.map(|(_, claim)| Change::Release(claim)));
                }
                // This is the procedure's own request, and frees nothing for others.
                AdmissionEffect::Bind(..) | AdmissionEffect::Ask(_) => {}
            }
        }
        let later = plan.freed.iter().filter(|freed| freed.later);
        changes.extend(later.filter_map(|freed| claim(&freed.id)).map(Change::Release));
        changes
    }

    /// Completes a plan with the limiter's answer.
    pub(in crate::supervisor) fn complete_plan(&self, kernel: &Kernel, simulated: Option<Simulated>, plan: &mut Plan) {
        if !kernel.families().is_empty() && self.makes_limit(plan) {
            plan.warnings.push(NOT_FOR_THE_LIVE.to_owned());
        }
        let Some(Simulated { released, served }) = simulated else {
            let text = "the procedures that are admitted next are not listed: too many hold or wait for something";
            plan.warnings.push(text.to_owned());
            return;
        };
        let procedure = |claim| self.claims.procedure(claim);
        let mut listed: BTreeSet<ProcedureId> = plan.moves_next.iter().copied().collect();
        let admitted = served.into_iter().filter_map(|claim| procedure(claim.id));
        plan.moves_next.extend(admitted.filter(|id| listed.insert(*id)));
        plan.cut_moves_next();
        // The kernel knows nothing of a quarantined family.
        for (claim, needs) in released {
            let id = procedure(claim).filter(|id| !needs.is_empty() && !plan.freed.iter().any(|freed| freed.id == *id));
            plan.freed.extend(id.map(|id| Freed {
                id,
                limits: needs.limits,
                locks: needs.locks,
                later: false,
            }));
        }
    }
}
