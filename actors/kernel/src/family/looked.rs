//! Counts how often a member of a family was looked at: what a decision costs, told without a clock.

use std::cell::Cell;

thread_local! {
    static LOOKED: Cell<u64> = const { Cell::new(0) };
}

/// Counts one look.
pub(super) fn look() {
    LOOKED.with(|looked| looked.set(looked.get() + 1));
}

/// Gives how many looks this thread had, and counts anew.
pub(crate) fn taken() -> u64 {
    LOOKED.with(|looked| looked.replace(0))
}
