//! The limiter's answers, taken in the order in which it gave them.
//!
//! Answers and messages come by different ways, and may overtake each other. One may rest on another: a procedure that
//! gives up its locks for the next stage does so before the commit that says it, and the one that gets them must commit
//! later.

use std::collections::BTreeMap;

/// Answers that came before their turn.
pub(super) struct Sequencer<A> {
    taken: u64,
    waiting: BTreeMap<u64, A>,
}

impl<A> Default for Sequencer<A> {
    fn default() -> Self {
        Self {
            taken: 0,
            waiting: BTreeMap::new(),
        }
    }
}

impl<A> Sequencer<A> {
    pub(super) fn enqueue(&mut self, turn: u64, answer: A) {
        self.waiting.insert(turn, answer);
    }

    /// Takes the next answer, if it is there.
    pub(super) fn next(&mut self) -> Option<A> {
        let answer = self.waiting.remove(&(self.taken + 1))?;
        self.taken += 1;
        Some(answer)
    }

    /// Drops the answers that wait for others.
    pub(super) fn clear(&mut self) {
        self.waiting.clear();
    }
}
