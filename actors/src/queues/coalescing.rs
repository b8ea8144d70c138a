//! A coalescing queue: many senders push items, one receiver pops them in batches. Only the first push of a round asks
//! for a notification of the receiver. So one notification at a time is under way, however many items arrive.

use std::collections::VecDeque;
use std::sync::PoisonError;

use crate::sync::{Mutex, MutexGuard};

/// The capacity that an empty queue keeps, so that the memory for one large burst is not held for ever.
const IDLE_CAPACITY: usize = 1_024;

#[derive(Debug)]
struct Inner<T> {
    items: VecDeque<T>,
    /// `true` if the receiver was notified, and has not found the queue empty since.
    notified: bool,
}

/// The items that were pushed and not popped yet, in order.
#[derive(Debug)]
pub(crate) struct CoalescingQueue<T>(Mutex<Inner<T>>);

impl<T> CoalescingQueue<T> {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Inner {
            items: VecDeque::new(),
            notified: false,
        }))
    }

    /// Appends an item. Returns `true` if the receiver must be notified.
    #[must_use]
    pub(crate) fn push(&self, item: T) -> bool {
        let mut inner = self.inner();
        inner.items.push_back(item);
        !std::mem::replace(&mut inner.notified, true)
    }

    /// Returns how many items are in the queue.
    pub(crate) fn len(&self) -> usize {
        self.inner().items.len()
    }

    /// Removes the oldest items, at most `limit`. Returns `true` if more are left, so that the receiver must be notified
    /// again.
    #[must_use]
    pub(crate) fn pop_batch(&self, limit: usize) -> (Vec<T>, bool) {
        let mut inner = self.inner();
        let count = inner.items.len().min(limit);
        let batch = inner.items.drain(..count).collect();
        inner.notified = !inner.items.is_empty();
        if !inner.notified {
            inner.items.shrink_to(IDLE_CAPACITY);
        }
        (batch, inner.notified)
    }

    /// Ignores poisoning: a panic elsewhere cannot leave the list half changed, because an item is either in it or not.
    fn inner(&self) -> MutexGuard<'_, Inner<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
