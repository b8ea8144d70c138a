//! How many commits there were lately: a count for each short while, the newest last.

use std::collections::VecDeque;

use procession_kernel::Timestamp;

/// How long one count is, in microseconds.
const STEP: u64 = 2_000_000;
/// Counts that are kept: five minutes.
const KEPT: u64 = 150;

/// Counts of commits.
#[derive(Default)]
pub(crate) struct Pulse {
    /// Number of the step, and commits in it; steps without one are not there.
    counts: VecDeque<(u64, u32)>,
}

impl Pulse {
    /// Milliseconds of one count.
    pub(crate) const STEP_MS: u64 = STEP / 1_000;

    /// Counts so many commits.
    pub(super) fn beat(&mut self, now: Timestamp, commits: u64) {
        let (step, commits) = (now.0 / STEP, u32::try_from(commits).unwrap_or(u32::MAX));
        match self.counts.back_mut() {
            // A clock that was set back counts where it was.
            Some((last, count)) if *last >= step => *count = count.saturating_add(commits),
            _ => self.counts.push_back((step, commits)),
        }
        self.counts.retain(|(at, _)| *at + KEPT >= step);
    }

    /// Returns the counts up to the last step that is over, the oldest first, silence as 0.
    pub(crate) fn line(&self, now: Timestamp) -> Vec<u32> {
        let end = now.0 / STEP;
        let from = end.saturating_sub(KEPT);
        let mut line = Vec::new();
        for (step, count) in self.counts.iter().filter(|(step, _)| (from..end).contains(step)) {
            let silent = step.saturating_sub(from + line.len() as u64);
            line.extend((0..silent).map(|_| 0));
            line.push(*count);
        }
        line.extend((line.len() as u64..end - from).map(|_| 0));
        line
    }
}

#[cfg(test)]
mod tests;
