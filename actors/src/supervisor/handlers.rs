//! Message handlers of the supervisor that belong to no wing: each takes a message, calls a wing or two, and decides.

mod health;

use actix::prelude::*;

use super::Supervisor;
use super::metrics::hook_queue::HooksRan;
use super::pipeline::JournalGone;
use crate::journal::Batch;
use crate::{mail, messages};

/// Says that what waited when something was decided has been handled.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct FlushTime;

impl Handler<FlushTime> for Supervisor {
    type Result = ();

    fn handle(&mut self, _: FlushTime, ctx: &mut Self::Context) {
        if self.status.has_failed() {
            return;
        }
        let metrics = &mut self.metrics;
        let append = |batch: &Batch| metrics.appended(batch);
        match self.pipeline.commit_here(self.dispatch.active(), &*self.clock, append) {
            Ok(Some(appended)) => self.appended(appended, ctx),
            Ok(None) => {}
            Err(JournalGone) => self.journal_gone(),
        }
    }
}

impl Handler<HooksRan> for Supervisor {
    type Result = ();

    fn handle(&mut self, _: HooksRan, ctx: &mut Self::Context) {
        self.metrics.hooks_ran();
        self.call_hooks(ctx);
        self.look_at_drain(ctx);
    }
}

/// Every request may come counted, too: the depth of the mailbox falls when it is taken.
macro_rules! taken_as_mail {
    ($($message:ty),* $(,)?) => {
        $(impl Handler<mail::Mail<$message>> for Supervisor {
            type Result = <Self as Handler<$message>>::Result;

            fn handle(&mut self, mail: mail::Mail<$message>, ctx: &mut Context<Self>) -> Self::Result {
                self.turn(|supervisor| mail::open(supervisor, mail, ctx))
            }
        })*
    };
}

taken_as_mail! {
    messages::Abort,
    messages::Acknowledge,
    messages::AcknowledgeBy,
    messages::Archived,
    messages::PollLatest,
    messages::Audit,
    messages::AwaitOutcome,
    messages::Broadcast,
    messages::Bypass,
    messages::Discharge,
    messages::AuditReveal,
    messages::Drain,
    messages::DrainBy,
    messages::Explain,
    messages::Export,
    messages::SubscribeLatest,
    messages::History,
    messages::Limits,
    messages::List,
    messages::Locks,
    messages::OverrideResult,
    messages::Pause,
    messages::Query,
    messages::ReadArchive,
    messages::Resume,
    messages::RetryNow,
    messages::RetryUndo,
    messages::SendSignal,
    messages::SetLimit,
    messages::SetPriority,
    messages::SignalBy,
    messages::SkipUndo,
    messages::Submit,
    messages::SubmitBatch,
    messages::Subscribe,
    messages::TakeSnapshot,
    messages::Tree,
    messages::Verdicts,
}
