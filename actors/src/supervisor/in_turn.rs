//! The limiter's answers, taken in the order in which it gave them.
//!
//! Answers and messages come by different ways, and may overtake each other.
//! One may rest on another: who gives up its locks for the next stage does so
//! before the commit that says it, and whoever gets them must commit later.

use std::collections::BTreeMap;

use actix::prelude::*;

use super::Supervisor;

type Take = Box<dyn FnOnce(&mut Supervisor, &mut Context<Supervisor>)>;

/// Answers that came before their turn.
#[derive(Default)]
pub(super) struct Turns {
    taken: u64,
    waiting: BTreeMap<u64, Take>,
}

impl Turns {
    /// Drops the answers that wait for others, which may never come now.
    pub(super) fn forget(&mut self) {
        self.waiting.clear();
    }

    fn next(&mut self) -> Option<Take> {
        let take = self.waiting.remove(&(self.taken + 1))?;
        self.taken += 1;
        Some(take)
    }
}

impl Supervisor {
    /// Takes an answer once all before it are taken. One without a turn has no limiter behind it. In an
    /// engine that has failed nothing rests on the order, and an earlier answer may be lost.
    pub(super) fn in_turn(
        &mut self,
        turn: u64,
        ctx: &mut Context<Self>,
        take: impl FnOnce(&mut Self, &mut Context<Self>) + 'static,
    ) {
        if turn == 0 || self.poisoned.is_some() {
            take(self, ctx);
            return;
        }
        self.turns.waiting.insert(turn, Box::new(take));
        while let Some(take) = self.turns.next() {
            take(self, ctx);
        }
    }
}
