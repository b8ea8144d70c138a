//! The feed of committed changes. A subscriber's mailbox is its bound: one that
//! is full misses changes, is told so, and slows nobody.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::rc::Rc;
use std::sync::Arc;

use actix::prelude::*;
use procession_kernel::{Epoch, Record, Seq};

use crate::view::{Change, ChangeFeed, Status};

/// A change that waits for its receipt.
pub(super) type Pending = Arc<Change>;

struct Subscriber {
    to: Recipient<ChangeFeed>,
    /// Where it begins, until that is on disk.
    from: Option<Seq>,
    seen: Seq,
    /// It is behind, and is being told.
    lag: Option<Rc<Lag>>,
}

/// One that misses changes.
struct Lag {
    /// The newest change that was published meanwhile.
    newest: Cell<Seq>,
    /// It was told of all that it missed.
    is_over: Cell<bool>,
}

#[derive(Default)]
pub(super) struct Changes {
    subscribers: Vec<Subscriber>,
}

impl Changes {
    pub(super) fn len(&self) -> usize {
        self.subscribers.len()
    }

    /// Adds one that begins after the newest commit, and is told so once that is on disk.
    pub(super) fn subscribe(&mut self, to: Recipient<ChangeFeed>, from: Seq, durable: Seq) {
        self.subscribers.push(Subscriber {
            to,
            from: Some(from),
            seen: from,
            lag: None,
        });
        self.reached(durable);
    }

    /// Says where those begin who were waiting for this commit.
    pub(super) fn reached(&mut self, durable: Seq) {
        self.subscribers.retain_mut(|subscriber| subscriber.begin(durable));
    }

    /// Begins the change of a commit; none while nobody subscribes.
    pub(super) fn begin(&self, epoch: Epoch, seq: Seq) -> Option<Change> {
        (!self.subscribers.is_empty()).then(|| Change {
            epoch,
            seq,
            rows: Vec::new(),
            gone: Vec::new(),
        })
    }

    /// Adds what a record of the commit changes.
    pub(super) fn describe(change: &mut Change, record: &Record) {
        if let Record::Row(row) | Record::FinishedRow(row) = record {
            change.rows.push(Status::of(row));
        } else if let Record::Evicted(doomed) = record {
            change.gone.push(doomed.family);
        }
    }

    pub(super) fn publish(&mut self, change: &Pending) {
        self.subscribers.retain_mut(|subscriber| subscriber.take(change));
    }
}

impl Subscriber {
    /// Gives false when the subscriber is gone.
    fn begin(&mut self, durable: Seq) -> bool {
        match self.from.filter(|from| *from <= durable) {
            Some(from) => {
                self.from = None;
                self.send(ChangeFeed::From(from), from)
            }
            None => true,
        }
    }

    /// Gives false when the subscriber is gone.
    fn take(&mut self, change: &Pending) -> bool {
        if change.seq <= self.seen {
            return true;
        }
        match self.lag.take() {
            Some(lag) if !lag.is_over.get() => {
                lag.newest.set(change.seq);
                self.lag = Some(lag);
                true
            }
            Some(_) | None => self.send(ChangeFeed::Change(Arc::clone(change)), change.seq),
        }
    }

    fn send(&mut self, feed: ChangeFeed, seq: Seq) -> bool {
        match self.to.try_send(feed) {
            Ok(()) => self.seen = seq,
            Err(SendError::Full(_)) => {
                let lag = Rc::new(Lag {
                    newest: Cell::new(seq),
                    is_over: Cell::new(false),
                });
                actix_rt::spawn(tell(self.to.clone(), self.seen, Rc::clone(&lag)));
                self.lag = Some(lag);
            }
            Err(SendError::Closed(_)) => return false,
        }
        true
    }
}

/// Tells a subscriber that changes were left out, as soon as it has room: it
/// must learn of it also when nothing more is published.
async fn tell(to: Recipient<ChangeFeed>, mut from: Seq, lag: Rc<Lag>) {
    loop {
        let mut sent = std::pin::pin!(to.send(ChangeFeed::Lagged(from)));
        let (mut polls, mut known) = (0, lag.newest.get());
        let result = poll_fn(|cx| {
            // The word is in the mailbox no sooner than at the second poll, the
            // first that follows a wake: what is published later counts as missed.
            polls += 1;
            if polls <= 2 {
                known = lag.newest.get();
            }
            sent.as_mut().poll(cx)
        });
        if result.await.is_err() || lag.newest.get() == known {
            lag.is_over.set(true);
            return;
        }
        from = known;
    }
}
