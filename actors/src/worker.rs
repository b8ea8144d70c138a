//! The state that a worker's thread and the supervisor share. The heartbeat shows from outside that user code holds the
//! thread. In each actor's call slot, either the actor begins a call or the supervisor revokes it, never both.

use std::future::poll_fn;
use std::pin::Pin;

use procession_kernel::{ProcedureId, Timestamp};

use crate::queues::Depth;
use crate::sync::{Arc, AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// The heartbeat of one worker. Only the worker's thread beats. It has cache lines of its own, so that the beats of
/// other workers do not slow it.
#[repr(align(128))]
#[derive(Debug, Default)]
pub(crate) struct Heartbeat {
    /// Odd while user code is polled.
    beats: AtomicU64,
    family: AtomicU64,
    member: AtomicU32,
    actors: AtomicUsize,
    /// The calls that wait for their actors on this worker.
    calls: Depth,
}

/// Ends a poll of user code when it is dropped, even if the code panics.
pub(crate) struct PollGuard<'a>(&'a Heartbeat);

impl Heartbeat {
    /// Marks that this procedure's code has the thread, until the guard is dropped.
    pub(crate) fn enter(&self, id: ProcedureId) -> PollGuard<'_> {
        // Stored with release ordering: a reader that sees half of a newer id also sees the beat before it.
        self.family.store(id.family, Ordering::Release);
        self.member.store(id.member, Ordering::Release);
        self.beat();
        PollGuard(self)
    }

    /// There is one writer, so a load and a store are enough.
    fn beat(&self) {
        self.beats
            .store(self.beats.load(Ordering::Relaxed) + 1, Ordering::Release);
    }

    /// Returns the number of beats.
    pub(crate) fn beats(&self) -> u64 {
        self.beats.load(Ordering::Acquire)
    }

    /// Returns the procedure whose code has had the thread since this number of beats. Returns `None` if there was
    /// another beat since, or if no code has the thread. So both halves of the id belong to the same procedure.
    pub(crate) fn holder(&self, beats: u64) -> Option<ProcedureId> {
        let id = ProcedureId::new(self.family.load(Ordering::Acquire), self.member.load(Ordering::Acquire));
        (!beats.is_multiple_of(2) && self.beats() == beats).then_some(id)
    }

    /// Returns how many calls wait for the worker, approximately.
    pub(crate) fn waiting(&self) -> u64 {
        self.calls.waiting()
    }

    /// Returns the number of actors on this worker, including released actors that have not ended yet.
    pub(crate) fn actors(&self) -> usize {
        self.actors.load(Ordering::Acquire)
    }
}

impl Drop for PollGuard<'_> {
    fn drop(&mut self) {
        self.0.beat();
    }
}

/// Runs user code, marking each of its polls.
pub(crate) fn watched<F: Future + Unpin>(
    heartbeat: &Heartbeat,
    id: ProcedureId,
    mut code: F,
) -> impl Future<Output = F::Output> {
    poll_fn(move |cx| {
        let _polled = heartbeat.enter(id);
        Pin::new(&mut code).poll(cx)
    })
}

/// The state of a revoked slot: its actor begins no more calls.
const REVOKED: u64 = u64::MAX;

/// The slot in which the calls of one actor are begun or revoked.
#[derive(Debug)]
pub(crate) struct CallSlot {
    /// Twice the number of calls that have ended, plus one while a call runs.
    state: AtomicU64,
    /// The number of calls that were sent and not revoked. It is not part of the protocol. It ensures that calls lost
    /// with their mailbox no longer count as waiting.
    sent: std::sync::atomic::AtomicU64,
    /// When the newest call began, in microseconds. It is not part of the protocol either.
    begun: std::sync::atomic::AtomicU64,
    heartbeat: Arc<Heartbeat>,
}

