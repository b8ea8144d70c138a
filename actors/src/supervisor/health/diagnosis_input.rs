//! The input of a diagnosis: the kernel, the limiter's queues, and what is known besides. It is the same for a
//! running engine and for a closed journal.

use std::collections::BTreeMap;
use std::time::Duration;

use procession_kernel::{
    Bounds, ClaimId, Kernel, LimitDetail, LimitUse, LockMode, LockNeed, LockUse, Missing, ProcedureId, ProcedureState,
    Row, Seq, Timestamp,
};

use super::starved::{Unserved, free};
use crate::limiter::WaitingClaim;
use crate::supervisor::admission::claims::Claims;
use crate::thresholds::Measures;
use crate::view::{LockView, LockWaiter, NAMED};

/// What the limiter reports of waiting procedures, by procedure.
#[derive(Default)]
pub(crate) struct Queues {
    /// A tree, because its memory grows with its entries. A list or a hash table of a million moves all of it, or touches
    /// all of it at once, which took 60 to 150 ms.
    pub(super) waiting: BTreeMap<ProcedureId, WaitingClaim>,
    /// Procedures that wait for something free, each with its revision and the orphaned claims that block it.
    pub(super) free: Vec<(ProcedureId, Seq, Vec<ClaimId>)>,
}

impl Queues {
    /// Collects all waiting procedures, as the limiter names them.
    pub(crate) fn new(waiting: Vec<WaitingClaim>, claims: &Claims, kernel: &Kernel) -> Self {
        let mut queues = Self::default();
        queues.extend(waiting, claims, kernel);
        queues
    }

    /// Adds a page of waiting claims. Leaves out claims that belong to no procedure.
    pub(in crate::supervisor) fn extend(&mut self, waiting: Vec<WaitingClaim>, claims: &Claims, kernel: &Kernel) {
        for waiting in waiting {
            let Some(id) = claims.procedure(waiting.claim) else {
                continue;
            };
            if let Some((unowned, row)) = free(&waiting, claims).zip(kernel.row(id)) {
                self.free.push((id, row.revision, unowned));
            }
            self.waiting.insert(id, waiting);
        }
    }

    pub(super) fn of(&self, id: ProcedureId) -> Option<&WaitingClaim> {
        self.waiting.get(&id)
    }
}

/// The input of rules and explanations.
pub(crate) struct DiagnosisInput<'a> {
    pub(crate) kernel: &'a Kernel,
    pub(crate) claims: &'a Claims,
    pub(crate) queues: &'a Queues,
    /// Everything that the procedure to be explained lacks, if it waits.
    pub(crate) missing: Option<&'a Missing>,
    pub(crate) quarantined: &'a BTreeMap<u64, String>,
    /// What is missing in the history of each procedure whose rollback has met a hole.
    pub(crate) holes: &'a BTreeMap<ProcedureId, String>,
    pub(crate) thresholds: &'a Measures,
    pub(crate) now: Timestamp,
    /// When this engine began. Time before it does not count as running.
    pub(crate) opened: Timestamp,
    /// The newest commit on disk. Verdicts report nothing newer.
    pub(crate) durable: Seq,
    /// Returns how far the call of a stage that is out has got.
    pub(crate) called: &'a dyn Fn(ProcedureId) -> &'static str,
    /// Returns when the stage that is out began to run, and how long it usually takes.
    pub(crate) usual: &'a dyn Fn(&Row) -> Option<StageTiming>,
    /// Procedures that wait for something free, if the limiter itself was asked.
    pub(crate) unserved: Option<&'a Unserved>,
    /// The bounds that sizes are compared with.
    pub(crate) bounds: &'a Bounds,
    /// The bounds are the engine's own, not defaults that stand in for bounds missing on disk.
    pub(crate) knows_bounds: bool,
}

/// The timing of a running stage: when it began, and how long it usually takes.
#[derive(Clone, Copy)]
pub(crate) struct StageTiming {
    /// When the stage began to run.
    pub(super) since: Timestamp,
    /// Of the newest attempts that succeeded, 99 of 100 took at most this long.
    pub(super) p99: Duration,
}

/// Names the holders and waiters of locks. Their rows say since when.
pub(crate) fn lock_views(locks: Vec<LockUse>, claims: &Claims, kernel: &Kernel) -> Vec<LockView> {
    let holder = |claim: &ClaimId| claims.procedure(*claim);
    let view = |lock: LockUse| {
        let holders = lock.holders.iter();
        let holders: Vec<(ProcedureId, LockMode)> = holders
            .filter_map(|(claim, mode)| Some((holder(claim)?, *mode)))
            .collect();
        let since = |(id, mode): &(ProcedureId, LockMode)| {
            let (path, mode) = (lock.path.clone(), *mode);
            kernel.row(*id)?.locked_since(&LockNeed { path, mode })
        };
        let waiting = lock.waiting.iter();
        let waiting: Vec<(ProcedureId, LockMode)> = waiting
            .filter_map(|(claim, mode)| Some((holder(claim)?, *mode)))
            .collect();
        let waiter = |(id, mode): &(ProcedureId, LockMode)| LockWaiter {
            id: *id,
            mode: *mode,
            since: waits_since(kernel, *id),
        };
        LockView {
            since: holders.iter().map(since).collect(),
            holders,
            waiters: waiting.iter().take(NAMED).map(waiter).collect(),
            waiting: waiting.into_iter().map(|(id, _)| id).collect(),
            path: lock.path,
        }
    };
    locks.into_iter().map(view).collect()
}

/// Names the holders of permits, and the waiters, by limit.
pub(crate) fn limit_views(limits: Vec<LimitDetail>, claims: &Claims, kernel: &Kernel) -> Vec<LimitUse> {
    let holder = |claim: &ClaimId| claims.procedure(*claim);
    let view = |detail: LimitDetail| {
        let waiting = detail.waiting.iter().filter_map(holder);
        let mut holders: Vec<ProcedureId> = detail.holders.iter().filter_map(holder).collect();
        holders.sort_unstable();
        LimitUse {
            holders,
            waiters: waiting.map(|id| (id, waits_since(kernel, id))).collect(),
            ..detail.usage
        }
    };
    limits.into_iter().map(view).collect()
}

/// Returns since when a procedure waits to be admitted. A rollback waits from the time in its row: when the stage
/// before it became ready no longer matters.
fn waits_since(kernel: &Kernel, id: ProcedureId) -> Option<Timestamp> {
    let row = kernel.row(id)?;
    let ready = row.ready.filter(|_| row.state != ProcedureState::Failed);
    Some(ready.unwrap_or(row.since))
}
