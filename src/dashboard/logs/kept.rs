//! The events that are kept: by attempt, each with a bound, and all together with one.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use procession_actors::clock::Clock;
use procession_kernel::{ProcedureId, Timestamp};
use tracing::Metadata;

use super::text::{Call, LogText};

/// Events of one attempt, at most: the newest.
const EVENTS: usize = 50;
/// Bytes of all attempts together, unless the host says otherwise: some 100,000 lines.
const BYTES: usize = 16 << 20;
/// What is counted for an event and for an attempt beside their texts.
const EVENT_BYTES: usize = 128;
const ATTEMPT_BYTES: usize = 256;

/// One attempt of a stage or of an undo.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::dashboard) struct CallKey {
    /// The store's own number: two engines of one process may have the same ids.
    pub(in crate::dashboard) store: u64,
    pub(in crate::dashboard) id: ProcedureId,
    pub(in crate::dashboard) visit: u32,
    pub(in crate::dashboard) attempt: u32,
    pub(in crate::dashboard) is_undo: bool,
}

/// One event.
#[derive(Clone, Debug)]
pub(in crate::dashboard) struct LogEvent {
    pub(in crate::dashboard) at: Timestamp,
    pub(in crate::dashboard) level: &'static str,
    pub(in crate::dashboard) target: &'static str,
    pub(in crate::dashboard) text: LogText,
}

impl LogEvent {
    fn bytes(&self) -> usize {
        EVENT_BYTES + self.text.len()
    }
}

/// What one attempt has logged.
#[derive(Clone, Debug)]
pub(in crate::dashboard) struct AttemptLog {
    pub(in crate::dashboard) key: CallKey,
    pub(in crate::dashboard) stage: String,
    pub(in crate::dashboard) events: VecDeque<LogEvent>,
    /// How many older events went.
    pub(in crate::dashboard) left_out: u64,
    /// The place of its newest event among all.
    newest: u64,
}

/// The events that are kept.
pub(super) struct Kept {
    clock: Arc<dyn Clock>,
    attempts: BTreeMap<CallKey, AttemptLog>,
    /// Attempts by the place of their newest event: the first goes first.
    by_age: BTreeMap<u64, CallKey>,
    events: u64,
    bytes: usize,
    most: usize,
    forgotten: u64,
}

impl Kept {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            attempts: BTreeMap::new(),
            by_age: BTreeMap::new(),
            events: 0,
            bytes: 0,
            most: BYTES,
            forgotten: 0,
        }
    }

    pub(super) fn set_clock(&mut self, clock: Arc<dyn Clock>) {
        self.clock = clock;
    }

    pub(super) const fn set_most(&mut self, bytes: usize) {
        self.most = bytes;
    }

    pub(super) const fn forgotten(&self) -> u64 {
        self.forgotten
    }

    pub(super) fn of(&self, store: u64, id: ProcedureId, wanted: impl Fn(&CallKey) -> bool) -> Vec<AttemptLog> {
        let end = |visit, attempt, is_undo| CallKey {
            store,
            id,
            visit,
            attempt,
            is_undo,
        };
        let all = self.attempts.range(end(0, 0, false)..=end(u32::MAX, u32::MAX, true));
        let mut found: Vec<AttemptLog> = all
            .filter(|(key, _)| wanted(key))
            .map(|(_, attempt)| attempt.clone())
            .collect();
        found.sort_unstable_by_key(|attempt| attempt.newest);
        found
    }

    pub(super) fn add(&mut self, call: &Call, metadata: &Metadata<'static>, text: LogText) {
        let event = LogEvent {
            at: self.clock.now(),
            level: metadata.level().as_str(),
            target: metadata.target(),
            text,
        };
        self.events += 1;
        let known = self.attempts.entry(call.key);
        let attempt = known.or_insert_with(|| {
            self.bytes += ATTEMPT_BYTES + call.stage.len();
            AttemptLog {
                key: call.key,
                stage: call.stage.clone(),
                events: VecDeque::new(),
                left_out: 0,
                newest: 0,
            }
        });
        self.bytes += event.bytes();
        attempt.events.push_back(event);
        if attempt.events.len() > EVENTS
            && let Some(oldest) = attempt.events.pop_front()
        {
            self.bytes -= oldest.bytes();
            attempt.left_out += 1;
        }
        self.by_age.remove(&attempt.newest);
        attempt.newest = self.events;
        self.by_age.insert(self.events, call.key);
        self.forget_beyond();
    }

    fn forget_beyond(&mut self) {
        while self.bytes > self.most
            && let Some((_, key)) = self.by_age.pop_first()
        {
            if let Some(attempt) = self.attempts.remove(&key) {
                let events = attempt.events.iter().map(LogEvent::bytes).sum::<usize>();
                self.bytes -= ATTEMPT_BYTES + attempt.stage.len() + events;
                self.forgotten += 1;
            }
        }
    }
}
