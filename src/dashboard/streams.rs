//! How many streams there are: bounded in all, and for each caller.
//!
//! A connection that its peer has closed is noticed only when something is written to it. So a reader
//! who opens one stream after the other gives them one name, and each ends the one before it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use procession_actors::StreamTelemetry;
use tokio::sync::oneshot;

/// Streams at once.
pub(super) const STREAMS_MAX: usize = 64;
/// Streams of one caller at once.
pub(super) const STREAMS_OF_ONE_MAX: usize = 8;

/// The streams that are open, by caller.
#[derive(Default)]
pub(super) struct Streams {
    open: Mutex<Open>,
    telemetry: StreamTelemetry,
}

#[derive(Default)]
struct Open {
    by_caller: BTreeMap<String, Vec<One>>,
    opened: u64,
}

/// One stream, as the others see it.
struct One {
    number: u64,
    name: Option<String>,
    /// Ends it when this is dropped.
    _stands: oneshot::Sender<()>,
}

/// The place of one stream, free again when this is dropped.
pub(super) struct Place {
    streams: Arc<Streams>,
    who: String,
    number: u64,
    /// Answers when another stream has taken its place.
    pub(super) replaced: oneshot::Receiver<()>,
}

impl Streams {
    /// Takes a place, that of the caller's stream of the same name if there is one; none if all are taken.
    pub(super) fn enter(self: &Arc<Self>, who: &str, name: Option<&str>) -> Option<Place> {
        let mut open = self.lock();
        if let (Some(name), Some(own)) = (name, open.by_caller.get_mut(who)) {
            own.retain(|one| one.name.as_deref() != Some(name));
        }
        let own = open.by_caller.get(who).map_or(0, Vec::len);
        if own >= STREAMS_OF_ONE_MAX || open.len() >= STREAMS_MAX {
            return None;
        }
        open.opened += 1;
        let number = open.opened;
        let (stands, replaced) = oneshot::channel();
        open.by_caller.entry(who.to_owned()).or_default().push(One {
            number,
            name: name.map(str::to_owned),
            _stands: stands,
        });
        self.telemetry.open(open.len());
        Some(Place {
            streams: Arc::clone(self),
            who: who.to_owned(),
            number,
            replaced,
        })
    }

    /// Counts those that are open.
    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    fn len(&self) -> usize {
        self.by_caller.values().map(Vec::len).sum()
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
        if let Some(own) = open.by_caller.get_mut(&self.who) {
            own.retain(|one| one.number != self.number);
            if own.is_empty() {
                open.by_caller.remove(&self.who);
            }
        }
        self.streams.telemetry.open(open.len());
    }
}
