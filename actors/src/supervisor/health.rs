//! The health wing: what is stuck, why a procedure does not move, and what is low on the journal's disk. It owns what
//! the health checks remember from one check to the next.
//!
//! It only reads: rows that are on disk, the limiter's queues, and the calls that are out. So it never waits for the
//! store, which may be the thing that is stuck. It ends nothing and decides nothing. A check returns what looks lost
//! as [`Repairs`](check::Repairs), and the supervisor repairs it.
//!
//! In a healthy engine a check finds nothing, whatever is under way. A row counts as lost only if the limiter does
//! not know it in two successive answers, and nothing happened to it in between.

pub(super) mod check;
pub(crate) mod diagnosis_input;
mod disk;
pub(crate) mod explain;
pub(crate) mod failures;
mod overrun;
pub(super) mod queue_reading;
mod rules;
mod size;
mod starved;
mod undecided;

use std::collections::BTreeMap;
use std::time::Duration;

use actix::WeakRecipient;
use actix::prelude::*;
use futures::FutureExt;
use procession_kernel::{Kernel, Missing, ProcedureId, Row, Seq, Timestamp};

use super::admission::claims::Claims;
use super::dispatch::actor_table::ActorTable;
use super::failure::FailureCause;
use super::metrics::Measured;
use crate::clock::Clock;
use crate::journal::{DiskRoom, Reader};
use crate::queues::deliver;
use crate::telemetry::Telemetry;
use crate::thresholds::Measures;
use crate::view::{Explanation, Rule, Verdict};
use diagnosis_input::{DiagnosisInput, Queues, StageTiming};
use disk::Disk;
use failures::{Counted, FailureCount};
pub(crate) use rules::in_order;
pub(super) use rules::{Findings, actor_lost};
use starved::Unserved;

/// Bounds the share of its time that the supervisor spends on health checks: at most one part in this many.
const SHARE: u32 = 20;

/// Says that it is time for a health check.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct HealthCheckDue;

/// Identifies a verdict among others of its rule: a procedure, and a stage, a worker or a count.
type Subject = (Rule, Option<ProcedureId>, Option<String>);

/// The health wing.
pub(super) struct Health {
    every: Option<Duration>,
    thresholds: Measures,
    opened: Timestamp,
    /// The verdicts that the last check reported, each with the time when it began.
    known: BTreeMap<Subject, Timestamp>,
    /// Calls that were never made, and have been made since by a repair.
    recalled: u64,
    disk: Disk,
    failures: FailureCount,
    /// Procedures that wait although what they wait for is free.
    unserved: Unserved,
}

/// The part of the engine that the wing reads.
pub(super) struct EngineState<'a> {
    pub(super) kernel: &'a Kernel,
    pub(super) claims: &'a Claims,
    pub(super) actors: &'a ActorTable,
    pub(super) quarantined: &'a BTreeMap<u64, String>,
    /// What is missing in the history of each procedure whose rollback has met a hole.
    pub(super) holes: &'a BTreeMap<ProcedureId, String>,
    pub(super) telemetry: &'a Telemetry,
    pub(super) now: Timestamp,
    /// The newest commit on disk. Verdicts report nothing newer.
    pub(super) durable: Seq,
    /// Why the engine accepts no more commits.
    pub(super) failed: Option<&'a FailureCause>,
    /// Calls that wait for a read, approximately.
    pub(super) pending_reads: usize,
}

impl EngineState<'_> {
    /// Returns how far the call of a stage that is out has got.
    pub(super) fn progress(&self, id: ProcedureId) -> &'static str {
        self.actors
            .get(id)
            .map_or("is about to be called", |active| active.progress())
    }
}

impl Health {
    pub(super) fn new(every: Option<Duration>, thresholds: Measures) -> Self {
        Self {
            every,
            thresholds,
            opened: Timestamp(0),
            known: BTreeMap::new(),
            recalled: 0,
            disk: Disk::new(),
            failures: FailureCount::new(),
            unserved: Unserved::new(),
        }
    }

