//! A tray: many senders put items in, one taker takes many at a time. Only the first sender of a round learns that it
//! has to notify the taker. So one notice at a time is under way, however many items arrive.

use std::collections::VecDeque;
use std::sync::PoisonError;

use crate::sync::{Mutex, MutexGuard};

/// The capacity that an empty tray keeps, so that the memory for one large crowd is not held for ever.
const KEPT: usize = 1_024;

#[derive(Debug)]
struct Inner<T> {
    items: VecDeque<T>,
    /// `true` if the taker was notified, and has not found the tray empty since.
    told: bool,
}

/// The items that were put in and not taken yet, in order.
#[derive(Debug)]
pub(crate) struct Tray<T>(Mutex<Inner<T>>);

impl<T> Tray<T> {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Inner {
            items: VecDeque::new(),
            told: false,
        }))
    }

    /// Puts an item in. Returns `true` if the taker must be notified.
    #[must_use]
    pub(crate) fn put(&self, item: T) -> bool {
        let mut inner = self.inner();
        inner.items.push_back(item);
        !std::mem::replace(&mut inner.told, true)
    }

    /// Returns how many items are in the tray.
    pub(crate) fn len(&self) -> usize {
        self.inner().items.len()
    }

    /// Takes the oldest items, up to a maximum. Returns `true` if more are left, so that the taker must be notified
    /// again.
    #[must_use]
    pub(crate) fn take(&self, most: usize) -> (Vec<T>, bool) {
        let mut inner = self.inner();
        let count = inner.items.len().min(most);
        let taken = inner.items.drain(..count).collect();
        inner.told = !inner.items.is_empty();
        if !inner.told {
            inner.items.shrink_to(KEPT);
        }
        (taken, inner.told)
    }

    /// Ignores poisoning: a panic elsewhere cannot leave the list half changed, because an item is either in it or not.
    fn inner(&self) -> MutexGuard<'_, Inner<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
