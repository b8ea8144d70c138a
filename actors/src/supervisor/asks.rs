//! Questions. Each waits for the newest commit decided when it came, and is
//! then answered from the store: nothing is shown that is not on disk.

use std::sync::{Arc, OnceLock};

use actix::prelude::*;
use procession_kernel::{Blob, HistoryEntry, LimitUse, ProcedureId, Row, WaitReason};
use tokio::sync::oneshot;

use super::Supervisor;
use crate::error::AskError;
use crate::journal::keys::{self, OUTPUT};
use crate::journal::reader::decode_row;
use crate::journal::store::Scan;
use crate::journal::{Reader, Space};
use crate::limiter::Usage;
use crate::messages::{AwaitOutcome, History, Limits, List, Query, Subscribe, TakeSnapshot, Tree};
use crate::view::{ListFilter, Outcome, Page, Snapshot, Status};

/// Rows of one page at most.
const PAGE_MAX: usize = 1_000;
/// Rows that one request may read before it stops and says so.
const SCAN_MAX: usize = 100_000;

type Asked<T> = ResponseFuture<Result<T, AskError>>;

impl Supervisor {
    /// Makes the wait that a question begins with.
    pub(super) fn settled(&mut self) -> impl Future<Output = Result<(), AskError>> + 'static {
        let refused = self.refusal();
        let barrier = if refused.is_none() {
            self.commits.barrier()
        } else {
            None
        };
        let failure = Arc::clone(&self.failure);
        async move {
            match (refused, barrier) {
                (Some(refused), _) => Err(refused),
                (None, Some(done)) => done.await.map_err(|_| unanswered(&failure)),
                (None, None) => Ok(()),
            }
        }
    }

    pub(super) fn refusal(&self) -> Option<AskError> {
        if let Some(why) = &self.poisoned {
            return Some(AskError::JournalFailed(why.clone()));
        }
        self.stopped.then_some(AskError::Stopped)
    }

    fn quarantine_of(&self, family: u64) -> bool {
        self.quarantined.contains_key(&family)
    }
}

/// What one is told whose answer will never be on disk.
pub(super) fn unanswered(failure: &OnceLock<String>) -> AskError {
    failure
        .get()
        .cloned()
        .map_or(AskError::Stopped, AskError::JournalFailed)
}

fn shown(row: &Row, quarantined: bool) -> Status {
    let mut status = Status::of(row);
    if quarantined && status.ended.is_none() {
        status.wait = Some(WaitReason::Quarantined);
        status.going = false;
    }
    status
}

impl Handler<Query> for Supervisor {
    type Result = Asked<Status>;

    fn handle(&mut self, Query(id): Query, _: &mut Self::Context) -> Self::Result {
        let (settled, reader, quarantined) = (self.settled(), self.reader.clone(), self.quarantine_of(id.family));
        Box::pin(async move {
            settled.await?;
            let row = reader.row(id).await?.ok_or(AskError::Unknown(id))?;
            Ok(shown(&row, quarantined))
        })
    }
}

impl Handler<Tree> for Supervisor {
    type Result = Asked<Vec<Status>>;

    fn handle(&mut self, Tree(id): Tree, _: &mut Self::Context) -> Self::Result {
        let (settled, reader, quarantined) = (self.settled(), self.reader.clone(), self.quarantine_of(id.family));
        Box::pin(async move {
            settled.await?;
            let rows = reader.rows(id.family).await?;
            if rows.is_empty() {
                return Err(AskError::Unknown(id));
            }
            Ok(rows.iter().map(|row| shown(row, quarantined)).collect())
        })
    }
}

impl Handler<History> for Supervisor {
    type Result = Asked<Vec<HistoryEntry>>;

    fn handle(&mut self, History(id): History, _: &mut Self::Context) -> Self::Result {
        let (settled, reader) = (self.settled(), self.reader.clone());
        Box::pin(async move {
            settled.await?;
            reader
                .row(ProcedureId::root(id.family))
                .await?
                .ok_or(AskError::Unknown(id))?;
            Ok(reader.history(id.family).await?)
        })
    }
}

impl Handler<List> for Supervisor {
    type Result = Asked<Page>;

    fn handle(&mut self, list: List, _: &mut Self::Context) -> Self::Result {
        let (settled, reader) = (self.settled(), self.reader.clone());
        let quarantined: Vec<u64> = self.quarantined.keys().copied().collect();
        Box::pin(async move {
            settled.await?;
            page(&reader, &list, &quarantined).await
        })
    }
}

