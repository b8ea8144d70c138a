//! Values of procedures that were born and have not begun, because they wait for their width, a permit or a lock.
//! They are kept in memory within a bound, so that most need not be read from the store when their turn comes.

use procession_kernel::{Blob, ProcedureId, Record};
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};

/// Bytes of memory for all values together. A value beyond the bound is read from the store.
const BOUND: usize = 32 << 20;
/// Bytes that an entry takes up in addition to its value: its place in the map, and the value's own header.
const EACH: usize = 80;

#[derive(Default)]
pub(super) struct PayloadCache {
    values: FxHashMap<ProcedureId, Blob>,
    bytes: usize,
}

impl PayloadCache {
    /// Keeps the values that a decision gives to procedures that do not begin with it.
    pub(super) fn note(&mut self, records: &[Record]) {
        let count = records.iter().filter_map(waiting_procedure).count();
        if count == 0 {
            return;
        }
        let mut waiting = FxHashSet::with_capacity_and_hasher(count, FxBuildHasher);
        waiting.extend(records.iter().filter_map(waiting_procedure));
        // No more entries than the bound lets in.
        self.values.reserve(count.min((BOUND - self.bytes) / EACH));
        for record in records {
            if let Record::Payload(id, value) = record
                && waiting.contains(id)
            {
                self.keep(*id, value);
            }
        }
    }

    fn keep(&mut self, id: ProcedureId, value: &Blob) {
        if self.bytes + EACH + value.len() <= BOUND && self.values.insert(id, value.clone()).is_none() {
            self.bytes += EACH + value.len();
        }
    }

    /// Takes the value of a procedure that begins, or that never will.
    pub(super) fn take(&mut self, id: ProcedureId) -> Option<Blob> {
        let value = self.values.remove(&id)?;
        self.bytes -= EACH + value.len();
        Some(value)
    }

    /// Drops the values of a quarantined family.
    pub(super) fn forget(&mut self, family: u64) {
        let gone: Vec<ProcedureId> = self.values.keys().filter(|id| id.family == family).copied().collect();
        for id in gone {
            self.take(id);
        }
    }
}

fn waiting_procedure(record: &Record) -> Option<ProcedureId> {
    let Record::Row(row) = record else { return None };
    let is_new = row.visit == 0 && row.attempt == 0;
    (is_new && row.going.is_none() && row.wait.is_some() && !row.is_ended()).then_some(row.id)
}

#[cfg(test)]
mod tests;
