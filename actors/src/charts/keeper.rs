//! Keeps the figures in a file beside the journal, so that charts survive a restart.
//!
//! It writes some time after something was counted, and at the engine's end; a crash loses what was counted meanwhile.
//! It reads the file after the engine has started, and adds what it finds to what was counted since. So it never holds
//! up a commit or a start, and an engine without a file runs as well.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::watch;

use super::file::{self, Found};
use super::saved::Saved;
use super::{Charts, Shared, minute_of};
use crate::clock::Clock;

/// How long after a change the file is written: a crash loses this much, half of the minute that is promised.
const EVERY: Duration = Duration::from_secs(30);

/// Keeps the figures of one engine.
pub(crate) struct Keeper {
    path: PathBuf,
    /// The number of the engine's store.
    store: u64,
    charts: Weak<Shared>,
    clock: Arc<dyn Clock>,
    /// Held while the file is read or written.
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The file was read, so it may be replaced.
    is_read: bool,
    /// It was told that the file cannot be read or written.
    is_told: bool,
    /// The engine has ended; another one may have the file.
    has_ended: bool,
}

impl Keeper {
    pub(crate) fn new(path: PathBuf, store: u64, charts: &Charts, clock: Arc<dyn Clock>) -> Self {
        Self {
            path,
            store,
            charts: Arc::downgrade(&charts.0),
            clock,
            state: Mutex::default(),
        }
    }

    /// Returns what keeps the file for as long as there are figures. With `blocks` it reads and writes on a thread for
    /// blocking work, otherwise on the current one.
    pub(crate) fn run(self: Arc<Self>, blocks: bool) -> impl Future<Output = ()> + Send + use<> {
        let changed = self.charts.upgrade().map(|charts| charts.changed.subscribe());
        async move {
            if let Some(changed) = changed {
                self.keep_until_gone(changed, blocks).await;
            }
        }
    }

    async fn keep_until_gone(self: Arc<Self>, mut changed: watch::Receiver<()>, blocks: bool) {
        self.keep_here_or_there(blocks).await;
        while changed.changed().await.is_ok() {
            self.clock.sleep_until(self.clock.now().after(EVERY)).await;
            self.keep_here_or_there(blocks).await;
        }
    }

    async fn keep_here_or_there(self: &Arc<Self>, blocks: bool) {
        if !blocks {
            return self.keep();
        }
        let keeper = Arc::clone(self);
        // It fails if the engine ends meanwhile, which writes the file itself.
        actix_rt::task::spawn_blocking(move || keeper.keep()).await.ok();
    }

    /// Reads the file if it was not read yet, and writes it if something has changed.
    pub(super) fn keep(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.has_ended {
            return;
        }
        let is_new = self.charts.upgrade().is_some_and(|charts| charts.take_change());
        self.keep_now(&mut state, is_new);
    }

    /// Writes the file for the last time, before the store is given back.
    pub(crate) fn end(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !std::mem::replace(&mut state.has_ended, true) {
            self.keep_now(&mut state, true);
        }
    }

    fn keep_now(&self, state: &mut State, is_new: bool) {
        let Some(charts) = self.charts.upgrade() else { return };
        let minute = minute_of(self.clock.now());
        let kept = self.read_first(state, &charts, minute).and_then(|()| match is_new {
            true => charts.write(&self.path, self.store, minute),
            false => Ok(()),
        });
        match kept {
            Ok(()) if state.is_told => {
                tracing::info!(path = %self.path.display(), "the charts are kept again");
                state.is_told = false;
            }
            Ok(()) => {}
            Err(error) => {
                charts.change();
                if !std::mem::replace(&mut state.is_told, true) {
                    tracing::warn!(path = %self.path.display(), %error, "the charts cannot be kept");
                }
            }
        }
    }

    fn read_first(&self, state: &mut State, charts: &Shared, minute: u64) -> std::io::Result<()> {
        if state.is_read {
            return Ok(());
        }
        match file::read(&self.path, self.store)? {
            Found::Nothing => {}
            Found::Figures(saved) => charts.merge(*saved, minute),
            Found::SetAside(aside, why) => {
                tracing::warn!(path = %aside.display(), %why, "a file of charts was set aside");
            }
        }
        state.is_read = true;
        Ok(())
    }
}

impl Shared {
    fn take_change(&self) -> bool {
        self.book().take_change()
    }

    /// Notes that something is not on disk.
    fn change(&self) {
        if self.book().note_change() {
            self.changed.send_replace(());
        }
    }

    /// Adds what was counted before. The lock is held for one series at a time.
    pub(super) fn merge(&self, saved: Saved, minute: u64) {
        self.book().merge_runs(&saved.runs(), minute);
        for (of, series) in saved.series() {
            self.book().merge(&of, series, minute);
        }
    }

    /// Writes the file. The lock is held for one series at a time.
    pub(super) fn write(&self, path: &Path, store: u64, minute: u64) -> std::io::Result<()> {
        let (runs, len) = {
            let book = self.book();
            (book.runs(minute), book.len())
        };
        let mut saved = Saved::new(store, minute, &runs);
        for at in 0..len {
            let copied = self.book().copy(at, minute);
            if let Some((of, series)) = copied {
                saved.put(of, &series);
            }
        }
        file::write(path, &saved.to_bytes().map_err(std::io::Error::other)?)
    }
}
