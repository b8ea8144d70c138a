//! Reports of procedures' actors.

use actix::prelude::*;
use procession_kernel::{Birth, Event, StageEnded, StageOutcome};

use super::Supervisor;
use crate::procedure_actor::Report;

impl Handler<Report> for Supervisor {
    type Result = ();

    fn handle(&mut self, report: Report, ctx: &mut Self::Context) {
        match report {
            Report::Stage(report, submitted) => self.stage_ended(*report, submitted, ctx),
            Report::Undo(report) => self.decide(Event::UndoEnded(report), ctx),
            Report::Join(parent, first, seen, ruling) => {
                self.actors.remove(&parent);
                let ruled = Event::JoinRuled {
                    parent,
                    first,
                    seen,
                    ruling,
                };
                self.decide(ruled, ctx);
            }
            Report::Unloadable(id, why) => self.quarantine(id.family, format!("{id}: {why}")),
        }
        self.look_at_drain(ctx);
    }
}

impl Supervisor {
    fn stage_ended(&mut self, mut report: StageEnded, submitted: Vec<Birth>, ctx: &mut Context<Self>) {
        let detached: &[Birth] = match &report.outcome {
            StageOutcome::Spawn { births, .. } => births,
            StageOutcome::Next(_)
            | StageOutcome::Done(_)
            | StageOutcome::Sleep(..)
            | StageOutcome::Wait(..)
            | StageOutcome::Yield
            | StageOutcome::Retry(_)
            | StageOutcome::Fail(_)
            | StageOutcome::Panicked(_)
            | StageOutcome::Refused(_) => &[],
        };
        let roots: Vec<&Birth> = submitted
            .iter()
            .chain(detached.iter().filter(|birth| birth.detached))
            .collect();
        if roots.iter().any(|birth| self.permits.is_limited(birth)) {
            let demands = self.demands(&roots);
            self.admit_births(demands, report, submitted, ctx);
            return;
        }
        report.submitted = submitted.into_iter().map(|birth| (birth, Default::default())).collect();
        self.decide(Event::StageEnded(Box::new(report)), ctx);
    }

    /// Puts a family aside that cannot be made to run; all others go on.
    pub(super) fn quarantine(&mut self, family: u64, why: String) {
        tracing::warn!(family, why, "the family is quarantined");
        self.kernel.forget(family);
        self.actors.retain(|id, _| id.family != family);
        self.quarantined.insert(family, why);
    }
}
