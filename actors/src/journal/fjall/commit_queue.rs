//! A queue of batches in the order of submission. The first thread to arrive writes its own batch and all others that
//! were queued meanwhile.

use std::collections::VecDeque;
use std::sync::PoisonError;

use crate::sync::{Mutex, MutexGuard};

/// A writer, and the queue in front of it.
pub(crate) struct CommitQueue<W, T> {
    writer: Mutex<W>,
    queue: Mutex<VecDeque<T>>,
}

impl<W, T> CommitQueue<W, T> {
    pub(crate) fn new(writer: W) -> Self {
        Self {
            writer: Mutex::new(writer),
            queue: Mutex::new(VecDeque::new()),
        }
    }

    /// Locks the writer; queued items keep waiting.
    pub(crate) fn writer(&self) -> MutexGuard<'_, W> {
        guard(&self.writer)
    }

    /// Queues an item; the order of the calls is the order of the writes.
    pub(crate) fn push(&self, item: T) {
        guard(&self.queue).push_back(item);
    }

    /// Writes the queued items in order. When it returns, every item queued before the call has been written, by this
    /// thread or another.
    pub(crate) fn serve(&self, mut write: impl FnMut(&mut W, T)) {
        let mut writer = self.writer();
        while let Some(item) = self.next() {
            write(&mut writer, item);
        }
    }

    fn next(&self) -> Option<T> {
        guard(&self.queue).pop_front()
    }
}

/// A panic elsewhere cannot leave the value behind the lock inconsistent, since each change is one assignment.
fn guard<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
