//! What is counted of the rows as they come and go, so that no request looks through them.

use std::collections::{BTreeMap, BTreeSet};

use procession_actors::view::Status;
use procession_kernel::{Kind, LimitKey, ProcedureId, Timestamp, WaitReason};

use crate::filter::{is_retrying, is_rolling_back};

/// How many stand so that somebody may want to know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tiles {
    pub(crate) active: usize,
    pub(crate) retrying: usize,
    /// Those whose rollback goes on.
    pub(crate) rolling_back: usize,
    pub(crate) rollback_failed: usize,
    pub(crate) paused: usize,
}

/// Counts of rows that have not ended.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) tiles: Tiles,
    /// Live ones by the version of their payload.
    versions: BTreeMap<Kind, BTreeMap<u16, usize>>,
    /// Those that are ready and not out, the oldest first.
    ready: BTreeSet<(Timestamp, ProcedureId)>,
    /// Those that wait for a permit, by limit, the oldest first.
    queues: BTreeMap<LimitKey, BTreeSet<(Timestamp, ProcedureId)>>,
}

impl Tally {
    pub(super) fn add(&mut self, row: &Status) {
        if row.ended.is_some() {
            return;
        }
        self.tiles(row, |tile| *tile += 1);
        let versions = self.versions.entry(row.kind.clone()).or_default();
        *versions.entry(row.version).or_default() += 1;
        if is_ready(row) {
            self.ready.insert((row.since, row.id));
        }
        if let Some(WaitReason::Permit(limit)) = &row.wait {
            let queue = self.queues.entry(limit.clone()).or_default();
            queue.insert((row.since, row.id));
        }
    }

    pub(super) fn remove(&mut self, row: &Status) {
        if row.ended.is_some() {
            return;
        }
        self.tiles(row, |tile| *tile -= 1);
        if let Some(versions) = self.versions.get_mut(&row.kind) {
            if let Some(count) = versions.get_mut(&row.version) {
                *count -= 1;
            }
            versions.retain(|_, count| *count > 0);
        }
        self.ready.remove(&(row.since, row.id));
        if let Some(WaitReason::Permit(limit)) = &row.wait {
            if let Some(queue) = self.queues.get_mut(limit) {
                queue.remove(&(row.since, row.id));
            }
            self.queues.retain(|_, queue| !queue.is_empty());
        }
    }

    /// Changes each count that a row belongs to.
    fn tiles(&mut self, row: &Status, change: impl Fn(&mut usize)) {
        let tiles = &mut self.tiles;
        change(&mut tiles.active);
        // Whatever else it waits for: it does not go on before an operator resumes it.
        let is_paused = row.paused || row.wait == Some(WaitReason::Paused);
        if is_paused {
            change(&mut tiles.paused);
        }
        match &row.wait {
            Some(WaitReason::RollbackFailed) => change(&mut tiles.rollback_failed),
            _ if is_rolling_back(row) => change(&mut tiles.rolling_back),
            _ if is_retrying(row) => change(&mut tiles.retrying),
            _ => {}
        }
    }

    pub(crate) fn versions(&self, kind: &Kind) -> BTreeMap<u16, usize> {
        self.versions.get(kind).cloned().unwrap_or_default()
    }

    /// Returns the procedure that has been ready for the longest time.
    pub(crate) fn oldest_ready(&self) -> Option<(Timestamp, ProcedureId)> {
        self.ready.first().copied()
    }

    /// Returns the procedure that has waited longest for a permit of this limit.
    pub(crate) fn oldest_waiter(&self, limit: &LimitKey) -> Option<(Timestamp, ProcedureId)> {
        self.queues.get(limit)?.first().copied()
    }
}

fn is_ready(row: &Status) -> bool {
    match &row.wait {
        None => !row.going,
        Some(WaitReason::Queue | WaitReason::Suspect) => true,
        Some(_) => false,
    }
}
