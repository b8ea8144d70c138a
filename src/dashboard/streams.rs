//! How many streams there are: bounded in all, and for each caller.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use procession_actors::StreamTelemetry;

/// Streams at once.
pub(super) const STREAMS_MAX: usize = 64;
/// Streams of one caller at once.
pub(super) const STREAMS_OF_ONE_MAX: usize = 8;

/// The streams that are open, by caller.
#[derive(Default)]
pub(super) struct Streams {
    open: Mutex<BTreeMap<String, usize>>,
    telemetry: StreamTelemetry,
}

/// The place of one stream, free again when this is dropped.
pub(super) struct Place {
    streams: Arc<Streams>,
    who: String,
}

impl Streams {
    /// Takes a place; none if all are taken.
    pub(super) fn enter(self: &Arc<Self>, who: &str) -> Option<Place> {
        let mut open = self.lock();
        let own = open.get(who).copied().unwrap_or_default();
        if own >= STREAMS_OF_ONE_MAX || open.values().sum::<usize>() >= STREAMS_MAX {
            return None;
        }
        open.insert(who.to_owned(), own + 1);
        self.telemetry.open(open.values().sum());
        Some(Place {
            streams: Arc::clone(self),
            who: who.to_owned(),
        })
    }

    /// Counts those that are open.
    pub(super) fn len(&self) -> usize {
        self.lock().values().sum()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, usize>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Its stream is told to read anew.
    pub(super) fn resynced(&self) {
        self.streams.telemetry.resynced();
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.streams.lock();
        if let Some(own) = open.get_mut(&self.who) {
            *own -= 1;
            if *own == 0 {
                open.remove(&self.who);
            }
        }
        self.streams.telemetry.open(open.values().sum());
    }
}
