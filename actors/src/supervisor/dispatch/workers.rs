//! Worker arbiters: the threads that run user code, used in turn. A worker that user code blocks for too long gets no
//! new actors. When half of the workers are blocked, one is added. It leaves once it is no longer needed.
//!
//! All times here are machine times, because they measure how long a thread is occupied.

use std::sync::Arc;
use std::time::{Duration, Instant};

use actix::WeakRecipient;
use actix::prelude::*;
use procession_kernel::ProcedureId;

use crate::clock::{machine_now, machine_sleep};
use crate::engine::Settings;
use crate::heartbeats::Heartbeats;
use crate::queues::deliver;
use crate::threads::Threads;
use crate::view::{BlockedStage, UserCall, WorkerStatus};
use crate::worker::{CallSlot, Heartbeat};
use crate::worker_inbox::CallQueue;

/// The maximum number of workers, as a multiple of the configured number, unless the settings say otherwise. Each added
/// worker is a thread that user code may block as well.
const WORKERS_MAX_TIMES: usize = 4;

/// When a worker counts as blocked, and when workers are added and retired.
#[derive(Clone)]
struct ScalingPolicy {
    threads: Threads,
    blocked_after: Duration,
    keep_alive: Duration,
    max: usize,
}

struct Worker {
    number: usize,
    arbiter: ArbiterHandle,
    queue: Arc<CallQueue>,
    heartbeat: Arc<Heartbeat>,
    extra: bool,
    /// The number of beats at the last check, and since when that number has not changed.
    beats: u64,
    since: Instant,
    blocked: Option<Blocked>,
    /// Since when the worker has not been needed.
    spare: Option<Instant>,
    /// `true` if the worker takes no more actors, and ends with its last one.
    retiring: bool,
}

/// A call that blocks a worker.
struct Blocked {
    procedure: ProcedureId,
    call: UserCall,
    stage: String,
}

/// A worker that has become blocked, and the procedure whose code holds it.
pub(super) struct NewlyBlocked {
    pub(super) worker: usize,
    pub(super) procedure: ProcedureId,
    pub(super) time: Duration,
}

/// It is time to check the workers.
#[derive(Message)]
#[rtype(result = "()")]
pub(in crate::supervisor) struct WorkerCheckDue;

/// Sends a [`WorkerCheckDue`] at this interval, on a task of its own, for as long as the receiver lives.
pub(in crate::supervisor) fn check_workers_every(time: Duration, to: WeakRecipient<WorkerCheckDue>) {
    actix_rt::spawn(async move {
        loop {
            machine_sleep(time).await;
            let Some(to) = to.upgrade().filter(Recipient::connected) else {
                return;
            };
            deliver(&to, WorkerCheckDue).await;
        }
    });
}

/// The arbiters that run procedures' actors.
pub(crate) struct Workers {
    workers: Vec<Worker>,
    heartbeats: Heartbeats,
    /// `None` for the host's arbiter, which is not watched.
    scaling: Option<ScalingPolicy>,
    next: usize,
    next_number: usize,
    /// `true` if at least half of the workers are blocked, so that extra workers are used.
    needs_extra: bool,
}

impl Workers {
    /// Takes over arbiters that end with the engine. More are started from `threads`.
    pub(crate) fn owned(arbiters: Vec<ArbiterHandle>, threads: Threads, settings: &Settings) -> Self {
        let scaling = ScalingPolicy {
            threads,
            blocked_after: settings.blocked_after,
            keep_alive: settings.worker_keep_alive,
            max: settings.max_workers.unwrap_or(arbiters.len() * WORKERS_MAX_TIMES),
        };
        Self::new(arbiters, Some(scaling))
    }

    /// Uses the host's arbiter.
    pub(crate) fn borrowed(arbiter: ArbiterHandle) -> Self {
        Self::new(vec![arbiter], None)
    }

    fn new(arbiters: Vec<ArbiterHandle>, scaling: Option<ScalingPolicy>) -> Self {
        let mut workers = Self {
            workers: Vec::new(),
            heartbeats: Heartbeats::default(),
            scaling,
            next: 0,
            next_number: 0,
            needs_extra: false,
        };
        for arbiter in arbiters {
            workers.push(arbiter, false);
        }
        workers
    }

    fn push(&mut self, arbiter: ArbiterHandle, extra: bool) {
        let worker = self.worker(arbiter, extra);
        self.workers.push(worker);
        self.show_heartbeats();
    }

