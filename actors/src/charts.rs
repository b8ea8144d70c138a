//! Figures of the last hour and day, by kind, for charts: what ended and failed, and how long it took.
//!
//! The supervisor counts, once a commit has its receipt; readers and the keeper read. They share one value behind a
//! lock that is held for microseconds: a batch of counts, or the figures of one kind. Everything has a bound: kinds,
//! buckets, and the size of each histogram. `keeper` writes them beside the journal, never as a commit.

mod book;
mod durations;
mod file;
mod keeper;
mod saved;
mod series;
#[cfg(test)]
mod tests;

pub(crate) use keeper::Keeper;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use procession_kernel::{Kind, Timestamp};
use tokio::sync::watch;

use crate::view::{Chart, ChartSpan};
use book::Book;

/// Microseconds of one minute, the shortest bucket.
const MINUTE: u64 = 60_000_000;

/// Returns the number of the minute that an instant is in.
const fn minute_of(at: Timestamp) -> u64 {
    at.0 / MINUTE
}

/// Something to count. `place` is the index of its kind among the registered ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sample {
    /// A procedure has ended.
    Ended {
        place: usize,
        is_root: bool,
        has_failed: bool,
        took: Duration,
    },
    /// An attempt of a stage has ended that had waited this long for its turn.
    Queued { place: usize, time: Duration },
}

/// The figures of one engine; cheap to clone.
#[derive(Clone)]
pub(crate) struct Charts(Arc<Shared>);

struct Shared {
    book: Mutex<Book>,
    /// Notifies the keeper of figures that are not on disk yet.
    changed: watch::Sender<()>,
}

impl Charts {
    /// Begins to count. The kinds are in the order of their places.
    pub(crate) fn new<'a>(kinds: impl IntoIterator<Item = &'a Kind>, now: Timestamp) -> Self {
        Self(Arc::new(Shared {
            book: Mutex::new(Book::new(kinds, minute_of(now))),
            changed: watch::Sender::new(()),
        }))
    }

    /// Counts samples that are on disk. It takes the lock once for all of them, and not at all if there are none.
    pub(crate) fn count(&self, samples: impl Iterator<Item = Sample>, now: Timestamp) {
        let mut samples = samples.peekable();
        if samples.peek().is_none() {
            return;
        }
        let mut book = self.0.book();
        let minute = minute_of(now);
        for sample in samples {
            book.count(sample, minute);
        }
        if book.note_change() {
            self.0.changed.send_replace(());
        }
    }

    /// Returns a chart of all roots, or of a kind. `None` if the kind is not registered, and nothing is known of it.
    pub(crate) fn chart(&self, kind: Option<&Kind>, span: ChartSpan, now: Timestamp) -> Option<Chart> {
        self.0.book().chart(kind, span, minute_of(now))
    }

    /// Returns how many procedures of all kinds ended as failures in the last day, to a quarter of an hour.
    pub(crate) fn failed_in_a_day(&self, now: Timestamp) -> u64 {
        self.0.book().failed_in_a_day(minute_of(now))
    }
}

impl Shared {
    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
