//! Calls of `on_submit` and `on_finish`: after the receipt, on a worker, in commit order. One batch is out at a time.
//! So the supervisor waits for nothing, and a procedure's birth is reported before its end.

use std::collections::VecDeque;
use std::sync::Arc;

use actix::ArbiterHandle;
use procession_kernel::{Kind, ProcedureId, Timestamp};
use tokio::sync::oneshot;

use crate::hooks::{Finished, HookCall, HookSet, Submitted};
use crate::registry::Registry;
use crate::telemetry::Telemetry;

/// Calls that may wait: as many as the largest `Spawn` makes at once. If workers are blocked for longer, calls are
/// lost instead of memory.
const WAITING: usize = 100_000;

/// Calls of one batch. They are few enough that stages on the same worker do not wait long.
const BATCH: usize = 256;

/// Calls that wait, and the kinds that have hooks.
pub(super) struct HookQueue {
    /// Indexed by the kind's handles. `None` for a kind without hooks.
    kinds: Vec<Option<(Kind, HookSet)>>,
    has_kinds: bool,
    waiting: VecDeque<HookCall>,
    /// A batch is on a worker.
    is_out: bool,
}

impl HookQueue {
    pub(super) fn new(registry: &Registry, telemetry: &Telemetry) -> Self {
        let mut kinds = vec![None; registry.kinds().count()];
        for kind in registry.kinds() {
            let hooks = registry.hooks(kind);
            let hooked = telemetry.place(kind).and_then(|place| kinds.get_mut(place));
            if let Some(hooked) = hooked.filter(|_| hooks.on_submit || hooks.on_finish) {
                *hooked = Some((kind.clone(), hooks));
            }
        }
        Self {
            has_kinds: kinds.iter().any(Option::is_some),
            kinds,
            waiting: VecDeque::new(),
            is_out: false,
        }
    }

    /// Queues a call of `on_submit` for a kind that has it. Returns `false` if there is no room, and drops the call.
    pub(super) fn submitted(&mut self, place: usize, id: ProcedureId, at: Timestamp) -> bool {
        match self.kinds.get(place) {
            Some(Some((kind, hooks))) if hooks.on_submit => {
                let kind = kind.clone();
                self.push(HookCall::Submitted(Submitted { id, kind, at }))
            }
            Some(_) | None => true,
        }
    }

    /// Returns `true` if a kind has `on_finish`.
    pub(super) fn wants_end(&self, place: usize) -> bool {
        matches!(self.kinds.get(place), Some(Some((_, hooks))) if hooks.on_finish)
    }

    /// Queues a call of `on_finish` for a kind that has it. Returns `false` if there is no room, and drops the call.
    pub(super) fn finished(&mut self, place: usize, finished: Finished) -> bool {
        match self.kinds.get(place) {
            Some(Some((_, hooks))) if hooks.on_finish => self.push(HookCall::Finished(finished)),
            Some(_) | None => true,
        }
    }

    fn push(&mut self, call: HookCall) -> bool {
        let has_room = self.waiting.len() < WAITING;
        if has_room {
            self.waiting.push_back(call);
        }
        has_room
    }

    /// Returns `true` if calls wait and no batch is out.
    pub(super) fn is_ready(&self) -> bool {
        !self.is_out && !self.waiting.is_empty()
    }

    /// Sends the next batch to a worker, and returns what resolves once the batch was made. If the worker's thread ends,
    /// the batch is lost, and that resolves as well.
    pub(super) fn send(&mut self, worker: &ArbiterHandle, registry: Arc<Registry>) -> impl Future<Output = ()> + use<> {
        let batch = self.waiting.len().min(BATCH);
        let batch: Vec<HookCall> = self.waiting.drain(..batch).collect();
        let (done, made) = oneshot::channel::<()>();
        self.is_out = true;
        // A thread that has ended drops the batch, and the sender with it.
        worker.spawn_fn(move || {
            for call in &batch {
                registry.call_hook(call);
            }
            drop(done);
        });
        async move { drop(made.await) }
    }

    /// Records that the batch was made.
    pub(super) const fn ran(&mut self) {
        self.is_out = false;
    }

    /// Returns `true` if a drain may end: all hooks of committed changes were called.
    pub(super) fn is_over(&self, commits_are_quiet: bool) -> bool {
        !self.has_kinds || (!self.is_out && self.waiting.is_empty() && commits_are_quiet)
    }
}
