//! The engine's one timer. It waits for the earliest instant on a task of its own, so that a busy mailbox cannot
//! starve it.

use std::sync::Arc;

use actix::prelude::*;
use futures::future::{Either, select};
use procession_kernel::Timestamp;
use tokio::sync::watch;

use crate::clock::{Clock, is_set_back};
use crate::queues::deliver;

/// Timers served for one message, before other messages have their turn: a millisecond or two of decisions.
pub(in crate::supervisor) const TIMERS_AT_ONCE: usize = 256;

/// Says that the armed instant has arrived, or that the clock was set back before it did.
#[derive(Message)]
#[rtype(result = "()")]
pub(in crate::supervisor) struct TimeCame {
    pub(in crate::supervisor) was_set_back: bool,
}

/// The timer's task. It ends when this value is dropped.
pub(super) struct Timer {
    armed: watch::Sender<Option<Timestamp>>,
}

impl Timer {
    pub(super) fn start(clock: Arc<dyn Clock>, to: Recipient<TimeCame>) -> Self {
        let (armed, changes) = watch::channel(None);
        actix_rt::spawn(wait(clock, changes, to));
        Self { armed }
    }

    /// Sets the instant to wait for, if any.
    pub(super) fn arm(&self, at: Option<Timestamp>) {
        self.armed.send_replace(at);
    }
}

async fn wait(clock: Arc<dyn Clock>, mut changes: watch::Receiver<Option<Timestamp>>, to: Recipient<TimeCame>) {
    let mut before = clock.now();
    loop {
        let at = *changes.borrow_and_update();
        // Compared on each pass: while instants are armed all the time, no sleep lasts long enough to notice.
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
        // The supervisor arms the next instant once it has handled this one.
        if changes.changed().await.is_err() {
            return;
        }
    }
}
