//! What a diagnosis goes by: the kernel, the limiter's queues, and what is known beside them. It is the same for an
//! engine that runs and for a journal that is closed.

use std::collections::BTreeMap;
use std::time::Duration;

use procession_kernel::{
    Bounds, ClaimId, Kernel, Lack, LimitCrowd, LimitUse, LockMode, LockNeed, LockUse, ProcedureId, ProcedureState, Row,
    Seq, Timestamp,
};
use rustc_hash::{FxBuildHasher, FxHashMap};

use super::starved::{Unserved, free};
use crate::limiter::Waiting;
use crate::supervisor::admission::claims::Claims;
use crate::thresholds::Measures;
use crate::view::{LockView, LockWaiter, NAMED};

/// What the limiter says of those that wait, by procedure.
#[derive(Default)]
pub(crate) struct Queues {
    pub(super) waiting: Vec<(ProcedureId, Waiting)>,
    places: FxHashMap<ProcedureId, usize>,
    /// Who waits for what is free, with its revision and the claims of nobody that are in its way.
    pub(super) free: Vec<(ProcedureId, Seq, Vec<ClaimId>)>,
}

impl Queues {
    /// Makes room for as many as may wait: to grow a large table moves all that is in it.
    pub(in crate::supervisor) fn with_room(waiting: usize) -> Self {
        Self {
            waiting: Vec::with_capacity(waiting),
            places: FxHashMap::with_capacity_and_hasher(waiting, FxBuildHasher),
            free: Vec::new(),
        }
    }

    /// All who wait, as the limiter names them.
    pub(crate) fn new(waiting: Vec<Waiting>, claims: &Claims, kernel: &Kernel) -> Self {
        let mut queues = Self::with_room(waiting.len());
        queues.extend(waiting, claims, kernel);
        queues
    }

    /// Adds a page of waiting claims. Leaves out claims that belong to no procedure.
    pub(in crate::supervisor) fn extend(&mut self, waiting: Vec<Waiting>, claims: &Claims, kernel: &Kernel) {
        for waiting in waiting {
            let Some(id) = claims.procedure(waiting.claim) else {
                continue;
            };
            if let Some((unowned, row)) = free(&waiting, claims).zip(kernel.row(id)) {
                self.free.push((id, row.revision, unowned));
            }
            self.places.insert(id, self.waiting.len());
            self.waiting.push((id, waiting));
        }
    }

    pub(super) fn of(&self, id: ProcedureId) -> Option<&Waiting> {
        let place = self.places.get(&id)?;
        self.waiting.get(*place).map(|(_, waiting)| waiting)
    }
}

/// The input of rules and explanations.
pub(crate) struct DiagnosisInput<'a> {
    pub(crate) kernel: &'a Kernel,
    pub(crate) claims: &'a Claims,
    pub(crate) queues: &'a Queues,
    /// All of what the one lacks that is to be explained, if it waits.
    pub(crate) lack: Option<&'a Lack>,
    pub(crate) quarantined: &'a BTreeMap<u64, String>,
    /// What is missing in histories of those whose rollback has met a hole.
    pub(crate) holes: &'a BTreeMap<ProcedureId, String>,
    pub(crate) thresholds: &'a Measures,
    pub(crate) now: Timestamp,
    /// When this engine began: what passed before it does not count as running.
    pub(crate) opened: Timestamp,
    /// The newest commit on disk: verdicts tell of nothing newer.
    pub(crate) durable: Seq,
    /// Says how far the call of a stage that is out has come.
    pub(crate) called: &'a dyn Fn(ProcedureId) -> &'static str,
    /// Says since when the stage runs that is out, and what it usually takes.
    pub(crate) usual: &'a dyn Fn(&Row) -> Option<StageTiming>,
    /// Who waits for what is free, if the limiter itself was asked.
    pub(crate) unserved: Option<&'a Unserved>,
    /// What sizes are measured by.
    pub(crate) bounds: &'a Bounds,
    /// They are those of the engine, and not the defaults in place of what is not on disk.
    pub(crate) knows_bounds: bool,
}

/// A stage that runs now, and what it usually takes.
#[derive(Clone, Copy)]
pub(crate) struct StageTiming {
    /// Since when.
    pub(super) since: Timestamp,
    /// What 99 of 100 of the newest took that have succeeded.
    pub(super) p99: Duration,
}

/// Names those who hold and want locks; since when is in their rows.
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

/// Names those who hold permits of limits, and those who wait for one.
pub(crate) fn limit_views(limits: Vec<LimitCrowd>, claims: &Claims, kernel: &Kernel) -> Vec<LimitUse> {
    let holder = |claim: &ClaimId| claims.procedure(*claim);
    let view = |crowd: LimitCrowd| {
        let waiting = crowd.waiting.iter().filter_map(holder);
        let mut holders: Vec<ProcedureId> = crowd.holders.iter().filter_map(holder).collect();
        holders.sort_unstable();
        LimitUse {
            holders,
            waiters: waiting.map(|id| (id, waits_since(kernel, id))).collect(),
            ..crowd.usage
        }
    };
    limits.into_iter().map(view).collect()
}

/// Returns since when a procedure waits to be admitted. A rollback waits since its row says so: when the stage before
/// it was ready does not matter any more.
fn waits_since(kernel: &Kernel, id: ProcedureId) -> Option<Timestamp> {
    let row = kernel.row(id)?;
    let ready = row.ready.filter(|_| row.state != ProcedureState::Failed);
    Some(ready.unwrap_or(row.since))
}
