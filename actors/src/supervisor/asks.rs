//! Questions. Each waits for the newest commit decided when it came, and is
//! then answered from the store: nothing is shown that is not on disk.

use actix::prelude::*;
use procession_kernel::{AuditEntry, Blob, HistoryEntry, LimitUse, ProcedureId, Row};
use tokio::sync::oneshot;

use super::Supervisor;
use super::failure::Failure;
use super::health::diagnosis_input::lock_views;
use super::kept::Kept;
use super::pipeline::SUBSCRIBERS;
use crate::clock::machine_now;
use crate::error::AskError;
use crate::journal::Reader;
use crate::journal::keys::OUTPUT;
use crate::limiter::{LocksHeld, Usage};
use crate::messages::{
    AskNewest, Audit, AwaitOutcome, FollowNewest, History, Limits, List, Locks, Query, Subscribe, TakeSnapshot, Tree,
};
use crate::pages::{PAGE_MAX, page};
use crate::view::{LockView, Outcome, Page, Snapshot, Status};

type Asked<T> = ResponseFuture<Result<T, AskError>>;

impl Supervisor {
    /// Makes the wait that a question begins with.
    pub(super) fn settled(&mut self) -> impl Future<Output = Result<(), AskError>> + use<> {
        let refused = self.status.refusal();
        let barrier = if refused.is_none() {
            self.pipeline.barrier()
        } else {
            None
        };
        let failure = self.status.failure();
        async move {
            match (refused, barrier) {
                (Some(refused), _) => Err(refused),
                (None, Some(done)) => done.await.map_err(|_| failure.unanswered()),
                (None, None) => Ok(()),
            }
        }
    }

    pub(super) fn kept(&self) -> Kept {
        Kept::new(self.reader.clone(), self.quarantine.shared())
    }
}

pub(crate) fn shown(row: &Row, quarantined: bool) -> Status {
    let status = Status::of(row);
    if quarantined { status.quarantined() } else { status }
}

impl Handler<Query> for Supervisor {
    type Result = Asked<Status>;

    fn handle(&mut self, Query(id): Query, _: &mut Self::Context) -> Self::Result {
        let (settled, kept) = (self.settled(), self.kept());
        Box::pin(async move {
            settled.await?;
            let row = kept.row(id).await?.ok_or(AskError::Unknown(id))?;
            Ok(shown(&row, kept.why(id.family).is_some()))
        })
    }
}

impl Handler<Tree> for Supervisor {
    type Result = Asked<Vec<Status>>;

    fn handle(&mut self, Tree(id): Tree, _: &mut Self::Context) -> Self::Result {
        let (settled, kept) = (self.settled(), self.kept());
        Box::pin(async move {
            settled.await?;
            let rows = kept.rows(id.family).await?;
            if rows.is_empty() {
                return Err(AskError::Unknown(id));
            }
            let is_set_aside = kept.why(id.family).is_some();
            Ok(rows.iter().map(|row| shown(row, is_set_aside)).collect())
        })
    }
}

impl Handler<History> for Supervisor {
    type Result = Asked<Vec<HistoryEntry>>;

    fn handle(&mut self, History(id): History, _: &mut Self::Context) -> Self::Result {
        let (settled, kept) = (self.settled(), self.kept());
        Box::pin(async move {
            settled.await?;
            let root = kept.row(ProcedureId::root(id.family)).await?;
            root.ok_or(AskError::Unknown(id))?;
            kept.history(id.family).await
        })
    }
}

impl Handler<List> for Supervisor {
    type Result = Asked<Page>;

    fn handle(&mut self, list: List, _: &mut Self::Context) -> Self::Result {
        let (settled, reader) = (self.settled(), self.reader.clone());
        let quarantined = self.quarantine.shared();
        Box::pin(async move {
            settled.await?;
            let admits = |row: &Row| list.filter.admits(row);
            let shows = |row: &Row| shown(row, quarantined.contains_key(&row.id.family));
            let show = |row: &Row| admits(row).then(|| shows(row));
            Ok(page(&reader, &list.filter.among(), list.cursor, list.limit, show).await?)
        })
    }
}

