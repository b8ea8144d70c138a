//! Shows how far the workload is: a bar on a terminal, plain lines elsewhere.

use std::io::{IsTerminal, stderr};
use std::sync::atomic::{AtomicU64, Ordering};

use indicatif::{ProgressBar, ProgressStyle};

use super::console;

/// How many plain lines tell of the whole workload.
const LINES: u64 = 20;

/// How far the workload is.
#[derive(Debug)]
pub struct Progress {
    bar: Option<ProgressBar>,
    done: AtomicU64,
    total: u64,
}

impl Progress {
    /// Starts at nothing of this many operations.
    #[must_use]
    pub fn new(total: u64) -> Self {
        let bar = stderr().is_terminal().then(|| {
            let style = ProgressStyle::with_template("{bar:40} {pos}/{len} operations, {elapsed} {msg}");
            ProgressBar::new(total).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        });
        Self {
            bar,
            done: AtomicU64::new(0),
            total,
        }
    }

    /// Counts one more.
    pub fn step(&self) {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        match &self.bar {
            Some(bar) => bar.set_position(done),
            None => {
                let lines = |count: u64| count * LINES / self.total.max(1);
                if lines(done) > lines(done - 1) {
                    console::notice(&format!("{done} of {} operations have ended", self.total));
                }
            }
        }
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
