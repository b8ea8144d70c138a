//! What lives in memory alone: limits, locks, verdicts, the engine itself. It is asked for at
//! most twice a second, whoever watches and however many they are, and only while somebody does;
//! and anew once an operator has acted, who may look at once.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::{Either, select};
use procession_actors::AskError;
use procession_actors::view::{Explanation, LockView, Mailbox, Snapshot, Verdict};
use procession_kernel::{AuditEntry, LimitUse, ProcedureId, Timestamp};

use super::feed::Shared;
use crate::executor::Executor;

/// Shortest time between two askings for the same.
const FRESH: Duration = Duration::from_millis(500);
/// How long an answer may take: beyond that the viewer is told so.
const PATIENCE: Duration = Duration::from_secs(2);
/// Entries of the audit that are asked for: the newest page.
pub(super) const AUDIT_NEWEST: usize = 500;
/// Explanations in one [`FRESH`]: each reads the queues of the limiter.
const EXPLAINED: usize = 5;

/// What was answered.
type Answer<T> = Result<Arc<T>, AskError>;

/// What was answered last.
struct Answered<T> {
    at: Timestamp,
    /// How many acts of operators were done when it was asked for: it need not show any later one.
    acts: u64,
    answer: Answer<T>,
}

/// One thing that is asked for, and what was answered last.
struct Cell<T> {
    last: Mutex<Option<Answered<T>>>,
    /// Held while it is asked for: all who want it meanwhile get the same answer.
    asking: tokio::sync::Mutex<()>,
}

impl<T> Default for Cell<T> {
    fn default() -> Self {
        Self {
            last: Mutex::new(None),
            asking: tokio::sync::Mutex::default(),
        }
    }
}

impl<T> Cell<T> {
    fn fresh(&self, now: Timestamp, acts: u64) -> Option<Answer<T>> {
        let last = lock(&self.last);
        let is_fresh = |last: &&Answered<T>| last.at <= now && now.since(last.at) < FRESH && last.acts == acts;
        Some(last.as_ref().filter(is_fresh)?.answer.clone())
    }

    async fn get(&self, live: &Live, ask: impl Future<Output = Result<T, AskError>>) -> Answer<T> {
        let clock = live.executor.engine().clock();
        if let Some(answer) = self.fresh(clock.now(), live.acts()) {
            return answer;
        }
        let _asking = self.asking.lock().await;
        let acts = live.acts();
        if let Some(answer) = self.fresh(clock.now(), acts) {
            return answer;
        }
        // It counts from when it was asked for, but lasts from when it was answered.
        let answer = live.in_time(ask).await.map(Arc::new);
        *lock(&self.last) = Some(Answered {
            at: clock.now(),
            acts,
            answer: answer.clone(),
        });
        answer
    }
}

/// All of it.
pub(super) struct Live {
    executor: Executor,
    shared: Shared,
    /// How many acts of operators were answered here: what is shown from then on shows them.
    acts: AtomicU64,
    snapshot: Cell<Snapshot>,
    verdicts: Cell<Vec<Verdict>>,
    limits: Cell<Vec<LimitUse>>,
    locks: Cell<Vec<LockView>>,
    audit: Cell<Vec<AuditEntry>>,
    /// When explanations were asked for last.
    explained: Mutex<Vec<Timestamp>>,
}

impl Live {
    pub(super) fn new(executor: Executor, shared: Shared) -> Self {
        Self {
            executor,
            shared,
            acts: AtomicU64::default(),
            snapshot: Cell::default(),
            verdicts: Cell::default(),
            limits: Cell::default(),
            locks: Cell::default(),
            audit: Cell::default(),
            explained: Mutex::default(),
        }
    }

    fn acts(&self) -> u64 {
        self.acts.load(Ordering::Acquire)
    }

    /// An operator has done something, and is told so next: nothing that was answered before is shown to them.
    pub(super) fn acted(&self) {
        self.acts.fetch_add(1, Ordering::AcqRel);
    }

    /// Tells how the engine stands. What it says of quarantined families goes into the model.
    pub(super) async fn snapshot(&self) -> Result<Arc<Snapshot>, AskError> {
        let snapshot = self.snapshot.get(self, self.executor.snapshot()).await?;
        self.shared.set_aside(&snapshot.quarantined);
        Ok(snapshot)
    }

    pub(super) async fn verdicts(&self) -> Result<Arc<Vec<Verdict>>, AskError> {
        self.verdicts.get(self, self.executor.verdicts()).await
    }

    pub(super) async fn limits(&self) -> Result<Arc<Vec<LimitUse>>, AskError> {
        self.limits.get(self, self.executor.limits()).await
    }

    pub(super) async fn locks(&self) -> Result<Arc<Vec<LockView>>, AskError> {
        self.locks.get(self, self.executor.locks()).await
    }

    /// Returns the newest acts of operators.
    pub(super) async fn audit(&self) -> Result<Arc<Vec<AuditEntry>>, AskError> {
        self.audit.get(self, self.executor.audit(None, AUDIT_NEWEST)).await
    }

    /// Tells why a procedure does not move; none if too many were told just now.
    pub(super) async fn explain(&self, id: ProcedureId) -> Result<Option<Explanation>, AskError> {
        let clock = self.executor.engine().clock();
        if !self.may_explain(clock.now()) {
            return Ok(None);
        }
        self.in_time(self.executor.explain(id)).await.map(Some)
    }

    /// Returns the queue of a procedure, or `None` if it has ended or is quarantined.
    pub(super) async fn mailbox(&self, id: ProcedureId) -> Result<Option<Mailbox>, AskError> {
        match self.in_time(self.executor.mailbox(id)).await {
            Err(AskError::Finished { .. } | AskError::NotNow { .. } | AskError::Unknown(_)) => Ok(None),
            answer => answer.map(Some),
        }
    }

    /// Waits for an answer of the engine, but not for ever: whoever asks may hold the one turn.
    pub(super) async fn in_time<T>(&self, ask: impl Future<Output = Result<T, AskError>>) -> Result<T, AskError> {
        let clock = self.executor.engine().clock();
        let late = clock.sleep_until(clock.now().after(PATIENCE));
        match select(Box::pin(ask), late).await {
            Either::Left((answer, _)) => answer,
            Either::Right(_) => Err(AskError::NotYet),
        }
    }

    fn may_explain(&self, now: Timestamp) -> bool {
        let mut explained = lock(&self.explained);
        explained.retain(|at| *at <= now && now.since(*at) < FRESH);
        let may = explained.len() < EXPLAINED;
        if may {
            explained.push(now);
        }
        may
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
