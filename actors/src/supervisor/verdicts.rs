//! The audit: what is stuck, told as verdicts, and wakes that were lost, made up for.
//!
//! It tells of rows that are on disk alone, so it need not wait for the store,
//! which may be what is stuck. It ends nobody and changes nothing but what a
//! lost wake left undone. In a healthy engine it finds nothing, whatever is on
//! its way: a row counts as one that nobody will wake only if the limiter does
//! not know it two times in a row, and nothing of it happened between.

mod disk;
mod overrun;
mod round;
mod rules;
mod size;
pub(crate) mod starved;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use actix::WeakRecipient;
use actix::prelude::*;
use procession_kernel::{Event, ProcedureId, Record, Timestamp};
use tokio::sync::oneshot;

use super::Supervisor;
use super::blocked::Issued;
use super::lost::Lost;
use crate::error::AskError;
use crate::journal::DiskRoom;
use crate::mail::deliver;
use crate::messages::Verdicts;
use crate::thresholds::Measures;
use crate::view::{Rule, Verdict};

/// Part of its time that the supervisor spends on audits at most: one in so many.
const SHARE: u32 = 20;

/// With what a verdict is told from others of its rule: a procedure, and a stage, a worker or a count.
type Subject = (Rule, Option<ProcedureId>, Option<String>);

/// What the audits remember.
pub(super) struct Watch {
    every: Option<Duration>,
    thresholds: Measures,
    opened: Timestamp,
    /// What the last audit told, and since when.
    known: BTreeMap<Subject, Timestamp>,
    /// Calls that were never made, and were made again.
    pub(super) recalled: u64,
    /// Who has lost a call with its thread.
    pub(super) lost: BTreeMap<ProcedureId, Lost>,
    /// Calls for which there was no worker.
    pub(super) stranded: Vec<(ProcedureId, Issued)>,
    disk: disk::Disk,
    /// Who waits for what is free.
    pub(super) unserved: starved::Unserved,
}

impl Watch {
    pub(super) fn new(every: Option<Duration>, thresholds: Measures) -> Self {
        Self {
            every,
            thresholds,
            opened: Timestamp(0),
            known: BTreeMap::new(),
            recalled: 0,
            lost: BTreeMap::new(),
            stranded: Vec::new(),
            disk: disk::Disk::new(),
            unserved: starved::Unserved::default(),
        }
    }

    pub(super) const fn thresholds(&self) -> &Measures {
        &self.thresholds
    }

    /// Gives the room on the journal's disk, as it was measured last.
    pub(super) const fn disk_room(&self) -> Option<DiskRoom> {
        self.disk.room()
    }

    /// When the audits of this engine began.
    pub(super) const fn opened(&self) -> Timestamp {
        self.opened
    }

    /// Notes that something begins of which no row says since when. It is logged where it begins.
    pub(super) fn note(&mut self, rule: Rule, procedure: Option<ProcedureId>, at: Timestamp) {
        self.known.entry((rule, procedure, None)).or_insert(at);
    }

    /// Logs what is new, once. What was told before keeps the time of its first verdict.
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

/// Says that it is time for an audit.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct AuditTime;

impl Handler<AuditTime> for Supervisor {
    type Result = ();

    fn handle(&mut self, _: AuditTime, ctx: &mut Self::Context) {
        if !self.stopped {
            self.audit(ctx, |supervisor, _, took, ctx| supervisor.audit_later(took, ctx));
        }
    }
}

impl Handler<Verdicts> for Supervisor {
    type Result = ResponseFuture<Result<Vec<Verdict>, AskError>>;

    /// Answered also when the journal has failed: that is a verdict, too.
    fn handle(&mut self, _: Verdicts, ctx: &mut Self::Context) -> Self::Result {
        if self.stopped {
            return Box::pin(async { Err(AskError::Stopped) });
        }
        let (sender, receiver) = oneshot::channel();
        let failure = self.failure.clone();
        self.audit(ctx, |supervisor, verdicts, _, _| {
            // What was made up for is told once it is on disk.
            let found = verdicts.iter().any(|verdict| verdict.rule == Rule::LostWake);
            let settled = found.then(|| supervisor.settled());
            // Whoever asked may have gone.
            sender.send((verdicts, settled)).ok();
        });
        Box::pin(async move {
            let (verdicts, settled) = receiver.await.map_err(|_| failure.unanswered())?;
            if let Some(settled) = settled {
                settled.await?;
            }
            Ok(verdicts)
        })
    }
}

impl Supervisor {
    /// Begins the audits on the engine's clock.
    pub(super) fn begin_audits(&mut self, ctx: &mut Context<Self>) {
        let now = self.clock.now();
        self.watch.opened = now;
        self.measure_disk(ctx);
        for family in self.quarantined.keys() {
            self.watch
                .note(Rule::Quarantined, Some(ProcedureId::root(*family)), now);
        }
        self.audit_later(Duration::ZERO, ctx);
    }

    /// Has the next audit come on a task of its own, which a busy mailbox cannot
    /// starve; the later, the longer the last one took.
    fn audit_later(&self, took: Duration, ctx: &mut Context<Self>) {
        let Some(every) = self.watch.every else { return };
        let time = self.clock.now().after(every.max(took * SHARE));
        let (sleep, me) = (self.clock.sleep_until(time), ctx.address().downgrade().recipient());
        actix_rt::spawn(wake(sleep, me));
    }

    /// Sets going again whom nothing would have woken; gives them, each with what it waited for.
    fn wake_lost(&mut self, unknown: Vec<ProcedureId>, ctx: &mut Context<Self>) -> Vec<(ProcedureId, String)> {
        let event = Event::AuditDue {
            granted: Vec::new(),
            unknown,
        };
        let decision = self.kernel.decide(self.clock.now(), event);
        let woken = decision.records().iter().filter_map(|record| {
            let Record::WakeFound(id) = record else { return None };
            Some(*id)
        });
        let waited = |id: ProcedureId| {
            let wait = self.kernel.row(id).and_then(|row| row.wait.as_ref());
            wait.map_or_else(|| "its locks".to_owned(), ToString::to_string)
        };
        let found: Vec<(ProcedureId, String)> = woken.map(|id| (id, waited(id))).collect();
        if !found.is_empty() {
            self.commit(decision, ctx);
        }
        found
    }

    /// Calls again whom nobody has called; gives them.
    fn call_uncalled(&mut self, uncalled: Vec<ProcedureId>, ctx: &mut Context<Self>) -> Vec<(ProcedureId, String)> {
        let mut found = Vec::new();
        for id in uncalled {
            self.watch.recalled += 1;
            found.push((id, "the call of its stage".to_owned()));
            for call in self.kernel.calls_of(id) {
                self.act(call, ctx);
            }
        }
        found
    }
}

async fn wake(sleep: impl Future<Output = ()>, supervisor: WeakRecipient<AuditTime>) {
    sleep.await;
    if let Some(supervisor) = supervisor.upgrade() {
        deliver(&supervisor, AuditTime).await;
    }
}
