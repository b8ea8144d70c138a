//! Outputs of children that have ended, kept in memory within a bound until their parent is woken. So most of them need
//! not be read from the store one by one.

use procession_kernel::{Blob, Kernel, ProcedureId, Seq};
use rustc_hash::FxHashMap;

use crate::step::ChildOutcome;

/// The maximum size of all outputs together, in bytes. An output beyond the bound is read from the store.
const BOUND: usize = 32 << 20;
/// The bytes that an entry takes up in addition to its value: its place in the list, and the value's own header.
const EACH: usize = 48;

#[derive(Default)]
pub(super) struct OutputCache {
    /// The outputs by family, in the order of the commits.
    families: FxHashMap<u64, Vec<(u32, Blob)>>,
    bytes: usize,
}

impl OutputCache {
    /// Keeps the output of a child that has ended.
    pub(super) fn ended(&mut self, id: ProcedureId, value: &Blob) {
        if !id.is_root() {
            self.keep(id.family, id.member, value);
        }
    }

    fn keep(&mut self, family: u64, member: u32, value: &Blob) {
        if self.bytes + EACH + value.len() <= BOUND {
            self.bytes += EACH + value.len();
            self.families.entry(family).or_default().push((member, value.clone()));
        }
    }

    /// Returns the outcomes of a list of children as they are on disk, with the outputs that are in memory. Returns
    /// `None` if the kernel does not have the whole list, or is ahead of the disk in one of its rows. The outcomes must
    /// then be read from the store. Takes the outputs from the cache in either case.
    pub(super) fn children(
        &mut self,
        kernel: &Kernel,
        durable: Seq,
        family: u64,
        first: u32,
        count: u32,
    ) -> Option<Vec<ChildOutcome>> {
        let outputs = self.take(family, first, count);
        let members = &kernel.families().get(&family)?.members;
        let begin = usize::try_from(first).ok()?;
        let end = begin.checked_add(usize::try_from(count).ok()?)?;
        let rows = members.get(begin..end)?;
        if rows.iter().any(|row| row.revision > durable) {
            return None;
        }
        let mut outputs = outputs.into_iter().peekable();
        let mut output_of = |id: ProcedureId| outputs.next_if(|(member, _)| *member == id.member);
        let outcome = rows.iter().map(|row| {
            let output = output_of(row.id).map(|(_, output)| output);
            // An output that an operator has overridden is read from the store.
            ChildOutcome::of(row, output.filter(|_| row.rare().mark.is_none()))
        });
        Some(outcome.collect())
    }

    /// Takes the outputs of a list of children, in the order of their numbers.
    fn take(&mut self, family: u64, first: u32, count: u32) -> Vec<(u32, Blob)> {
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

    /// Drops the outputs of a family.
    pub(super) fn forget(&mut self, family: u64) {
        if self.families.is_empty() {
            return;
        }
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