impl Handler<AwaitOutcome> for Supervisor {
    type Result = Asked<Outcome>;

    fn handle(&mut self, AwaitOutcome(id): AwaitOutcome, _: &mut Self::Context) -> Self::Result {
        let unfinished = self.kernel.row(id).is_some_and(|row| !row.is_ended()) || self.quarantine.contains(id.family);
        if let (true, None) = (unfinished, self.status.refusal()) {
            let (sender, receiver) = oneshot::channel();
            let watchers = self.watchers.entry(id).or_default();
            watchers.retain(|watcher| !watcher.is_closed());
            watchers.push(sender);
            let (failure, reader) = (self.status.failure(), self.reader.clone());
            return Box::pin(async move {
                match receiver.await {
                    Ok(outcome) => Ok(outcome),
                    Err(_) => Err(without_outcome(id, &failure, &reader).await),
                }
            });
        }
        let (settled, reader) = (self.settled(), self.reader.clone());
        Box::pin(async move {
            settled.await?;
            stored_outcome(&reader, id).await
        })
    }
}

/// Nobody will tell its outcome: the journal has failed, the engine has stopped, or its family was discharged.
async fn without_outcome(id: ProcedureId, failure: &Failure, reader: &Reader) -> AskError {
    match (failure.why(), reader.row(id).await) {
        (None, Ok(None)) => AskError::Unknown(id),
        _ => failure.unanswered(),
    }
}

async fn stored_outcome(reader: &Reader, id: ProcedureId) -> Result<Outcome, AskError> {
    let (row, output) = reader
        .row_with(id, OUTPUT)
        .await?
        .filter(|(row, _)| row.is_ended())
        .ok_or(AskError::Unknown(id))?;
    Ok(Outcome::stored(row, output.map(Blob::from)))
}

impl Handler<Limits> for Supervisor {
    type Result = Asked<Vec<LimitUse>>;

    fn handle(&mut self, _: Limits, _: &mut Self::Context) -> Self::Result {
        let (settled, limiter) = (self.settled(), self.admission.limiter().clone());
        Box::pin(async move {
            settled.await?;
            limiter.ask(Usage).await.map_err(|_| AskError::Stopped)
        })
    }
}

impl Handler<Locks> for Supervisor {
    type Result = ResponseActFuture<Self, Result<Vec<LockView>, AskError>>;

    fn handle(&mut self, _: Locks, _: &mut Self::Context) -> Self::Result {
        let (settled, limiter) = (self.settled(), self.admission.limiter().clone());
        let work = async move {
            settled.await?;
            limiter.ask(LocksHeld).await.map_err(|_| AskError::Stopped)
        };
        // What the limiter has granted and nobody has decided on is not shown: all that it
        // answered before is decided first, and on disk when this is told.
        let shown = work.into_actor(self).then(|locks, supervisor, ctx| {
            let (sender, receiver) = oneshot::channel();
            let failure = supervisor.status.failure();
            match locks {
                Ok((turn, locks)) => supervisor.sequence(turn, ctx, |supervisor, _| {
                    sender
                        .send(Ok((
                            lock_views(locks, supervisor.admission.claims(), &supervisor.kernel),
                            supervisor.settled(),
                        )))
                        .ok();
                }),
                Err(error) => {
                    sender.send(Err(error)).ok();
                }
            }
            let told = async move {
                let (views, settled) = receiver.await.map_err(|_| failure.unanswered())??;
                settled.await?;
                Ok(views)
            };
            told.into_actor(supervisor)
        });
        Box::pin(shown)
    }
}

impl Handler<Audit> for Supervisor {
    type Result = Asked<Vec<AuditEntry>>;

