//! Signals that wait for the procedures of each kind, as one health check finds them.

use std::collections::BTreeMap;

use procession_kernel::{Kind, Timestamp};

/// How many signals wait, and when the oldest was sent, by the kind of their receivers.
#[derive(Debug, Default)]
pub(crate) struct SignalsWaiting(BTreeMap<Kind, (u64, Option<Timestamp>)>);

impl SignalsWaiting {
    /// Adds the signals of one procedure.
    pub(crate) fn note(&mut self, kind: &Kind, waiting: usize, oldest: Option<Timestamp>) {
        if waiting == 0 {
            return;
        }
        let (count, so_far) = self.0.entry(kind.clone()).or_default();
        *count += waiting as u64;
        *so_far = [*so_far, oldest].into_iter().flatten().min();
    }

    pub(super) fn of(&self, kind: &Kind) -> (u64, Option<Timestamp>) {
        self.0.get(kind).copied().unwrap_or_default()
    }
}
