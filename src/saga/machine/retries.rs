//! How often the task in hand has been tried again.

use serde::{Deserialize, Serialize};

/// Retries so far of each entry of `Retry`, up to the last one that was used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Retries(Vec<u16>);

impl Retries {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn of(&self, entry: usize) -> u16 {
        self.0.get(entry).copied().unwrap_or_default()
    }

    pub(super) fn count(&mut self, entry: usize) {
        if self.0.len() <= entry {
            self.0.resize(entry + 1, 0);
        }
        if let Some(count) = self.0.get_mut(entry) {
            *count = count.saturating_add(1);
        }
    }
}
