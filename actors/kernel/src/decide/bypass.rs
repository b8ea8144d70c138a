//! Bypass: an operator ends a procedure without its code, from any state.

use super::draft::Draft;
use crate::audit::OperatorRequest;
use crate::cause::{Cause, CauseKind};
use crate::effect::{DispatchEffect, NotNow, Refusal};
use crate::id::ProcedureId;
use crate::lifecycle::ProcedureState;
use crate::record::Record;
use crate::row::{Mark, OnFailure, Row};
use crate::verb::{BypassAs, BypassScope};

impl Draft<'_> {
    /// Ends a procedure and the members in the scope, in one commit. Nothing is undone. Locks and permits are
    /// released, the parent goes on by its join policy, and the report of a running stage will be ignored.
    pub(super) fn bypass(
        &mut self,
        id: ProcedureId,
        bypass_scope: BypassScope,
        outcome: &BypassAs,
        by: &OperatorRequest,
    ) -> Result<(), Refusal> {
        if self.row(id).is_none_or(Row::is_ended) {
            return Err(Refusal::NotLive(id));
        }
        let top = match bypass_scope {
            BypassScope::Alone | BypassScope::Descendants => id,
            BypassScope::Ancestors | BypassScope::Family => ProcedureId::root(id.family),
        };
        if let Some(scope) = self.scope_of(top).filter(|scope| *scope != top) {
            let text = format!("{id} fails together with {scope}; bypass {scope} instead");
            return Err(Refusal::NotNow(NotNow::Failing, text));
        }
        let limit = self.kernel.rules.bounds.payload;
        if let BypassAs::Output(output) = outcome
            && output.len() > limit
        {
            return Err(Refusal::TooLarge(output.len(), limit));
        }
        let ends = self.reached(id, top, bypass_scope)?;
        self.leave_compensations(top);
        for member in &ends {
            let outcome = if *member == id { outcome } else { &BypassAs::Success };
            self.end_bypassed(*member, outcome, by);
        }
        // After all ends: a bypassed member may be the suspect that others wait behind, and members that end here must
        // not be started.
        ends.iter().for_each(|member| self.next_suspect(*member));
        if let Some(parent) = self.child_moved(top) {
            self.fail_upwards(parent, top);
        }
        self.begin_rollback_if_quiet(top);
        self.end_family_if_over(id.family);
        Ok(())
    }

    /// Returns the members to end. Refuses if a live member at or below `top` is not among them, because it would be
    /// orphaned.
    fn reached(
        &self,
        id: ProcedureId,
        top: ProcedureId,
        bypass_scope: BypassScope,
    ) -> Result<Vec<ProcedureId>, Refusal> {
        let Some(family) = self.family(id.family) else {
            return Err(Refusal::NotLive(id));
        };
        let is_ancestor = |member: u32| family.ancestry(id.member).any(|row| row.id.member == member);
        let chosen = |member: u32| match bypass_scope {
            BypassScope::Alone => member == id.member,
            BypassScope::Descendants => family.is_within(id.member, member),
            BypassScope::Ancestors => is_ancestor(member),
            BypassScope::Family => true,
        };
        let mut ends = Vec::new();
        for row in family.members.iter().filter(|row| !row.is_ended()) {
            let member = row.id.member;
            if chosen(member) {
                ends.push(row.id);
            } else if family.is_within(top.member, member) {
                let text = format!(
                    "{} is live below {top}; bypass it first, or bypass all of them together",
                    row.id
                );
                return Err(Refusal::NotNow(NotNow::LiveBelow, text));
            }
        }
        Ok(ends)
    }

    fn end_bypassed(&mut self, id: ProcedureId, outcome: &BypassAs, by: &OperatorRequest) {
        let Some(mut row) = self.take(id) else { return };
        row.wait = None;
        row.wake = None;
        row.since = self.now;
        row.rare_mut().mark = Some(Mark::Bypassed);
        let mut told = None;
        match outcome {
            BypassAs::Success => row.state = ProcedureState::Success,
            BypassAs::Output(output) => {
                row.state = ProcedureState::Success;
                self.record(Record::Output(id, output.clone()));
                told = Some(output.clone());
            }
            BypassAs::Failed => {
                row.state = ProcedureState::Failed;
                let text = format!("bypassed by {}: {}", by.who, by.why);
                row.rare_mut()
                    .cause
                    .get_or_insert_with(|| Cause::new(CauseKind::Aborted, text, id).into());
            }
        }
        if row.state == ProcedureState::Success {
            row.clear_rare(|rare| rare.cause = None);
        }
        self.ended(&mut row, told);
        self.put(row);
    }

    /// Releases the locks and permits of compensations that the bypass cancels. A succeeded member that was to be undone
    /// has taken them again, or waits for them.
    fn leave_compensations(&mut self, top: ProcedureId) {
        // The part that rolls back may start below the bypassed procedure.
        let again = |row: &Row| row.is_ended() && row.on_failure == OnFailure::Compensate && self.is_stopped(row.id);
        let left: Vec<Row> = match self.family(top.family) {
            Some(family) => family.within(top.member).filter(|row| again(row)).cloned().collect(),
            None => Vec::new(),
        };
        for mut row in left {
            let held = !row.locked.is_empty() || !row.stage_limits.is_empty();
            self.effect(DispatchEffect::Stop(row.id));
            self.release(&mut row);
            if held {
                self.put(Box::new(row));
            }
        }
    }
}
