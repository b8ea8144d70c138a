//! Calls of `on_submit` and `on_finish`: after the receipt, on a worker, in the
//! order of the commits. One lot is out at a time, so the supervisor waits for
//! nothing and a birth is told before the end.

use std::collections::VecDeque;

use actix::prelude::*;
use procession_kernel::Kind;

use super::Supervisor;
use crate::hooks::HookCall;
use crate::mail::deliver;
use crate::registry::Registry;
use crate::telemetry::Telemetry;

/// Calls that may wait: as many as the largest `Spawn` makes at once. Workers
/// that are blocked for longer lose calls, not memory.
const WAITING: usize = 100_000;

/// Calls of one lot: short enough that stages on that worker are not kept waiting.
const LOT: usize = 256;

/// Says that a lot of calls has been made.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct HooksRan;

/// Calls that wait, and which kinds want any.
pub(super) struct MetricHooks {
    /// By the place of the kind; none for one without hooks.
    of: Vec<Option<Kind>>,
    wanted: bool,
    waiting: VecDeque<HookCall>,
    out: bool,
}

impl MetricHooks {
    pub(super) fn new(registry: &Registry, telemetry: &Telemetry) -> Self {
        let mut of = vec![None; registry.kinds().count()];
        for kind in registry.kinds().filter(|kind| registry.has_metric_hooks(kind)) {
            if let Some(wanted) = telemetry.place(kind).and_then(|place| of.get_mut(place)) {
                *wanted = Some(kind.clone());
            }
        }
        Self {
            wanted: of.iter().any(Option::is_some),
            of,
            waiting: VecDeque::new(),
            out: false,
        }
    }
}

impl Supervisor {
    /// Queues a call for a kind that wants it.
    pub(super) fn hook(&mut self, place: usize, call: impl FnOnce(Kind) -> HookCall) {
        let Some(Some(kind)) = self.hooks.of.get(place) else {
            return;
        };
        if self.hooks.waiting.len() < WAITING {
            self.hooks.waiting.push_back(call(kind.clone()));
        } else {
            self.telemetry.hooks_dropped.increment(1);
        }
    }

    /// Sends the next lot to a worker, unless one is out.
    pub(super) fn run_hooks(&mut self, ctx: &mut Context<Self>) {
        if self.hooks.out || self.hooks.waiting.is_empty() {
            return;
        }
        let Some((worker, ..)) = self.workers.next() else {
            return;
        };
        let lot = self.hooks.waiting.len().min(LOT);
        let lot: Vec<HookCall> = self.hooks.waiting.drain(..lot).collect();
        let (registry, me) = (self.registry.clone(), ctx.address().recipient());
        self.hooks.out = worker.spawn_fn(move || {
            for call in &lot {
                registry.call_hook(call);
            }
            actix_rt::spawn(async move { deliver(&me, HooksRan).await });
        });
    }

    /// Tells whether a drain may end: what was committed has been told.
    pub(super) fn hooks_are_over(&mut self) -> bool {
        !self.hooks.wanted || (!self.hooks.out && self.hooks.waiting.is_empty() && self.commits.is_quiet())
    }
}

impl Handler<HooksRan> for Supervisor {
    type Result = ();

    fn handle(&mut self, _: HooksRan, ctx: &mut Self::Context) {
        self.hooks.out = false;
        self.run_hooks(ctx);
        self.look_at_drain(ctx);
    }
}
