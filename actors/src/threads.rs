//! The threads of one engine. They are counted from start to end. So a shutdown can wait for all of them, whatever the
//! state of the actors.

use std::cell::RefCell;
use std::convert::Infallible;
use std::io;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use actix_rt::{Arbiter, ArbiterHandle};

use crate::clock::machine_now;

thread_local! {
    /// Dropped by the thread as its last act: after its runtime, which waits for all blocking work that was begun on
    /// it.
    static END: RefCell<Option<End>> = const { RefCell::new(None) };
}

/// A token that a thread holds for as long as it exists.
struct End {
    _mark: Arc<()>,
    _all: mpsc::Sender<Infallible>,
}

struct Started {
    arbiter: ArbiterHandle,
    mark: std::sync::Weak<()>,
}

impl Started {
    fn is_there(&self) -> bool {
        self.mark.strong_count() > 0
    }
}

/// All threads of one engine; cheap to clone.
#[derive(Clone)]
pub(crate) struct Threads(Arc<Mutex<State>>);

struct State {
    started: Vec<Started>,
    /// `None` once the threads were told to stop: no more threads are started then.
    all: Option<mpsc::Sender<Infallible>>,
    ends: Option<mpsc::Receiver<Infallible>>,
}

impl Default for Threads {
    fn default() -> Self {
        let (all, ends) = mpsc::channel();
        Self(Arc::new(Mutex::new(State {
            started: Vec::new(),
            all: Some(all),
            ends: Some(ends),
        })))
    }
}

impl Threads {
    /// Starts a thread with an event loop.
    pub(crate) fn start(&self) -> io::Result<ArbiterHandle> {
        let all = self.state().all.clone();
        let all = all.ok_or_else(|| io::Error::other("the engine is being shut down"))?;
        let mark = Arc::new(());
        let weak = Arc::downgrade(&mark);
        let arbiter = Arbiter::try_with_tokio_rt(move || {
            END.with(|end| *end.borrow_mut() = Some(End { _mark: mark, _all: all }));
            tokio::runtime::Builder::new_current_thread().enable_all().build()
        })?;
        let arbiter = arbiter.handle();
        let mut state = self.state();
        if state.all.is_none() {
            // The engine was stopped in the meantime.
            arbiter.stop();
        }
        state.started.retain(Started::is_there);
        state.started.push(Started {
            arbiter: arbiter.clone(),
            mark: weak,
        });
        Ok(arbiter)
    }

    /// Tells every thread to end, and starts no more.
    pub(crate) fn stop(&self) {
        let mut state = self.state();
        state.all = None;
        for started in &state.started {
            started.arbiter.stop();
        }
    }

    /// Returns `true` if the threads were told to end.
    pub(crate) fn is_stopped(&self) -> bool {
        self.state().all.is_none()
    }

    /// Waits until all stopped threads have ended, but no longer than until `end`. Returns how many are left. It
    /// blocks.
    pub(crate) fn wait(&self, end: Instant) -> usize {
        let ends = self.state().ends.take();
        if let Some(ends) = ends {
            let left = end.saturating_duration_since(machine_now());
            match ends.recv_timeout(left) {
                Err(RecvTimeoutError::Timeout) => self.state().ends = Some(ends),
                // Nothing is ever sent: the channel closes when the last thread ends.
                Err(RecvTimeoutError::Disconnected) | Ok(_) => {}
            }
        }
        self.left()
    }

    /// Returns how many threads exist.
    pub(crate) fn left(&self) -> usize {
        self.state().started.iter().filter(|started| started.is_there()).count()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
