//! Depths of the engine's mailboxes, and its newest commit, in atomics that any thread may load. The depths are sent
//! to the metrics recorder at receipts, at looks at the workers and at health checks, ten times a second at most.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use actix::prelude::*;
use procession_kernel::{Seq, Timestamp};

use crate::heartbeats::Heartbeats;
use crate::journal::Reader;
use crate::queues::{BatchedInbox, CountedMessage, Depth, InboxWake, Outbox};
use crate::telemetry::Telemetry;
use crate::view::Mailboxes;

/// Shortest time between two updates of the recorder.
const SHOW_EVERY: Duration = Duration::from_millis(100);

/// The depths of all mailboxes of one engine. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Depths {
    supervisor: Arc<Depth>,
    pub(crate) limiter: Arc<Depth>,
    pub(crate) journal: Arc<Depth>,
    reader: Reader,
    workers: Heartbeats,
    /// The newest commit that is on disk.
    durable: Arc<AtomicU64>,
}

impl Depths {
    pub(crate) fn new(workers: Heartbeats, reader: Reader) -> Self {
        Self {
            supervisor: Arc::default(),
            limiter: Arc::default(),
            journal: Arc::default(),
            reader,
            workers,
            durable: Arc::default(),
        }
    }

    /// Returns the newest commit that is on disk. A caller with an answer sees at least the commit that the answer
    /// rests on.
    pub(crate) fn durable(&self) -> Seq {
        Seq(self.durable.load(Ordering::Acquire))
    }

    /// Returns the depths, approximately as they are now.
    pub(crate) fn read(&self) -> Mailboxes {
        Mailboxes {
            supervisor: self.supervisor.waiting(),
            limiter: self.limiter.waiting(),
            journal: self.journal.waiting(),
            reader: self.reader.waiting(),
            workers: self.workers.waiting(),
        }
    }

    /// Counts a message for the supervisor from here on, until it is taken.
    pub(crate) fn counted<M>(&self, message: M) -> CountedMessage<M> {
        CountedMessage::new(message, &self.supervisor)
    }
}

/// The supervisor's own side of the depths. It counts the messages that it takes, and updates the recorder.
pub(crate) struct MailboxGauges {
    depths: Depths,
    shown: Timestamp,
}

impl MailboxGauges {
    pub(crate) const fn new(depths: Depths) -> Self {
        Self {
            depths,
            shown: Timestamp(0),
        }
    }

    /// Publishes the newest commit on disk, before anything that rests on it is reported.
    pub(super) fn durable(&self, seq: Seq) {
        self.depths.durable.store(seq.0, Ordering::Release);
    }

    /// Counts a message that the supervisor has taken.
    pub(super) fn taken(&self) {
        self.depths.supervisor.taken();
    }

    /// Returns how many messages wait for the supervisor, approximately.
    pub(super) fn waiting(&self) -> u64 {
        self.depths.supervisor.waiting()
    }

    /// Returns how many calls wait for a worker, approximately.
    pub(super) fn calls_waiting(&self) -> u64 {
        self.depths.workers.waiting()
    }

    /// Returns a counted outbox to the supervisor.
    pub(crate) fn outbox<M>(&self, to: Recipient<M>) -> Outbox<M>
    where
        M: Message<Result = ()> + Send + 'static,
    {
        Outbox::new(to, Arc::clone(&self.depths.supervisor))
    }

    /// Returns a counted inbox for the supervisor.
    pub(crate) fn inbox<T>(&self, to: Recipient<InboxWake>) -> BatchedInbox<T> {
        BatchedInbox::new(to, Arc::clone(&self.depths.supervisor))
    }

    /// Updates the recorder, unless it was updated a moment ago.
    pub(super) fn show_soon(&mut self, telemetry: &Telemetry, now: Timestamp) {
        if now < self.shown || now.since(self.shown) >= SHOW_EVERY {
            self.show(telemetry, now);
        }
    }

    /// Updates the recorder with the depths.
    pub(super) fn show(&mut self, telemetry: &Telemetry, now: Timestamp) {
        self.shown = now;
        let Mailboxes {
            supervisor,
            limiter,
            journal,
            reader,
            workers,
        } = self.depths.read();
        telemetry.mailboxes([supervisor, limiter, journal, reader, workers]);
    }
}

#[cfg(test)]
mod tests;
