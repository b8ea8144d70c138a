//! Stopping in order: no new stages, running ones finish, the rest is left.

use std::sync::Arc;
use std::time::Duration;

use actix::prelude::*;
use procession_kernel::{Event, Operated, Verb};
use tokio::sync::oneshot;

use super::Supervisor;
use super::asks::unanswered;
use crate::error::AskError;
use crate::journal::Release;
use crate::messages::{Drain, DrainBy};
use crate::view::DrainReport;

/// Turns that the last answers need to leave the supervisor's thread.
const TURNS_FOR_ANSWERS: usize = 16;

/// A drain that is under way.
pub(super) struct Draining {
    out_at_begin: usize,
    waiters: Vec<oneshot::Sender<DrainReport>>,
    ending: bool,
}

impl Handler<Drain> for Supervisor {
    type Result = ResponseFuture<Result<DrainReport, AskError>>;

    fn handle(&mut self, Drain { deadline }: Drain, ctx: &mut Self::Context) -> Self::Result {
        if let Some(refusal) = self.refusal() {
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
        let failure = Arc::clone(&self.failure);
        Box::pin(async move { receiver.await.map_err(|_| unanswered(&failure)) })
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

impl Supervisor {
    fn begin_drain(&mut self, deadline: Duration, waiters: Vec<oneshot::Sender<DrainReport>>, ctx: &mut Context<Self>) {
        tracing::info!(out = self.kernel.going(), "the engine drains");
        self.drain = Some(Draining {
            out_at_begin: self.kernel.going() + self.kernel.undoing(),
            waiters,
            ending: false,
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
        let quiet = self.drain.as_ref().is_some_and(|drain| !drain.ending)
            && self.hooks_are_over()
            && self.kernel.going() == 0
            && self.kernel.undoing() == 0;
        if quiet {
            self.end_drain(ctx);
        }
    }

    fn end_drain(&mut self, ctx: &mut Context<Self>) {
        let left = self.kernel.going() + self.kernel.undoing();
        let Some(drain) = self.drain.as_mut().filter(|drain| !drain.ending) else {
            return;
        };
        drain.ending = true;
        let report = DrainReport {
            finished: drain.out_at_begin.saturating_sub(left),
            left,
        };
        let waiters = std::mem::take(&mut drain.waiters);
        // Whatever else waits: a drain is never turned away.
        let (ticket, stopped) = self.ticket();
        self.decide(Event::DrainEnded(ticket), ctx);
        let journal = self.journal.clone();
        let epoch = self.kernel.epoch();
        let work = async move {
            let stopped = matches!(stopped.await, Ok(Ok(_)));
            // Answered when the store is closed: who waited for the drain may open it again.
            journal.send(Release(epoch)).await.ok();
            stopped
        };
        ctx.spawn(work.into_actor(self).map(move |stopped, supervisor, ctx| {
            supervisor.stopped = true;
            supervisor.actors.clear();
            supervisor.timer = None;
            if stopped {
                for waiter in waiters {
                    waiter.send(report).ok();
                }
            }
            supervisor.end_threads();
            ctx.stop();
        }));
    }

    /// Ends the engine's threads, this one last, when the answers have left it.
    fn end_threads(&mut self) {
        self.workers.stop();
        let own = std::mem::take(&mut self.own_threads);
        actix_rt::spawn(async move {
            for _ in 0..TURNS_FOR_ANSWERS {
                tokio::task::yield_now().await;
            }
            for arbiter in own {
                arbiter.stop();
            }
        });
    }
}
