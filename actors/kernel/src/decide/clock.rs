//! Handles a wall clock that was set back. Otherwise timers armed while it was ahead would wait for as long as it was
//! wrong.

use std::time::Duration;

use super::draft::Draft;
use crate::effect::LifecycleEffect;
use crate::id::ProcedureId;
use crate::row::Row;
use crate::wait::WaitReason;

impl Draft<'_> {
    /// Shortens every backoff that would last longer than its policy allows, or than the delay that its code chose.
    /// Sleeps and deadlines are instants that user code chose, so they stay.
    pub(super) fn clock_set_back(&mut self) {
        let long: Vec<(ProcedureId, WaitReason)> = self
            .kernel
            .families
            .awake()
            .flat_map(|family| &family.members)
            .filter_map(|row| Some((row.id, self.shortened(row)?)))
            .collect();
        for (id, wait) in long {
            self.change(id, |row| row.wait = Some(wait));
            self.effect(LifecycleEffect::ArmTimer);
        }
    }

    fn shortened(&self, row: &Row) -> Option<WaitReason> {
        let Some(WaitReason::Backoff(attempt, until)) = row.wait else {
            return None;
        };
        let latest = self.now.after(self.longest_backoff(row, attempt));
        (until > latest).then_some(WaitReason::Backoff(attempt, latest))
    }

    /// Returns the delay that the code chose, or else the longest backoff that the policies allow. During a rollback,
    /// the undo's member is unknown until the stack is read, so all members of the scope count.
    fn longest_backoff(&self, row: &Row, attempt: u32) -> Duration {
        if let Some(chosen) = row.rare().retry_after {
            return chosen;
        }
        let rules = |row: &Row| self.rules_of(&row.kind);
        if !row.is_failing() {
            let policy = rules(row).map(|rules| rules.retry).unwrap_or_default();
            return policy.longest_after(attempt);
        }
        let family = self.family(row.id.family);
        let within = family.into_iter().flat_map(|family| family.within(row.id.member));
        let undos = within
            .filter_map(rules)
            .map(|rules| rules.retry_undo.longest_after(attempt));
        undos.max().unwrap_or_default()
    }
}
