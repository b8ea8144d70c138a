//! The outcomes of children for the stage that they woke, from memory.

use procession_kernel::ProcedureId;

use super::super::Supervisor;
use crate::step::ChildOutcome;

impl Supervisor {
    /// Gives the outcomes of a list of children as they stand on disk, with those
    /// outputs that are at hand. None if the list is not whole, or memory runs ahead
    /// of the disk: then only a read tells.
    pub(super) fn children_at_hand(&mut self, family: u64, first: u32, count: u32) -> Option<Vec<ChildOutcome>> {
        let outputs = self.outputs.take(family, first, count);
        let members = &self.kernel.families().get(&family)?.members;
        let begin = usize::try_from(first).ok()?;
        let end = begin.checked_add(usize::try_from(count).ok()?)?;
        let rows = members.get(begin..end)?;
        if rows.iter().any(|row| row.revision > self.pipeline.durable()) {
            return None;
        }
        let mut outputs = outputs.into_iter().peekable();
        let mut output_of = |id: ProcedureId| outputs.next_if(|(member, _)| *member == id.member);
        let outcome = rows.iter().map(|row| {
            let output = output_of(row.id).map(|(_, output)| output);
            // What an operator put in its place is read.
            ChildOutcome::of(row, output.filter(|_| row.mark.is_none()))
        });
        Some(outcome.collect())
    }
}
