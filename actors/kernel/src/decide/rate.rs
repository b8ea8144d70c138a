//! Begins that count for the rate of a limit. They are recorded in the commit that records the grant.

use super::draft::Draft;
use crate::id::LimitKey;
use crate::record::Record;

impl Draft<'_> {
    /// Counts a begin for each of these limits that has a rate.
    pub(super) fn begin_in<'a>(&mut self, limits: impl IntoIterator<Item = &'a LimitKey>) {
        if self.kernel.rates.is_empty() {
            return;
        }
        for key in limits {
            let Some(rate) = self.kernel.rates.rate(key) else {
                continue;
            };
            let now = self.now;
            let place = self.windows.iter().position(|(other, _)| other == key);
            let place = place.unwrap_or_else(|| {
                let window = self.kernel.rates.window(key).cloned().unwrap_or_default();
                self.windows.push((key.clone(), window));
                self.windows.len() - 1
            });
            if let Some((_, window)) = self.windows.get_mut(place) {
                window.begin(now, rate.period);
            }
        }
    }

    /// Records the windows of this decision.
    pub(super) fn record_windows(&mut self) {
        if self.windows.is_empty() {
            return;
        }
        for (key, window) in std::mem::take(&mut self.windows) {
            self.record(Record::RateWindow(key, Box::new(window)));
        }
    }
}
