//! Batches in the order in which they were handed in, written by whoever comes
//! first: its own and all that others left meanwhile.

use std::collections::VecDeque;
use std::sync::PoisonError;

use crate::sync::{Mutex, MutexGuard};

/// A writer, and what waits for it.
pub(crate) struct Line<W, T> {
    writer: Mutex<W>,
    queue: Mutex<VecDeque<T>>,
}

impl<W, T> Line<W, T> {
    pub(crate) fn new(writer: W) -> Self {
        Self {
            writer: Mutex::new(writer),
            queue: Mutex::new(VecDeque::new()),
        }
    }

    /// Takes the writer; what waits goes on waiting.
    pub(crate) fn writer(&self) -> MutexGuard<'_, W> {
        guard(&self.writer)
    }

    /// Hands something in: the call decides the order.
    pub(crate) fn push(&self, item: T) {
        guard(&self.queue).push_back(item);
    }

    /// Writes what waits, in its order. When it returns, all that was handed in before the
    /// call has been written, here or by another.
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

/// A panic elsewhere does not make the value behind the lock wrong: each change is one assignment.
fn guard<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