    fn handle(&mut self, Audit { before, limit }: Audit, _: &mut Self::Context) -> Self::Result {
        let (settled, reader) = (self.settled(), self.reader.clone());
        let (first, last) = self.kernel.audited();
        Box::pin(async move {
            settled.await?;
            let end = before.unwrap_or(last).min(last);
            let begin = end.saturating_sub(limit.clamp(1, PAGE_MAX) as u64).max(first);
            let mut entries = reader.audit(begin, end).await?;
            entries.reverse();
            Ok(entries)
        })
    }
}

impl Supervisor {
    /// Refuses one more subscriber or follower if there are as many as may be.
    fn admit_subscriber(&mut self) -> (bool, Asked<()>) {
        let settled = self.settled();
        let is_full = !self.pipeline.takes_subscribers();
        let answer = Box::pin(async move {
            settled.await?;
            if is_full {
                let text = format!("{SUBSCRIBERS} subscribers are the limit; end one first");
                return Err(AskError::NotNow(text));
            }
            Ok(())
        });
        (self.status.refusal().is_none() && !is_full, answer)
    }
}

impl Handler<Subscribe> for Supervisor {
    type Result = Asked<()>;

    fn handle(&mut self, Subscribe(to): Subscribe, _: &mut Self::Context) -> Self::Result {
        let (is_admitted, answer) = self.admit_subscriber();
        if is_admitted {
            self.pipeline.subscribe(to, self.kernel.seq());
        }
        answer
    }
}

impl Handler<FollowNewest> for Supervisor {
    type Result = Asked<()>;

    fn handle(&mut self, FollowNewest(to): FollowNewest, _: &mut Self::Context) -> Self::Result {
        let (is_admitted, answer) = self.admit_subscriber();
        if is_admitted {
            self.pipeline.subscribe_latest(to, &self.kernel);
        }
        answer
    }
}

impl Handler<AskNewest> for Supervisor {
    type Result = ();

    fn handle(&mut self, AskNewest(who): AskNewest, _: &mut Self::Context) {
        self.pipeline.poll_latest(&who, &self.kernel);
    }
}

impl Handler<TakeSnapshot> for Supervisor {
    type Result = Asked<Snapshot>;

    /// Answered also when the journal has failed: it is how one learns why.
    fn handle(&mut self, _: TakeSnapshot, _: &mut Self::Context) -> Self::Result {
        let settled = self.settled();
        let poisoned = self.status.has_failed();
        self.workers.observe(machine_now());
        let figures = self.metrics.figures();
        let snapshot = Snapshot {
            epoch: self.kernel.epoch(),
            decided: self.kernel.seq(),
            durable: self.pipeline.durable(),
            commits: figures.commits,
            batches: figures.batches,
            appended_writes: figures.writes,
            appended_bytes: figures.bytes,
            live_families: self.kernel.families().len() + self.quarantine.len(),
            going: self.kernel.going(),
            actors: self.actors.len(),
            workers: self.workers.statuses(&|id| self.called(id)),
            late: self.kernel.late(),
            lost_wakes: self.health.lost_wakes(&self.kernel),
            poisoned: self.status.cause().map(ToString::to_string),
            draining: self.kernel.is_draining(),
            recovered: self.report.clone(),
            quarantined: self
                .quarantine
                .families()
                .iter()
                .map(|(family, why)| (*family, why.clone()))
                .collect(),
            size_bytes: self.reader.size_bytes(),
            disk_room: self.health.disk_room(),
            commit_p99: figures.commit_p99,
            sync_times: self.reader.sync_times(),
            paused: self.kernel.pauses().iter().cloned().collect(),
            last_batch: figures.last_batch,
            longest_turn: figures.longest_turn,
            kinds: self.metrics.telemetry().uses(&self.kernel.rules().kinds),
        };
        Box::pin(async move {
            if !poisoned {
                settled.await?;
            }
            Ok(snapshot)
        })
    }
}
