//! Outputs of children that have ended, kept at hand within a bound until their
//! parent asks: most of them need not be read from the store one by one.

use procession_kernel::{Blob, Record};
use rustc_hash::FxHashMap;

/// Bytes of memory for them in all. Those beyond are read from the store.
const BOUND: usize = 32 << 20;
/// Bytes that one takes up beside its value: its place in the list, the value's own header.
const EACH: usize = 48;

#[derive(Default)]
pub(super) struct Outputs {
    /// By family; in the order in which they came.
    families: FxHashMap<u64, Vec<(u32, Blob)>>,
    bytes: usize,
}

impl Outputs {
    /// Keeps the outputs that a decision gives to children, and drops those of a family that it ends.
    pub(super) fn note(&mut self, records: &[Record]) {
        for record in records {
            if let Record::Output(id, value) = record
                && !id.is_root()
            {
                self.keep(id.family, id.member, value);
            } else if let Record::FamilyEnded(family, _) = record {
                self.forget(*family);
            }
        }
    }

    fn keep(&mut self, family: u64, member: u32, value: &Blob) {
        if self.bytes + EACH + value.len() <= BOUND {
            self.bytes += EACH + value.len();
            self.families.entry(family).or_default().push((member, value.clone()));
        }
    }

    /// Takes those of a list of children, in the order of their numbers.
    pub(super) fn take(&mut self, family: u64, first: u32, count: u32) -> Vec<(u32, Blob)> {
        let Some(kept) = self.families.remove(&family) else {
            return Vec::new();
        };
        let is_asked = |(member, _): &(u32, Blob)| *member >= first && *member - first < count;
        let (mut taken, left): (Vec<_>, Vec<_>) = kept.into_iter().partition(is_asked);
        if !left.is_empty() {
            self.families.insert(family, left);
        }
        self.bytes -= taken.iter().map(size).sum::<usize>();
        taken.sort_by_key(|(member, _)| *member);
        taken
    }

    /// Drops what is kept of a family.
    pub(super) fn forget(&mut self, family: u64) {
        if let Some(kept) = self.families.remove(&family) {
            self.bytes -= kept.iter().map(size).sum::<usize>();
        }
    }
}

fn size((_, value): &(u32, Blob)) -> usize {
    EACH + value.len()
}

#[cfg(test)]
mod tests;
