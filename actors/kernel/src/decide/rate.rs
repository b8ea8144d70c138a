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
            let rates = &self.kernel.rates;
            let windows = self.windows_mut();
            let place = windows.iter().position(|(other, _)| other == key);
            let place = place.unwrap_or_else(|| {
                let window = rates.window(key).cloned().unwrap_or_default();
                windows.push((key.clone(), window));
                windows.len() - 1
            });
            if let Some((_, window)) = windows.get_mut(place) {
                window.begin(now, rate.period);
            }
        }
    }

    /// Records the windows of this decision.
    pub(super) fn record_windows(&mut self) {
        for (key, window) in self.take_windows() {
            self.record(Record::RateWindow(key, Box::new(window)));
        }
    }
}
