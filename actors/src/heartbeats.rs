//! The heartbeats of all workers, for readers on any thread: gauges, and the shutdown report, which names what still
//! runs.

use std::sync::{Arc, Mutex, PoisonError};

use procession_kernel::ProcedureId;

use crate::worker::Heartbeat;

/// The heartbeats of all workers, shared with readers that need the number of waiting calls.
#[derive(Clone, Default)]
pub(crate) struct Heartbeats(Arc<Mutex<Vec<Arc<Heartbeat>>>>);

impl Heartbeats {
    /// Returns how many calls wait for a worker, approximately.
    pub(crate) fn waiting(&self) -> u64 {
        let heartbeats = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        heartbeats.iter().map(|heartbeat| heartbeat.waiting()).sum()
    }

    /// Returns the procedures whose code has a worker's thread at this moment.
    pub(crate) fn holders(&self) -> Vec<ProcedureId> {
        let heartbeats = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        heartbeats
            .iter()
            .filter_map(|heartbeat| heartbeat.holder(heartbeat.beats()))
            .collect()
    }

    /// Replaces the heartbeats by those of the current workers.
    pub(crate) fn set(&self, heartbeats: Vec<Arc<Heartbeat>>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = heartbeats;
    }
}
