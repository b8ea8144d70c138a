//! The process groups of commands that run: a command is killed with all that it has started.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The groups that run, by the numbers of their leaders; `None` once the program ends.
static RUNNING: Mutex<Option<BTreeSet<i32>>> = Mutex::new(Some(BTreeSet::new()));

/// A group, which is killed with this value unless its leader has ended.
pub(super) struct Group(Option<i32>);

impl Group {
    /// Takes the group that a process leads.
    pub(super) fn of(leader: Option<u32>) -> Self {
        let leader = leader.and_then(|leader| i32::try_from(leader).ok());
        match (&mut *running(), leader) {
            (Some(running), leader) => running.extend(leader),
            // It was begun while the others were killed.
            (None, Some(leader)) => kill(leader),
            (None, None) => {}
        }
        Self(leader)
    }

    /// Leaves what the leader has started to itself, as the leader did: the number may be another's from now on.
    pub(super) fn has_ended(mut self) {
        self.forget();
    }

    fn forget(&mut self) -> Option<i32> {
        let leader = self.0.take()?;
        if let Some(running) = &mut *running() {
            running.remove(&leader);
        }
        Some(leader)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(leader) = self.forget() {
            kill(leader);
        }
    }
}

/// Kills all groups that run, and each that begins from then on.
pub(in crate::saga) fn kill_all() {
    for leader in running().take().into_iter().flatten() {
        kill(leader);
    }
}

fn running() -> MutexGuard<'static, Option<BTreeSet<i32>>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(unix)]
fn kill(leader: i32) {
    if let Some(leader) = rustix::process::Pid::from_raw(leader) {
        // One that has ended needs no signal.
        rustix::process::kill_process_group(leader, rustix::process::Signal::KILL).ok();
    }
}

#[cfg(not(unix))]
const fn kill(_: i32) {}
