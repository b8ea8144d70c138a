//! One stage again and again: bounded where the kind says so.

use super::draft::Draft;
use crate::cause::CauseKind;
use crate::effect::AdmissionEffect;
use crate::event::StageEnded;
use crate::row::Row;

impl Draft<'_> {
    /// Gives the bound of the kind, if its stage was run as often in a row.
    pub(super) fn over_same_stage(&self, row: &Row) -> Option<u32> {
        let bound = self.kernel.kind(&row.kind)?.same_stage?;
        (row.same_stage >= bound).then_some(bound)
    }

    /// Tells whether its next stage was run too often in a row to be run once
    /// more without an operator's word. Before the point of no return it has failed instead.
    pub(super) fn circles(&self, row: &Row) -> bool {
        row.past.is_some() && self.over_same_stage(row).is_some()
    }

    /// One stage was run too often in a row: it fails.
    pub(super) fn over_bound(&mut self, row: Box<Row>, bound: u32, report: &StageEnded) {
        let name = report.ahead.name.as_deref().unwrap_or("its stage");
        let text = format!("stage {name} was run {bound} times in a row, which is the bound");
        if report.admission.is_some() {
            self.effect(AdmissionEffect::Cancel(row.id));
        }
        self.failed(row, CauseKind::OverBound, text);
    }
}