async fn page(reader: &Reader, list: &List, quarantined: &[u64]) -> Result<Page, AskError> {
    let limit = list.limit.clamp(1, PAGE_MAX);
    let mut from = list
        .cursor
        .map(|cursor| keys::procedure(cursor).to_vec())
        .unwrap_or_default();
    let mut page = Page {
        items: Vec::new(),
        next: None,
        scanned: 0,
        truncated: false,
    };
    loop {
        let rows = reader
            .scan(Scan {
                space: Space::Procedures,
                from,
                to: None,
                limit: PAGE_MAX,
            })
            .await?;
        let full = rows.len() == PAGE_MAX;
        let mut last = Vec::new();
        for (key, value) in rows {
            let Some(id) = keys::parse_procedure(&key) else {
                continue;
            };
            if page.items.len() == limit || page.scanned == SCAN_MAX {
                page.truncated = page.scanned == SCAN_MAX;
                page.next = Some(id);
                return Ok(page);
            }
            page.scanned += 1;
            last = key;
            admit(&mut page, &list.filter, id, &value, quarantined)?;
        }
        if !full {
            return Ok(page);
        }
        from = last;
        from.push(0);
    }
}

fn admit(
    page: &mut Page,
    filter: &ListFilter,
    id: ProcedureId,
    value: &[u8],
    quarantined: &[u64],
) -> Result<(), AskError> {
    let row = decode_row(id, value)?;
    if filter.admits(&row) {
        page.items.push(shown(&row, quarantined.contains(&id.family)));
    }
    Ok(())
}

impl Handler<AwaitOutcome> for Supervisor {
    type Result = Asked<Outcome>;

    fn handle(&mut self, AwaitOutcome(id): AwaitOutcome, _: &mut Self::Context) -> Self::Result {
        let unfinished = self.kernel.row(id).is_some_and(|row| !row.is_ended()) || self.quarantine_of(id.family);
        if let (true, None) = (unfinished, self.refusal()) {
            let (sender, receiver) = oneshot::channel();
            let watchers = self.watchers.entry(id).or_default();
            watchers.retain(|watcher| !watcher.is_closed());
            watchers.push(sender);
            let failure = Arc::clone(&self.failure);
            return Box::pin(async move { receiver.await.map_err(|_| unanswered(&failure)) });
        }
        let (settled, reader) = (self.settled(), self.reader.clone());
        Box::pin(async move {
            settled.await?;
            stored_outcome(&reader, id).await
        })
    }
}

async fn stored_outcome(reader: &Reader, id: ProcedureId) -> Result<Outcome, AskError> {
    let row = reader
        .row(id)
        .await?
        .filter(Row::is_ended)
        .ok_or(AskError::Unknown(id))?;
    let output = reader.payload(id, OUTPUT).await?.map(Blob::from);
    Ok(Outcome::stored(row, output))
}

impl Handler<Limits> for Supervisor {
    type Result = Asked<Vec<LimitUse>>;

    fn handle(&mut self, _: Limits, _: &mut Self::Context) -> Self::Result {
        let (settled, limiter) = (self.settled(), self.limiter.clone());
        Box::pin(async move {
            settled.await?;
            limiter.send(Usage).await.map_err(|_| AskError::Stopped)
        })
    }
}

impl Handler<Subscribe> for Supervisor {
    type Result = Asked<()>;

    fn handle(&mut self, Subscribe(to): Subscribe, _: &mut Self::Context) -> Self::Result {
        let settled = self.settled();
        let full = self.changes.is_full();
        if self.refusal().is_none() && !full {
            self.changes.subscribe(to, self.kernel.seq(), self.commits.durable);
        }
        Box::pin(async move {
            settled.await?;
            if full {
                let text = format!(
                    "{} subscribers are the limit; end one first",
                    super::changes::SUBSCRIBERS
                );
                return Err(AskError::NotNow(text));
            }
            Ok(())
        })
    }
}

impl Handler<TakeSnapshot> for Supervisor {
    type Result = Asked<Snapshot>;

    /// Answered also when the journal has failed: it is how one learns why.
    fn handle(&mut self, _: TakeSnapshot, _: &mut Self::Context) -> Self::Result {
        let settled = self.settled();
        let poisoned = self.poisoned.is_some();
        let snapshot = Snapshot {
            epoch: self.kernel.epoch(),
            decided: self.kernel.seq(),
            durable: self.commits.durable,
            commits: self.counts.commits,
            batches: self.counts.batches,
            appended_writes: self.counts.writes,
            appended_bytes: self.counts.bytes,
            live_families: self.kernel.families().len() + self.quarantined.len(),
            going: self.kernel.going(),
            actors: self.actors.len(),
            late: self.kernel.late(),
            poisoned: self.poisoned.clone(),
            draining: self.kernel.is_draining(),
            recovered: self.report.clone(),
            quarantined: self
                .quarantined
                .iter()
                .map(|(family, why)| (*family, why.clone()))
                .collect(),
            size_bytes: self.reader.size_bytes(),
        };
        Box::pin(async move {
            if !poisoned {
                settled.await?;
            }
            Ok(snapshot)
        })
    }
}
