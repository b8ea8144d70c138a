//! Counts how often members of families are looked at, to measure the cost of a decision without a clock.

use std::cell::Cell;

thread_local! {
    static LOOKED: Cell<u64> = const { Cell::new(0) };
}

/// Counts one look.
pub(super) fn look() {
    LOOKED.with(|looked| looked.set(looked.get() + 1));
}

/// Returns the number of looks by this thread, and resets it.
pub(crate) fn taken() -> u64 {
    LOOKED.with(|looked| looked.replace(0))
}
