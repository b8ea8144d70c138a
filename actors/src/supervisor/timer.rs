//! The one timer: it waits for the earliest deadline on a task of its own, so
//! that a busy mailbox cannot starve it.

use std::sync::Arc;

use actix::prelude::*;
use futures::future::{Either, select};
use procession_kernel::Timestamp;
use tokio::sync::watch;

use crate::clock::Clock;
use crate::mail::deliver;

/// Says that the armed instant has come.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct TimeCame;

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
    loop {
        let at = *changes.borrow_and_update();
        if let Some(at) = at {
            let change = std::pin::pin!(changes.changed());
            match select(clock.sleep_until(at), change).await {
                Either::Left(_) => deliver(&to, TimeCame).await,
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
