//! Takes the limiter's answers in the order in which the limiter gave them.
//!
//! Answers and messages arrive by different paths and may overtake each other. An answer may rest on an earlier
//! answer. A procedure gives up its locks for the next stage before the commit that says so. The procedure that gets
//! these locks must commit later.

use std::collections::BTreeMap;

/// Answers that arrived before their turn.
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

    /// Takes the next answer, if it has arrived.
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
