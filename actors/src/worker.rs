//! What a worker's thread and the supervisor share: the pulse, by which one sees
//! from outside that user code holds the thread, and the post of each actor, at
//! which a call is begun by the one or taken back by the other, never both.

use std::future::poll_fn;
use std::pin::Pin;

use procession_kernel::{ProcedureId, Timestamp};

use crate::mail::Depth;
use crate::sync::{Arc, AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// The pulse of one worker. Only the worker's thread beats; aligned so that no
/// other's beats slow it.
#[repr(align(128))]
#[derive(Debug, Default)]
pub(crate) struct Pulse {
    /// Odd while user code is polled.
    beats: AtomicU64,
    family: AtomicU64,
    member: AtomicU32,
    actors: AtomicUsize,
    /// Calls that wait for their actors on this worker.
    calls: Depth,
}

/// Ends one beat, also when user code panics.
pub(crate) struct Within<'a>(&'a Pulse);

impl Pulse {
    /// Marks that user code of this procedure has the thread, until the value is dropped.
    pub(crate) fn enter(&self, id: ProcedureId) -> Within<'_> {
        // Released: who sees a half of a newer id sees the beat before it, too.
        self.family.store(id.family, Ordering::Release);
        self.member.store(id.member, Ordering::Release);
        self.beat();
        Within(self)
    }

    /// One writer, so that two plain steps do.
    fn beat(&self) {
        self.beats
            .store(self.beats.load(Ordering::Relaxed) + 1, Ordering::Release);
    }

    /// Gives the number of beats.
    pub(crate) fn beats(&self) -> u64 {
        self.beats.load(Ordering::Acquire)
    }

    /// Gives whose code has had the thread since so many beats; none if there was another beat
    /// since, or if nobody's has: the two halves of an id are of one procedure.
    pub(crate) fn holder(&self, beats: u64) -> Option<ProcedureId> {
        let id = ProcedureId::new(self.family.load(Ordering::Acquire), self.member.load(Ordering::Acquire));
        (!beats.is_multiple_of(2) && self.beats() == beats).then_some(id)
    }

    /// Gives how many calls wait for the worker, about now.
    pub(crate) fn waiting(&self) -> u64 {
        self.calls.waiting()
    }

    /// Counts the actors that exist on this worker: also those that the
    /// supervisor let go and that have not ended yet.
    pub(crate) fn actors(&self) -> usize {
        self.actors.load(Ordering::Acquire)
    }
}

impl Drop for Within<'_> {
    fn drop(&mut self) {
        self.0.beat();
    }
}

/// Runs user code, marking each of its polls.
pub(crate) fn watched<F: Future + Unpin>(
    pulse: &Pulse,
    id: ProcedureId,
    mut code: F,
) -> impl Future<Output = F::Output> {
    poll_fn(move |cx| {
        let _within = pulse.enter(id);
        Pin::new(&mut code).poll(cx)
    })
}

/// The state of a post whose actor begins nothing any more.
const REVOKED: u64 = u64::MAX;

/// Where the calls of one actor are begun or taken back.
#[derive(Debug)]
pub(crate) struct Post {
    /// Twice the number of calls that have ended, and one more while one runs.
    state: AtomicU64,
    /// Calls that were sent and not taken back. It is no part of the protocol: those that are
    /// lost with their mailbox shall not be shown as waiting.
    sent: std::sync::atomic::AtomicU64,
    /// When the newest call began, in microseconds. For who looks, as above.
    begun: std::sync::atomic::AtomicU64,
    pulse: Arc<Pulse>,
}

impl Post {
    pub(crate) fn new(pulse: Arc<Pulse>) -> Arc<Self> {
        Arc::new(Self {
            state: AtomicU64::new(0),
            sent: std::sync::atomic::AtomicU64::new(0),
            begun: std::sync::atomic::AtomicU64::new(u64::MAX),
            pulse,
        })
    }

    /// Gives the actor's side. The actor counts as one of its worker from here on.
    pub(crate) fn seat(post: &Arc<Self>) -> Seat {
        post.pulse.actors.fetch_add(1, Ordering::AcqRel);
        Seat(Arc::clone(post))
    }

    /// Counts a call that was sent: it waits until it is begun.
    pub(crate) fn sent(&self) {
        self.sent.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        self.pulse.calls.sent();
    }

    /// Tells whether this is a post on the worker with that pulse.
    pub(crate) fn is_on(&self, pulse: &Arc<Pulse>) -> bool {
        Arc::ptr_eq(&self.pulse, pulse)
    }

    /// Tells whether so many calls have ended, and none has begun since.
    pub(crate) fn has_ended(&self, calls: u64) -> bool {
        self.state.load(Ordering::Acquire) == 2 * calls
    }

    /// Gives how many calls have ended, and whether one runs; none if they were taken back.
    pub(crate) fn ended(&self) -> Option<(u64, bool)> {
        let state = self.state.load(Ordering::Acquire);
        (state != REVOKED).then_some((state / 2, !state.is_multiple_of(2)))
    }

    /// Tells whether a call runs.
    pub(crate) fn is_running(&self) -> bool {
        self.ended().is_some_and(|(_, runs)| runs)
    }

    /// Tells since when a call runs, if one does; in the moment in which it begins, that is
    /// the end of time.
    pub(crate) fn runs_since(&self) -> Option<Timestamp> {
        let since = || self.begun.load(std::sync::atomic::Ordering::Relaxed);
        self.is_running().then(|| Timestamp(since()))
    }

    /// Takes back every call that has not begun, unless one runs. Gives how many have ended.
    pub(crate) fn revoke(&self) -> Option<u64> {
        let state = self.state.load(Ordering::Acquire);
        let idle = state.is_multiple_of(2);
        let revoked = idle
            && self
                .state
                .compare_exchange(state, REVOKED, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok();
        let ended = revoked.then_some(state / 2)?;
        self.lose(ended);
        Some(ended)
    }

    /// Of the calls that were sent only so many were ever begun: the others wait no more.
    fn lose(&self, begun: u64) {
        let sent = self.sent.swap(begun, std::sync::atomic::Ordering::Relaxed);
        self.pulse.calls.taken_all(sent.saturating_sub(begun));
    }
}

/// The actor's side of its post.
#[derive(Debug)]
pub(crate) struct Seat(Arc<Post>);

impl Seat {
    /// Begins a call, unless it was taken back.
    pub(crate) fn begin(&self) -> bool {
        let state = self.0.state.load(Ordering::Relaxed);
        let begins = state != REVOKED
            && self
                .0
                .state
                .compare_exchange(state, state + 1, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok();
        if begins {
            self.0.pulse.calls.taken();
        }
        begins
    }

    /// Notes when the call began that was begun.
    pub(crate) fn began(&self, at: Timestamp) {
        self.0.begun.store(at.0, std::sync::atomic::Ordering::Relaxed);
    }

    /// Ends the call that was begun.
    pub(crate) fn end(&self) {
        self.began(Timestamp(u64::MAX));
        // While a call runs, this side alone writes.
        let state = self.0.state.load(Ordering::Relaxed);
        self.0.state.store(state + 1, Ordering::Release);
    }

    pub(crate) fn pulse(&self) -> Arc<Pulse> {
        Arc::clone(&self.0.pulse)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        // What waits in the actor's mailbox goes with it, unless it was taken back.
        let state = self.0.state.load(Ordering::Acquire);
        if state != REVOKED {
            self.0.lose(state.div_ceil(2));
        }
        self.0.pulse.actors.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests;
