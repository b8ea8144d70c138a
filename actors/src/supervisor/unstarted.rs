//! Values of procedures that were born and have not begun: they wait for their
//! width, a permit or a lock. Kept at hand within a bound, so that most of them
//! need not be read from the store when their turn comes.

use procession_kernel::{Blob, ProcedureId, Record};
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};

/// Bytes of memory for them in all. Those beyond are read from the store.
const BOUND: usize = 32 << 20;
/// Bytes that one takes up beside its value: its place in the map, the value's own header.
const EACH: usize = 80;

#[derive(Default)]
pub(super) struct Unstarted {
    values: FxHashMap<ProcedureId, Blob>,
    bytes: usize,
}

impl Unstarted {
    /// Keeps the values that a decision gives to those who do not begin with it.
    pub(super) fn note(&mut self, records: &[Record]) {
        let count = records.iter().filter_map(who_waits).count();
        if count == 0 {
            return;
        }
        let mut waiting = FxHashSet::with_capacity_and_hasher(count, FxBuildHasher);
        waiting.extend(records.iter().filter_map(who_waits));
        // No more of them than the bound lets in.
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

    /// Takes the value of one that begins, or never will.
    pub(super) fn take(&mut self, id: ProcedureId) -> Option<Blob> {
        let value = self.values.remove(&id)?;
        self.bytes -= EACH + value.len();
        Some(value)
    }

    /// Drops the values of a family that is set aside.
    pub(super) fn forget(&mut self, family: u64) {
        let gone: Vec<ProcedureId> = self.values.keys().filter(|id| id.family == family).copied().collect();
        for id in gone {
            self.take(id);
        }
    }
}

fn who_waits(record: &Record) -> Option<ProcedureId> {
    let Record::Row(row) = record else { return None };
    let is_new = row.visit == 0 && row.attempt == 0;
    (is_new && row.going.is_none() && row.wait.is_some() && !row.is_ended()).then_some(row.id)
}

#[cfg(test)]
mod tests;