    /// Records when this engine's checks begin, and what the start has found.
    pub(super) fn begin<'a>(&mut self, now: Timestamp, quarantined: impl Iterator<Item = &'a u64>) {
        self.opened = now;
        for family in quarantined {
            self.note(Rule::Quarantined, Some(ProcedureId::root(*family)), now);
        }
    }

    /// Returns a task that sends the next health check when it is due. The longer the last check took, the later the
    /// next: see [`SHARE`]. The caller spawns the task on the arbiter, not in the actor, so that a busy mailbox
    /// cannot starve it.
    pub(super) fn next_check(
        &self,
        clock: &dyn Clock,
        took: Duration,
        to: WeakRecipient<HealthCheckDue>,
    ) -> Option<impl Future<Output = ()> + use<>> {
        let sleep = clock.sleep_until(clock.now().after(self.every?.max(took * SHARE)));
        Some(async move {
            sleep.await;
            if let Some(to) = to.upgrade() {
                deliver(&to, HealthCheckDue).await;
            }
        })
    }

    /// Records when a condition began, if no row says so. The condition is logged where it begins.
    pub(super) fn note(&mut self, rule: Rule, procedure: Option<ProcedureId>, at: Timestamp) {
        self.known.entry((rule, procedure, None)).or_insert(at);
    }

    /// Counts a call that was never made, and has been made by a repair.
    pub(super) const fn recalled(&mut self) {
        self.recalled += 1;
    }

    /// Returns how many lost wakes were repaired.
    pub(super) const fn lost_wakes(&self, kernel: &Kernel) -> u64 {
        kernel.found() + self.recalled
    }

    /// Returns the room on the journal's disk at the last measurement.
    pub(super) const fn disk_room(&self) -> Option<DiskRoom> {
        self.disk.room()
    }

    /// Returns a measurement of the store and its disk, unless one is under way. No check waits for it, because a
    /// disk that does not answer is one of the things that a check reports.
    pub(super) fn measure_disk(&mut self, reader: &Reader) -> Option<impl Future<Output = Measured> + use<>> {
        let reader = reader.clone();
        self.disk.begin().then_some(async move {
            let room = reader.run(|store| async { Ok(store.disk_room()) }.boxed()).await;
            Measured {
                room: room.ok().flatten(),
                bytes: reader.measure_bytes().await,
            }
        })
    }

    /// Records a measurement of the disk.
    pub(super) const fn measured(&mut self, measured: &Measured) {
        self.disk.measured(measured.room);
    }

    /// Notes that this commit changes the list of failures.
    pub(super) const fn failures_changed(&mut self, at: Seq) {
        self.failures.note_change(at);
    }

    /// Returns a count of the failures that nobody has acknowledged, unless the last one still holds or is under way. No
    /// check waits for it, as for the disk.
    pub(super) fn count_failures(
        &mut self,
        durable: Seq,
        is_asked: bool,
        reader: &Reader,
        now: Timestamp,
    ) -> Option<impl Future<Output = Option<Counted>> + use<>> {
        self.failures.begin(durable, is_asked, reader, now)
    }

    /// Records a count of failures.
    pub(super) fn failures_counted(&mut self, found: Option<Counted>, now: Timestamp) {
        self.failures.counted(found, now);
    }

    /// Explains why a live procedure waits. Returns `None` if it is not live.
    pub(super) fn explain(
        &self,
        id: ProcedureId,
        queues: &Queues,
        missing: Option<&Missing>,
        state: &EngineState<'_>,
    ) -> Option<Explanation> {
        let called = |id| state.progress(id);
        let input = DiagnosisInput {
            missing,
            ..self.input(state, queues, &called, &|_| None)
        };
        input.explain(id)
    }

    /// Builds the input of rules and explanations: the kernel, the queues, and what this wing remembers.
    pub(super) fn input<'a>(
        &'a self,
        state: &EngineState<'a>,
        queues: &'a Queues,
        called: &'a dyn Fn(ProcedureId) -> &'static str,
        usual: &'a dyn Fn(&Row) -> Option<StageTiming>,
    ) -> DiagnosisInput<'a> {
        DiagnosisInput {
            kernel: state.kernel,
            claims: state.claims,
            queues,
            missing: None,
            quarantined: state.quarantined,
            holes: state.holes,
            thresholds: &self.thresholds,
            now: state.now,
            opened: self.opened,
            durable: state.durable,
            called,
            usual,
            unserved: Some(&self.unserved),
            bounds: &state.kernel.rules().bounds,
            knows_bounds: true,
        }
    }

    /// Logs each new verdict once. A verdict that was reported before keeps the time of the first report.
    fn tell(&mut self, verdicts: &mut [Verdict]) {
        let mut known = BTreeMap::new();
        for verdict in verdicts {
            let part = ["what", "worker", "count", "stage"]
                .iter()
                .find_map(|name| verdict.fact(name));
            let subject = (verdict.rule, verdict.procedure, part.map(str::to_owned));
            match self.known.get(&subject) {
                Some(since) => verdict.since = verdict.since.min(*since),
                None => {
                    let (rule, text) = (verdict.rule.as_str(), verdict.text.as_str());
                    tracing::warn!(
                        rule,
                        procedure = verdict.procedure.map(tracing::field::display),
                        text,
                        "verdict"
                    );
                }
            }
            known.insert(subject, verdict.since);
        }
        self.known = known;
    }
}

#[cfg(test)]
mod tests;