    fn worker(&mut self, arbiter: ArbiterHandle, extra: bool) -> Worker {
        let number = self.next_number;
        self.next_number += 1;
        Worker {
            number,
            queue: Arc::new(CallQueue::start(&arbiter)),
            arbiter,
            heartbeat: Arc::default(),
            extra,
            beats: 0,
            since: machine_now(),
            blocked: None,
            spare: None,
            retiring: false,
        }
    }

    /// Publishes the heartbeats of the current workers to readers on other threads.
    fn show_heartbeats(&self) {
        let heartbeats = self.workers.iter().map(|worker| Arc::clone(&worker.heartbeat));
        self.heartbeats.set(heartbeats.collect());
    }

    pub(crate) fn heartbeats(&self) -> Heartbeats {
        self.heartbeats.clone()
    }

    /// Returns the arbiter whose turn it is, its heartbeat, and its call queue.
    pub(super) fn next(&mut self) -> Option<(&ArbiterHandle, &Arc<Heartbeat>, &Arc<CallQueue>)> {
        let count = self.workers.len().max(1);
        let begin = self.next;
        self.next = self.next.wrapping_add(1);
        let turns = (0..count).map(|step| begin.wrapping_add(step) % count);
        // If all workers are blocked, the actor waits on one of them until it is free.
        let turn = turns.clone().find(|turn| self.is_open(*turn)).unwrap_or(begin % count);
        let worker = self.workers.get(turn)?;
        Some((&worker.arbiter, &worker.heartbeat, &worker.queue))
    }

    fn is_open(&self, turn: usize) -> bool {
        let takes = |worker: &Worker| {
            let is_needed = !worker.extra || self.needs_extra;
            worker.blocked.is_none() && !worker.retiring && is_needed && worker.arbiter.alive()
        };
        self.workers.get(turn).is_some_and(takes)
    }

    /// Returns how often to check the workers, if at all: often enough that a blocked worker is found soon after the
    /// threshold.
    pub(super) fn check_every(&self) -> Option<Duration> {
        let scaling = self.scaling.as_ref()?;
        let quarter = scaling.blocked_after / 4;
        Some(quarter.clamp(Duration::from_millis(5), Duration::from_secs(1)))
    }

    /// Reads every heartbeat. Returns the workers that have become blocked.
    pub(super) fn check(&mut self, now: Instant) -> Vec<NewlyBlocked> {
        let Some(scaling) = &self.scaling else {
            return Vec::new();
        };
        let mut found = Vec::new();
        for worker in &mut self.workers {
            let beats = worker.observe(now);
            let time = now.saturating_duration_since(worker.since);
            let is_new = time >= scaling.blocked_after && worker.blocked.is_none();
            if let Some(procedure) = worker.heartbeat.holder(beats).filter(|_| is_new) {
                found.push(NewlyBlocked {
                    worker: worker.number,
                    procedure,
                    time,
                });
            }
        }
        found
    }

    /// Returns the longest time for which a worker has been blocked; zero if none is.
    pub(super) fn blocked_for(&self, now: Instant) -> Duration {
        let blocked = self.workers.iter().filter(|worker| worker.blocked.is_some());
        let times = blocked.map(|worker| now.saturating_duration_since(worker.since));
        times.max().unwrap_or_default()
    }

    /// Marks a worker as blocked by this call.
    pub(super) fn block(&mut self, found: &NewlyBlocked, call: UserCall, stage: String) {
        if let Some(worker) = self.workers.iter_mut().find(|worker| worker.number == found.worker) {
            worker.blocked = Some(Blocked {
                procedure: found.procedure,
                call,
                stage,
            });
        }
    }

    /// Adds a worker if at least half of them are blocked, and retires workers that are no longer needed.
    pub(super) fn adjust(&mut self, now: Instant) {
        let Some(scaling) = self.scaling.clone() else { return };
        // A running extra worker is the remedy, so it does not count among the workers that may be blocked.
        let blocked = self.workers.iter().filter(|worker| worker.blocked.is_some()).count();
        let answers = self.workers.iter().filter(|worker| worker.is_answer()).count();
        let others = self.workers.len() - answers;
        self.needs_extra = blocked * 2 >= others;
        if !self.needs_extra {
            self.retire(now, scaling.keep_alive);
            return;
        }
        for worker in &mut self.workers {
            worker.spare = None;
            worker.retiring = false;
        }
        if answers == 0 && self.workers.len() < scaling.max {
            self.add(&scaling.threads, blocked);
        }
    }

    fn add(&mut self, threads: &Threads, blocked: usize) {
        match threads.start() {
            Ok(arbiter) => {
                self.push(arbiter, true);
                tracing::info!(workers = self.workers.len(), blocked, "a worker was added");
            }
            Err(error) => tracing::warn!(%error, blocked, "no worker could be added; the next check tries again"),
        }
    }

