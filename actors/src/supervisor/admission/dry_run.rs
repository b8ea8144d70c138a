//! Dry runs: what the limiter would be told, and who would move next by its answer.

use procession_kernel::{Effect, Freed, Plan};

use super::Admission;
use crate::limiter::{Change, Foreseen};

impl<A> Admission<A> {
    /// Returns what the limiter would be told: by the act's own commit, and when the rollback is over.
    pub(super) fn changes_of(&self, plan: &Plan) -> Vec<Change> {
        let ticket = |id: &procession_kernel::ProcedureId| self.tickets.ticket(*id);
        let mut changes = Vec::new();
        for effect in &plan.told {
            match effect {
                Effect::Release(id) => changes.extend(ticket(id).map(Change::Release)),
                Effect::Cancel(id) => changes.extend(ticket(id).map(Change::Cancel)),
                Effect::Keep(id, needs) => changes.extend(ticket(id).map(|ticket| Change::Keep(ticket, needs.clone()))),
                Effect::GiveBack(id, needs) => {
                    changes.extend(ticket(id).map(|ticket| Change::GiveBack(ticket, needs.clone())));
                }
                Effect::SetPriority(id, priority) => {
                    changes.extend(ticket(id).map(|ticket| Change::Priority(ticket, *priority)));
                }
                Effect::SetLimit(key, limit) => changes.push(Change::Capacity(key.clone(), *limit)),
                Effect::Discharged(family) => {
                    let of_family = self.tickets.of_family(*family).into_iter();
                    changes.extend(of_family.map(|(_, ticket)| Change::Release(ticket)));
                }
                Effect::Reply(..)
                | Effect::Advance(_)
                | Effect::Undo(_)
                | Effect::Judge(..)
                | Effect::LoadStack(_)
                | Effect::Stop(_)
                | Effect::ArmTimer
                | Effect::Ask(_)
                | Effect::Bound(..)
                | Effect::Ended(_)
                | Effect::CleanUp(..)
                | Effect::Operated(_) => {}
            }
        }
        let later = plan.freed.iter().filter(|freed| freed.later);
        changes.extend(later.filter_map(|freed| ticket(&freed.id)).map(Change::Release));
        changes
    }

    /// Writes the limiter's answer into the plan.
    pub(in crate::supervisor) fn complete_plan(&self, foreseen: Option<Foreseen>, plan: &mut Plan) {
        let Some(Foreseen { released, served }) = foreseen else {
            let text = "who moves next is not told: too many hold or wait for something";
            plan.warnings.push(text.to_owned());
            return;
        };
        let holder = |ticket| self.tickets.holder(ticket);
        plan.moves_next = served.into_iter().filter_map(holder).collect();
        // The kernel knows nothing of a quarantined family.
        for (ticket, needs) in released {
            let id = holder(ticket).filter(|id| !needs.is_empty() && !plan.freed.iter().any(|freed| freed.id == *id));
            plan.freed.extend(id.map(|id| Freed {
                id,
                limits: needs.limits,
                locks: needs.locks,
                later: false,
            }));
        }
    }
}
