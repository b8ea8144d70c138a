//! The end of an engine, in bounded time and from any state: its threads, its store, its callers.
//!
//! Nothing here asks the actors of an engine with threads of its own, which may have failed or be
//! held up. Each thread is told to end; with its actors go the promises that they made, so whoever
//! waits for one of them is answered. Then the store is closed, whoever still holds it.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use actix::prelude::*;
use futures::executor::block_on;
use tokio::sync::oneshot;

use super::Placement;
use crate::clock::machine_now;
use crate::journal::JournalStore;
use crate::supervisor::Supervisor;
use crate::supervisor::dispatch::workers::Heartbeats;
use crate::supervisor::lifecycle::StopHere;
use crate::threads::Threads;
use crate::view::ShutdownReport;

/// The longest that a shutdown takes. More than a sync or a merge of a slow disk, which the store
/// has to wait for; and less than the 10 s after which container hosts kill, with room for the
/// host's own end.
const LONGEST: Duration = Duration::from_secs(8);

/// What is left for the store when threads do not end by themselves: as long as the embedded one
/// waits for its own threads.
const FOR_STORE: Duration = Duration::from_secs(5);

/// How the threads come to their end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// They are told to end now.
    Now,
    /// The supervisor tells them when the last answers have left it.
    AfterDrain,
}

/// All that is needed to end an engine; cheap to clone.
#[derive(Clone)]
pub(crate) struct Ending {
    threads: Threads,
    heartbeats: Heartbeats,
    store: Weak<dyn JournalStore>,
    placement: Placement,
    /// One shutdown at a time.
    turn: Arc<Mutex<()>>,
}

impl Ending {
    pub(super) fn new(
        threads: Threads,
        heartbeats: Heartbeats,
        store: &Arc<dyn JournalStore>,
        placement: Placement,
    ) -> Self {
        Self {
            threads,
            heartbeats,
            store: Arc::downgrade(store),
            placement,
            turn: Arc::default(),
        }
    }

    /// Ends the engine now. An engine on the caller's own thread is asked, since that thread must go on.
    pub(super) async fn now(&self, supervisor: &Addr<Supervisor>) -> ShutdownReport {
        if self.placement != Placement::Inline {
            return self.beside(Way::Now).await;
        }
        // One that has ended already takes nothing.
        supervisor.send(StopHere).await.ok();
        if let Some(store) = self.store.upgrade() {
            store.close().await;
        }
        self.report(None)
    }

    /// Tells whether the threads were told to end.
    pub(super) fn has_begun(&self) -> bool {
        self.threads.is_stopped()
    }

    /// Waits for the end of an engine that has drained.
    pub(super) async fn after_drain(&self) -> ShutdownReport {
        match self.placement {
            Placement::Threads(_) => self.beside(Way::AfterDrain).await,
            Placement::Inline => self.report(None),
        }
    }

    /// Runs on a thread of its own: it blocks, and goes on when whoever asked goes away.
    async fn beside(&self, way: Way) -> ShutdownReport {
        let (answer, told) = oneshot::channel();
        let ending = self.clone();
        let work = move || {
            // Whoever asked may have gone.
            answer.send(ending.run(way)).ok();
        };
        match thread::Builder::new().name("procession-end".to_owned()).spawn(work) {
            Ok(_) => told
                .await
                .unwrap_or_else(|_| self.report(Some("the shutdown panicked".to_owned()))),
            Err(error) => {
                tracing::warn!(%error, "no thread for the shutdown, which holds up this one");
                self.run(way)
            }
        }
    }

    fn run(&self, way: Way) -> ShutdownReport {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let end = machine_now() + LONGEST;
        if way == Way::Now {
            self.threads.stop();
        }
        // The store is closed when nobody is in the middle of a commit, if that can be had.
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

    /// Says why the store is not free, if it is not.
    fn close_store(&self, end: Instant) -> Option<String> {
        let store = self.store.upgrade()?;
        let (tell, told) = mpsc::channel::<()>();
        let close = move || {
            block_on(store.close());
            // Dropped before it is told: it may be the last owner.
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

    /// Ends the threads of a start that is given up, when the value is dropped.
    pub(super) fn unless_started(&self) -> UnlessStarted {
        UnlessStarted(Some(self.threads.clone()))
    }
}

/// Closes the store of a start that is refused, away from the arbiters if that may block.
pub(super) async fn close(store: Arc<dyn JournalStore>) {
    if !store.reads_block() {
        return store.close().await;
    }
    let closed = actix_rt::task::spawn_blocking(move || block_on(store.close())).await;
    if let Err(error) = closed {
        tracing::warn!(%error, "the store was not closed");
    }
}

/// Ends the threads, unless the engine has started.
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