impl CallSlot {
    pub(crate) fn new(heartbeat: Arc<Heartbeat>) -> Arc<Self> {
        Arc::new(Self {
            state: AtomicU64::new(0),
            sent: std::sync::atomic::AtomicU64::new(0),
            begun: std::sync::atomic::AtomicU64::new(u64::MAX),
            heartbeat,
        })
    }

    /// Returns the actor's side of the slot. From here on the actor counts as one of its worker's actors.
    pub(crate) fn guard(slot: &Arc<Self>) -> CallSlotGuard {
        slot.heartbeat.actors.fetch_add(1, Ordering::AcqRel);
        CallSlotGuard(Arc::clone(slot))
    }

    /// Counts a call that is sent. It counts as waiting until it begins.
    pub(crate) fn sent(&self) {
        self.sent.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        self.heartbeat.calls.sent();
    }

    /// Returns `true` if this slot is on the worker with this heartbeat.
    pub(crate) fn is_on(&self, heartbeat: &Arc<Heartbeat>) -> bool {
        Arc::ptr_eq(&self.heartbeat, heartbeat)
    }

    /// Returns `true` if exactly this many calls have ended, and none has begun since.
    pub(crate) fn has_ended(&self, calls: u64) -> bool {
        self.state.load(Ordering::Acquire) == 2 * calls
    }

    /// Returns how many calls have ended, and whether one runs; `None` if the slot was revoked.
    pub(crate) fn ended(&self) -> Option<(u64, bool)> {
        let state = self.state.load(Ordering::Acquire);
        (state != REVOKED).then_some((state / 2, !state.is_multiple_of(2)))
    }

    /// Returns `true` if a call runs.
    pub(crate) fn is_running(&self) -> bool {
        self.ended().is_some_and(|(_, runs)| runs)
    }

    /// Returns since when a call runs, if one does. At the moment when it begins, this is the end of time.
    pub(crate) fn runs_since(&self) -> Option<Timestamp> {
        let since = || self.begun.load(std::sync::atomic::Ordering::Relaxed);
        self.is_running().then(|| Timestamp(since()))
    }

    /// Revokes every call that has not begun, unless a call runs. Returns how many have ended.
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

    /// Records that only this many of the sent calls ever began: the others no longer wait.
    fn lose(&self, begun: u64) {
        let sent = self.sent.swap(begun, std::sync::atomic::Ordering::Relaxed);
        self.heartbeat.calls.taken_all(sent.saturating_sub(begun));
    }
}

/// The actor's side of its call slot.
#[derive(Debug)]
pub(crate) struct CallSlotGuard(Arc<CallSlot>);

impl CallSlotGuard {
    /// Begins a call, and returns `true`, unless the call was revoked.
    pub(crate) fn begin(&self) -> bool {
        let state = self.0.state.load(Ordering::Relaxed);
        let begins = state != REVOKED
            && self
                .0
                .state
                .compare_exchange(state, state + 1, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok();
        if begins {
            self.0.heartbeat.calls.taken();
        }
        begins
    }

    /// Records when the running call began.
    pub(crate) fn began(&self, at: Timestamp) {
        self.0.begun.store(at.0, std::sync::atomic::Ordering::Relaxed);
    }

    /// Ends the running call.
    pub(crate) fn end(&self) {
        self.began(Timestamp(u64::MAX));
        // While a call runs, only this side writes.
        let state = self.0.state.load(Ordering::Relaxed);
        self.0.state.store(state + 1, Ordering::Release);
    }

    pub(crate) fn heartbeat(&self) -> Arc<Heartbeat> {
        Arc::clone(&self.0.heartbeat)
    }
}

impl Drop for CallSlotGuard {
    fn drop(&mut self) {
        // Calls in the actor's mailbox are lost with it, unless they were revoked.
        let state = self.0.state.load(Ordering::Acquire);
        if state != REVOKED {
            self.0.lose(state.div_ceil(2));
        }
        self.0.heartbeat.actors.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests;
