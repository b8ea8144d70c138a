//! The bound of an evaluation.

use super::{Mistake, STEPS};

/// Bytes that one step compares or copies.
const BYTES: usize = 8;

/// How many steps are left.
#[derive(Debug)]
pub(crate) struct Steps(usize);

impl Steps {
    pub(crate) const fn new() -> Self {
        Self(STEPS)
    }

    /// Takes steps before they are made, or refuses them all.
    pub(super) fn take(&mut self, steps: usize, at: usize) -> Result<(), Mistake> {
        match self.0.checked_sub(steps) {
            Some(left) => {
                self.0 = left;
                Ok(())
            }
            None => Err((at, format!("the evaluation takes more than {STEPS} steps"))),
        }
    }

    /// Takes the steps for bytes that are about to be compared or copied.
    pub(super) fn take_bytes(&mut self, bytes: usize, at: usize) -> Result<(), Mistake> {
        self.take(bytes / BYTES, at)
    }
}
