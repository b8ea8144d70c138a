//! The feed of committed changes. A subscriber's mailbox is its bound: a subscriber whose mailbox is full misses
//! changes, is told so, and slows down nobody else.

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
    /// Where the subscription begins, until that commit is on disk.
    from: Option<Seq>,
    seen: Seq,
    /// Set while the subscriber is behind and is being told so.
    lag: Option<Rc<Lag>>,
}

/// A subscriber's lag: it misses changes.
struct Lag {
    /// The newest change that was published in the meantime.
    newest: Cell<Seq>,
    /// `true` once the subscriber was told of everything that it missed.
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

    /// Drops subscribers that are gone, which is noticed otherwise with the next change.
    pub(super) fn drop_gone(&mut self) {
        self.subscribers.retain(|subscriber| subscriber.to.connected());
    }

    /// Adds a subscriber that begins after the newest commit. It is told so once that commit is on disk.
    pub(super) fn subscribe(&mut self, to: Recipient<ChangeFeed>, from: Seq, durable: Seq) {
        self.subscribers.push(Subscriber {
            to,
            from: Some(from),
            seen: from,
            lag: None,
        });
        self.reached(durable);
    }

    /// Tells subscribers where they begin, if they were waiting for this commit.
    pub(super) fn reached(&mut self, durable: Seq) {
        self.subscribers.retain_mut(|subscriber| subscriber.begin(durable));
    }

    /// Begins the change of a commit; `None` while there are no subscribers.
    pub(super) fn begin(&self, epoch: Epoch, seq: Seq) -> Option<Change> {
        (!self.subscribers.is_empty()).then(|| Change {
            epoch,
            seq,
            rows: Vec::new(),
            gone: Vec::new(),
        })
    }

    /// Adds what a record changes to the commit's change.
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
    /// Returns `false` if the subscriber is gone.
    fn begin(&mut self, durable: Seq) -> bool {
        match self.from.filter(|from| *from <= durable) {
            Some(from) => {
                self.from = None;
                self.send(ChangeFeed::From(from), from)
            }
            None => true,
        }
    }

    /// Returns `false` if the subscriber is gone.
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

/// Tells a subscriber that changes were left out, as soon as its mailbox has room. It must learn this even if nothing
/// more is published.
async fn tell(to: Recipient<ChangeFeed>, mut from: Seq, lag: Rc<Lag>) {
    loop {
        let mut sent = std::pin::pin!(to.send(ChangeFeed::Lagged(from)));
        let (mut polls, mut known) = (0, lag.newest.get());
        let result = poll_fn(|cx| {
            // The message enters the mailbox at the second poll at the earliest: the first poll that follows a wake.
            // Whatever is published later counts as missed.
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
