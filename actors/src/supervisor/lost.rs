//! Actors that are gone with their threads: user code can stop the arbiter that it runs on,
//! and the system a thread. What such an actor was called for is called again from its row.

use actix::prelude::*;
use procession_kernel::{ProcedureId, Timestamp};

use super::Supervisor;
use super::blocked::{Active, Issued};
use crate::view::UserCall;

/// Those that are remembered until the call that was made again has ended.
const KEPT: usize = 1_000;

/// A call that was lost.
pub(super) struct Lost {
    pub(super) id: ProcedureId,
    pub(super) call: UserCall,
    pub(super) stage: String,
    pub(super) at: Timestamp,
    issued: Issued,
    told: bool,
}

/// What an audit found gone, each with its calls then. It comes behind all that such actors had
/// still reported: whoever is as it was has reported nothing, and never will.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct Gone(Vec<(ProcedureId, u64)>);

impl Handler<Gone> for Supervisor {
    type Result = ();

    fn handle(&mut self, Gone(found): Gone, ctx: &mut Self::Context) {
        if self.poisoned.is_some() || self.stopped {
            return;
        }
        self.workers.replace_ended();
        for (id, calls) in found {
            let lost = self.actors.get(&id).filter(|active| active.gone() == Some(calls));
            let issued = lost.and_then(Active::issued);
            if lost.is_some() {
                let (call, stage) = self.called(id);
                self.actors.remove(&id);
                self.replace_call(id, issued, call, stage, ctx);
            }
        }
    }
}

impl Supervisor {
    /// What it was called for may have been reported, or may not be wanted any more.
    fn replace_call(
        &mut self,
        id: ProcedureId,
        issued: Option<Issued>,
        call: UserCall,
        stage: String,
        ctx: &mut Context<Self>,
    ) {
        let Some(issued) = issued.filter(|issued| self.call_again(id, *issued, ctx)) else {
            return;
        };
        tracing::error!(procedure = %id, ?call, stage, "its actor is gone with its thread; it is called again");
        if self.watch.lost.len() < KEPT {
            self.watch.lost.push(Lost {
                id,
                call,
                stage,
                at: self.clock.now(),
                issued,
                told: false,
            });
        }
    }

    /// Looks for actors that are gone. They are dealt with when all that they reported has been heard.
    pub(super) fn look_for_lost(&self, ctx: &Context<Self>) {
        let gone = self
            .actors
            .iter()
            .filter_map(|(id, active)| Some((*id, active.gone()?)));
        let gone: Vec<(ProcedureId, u64)> = gone.collect();
        if !gone.is_empty() {
            // Where there is no room in its own mailbox, the next audit looks again.
            ctx.address().try_send(Gone(gone)).ok();
        }
    }

    /// Gives those who were called again, each once at least, and as long as that call is out.
    pub(super) fn lost_and_out(&mut self) -> &[Lost] {
        let mut lost = std::mem::take(&mut self.watch.lost);
        lost.retain_mut(|lost| {
            let effect = self.kernel.call_of(lost.id);
            let is_out = effect.is_some_and(|effect| lost.issued.is_asked_by(&effect));
            !std::mem::replace(&mut lost.told, true) || is_out
        });
        self.watch.lost = lost;
        &self.watch.lost
    }

    /// Makes a call again, if it is still asked for. Tells whether it is.
    pub(super) fn call_again(&mut self, id: ProcedureId, issued: Issued, ctx: &mut Context<Self>) -> bool {
        let effect = self.kernel.call_of(id).filter(|effect| issued.is_asked_by(effect));
        let is_asked = effect.is_some();
        if matches!(issued, Issued::Join) {
            // The question that is out has gone with the call.
            self.judging.remove(&id);
        }
        if let Some(effect) = effect {
            self.act(effect, ctx);
        }
        is_asked
    }
}