    fn retire(&mut self, now: Instant, keep_alive: Duration) {
        for worker in self.workers.iter_mut().filter(|worker| worker.is_answer()) {
            let since = *worker.spare.get_or_insert(now);
            worker.retiring = now.saturating_duration_since(since) >= keep_alive;
        }
        let left = |worker: &Worker| worker.retiring && worker.heartbeat.actors() == 0;
        for worker in self.workers.iter().filter(|worker| left(worker)) {
            worker.arbiter.stop();
            tracing::info!(worker = worker.number, "a worker was retired");
        }
        self.workers.retain(|worker| !left(worker));
        self.show_heartbeats();
    }

    /// Returns a test for slots whose actors should leave their worker, unless there is no open worker to go to.
    pub(super) fn left_behind(&self) -> Option<impl Fn(&CallSlot) -> bool + use<>> {
        let leave = |worker: &&Worker| worker.blocked.is_some() || worker.retiring;
        let left: Vec<Arc<Heartbeat>> = self
            .workers
            .iter()
            .filter(leave)
            .map(|worker| Arc::clone(&worker.heartbeat))
            .collect();
        let goes = !left.is_empty() && (0..self.workers.len()).any(|turn| self.is_open(turn));
        goes.then_some(move |slot: &CallSlot| left.iter().any(|heartbeat| slot.is_on(heartbeat)))
    }

    /// Starts a new thread for each worker whose thread has ended. Returns `true` if any was replaced.
    pub(super) fn replace_ended(&mut self) -> bool {
        let Some(threads) = self.scaling.as_ref().map(|scaling| scaling.threads.clone()) else {
            return false;
        };
        let mut replaced = false;
        for place in 0..self.workers.len() {
            let ended = self.workers.get(place).filter(|worker| !worker.arbiter.alive());
            let Some((worker, extra)) = ended.map(|worker| (worker.number, worker.extra)) else {
                continue;
            };
            match threads.start() {
                Ok(arbiter) => {
                    let new = self.worker(arbiter, extra);
                    tracing::error!(worker, "a worker's thread has ended; a new thread replaces it");
                    self.workers.splice(place..=place, [new]);
                    replaced = true;
                }
                Err(error) => {
                    tracing::error!(%error, worker, "a worker's thread has ended, and no new thread could be started")
                }
            }
        }
        self.show_heartbeats();
        replaced
    }

    /// Reads every heartbeat, so that [`Self::statuses`] describes this moment.
    pub(super) fn observe(&mut self, now: Instant) {
        for worker in &mut self.workers {
            worker.observe(now);
        }
    }

    /// Describes each worker; `called` returns the newest call of a procedure.
    pub(super) fn statuses(&self, called: &dyn Fn(ProcedureId) -> (UserCall, String)) -> Vec<WorkerStatus> {
        let now = machine_now();
        let busy = |worker: &Worker, procedure| {
            let (call, stage) = called(procedure);
            let time = now.saturating_duration_since(worker.since);
            BlockedStage {
                procedure,
                call,
                stage,
                time,
            }
        };
        let status = |worker: &Worker| WorkerStatus {
            worker: worker.number,
            blocked: worker.blocked.as_ref().map(|blocked| BlockedStage {
                procedure: blocked.procedure,
                call: blocked.call,
                stage: blocked.stage.clone(),
                time: now.saturating_duration_since(worker.since),
            }),
            extra: worker.extra,
            actors: worker.heartbeat.actors(),
            busy: worker
                .heartbeat
                .holder(worker.beats)
                .map(|procedure| busy(worker, procedure)),
            waiting: worker.heartbeat.waiting(),
        };
        self.workers.iter().map(status).collect()
    }

    /// Ends the threads that end with the engine.
    pub(super) fn stop(&self) {
        if self.scaling.is_some() {
            for worker in &self.workers {
                worker.arbiter.stop();
            }
        }
    }
}

impl Worker {
    /// Reads the worker's heartbeat, and returns the number of beats.
    fn observe(&mut self, now: Instant) -> u64 {
        let beats = self.heartbeat.beats();
        if beats != self.beats {
            self.beats = beats;
            self.since = now;
            if self.blocked.take().is_some() {
                tracing::info!(worker = self.number, "a worker is no longer blocked");
            }
        }
        beats
    }

    /// Returns `true` for an extra worker that is not blocked.
    fn is_answer(&self) -> bool {
        self.extra && self.blocked.is_none()
    }
}
