//! The one timer: it waits for the earliest deadline on a task of its own, so
//! that a busy mailbox cannot starve it.

use std::sync::Arc;

use actix::prelude::*;
use futures::future::{Either, select};
use procession_kernel::{Event, Timestamp};
use tokio::sync::watch;

use super::Supervisor;
use crate::clock::{Clock, is_set_back};
use crate::mail::deliver;

/// Timers served for one message, before others have their turn: a millisecond or two of decisions.
const TIMERS_AT_ONCE: usize = 256;

/// Says that the armed instant has come, or that the clock was set back before it did.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct TimeCame {
    was_set_back: bool,
}

pub(super) struct Timer {
    armed: watch::Sender<Option<Timestamp>>,
}

impl Timer {
    /// Starts the task; it ends with this value.
    pub(super) fn start(clock: Arc<dyn Clock>, to: Recipient<TimeCame>) -> Self {
        let (armed, changes) = watch::channel(None);
        actix_rt::spawn(wait(clock, changes, to));
        Self { armed }
    }

    /// Sets the instant, or none.
    pub(super) fn arm(&self, at: Option<Timestamp>) {
        self.armed.send_replace(at);
    }
}

async fn wait(clock: Arc<dyn Clock>, mut changes: watch::Receiver<Option<Timestamp>>, to: Recipient<TimeCame>) {
    let mut before = clock.now();
    loop {
        let at = *changes.borrow_and_update();
        // Where instants are armed all the time no sleep lasts long enough to notice.
        let now = clock.now();
        if is_set_back(before, now) {
            deliver(&to, TimeCame { was_set_back: true }).await;
        }
        before = now;
        if let Some(at) = at {
            let change = std::pin::pin!(changes.changed());
            match select(clock.sleep_until(at), change).await {
                Either::Left(_) => {
                    before = clock.now();
                    let was_set_back = before < at;
                    deliver(&to, TimeCame { was_set_back }).await;
                }
                Either::Right((Ok(()), _)) => continue,
                Either::Right((Err(_), _)) => return,
            }
        }
        // The supervisor arms the next instant when it has dealt with this one.
        if changes.changed().await.is_err() {
            return;
        }
    }
}

impl Handler<TimeCame> for Supervisor {
    type Result = ();

    fn handle(&mut self, TimeCame { was_set_back }: TimeCame, ctx: &mut Self::Context) {
        self.turn(|supervisor| supervisor.time_came(was_set_back, ctx));
    }
}

impl Supervisor {
    fn time_came(&mut self, was_set_back: bool, ctx: &mut Context<Self>) {
        let now = self.clock.now();
        if was_set_back && self.status.decides() {
            tracing::warn!(%now, "the wall clock was set back: backoffs are cut to what their policies allow");
            self.decide(Event::ClockSetBack, ctx);
        }
        if let Some(due) = self.kernel.next_deadline().filter(|due| *due <= now) {
            self.metrics.telemetry().timer_lag.set(now.since(due));
        }
        self.bulk.timers_wait = !self.has_credit();
        if !self.bulk.timers_wait {
            self.bulk.timers_wait = self.serve_timers(ctx);
        }
        self.evict(ctx);
        // Where more are due than have their turn now, what gives credit arms the timer again.
        if self.status.decides() && !self.bulk.timers_wait {
            self.arm();
        }
    }

    /// Serves those that are due; tells whether there may be more.
    fn serve_timers(&mut self, ctx: &mut Context<Self>) -> bool {
        for _ in 0..TIMERS_AT_ONCE {
            match self.kernel.due(self.clock.now()) {
                Some(id) if self.status.decides() => self.decide(Event::TimerDue(id), ctx),
                Some(_) | None => return false,
            }
        }
        self.woke_some();
        true
    }
}
