//! Quarantine: families that cannot be made to run are kept out of the way.

use std::sync::Arc;

use actix::prelude::*;
use procession_kernel::{Event, ProcedureId};

use super::Supervisor;
use crate::view::Rule;

impl Supervisor {
    /// Quarantines a family that cannot be made to run, and resumes the families that had to wait because it was
    /// suspected.
    pub(super) fn put_aside(&mut self, family: u64, why: String, ctx: &mut Context<Self>) {
        self.quarantine(family, why);
        self.decide(Event::FamilyForgotten, ctx);
    }

    /// Quarantines a family. The caller must resume whatever this unblocks.
    pub(super) fn quarantine(&mut self, family: u64, why: String) {
        tracing::warn!(family, why, "the family is quarantined");
        // Behind everything that was decided before, or the gauges would fall before they rose.
        let mut gone = self.metrics.quarantine(&self.kernel, family);
        match self.pipeline.last_observations() {
            Some(last) => last.append(&mut gone),
            None => self.metrics.count(gone),
        }
        self.admission.withdraw_family(&self.kernel, family);
        self.kernel.forget(family);
        self.dispatch.forget_family(family);
        Arc::make_mut(&mut self.quarantined).insert(family, why);
        let now = self.clock.now();
        self.health
            .note(Rule::Quarantined, Some(ProcedureId::root(family)), now);
        self.metrics.show_quarantined(self.quarantined.len());
    }
}
