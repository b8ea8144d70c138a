//! Who has paused what, and why: found in the audit, all of it that is kept, however long ago that was.
//! It is read once; from then on only what has come since.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use procession_kernel::{AUDIT_KEPT, Act, AuditEntry, PauseScope};

use super::audit;
use super::problem::Problem;
use super::state::State;

/// The newest act that paused each of what is, or was, paused.
#[derive(Default)]
pub(super) struct Pauses(Mutex<Known>);

#[derive(Default)]
struct Known {
    /// All acts up to this one were looked at.
    upto: Option<u64>,
    acts: BTreeMap<PauseScope, AuditEntry>,
}

impl Known {
    /// Takes acts in any order, and forgets those that the audit log has dropped.
    fn take(&mut self, acts: Vec<AuditEntry>, upto: u64) {
        for act in acts {
            let Some(what) = paused(&act) else { continue };
            let newest = self.acts.entry(what).or_insert_with(|| act.clone());
            if newest.number < act.number {
                *newest = act;
            }
        }
        self.upto = self.upto.max(Some(upto));
        let kept = |act: &AuditEntry| act.number.saturating_add(AUDIT_KEPT as u64) > upto;
        self.acts.retain(|_, act| kept(act));
    }
}

/// Returns what an act paused: a pause, or an import, which leaves its root paused.
fn paused(act: &AuditEntry) -> Option<PauseScope> {
    act.act.as_ref().and_then(Act::paused)
}

impl Pauses {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the act that made each of these pauses; `None` if the audit no longer has it.
    pub(super) async fn made(&self, state: &State, pauses: &[PauseScope]) -> Result<Vec<Option<AuditEntry>>, Problem> {
        if pauses.is_empty() {
            return Ok(Vec::new());
        }
        let after = self.known().upto;
        let unread = unread(state, after).await?;
        let mut known = self.known();
        if let Some((acts, upto)) = unread {
            known.take(acts, upto);
        }
        Ok(pauses.iter().map(|what| known.acts.get(what).cloned()).collect())
    }
}

/// Reads the acts that have come after one, page by page from the newest on; none if there are no acts.
async fn unread(state: &State, after: Option<u64>) -> Result<Option<(Vec<AuditEntry>, u64)>, Problem> {
    let (mut acts, mut upto, mut before) = (Vec::new(), None, None);
    loop {
        let page = audit::page(state, before).await?;
        let (Some(first), Some(last)) = (page.first(), page.last()) else {
            break;
        };
        upto = upto.max(Some(first.number));
        let oldest = last.number;
        acts.extend(page.into_iter().filter(|act| paused(act).is_some()));
        if oldest == 0 || after.is_some_and(|after| oldest <= after.saturating_add(1)) {
            break;
        }
        before = Some(oldest);
    }
    Ok(upto.map(|upto| (acts, upto)))
}

#[cfg(test)]
mod tests;
