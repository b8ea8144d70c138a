//! How long calls of services take, by the state that makes them.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use metrics::Histogram;
use rustc_hash::FxHashMap;

use super::names::{CALL_SECONDS, histogram, shared};

/// Largest number of states whose calls are counted. Each has one series for every status.
const STATES_MAX: usize = 10_000;
/// What a call can come to.
const STATUSES: [&str; 3] = ["SU", "FA", "UN"];

/// Times of calls that states of sagas make. A call is counted once it has ended: of one that a crash cut off nobody knows.
#[derive(Default)]
pub struct CallTelemetry(Mutex<Calls>);

#[derive(Default)]
struct Calls {
    /// By machine, then by state.
    states: FxHashMap<String, FxHashMap<String, [Option<Histogram>; STATUSES.len()]>>,
    count: usize,
}

impl CallTelemetry {
    /// Counts a call of a machine's state. Series are requested when a state's first call has come to a status.
    pub fn called(&self, machine: &str, state: &str, status: &str, took: Duration) {
        let Some(place) = STATUSES.iter().position(|known| *known == status) else {
            return;
        };
        let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(series) = calls.series(machine, state).and_then(|series| series.get_mut(place)) {
            let kind = || shared(&format!("saga.{machine}"));
            let series =
                series.get_or_insert_with(|| histogram(&CALL_SECONDS, [kind(), shared(state), shared(status)]));
            series.record(took.as_secs_f64());
        }
    }
}

impl Calls {
    fn series(&mut self, machine: &str, state: &str) -> Option<&mut [Option<Histogram>; STATUSES.len()]> {
        let is_known = self
            .states
            .get(machine)
            .is_some_and(|states| states.contains_key(state));
        if !is_known {
            if self.count >= STATES_MAX {
                return None;
            }
            self.count += 1;
            let states = self.states.entry(machine.to_owned()).or_default();
            states.insert(state.to_owned(), Default::default());
        }
        self.states.get_mut(machine)?.get_mut(state)
    }
}
