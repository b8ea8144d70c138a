//! Reports of procedures' actors.

use actix::prelude::*;
use procession_kernel::{Event, StageEnded, WaitReason};

use super::Supervisor;
use super::blocked::Active;
use crate::mail::Notice;
use crate::procedure_actor::{Report, Reported};

/// Reports heard for one notice, before others have their turn.
const REPORTS_AT_ONCE: usize = 256;

impl Handler<Notice> for Supervisor {
    type Result = ();

    fn handle(&mut self, _: Notice, ctx: &mut Self::Context) {
        self.turn(|supervisor| {
            for reported in supervisor.reports.take(REPORTS_AT_ONCE) {
                supervisor.hear(reported, ctx);
            }
            supervisor.wake_more(ctx);
            supervisor.look_at_drain(ctx);
        });
    }
}

impl Supervisor {
    /// Hears all that procedures' actors have said by now. A notice that waits then finds nothing, or what came since.
    pub(super) fn hear_all(&mut self, ctx: &mut Context<Self>) {
        for reported in self.reports.take(usize::MAX) {
            self.hear(reported, ctx);
        }
    }

    fn hear(&mut self, Reported(kind, report): Reported, ctx: &mut Context<Self>) {
        match report {
            Report::Stage(report) => self.stage_ended(report, ctx),
            Report::CleanedUp(id) => {
                // An undo of it may have been sent meanwhile.
                if self.actors.get(&id).is_some_and(Active::is_idle) {
                    self.actors.remove(&id);
                }
                self.decide(Event::CleanedUp(id), ctx);
            }
            Report::Undo(report) => self.decide(Event::UndoEnded(report), ctx),
            Report::Join(parent, first, seen, ruling) => {
                // Another end may have asked again meanwhile.
                if self.actors.get(&parent).is_some_and(Active::is_idle) {
                    self.actors.remove(&parent);
                }
                let next = self.judging.remove(&parent).flatten();
                let ruled = Event::JoinRuled {
                    parent,
                    first,
                    seen,
                    ruling,
                };
                self.decide(ruled, ctx);
                let waits = self
                    .kernel
                    .row(parent)
                    .is_some_and(|row| row.wait == Some(WaitReason::Children));
                if let Some(next) = next.filter(|_| waits) {
                    self.judge(next, ctx);
                }
            }
            Report::Unloadable(id, why) => self.quarantine_family(id.family, format!("{id}: {why}"), ctx),
        }
        self.metrics.name_late(&kind);
    }

    pub(super) fn stage_ended(&mut self, report: Box<StageEnded>, ctx: &mut Context<Self>) {
        if let Some(report) = self.admit_report(report, ctx) {
            self.decide(Event::StageEnded(report), ctx);
        }
    }
}
