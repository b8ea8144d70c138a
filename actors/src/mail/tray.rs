//! A tray: many put in, one takes out, many at a time. Of those that put in, one learns
//! that it has to tell the taker; so one notice at a time is under way, however many come.

use std::collections::VecDeque;
use std::sync::PoisonError;

use crate::sync::{Mutex, MutexGuard};

/// Room that an empty tray keeps: a crowd that came once need not be paid for ever after.
const KEPT: usize = 1_024;

#[derive(Debug)]
struct Inner<T> {
    items: VecDeque<T>,
    /// The taker was told, and has not found the tray empty since.
    told: bool,
}

/// What was put in and not taken yet, in its order.
#[derive(Debug)]
pub(crate) struct Tray<T>(Mutex<Inner<T>>);

impl<T> Tray<T> {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Inner {
            items: VecDeque::new(),
            told: false,
        }))
    }

    /// Puts something in. True if the taker has to be told.
    #[must_use]
    pub(crate) fn put(&self, item: T) -> bool {
        let mut inner = self.inner();
        inner.items.push_back(item);
        !std::mem::replace(&mut inner.told, true)
    }

    /// Gives how many items are in it.
    pub(crate) fn len(&self) -> usize {
        self.inner().items.len()
    }

    /// Takes the oldest, so many at most. True if there are more, of which the taker has to be told.
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

    /// A panic elsewhere does not make what is behind the lock wrong: an item is in or is not.
    fn inner(&self) -> MutexGuard<'_, Inner<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
