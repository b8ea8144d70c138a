//! Limits how often one stage may run in a row, where the kind says so.

use super::draft::Draft;
use crate::cause::CauseKind;
use crate::event::StageEnded;
use crate::row::Row;

impl Draft<'_> {
    /// Returns the kind's limit if the stage has run that often in a row.
    pub(super) fn reached_repeat_limit(&self, row: &Row) -> Option<u32> {
        let bound = self.rules_of(&row.kind)?.repeat_limit?;
        (row.same_stage >= bound).then_some(bound)
    }

    /// Returns `true` if the next stage needs an operator's consent because it ran too often in a row. This happens
    /// only past the point of no return; before it, the procedure has failed instead.
    pub(super) fn waits_at_repeat_limit(&self, row: &Row) -> bool {
        row.rare().past_no_return.is_some() && self.reached_repeat_limit(row).is_some()
    }

    /// Fails a procedure that ran one stage too often in a row.
    #[cold]
    pub(super) fn fail_at_repeat_limit(&mut self, mut row: Box<Row>, bound: u32, report: &StageEnded) {
        let name = report.next_needs.name.as_deref().unwrap_or("its stage");
        let text = format!("stage {name} ran {bound} times in a row, which is the limit");
        if report.admission.is_some() {
            self.withdraw_next_stage(&mut row);
        }
        self.failed(row, CauseKind::OverBound, text);
    }
}
