//! Ends an engine in bounded time and from any state: its threads, its store, its callers.
//!
//! The actors of an engine with threads of its own may have failed or be held up, so nothing here sends them a message.
//! Each thread is told to end. Its actors are dropped with it, and so are their promises, which answers every caller
//! that waits for one. Then the store is closed, even if something still holds it.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use actix::prelude::*;
use futures::executor::block_on;
use tokio::sync::oneshot;

use super::Placement;
use crate::charts::Keeper;
use crate::clock::machine_now;
use crate::heartbeats::Heartbeats;
use crate::journal::JournalStore;
use crate::supervisor::Supervisor;
use crate::supervisor::lifecycle::StopHere;
use crate::threads::Threads;
use crate::view::ShutdownReport;

/// The longest that a shutdown takes. It is longer than a sync or a merge of a slow disk, which the store has to wait
/// for. It is shorter than the 10 s after which container hosts kill a process, with room for the host's own shutdown.
const LONGEST: Duration = Duration::from_secs(8);

/// The time reserved for the store if threads do not end by themselves: as long as the embedded store waits for its own
/// threads.
const FOR_STORE: Duration = Duration::from_secs(5);

/// How the threads end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ShutdownMode {
    /// The threads are told to end now.
    Now,
    /// The supervisor tells the threads to end, once it has sent the last answers.
    AfterDrain,
}

/// Everything that is needed to end an engine; cheap to clone.
#[derive(Clone)]
pub(crate) struct Ending {
    threads: Threads,
    heartbeats: Heartbeats,
    store: Weak<dyn JournalStore>,
    placement: Placement,
    /// Writes the figures of charts for the last time.
    keeper: Option<Arc<Keeper>>,
    /// Serialises shutdowns: one runs at a time.
    turn: Arc<Mutex<()>>,
}

impl Ending {
    pub(super) fn new(
        threads: Threads,
        heartbeats: Heartbeats,
        store: &Arc<dyn JournalStore>,
        placement: Placement,
        keeper: Option<Arc<Keeper>>,
    ) -> Self {
        Self {
            threads,
            heartbeats,
            store: Arc::downgrade(store),
            placement,
            keeper,
            turn: Arc::default(),
        }
    }

    /// Ends the engine now. An engine on the caller's own thread is sent a message instead, since that thread must go
    /// on.
    pub(super) async fn now(&self, supervisor: &Addr<Supervisor>) -> ShutdownReport {
        if self.placement != Placement::Inline {
            return self.on_own_thread(ShutdownMode::Now).await;
        }
        // An engine that has already ended does not take the message.
        supervisor.send(StopHere).await.ok();
        if let Some(keeper) = &self.keeper {
            keeper.end();
        }
        if let Some(store) = self.store.upgrade() {
            store.close().await;
        }
        self.report(None)
    }

    /// Returns `true` if the threads were told to end.
    pub(super) fn has_begun(&self) -> bool {
        self.threads.is_stopped()
    }

    /// Waits for the end of an engine that has drained.
    pub(super) async fn after_drain(&self) -> ShutdownReport {
        match self.placement {
            Placement::Threads(_) => self.on_own_thread(ShutdownMode::AfterDrain).await,
            Placement::Inline => self.report(None),
        }
    }

    /// Runs the shutdown on a thread of its own: it blocks, and continues even if the caller goes away.
    async fn on_own_thread(&self, mode: ShutdownMode) -> ShutdownReport {
        let (answer, told) = oneshot::channel();
        let ending = self.clone();
        let work = move || {
            // The caller may be gone.
            answer.send(ending.run(mode)).ok();
        };
        match thread::Builder::new().name("procession-end".to_owned()).spawn(work) {
            Ok(_) => told
                .await
                .unwrap_or_else(|_| self.report(Some("the shutdown panicked".to_owned()))),
            Err(error) => {
                tracing::warn!(%error, "no thread for the shutdown, which holds up this one");
                self.run(mode)
            }
        }
    }

    fn run(&self, mode: ShutdownMode) -> ShutdownReport {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let end = machine_now() + LONGEST;
        if mode == ShutdownMode::Now {
            self.threads.stop();
        }
        // If possible, the store is closed when no thread is in the middle of a commit.
        self.threads.wait(end - FOR_STORE);
        self.threads.stop();
        let journal = self.close_store(end);
        self.threads.wait(end);
        let report = self.report(journal);
        if !report.is_clean() {
            let (threads, journal) = (report.threads, report.journal.as_deref());
            tracing::warn!(threads, procedures = ?report.procedures, journal, "something of the engine is left");
        }
        report
    }

    fn report(&self, journal: Option<String>) -> ShutdownReport {
        ShutdownReport {
            threads: self.threads.left(),
            procedures: self.heartbeats.holders(),
            journal,
        }
    }

    /// Closes the store. Returns the reason if the store is not free afterwards.
    fn close_store(&self, end: Instant) -> Option<String> {
        let (store, keeper) = (self.store.upgrade(), self.keeper.clone());
        let (tell, told) = mpsc::channel::<()>();
        let close = move || {
            // While nobody else can have the directory. A disk that does not answer holds up both.
            if let Some(keeper) = keeper {
                keeper.end();
            }
            if let Some(store) = &store {
                block_on(store.close());
            }
            // Dropped before the waiting thread is released: this may be the last owner of the store.
            drop(store);
            drop(tell);
        };
        if let Err(error) = thread::Builder::new().name("procession-close".to_owned()).spawn(close) {
            return Some(format!("no thread could be started to close it: {error}"));
        }
        match told.recv_timeout(end.saturating_duration_since(machine_now())) {
            Err(RecvTimeoutError::Timeout) => Some(format!(
                "it was still busy after {LONGEST:?}: a sync, a merge or a read that the disk does not end"
            )),
            Err(RecvTimeoutError::Disconnected) | Ok(()) => None,
        }
    }

    /// Returns a guard that ends the threads when it is dropped, if the start is abandoned.
    pub(super) fn unless_started(&self) -> UnlessStarted {
        UnlessStarted(Some(self.threads.clone()))
    }
}

/// Closes the store of a start that was refused. If closing may block, it runs on a thread other than the arbiters'.
pub(super) async fn close(store: Arc<dyn JournalStore>) {
    if !store.reads_block() {
        return store.close().await;
    }
    let closed = actix_rt::task::spawn_blocking(move || block_on(store.close())).await;
    if let Err(error) = closed {
        tracing::warn!(%error, "the store was not closed");
    }
}

/// Ends the threads when dropped, unless the engine has started.
pub(super) struct UnlessStarted(Option<Threads>);

impl UnlessStarted {
    pub(super) fn started(mut self) {
        self.0 = None;
    }
}

impl Drop for UnlessStarted {
    fn drop(&mut self) {
        if let Some(threads) = &self.0 {
            threads.stop();
        }
    }
}
