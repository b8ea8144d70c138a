//! The feed of committed changes. A subscriber's mailbox is its bound: one that
//! is full misses changes, is told so, and slows nobody.

use std::sync::Arc;

use actix::prelude::*;
use procession_kernel::{Epoch, Record, Seq};

use crate::view::{Change, Feed, Status};

/// Subscribers at once: each costs a send per commit.
pub(super) const SUBSCRIBERS: usize = 64;

/// A change that waits for its receipt.
pub(super) type Pending = Arc<Change>;

struct Subscriber {
    to: Recipient<Feed>,
    /// The last commit it saw before it fell behind.
    lagged: Option<Seq>,
    seen: Seq,
}

#[derive(Default)]
pub(super) struct Changes {
    subscribers: Vec<Subscriber>,
}

impl Changes {
    pub(super) fn is_empty(&self) -> bool {
        self.subscribers.is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        self.subscribers.len() >= SUBSCRIBERS
    }

    pub(super) fn subscribe(&mut self, to: Recipient<Feed>, from: Seq) {
        let lagged = to.try_send(Feed::From(from)).is_err().then_some(from);
        self.subscribers.push(Subscriber { to, lagged, seen: from });
    }

    pub(super) fn describe(epoch: Epoch, seq: Seq, records: &[Record]) -> Pending {
        let mut rows = Vec::new();
        for record in records {
            if let Record::Row(row) = record {
                rows.push(Status::of(row));
            }
        }
        Arc::new(Change { epoch, seq, rows })
    }

    pub(super) fn publish(&mut self, change: &Pending) {
        self.subscribers.retain_mut(|subscriber| subscriber.take(change));
    }
}

impl Subscriber {
    /// Gives false when the subscriber is gone.
    fn take(&mut self, change: &Pending) -> bool {
        if change.seq <= self.seen {
            return true;
        }
        if let Some(from) = self.lagged {
            match self.to.try_send(Feed::Lagged(from)) {
                Ok(()) => self.lagged = None,
                Err(SendError::Full(_)) => return true,
                Err(SendError::Closed(_)) => return false,
            }
        }
        match self.to.try_send(Feed::Change(Arc::clone(change))) {
            Ok(()) => self.seen = change.seq,
            Err(SendError::Full(_)) => self.lagged = Some(self.seen),
            Err(SendError::Closed(_)) => return false,
        }
        true
    }
}
