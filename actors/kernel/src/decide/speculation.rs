//! Speculation: which stages are called before the decisions that they rest on are on disk.
//!
//! The journal is one sequence, so a decision is never on disk before those it was computed from. A stage that reaches
//! nothing but its report can therefore run ahead of the disk: what it reports is a later decision, and a crash loses
//! both. The rule is that of optimistic and speculative execution in general: nothing leaves before what it rests on is
//! durable.

use super::draft::Draft;
use crate::id::Blob;
use crate::outstanding::stage_of;
use crate::row::Row;

impl Draft<'_> {
    /// Issues the call of the stage that the row says is out: at once if it may run ahead of the disk.
    pub(super) fn advance_soon(&mut self, row: &Row, payload: Option<Blob>) {
        if !self.may_run_ahead(row, payload.is_some()) {
            return self.advance(row, payload);
        }
        if let Some(call) = stage_of(row, self.kernel.deaths, payload) {
            self.speculate(call);
        }
    }

    /// Returns `true` if the call of a stage need not wait for the receipt. It may not if the store must be read for it:
    /// the store is behind this decision. It may not either if the stage is called again, so that whatever goes wrong
    /// repeatedly is marked on disk before.
    fn may_run_ahead(&self, row: &Row, brings_value: bool) -> bool {
        let is_allowed = self.kernel.rules.speculation && self.now >= self.kernel.speculation_from;
        let is_first_call = row.attempt == 0 && row.repeated == 0;
        let is_plain = row.wake.is_none() && !row.out_of_time;
        is_allowed && row.is_pure && is_first_call && is_plain && (brings_value || self.has_value_at_hand(row))
    }

    /// Returns `true` if the value of a procedure may be in memory: with its actor, which has just reported, or because
    /// the procedure was born by this engine and never ran.
    fn has_value_at_hand(&self, row: &Row) -> bool {
        let is_new = row.visit == 0 && row.history == 0;
        is_new || self.goes_on_with_actor(row.id)
    }
}
