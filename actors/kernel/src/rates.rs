//! The rates in force, and the begins that each still counts: what the limiter starts with after a crash.
//!
//! The limiter decides by a window of its own. The kernel counts a begin in the commit that records the grant, which is
//! never before the limiter counted it. So a start hands out nothing that was used up.

use std::collections::BTreeMap;

use crate::id::LimitKey;
use crate::limit::{Limit, Rate};
use crate::rate_window::RateWindow;

/// The rates in force, and the begins that each still counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rates {
    rates: BTreeMap<LimitKey, Rate>,
    windows: BTreeMap<LimitKey, RateWindow>,
}

impl Rates {
    /// Returns `true` if no limit has a rate.
    pub(crate) fn is_empty(&self) -> bool {
        self.rates.is_empty()
    }

    /// Returns the rate of a limit.
    pub(crate) fn rate(&self, key: &LimitKey) -> Option<Rate> {
        self.rates.get(key).copied()
    }

    /// Returns the begins that count for a limit, if any were recorded.
    pub(crate) fn window(&self, key: &LimitKey) -> Option<&RateWindow> {
        self.windows.get(key)
    }

    /// Returns the begins that count, by limit.
    pub fn windows(&self) -> impl Iterator<Item = (&LimitKey, &RateWindow)> {
        self.windows.iter()
    }

    /// Sets what a limit allows.
    pub(crate) fn set(&mut self, key: &LimitKey, limit: Limit) {
        match limit.rate() {
            Some(rate) => drop(self.rates.insert(key.clone(), rate)),
            None => drop(self.rates.remove(key)),
        }
    }

    /// Replaces the begins that count for a limit.
    pub(crate) fn put_window(&mut self, key: &LimitKey, window: &RateWindow) {
        if window.is_empty() {
            self.windows.remove(key);
        } else {
            self.windows.insert(key.clone(), window.clone());
        }
    }
}
