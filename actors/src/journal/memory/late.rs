//! Delays answers by a number of turns drawn from a seed, so that each seed interleaves the store's answers
//! differently with everything else.

use std::future::poll_fn;
use std::task::Poll;

/// Draws the delay of each answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Late {
    state: u64,
    most: u64,
}

impl Late {
    pub(super) const fn new(seed: u64, most: u64) -> Self {
        // A xorshift generator must not start with zero.
        Self {
            state: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1,
            most,
        }
    }

    /// Draws the delay of the next answer in turns; half of the answers are not delayed.
    pub(super) const fn turns(&mut self) -> u64 {
        if self.most == 0 {
            return 0;
        }
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        let drawn = self.state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 16;
        (drawn % (2 * self.most + 1)).saturating_sub(self.most)
    }
}

/// Yields to all other tasks for this many turns.
pub(super) async fn pass(turns: u64) {
    let mut left = turns;
    poll_fn(|context| {
        if left == 0 {
            return Poll::Ready(());
        }
        left -= 1;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
