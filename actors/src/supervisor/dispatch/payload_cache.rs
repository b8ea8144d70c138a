//! Values of procedures that were born and have not begun, because they wait for their width, a permit or a lock. The
//! values are kept in memory within a bound, so that most of them need not be read from the store later.

use procession_kernel::{Blob, ProcedureId, Record, Row};
use rustc_hash::FxHashMap;

/// The maximum size of all values together, in bytes. A value beyond the bound is read from the store.
const BOUND: usize = 32 << 20;
/// The bytes that an entry takes up in addition to its value: its place in the map, and the value's own header.
const EACH: usize = 80;

#[derive(Default)]
pub(super) struct PayloadCache {
    values: FxHashMap<ProcedureId, Blob>,
    bytes: usize,
}

impl PayloadCache {
    /// Begins to keep the values of procedures that a decision creates and does not start.
    pub(super) const fn begin<'a>(&'a mut self, records: &'a [Record]) -> BornPayloads<'a> {
        BornPayloads {
            cache: self,
            records,
            next: 0,
            budget: records.len() * SEARCHES,
        }
    }

    fn keep(&mut self, id: ProcedureId, value: &Blob) {
        if self.bytes + EACH + value.len() <= BOUND && self.values.insert(id, value.clone()).is_none() {
            self.bytes += EACH + value.len();
        }
    }

    /// Returns `true` if the value of a procedure is kept.
    pub(super) fn contains(&self, id: ProcedureId) -> bool {
        self.values.contains_key(&id)
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

/// How often the search for values may go through the records of a decision. Each new list of births needs one pass,
/// and a report has at most four lists. Rows that bring no value may need as many passes again.
const SEARCHES: usize = 8;

/// The values that one decision gives to procedures that wait.
pub(super) struct BornPayloads<'a> {
    cache: &'a mut PayloadCache,
    records: &'a [Record],
    /// Where the search for the next value begins.
    next: usize,
    /// The number of records that may still be searched. A value that is not found is read from the store.
    budget: usize,
}

impl BornPayloads<'_> {
    /// Takes the next row of the decision.
    pub(super) fn take(&mut self, row: &Row) {
        if is_waiting(row)
            && let Some(value) = self.value_of(row.id)
        {
            self.cache.keep(row.id, value);
        }
    }

    fn is_first(&self) -> bool {
        self.budget == self.records.len() * SEARCHES
    }
}

impl<'a> BornPayloads<'a> {
    /// Finds the value of a row. A decision records values before rows, and both in the order of the births. So the
    /// next value is nearly always the right one. Only where one list of births ends and another begins, such as
    /// children and detached families, the search goes around once.
    fn value_of(&mut self, id: ProcedureId) -> Option<&'a Blob> {
        if self.is_first() {
            // Half of the records are values, half are rows. At most as many entries as the bound allows.
            let most = (BOUND - self.cache.bytes) / EACH;
            self.cache.values.reserve(most.min(self.records.len() / 2));
        }
        let (before, after) = self.records.split_at_checked(self.next)?;
        for (step, record) in after.iter().chain(before).enumerate() {
            self.budget = self.budget.checked_sub(1)?;
            if let Record::Payload(other, value) = record
                && *other == id
            {
                self.next = (self.next + step + 1) % self.records.len();
                return Some(value);
            }
        }
        None
    }
}

fn is_waiting(row: &Row) -> bool {
    let is_new = row.visit == 0 && row.attempt == 0;
    is_new && row.in_flight.is_none() && row.wait.is_some() && !row.is_ended()
}

#[cfg(test)]
mod tests;
