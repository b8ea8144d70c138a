//! Worker arbiters: the threads on which user code runs, taken in turn.

use actix::prelude::*;

/// The arbiters on which procedures' actors are started.
pub(crate) struct Workers {
    arbiters: Vec<ArbiterHandle>,
    owned: bool,
    next: usize,
}

impl Workers {
    /// Takes arbiters that end with the engine.
    pub(crate) fn owned(arbiters: Vec<ArbiterHandle>) -> Self {
        Self {
            arbiters,
            owned: true,
            next: 0,
        }
    }

    /// Uses somebody else's arbiter.
    pub(crate) fn borrowed(arbiter: ArbiterHandle) -> Self {
        Self {
            arbiters: vec![arbiter],
            owned: false,
            next: 0,
        }
    }

    /// Gives the arbiter whose turn it is.
    pub(crate) fn next(&mut self) -> Option<&ArbiterHandle> {
        let turn = self.next % self.arbiters.len().max(1);
        self.next = self.next.wrapping_add(1);
        self.arbiters.get(turn)
    }

    pub(crate) fn stop(&self) {
        if self.owned {
            for arbiter in &self.arbiters {
                arbiter.stop();
            }
        }
    }
}
