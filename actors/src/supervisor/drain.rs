//! Stopping in order: no new stages, running ones finish, the rest is left.

use std::time::Duration;

use actix::prelude::*;
use procession_kernel::{Event, Operated, Verb};
use tokio::sync::oneshot;

use super::Supervisor;
use crate::error::AskError;
use crate::messages::{Drain, DrainBy};
use crate::view::DrainReport;

/// Turns that the last answers need to leave the supervisor's thread.
const TURNS_FOR_ANSWERS: usize = 16;

/// A drain that is under way.
pub(super) struct Draining {
    out_at_begin: usize,
    waiters: Vec<oneshot::Sender<DrainReport>>,
}

impl Handler<Drain> for Supervisor {
    type Result = ResponseFuture<Result<DrainReport, AskError>>;

    fn handle(&mut self, Drain { deadline }: Drain, ctx: &mut Self::Context) -> Self::Result {
        if let Some(refusal) = self.status.refusal() {
            return Box::pin(async move { Err(refusal) });
        }
        let (sender, receiver) = oneshot::channel();
        match &mut self.drain {
            Some(draining) => draining.waiters.push(sender),
            None => {
                self.decide(Event::DrainBegan, ctx);
                self.begin_drain(deadline, vec![sender], ctx);
            }
        }
        let failure = self.status.failure();
        Box::pin(async move { receiver.await.map_err(|_| failure.unanswered()) })
    }
}

impl Handler<DrainBy> for Supervisor {
    type Result = ResponseFuture<Result<Operated, AskError>>;

    fn handle(&mut self, DrainBy { deadline, by }: DrainBy, ctx: &mut Self::Context) -> Self::Result {
        let operated = self.operate(Verb::Drain(deadline), by, ctx);
        // It was decided at once: a dry run or a refusal has left all as it was.
        if self.kernel.is_draining() && self.drain.is_none() {
            self.begin_drain(deadline, Vec::new(), ctx);
        }
        operated
    }
}

/// Asks an engine on the thread of its host to stop at once.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct StopHere;

impl Handler<StopHere> for Supervisor {
    type Result = ();

    /// Whoever waits is answered by what goes with the actor. A stage that waits for something of
    /// its own goes on to its end, and nobody hears its report.
    fn handle(&mut self, _: StopHere, ctx: &mut Self::Context) {
        self.status.stop();
        self.dispatch.close();
        self.timer = None;
        ctx.stop();
    }
}

impl Supervisor {
    fn begin_drain(&mut self, deadline: Duration, waiters: Vec<oneshot::Sender<DrainReport>>, ctx: &mut Context<Self>) {
        if self.status.has_failed() {
            // What began the drain has failed; who waits finds the reason in `failure`.
            return;
        }
        tracing::info!(out = self.kernel.going(), "the engine drains");
        self.drain = Some(Draining {
            out_at_begin: self.kernel.going() + self.kernel.undoing(),
            waiters,
        });
        let late = self.clock.sleep_until(self.clock.now().after(deadline));
        ctx.spawn(
            late.into_actor(self)
                .map(|(), supervisor, ctx| supervisor.end_drain(ctx)),
        );
        self.look_at_drain(ctx);
    }

    /// Ends the drain once nothing is out any more.
    pub(super) fn look_at_drain(&mut self, ctx: &mut Context<Self>) {
        let quiet = self.drain.is_some()
            && self.status.decides()
            && self.metrics.hooks_are_over(self.pipeline.is_quiet())
            && self.kernel.going() == 0
            && self.kernel.undoing() == 0;
        if quiet {
            self.end_drain(ctx);
        }
    }

    fn end_drain(&mut self, ctx: &mut Context<Self>) {
        let left = self.kernel.going() + self.kernel.undoing();
        let Some(drain) = self.drain.as_ref().filter(|_| self.status.decides()) else {
            return;
        };
        let report = DrainReport {
            finished: drain.out_at_begin.saturating_sub(left),
            left,
        };
        // Whatever else waits: a drain is never turned away.
        let (request, ended) = self.requests.open(self.status.cause());
        self.decide(Event::DrainEnded(request), ctx);
        // From here on nothing is decided: the store goes back as soon as this decision is on disk.
        self.status.last_decision_made();
        let committed = async move { ended.received().await.is_ok() };
        ctx.spawn(committed.into_actor(self).map(move |committed, supervisor, ctx| {
            // Where it failed, whoever waits was told so with everybody else.
            if committed {
                supervisor.release_store(report, ctx);
            }
        }));
    }

    /// Those who wait for the drain may open the store again: so they are answered when it is closed.
    fn release_store(&mut self, report: DrainReport, ctx: &mut Context<Self>) {
        let released = self.pipeline.release();
        ctx.spawn(released.into_actor(self).map(move |_, supervisor, ctx| {
            supervisor.status.stop();
            supervisor.dispatch.close();
            supervisor.timer = None;
            for waiter in supervisor.drain.take().into_iter().flat_map(|drain| drain.waiters) {
                // Whoever asked may have gone.
                waiter.send(report).ok();
            }
            supervisor.end_threads();
            ctx.stop();
        }));
    }

    /// Ends the engine's threads, this one last, when the answers have left it.
    fn end_threads(&self) {
        self.dispatch.stop_workers();
        let threads = self.threads.clone();
        actix_rt::spawn(async move {
            for _ in 0..TURNS_FOR_ANSWERS {
                tokio::task::yield_now().await;
            }
            threads.stop();
        });
    }
}
