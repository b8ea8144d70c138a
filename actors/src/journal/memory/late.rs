//! Answers that come late: after a number of turns that a seed draws, so that
//! what the store says meets everything else in another order for each seed.

use std::future::poll_fn;
use std::task::Poll;

/// Draws how late each answer is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Late {
    state: u64,
    most: u64,
}

impl Late {
    pub(super) const fn new(seed: u64, most: u64) -> Self {
        // A xorshift generator must not begin with zero.
        Self {
            state: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1,
            most,
        }
    }

    /// Draws the turns of the next answer; half of them are not late at all.
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

/// Lets everybody else have this many turns.
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
