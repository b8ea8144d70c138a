//! Reads that the store did not give, though nothing says that anything is damaged: tried again for
//! as long as it takes, and told by a verdict meanwhile.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use actix::prelude::*;
use procession_kernel::{ProcedureId, Timestamp};

use super::Supervisor;
use super::loads::Load;
use crate::error::StoreError;

/// The wait before the first attempt to read again. Each failed round doubles it.
const SHORTEST: Duration = Duration::from_millis(10);
/// The longest wait: as often as the engine looks for what is stuck.
const LONGEST: Duration = Duration::from_secs(10);
/// Reads tried again in one round, so that a store that is back is not met by all of them at once.
const AT_ONCE: usize = 512;

/// What is to be read again.
pub(super) enum Unread {
    /// What a call needs.
    Call(Load),
    /// The history of a family that rolls back.
    Stack(ProcedureId),
    /// The results that are due.
    Due,
}

/// What a failed read is known by until it succeeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Subject {
    Call(ProcedureId),
    Stack(ProcedureId),
    Due,
}

impl Unread {
    const fn subject(&self) -> Subject {
        match self {
            Self::Call(load) => Subject::Call(load.id),
            Self::Stack(scope) => Subject::Stack(*scope),
            Self::Due => Subject::Due,
        }
    }
}

/// Reads that failed, and have not succeeded since. Their number is bounded as that of the calls,
/// rollbacks and evictions that are out: each has one.
#[derive(Default)]
pub(super) struct Unreadable {
    failing: BTreeSet<Subject>,
    waiting: VecDeque<Unread>,
    /// Since when some read fails, and what the store said last.
    since: Option<Timestamp>,
    failures: u64,
    said: String,
    /// Rounds since a read that had failed last succeeded.
    rounds: u32,
    is_armed: bool,
}

/// How long the store has not given what it was asked for, and how often it was asked.
pub(super) struct Trouble<'a> {
    pub(super) since: Timestamp,
    pub(super) failures: u64,
    pub(super) waiting: usize,
    pub(super) said: &'a str,
}

impl Unreadable {
    fn failed(&mut self, what: Unread, why: &StoreError, now: Timestamp) {
        self.failing.insert(what.subject());
        self.waiting.push_back(what);
        self.since.get_or_insert(now);
        self.failures += 1;
        self.said = why.to_string();
    }

    /// Notes that something was read.
    pub(super) fn succeeded(&mut self, subject: Subject) {
        if self.failing.is_empty() || !self.failing.remove(&subject) {
            return;
        }
        self.rounds = 0;
        if self.failing.is_empty() {
            self.since = None;
            self.failures = 0;
        }
    }

    /// Forgets all of it: nothing is read any more.
    pub(super) fn clear(&mut self) {
        *self = Self {
            is_armed: self.is_armed,
            ..Self::default()
        };
    }

    /// Gives how long to wait before the next round, if there is to be one and it was not begun.
    fn arm(&mut self) -> Option<Duration> {
        if self.is_armed || self.waiting.is_empty() {
            return None;
        }
        self.is_armed = true;
        let wait = SHORTEST.saturating_mul(1 << self.rounds.min(16)).min(LONGEST);
        self.rounds = self.rounds.saturating_add(1);
        Some(wait)
    }

    /// Takes what this round tries again.
    fn round(&mut self) -> Vec<Unread> {
        self.is_armed = false;
        self.waiting.drain(..self.waiting.len().min(AT_ONCE)).collect()
    }

    /// Gives whose calls wait to be read for again.
    pub(super) fn calls(&self) -> impl Iterator<Item = ProcedureId> {
        self.waiting.iter().filter_map(|unread| match unread {
            Unread::Call(load) => Some(load.id),
            Unread::Stack(_) | Unread::Due => None,
        })
    }

    /// Tells of the trouble, if there is any.
    pub(super) fn trouble(&self) -> Option<Trouble<'_>> {
        Some(Trouble {
            since: self.since?,
            failures: self.failures,
            waiting: self.failing.len(),
            said: &self.said,
        })
    }
}

impl Supervisor {
    /// Reads something again after a while.
    pub(super) fn read_again(&mut self, what: Unread, why: &StoreError, ctx: &mut Context<Self>) {
        if !self.status.is_running() {
            return;
        }
        let now = self.clock.now();
        if self.unreadable.trouble().is_none() {
            tracing::warn!(%why, "the store cannot be read; it is tried again until it can");
        }
        self.unreadable.failed(what, why, now);
        self.await_round(ctx);
    }

    fn await_round(&mut self, ctx: &mut Context<Self>) {
        let Some(wait) = self.unreadable.arm() else { return };
        let sleep = self.clock.sleep_until(self.clock.now().after(wait));
        ctx.spawn(sleep.into_actor(self).map(|(), supervisor, ctx| {
            for unread in supervisor.unreadable.round() {
                match unread {
                    Unread::Call(load) => supervisor.load(load, ctx),
                    Unread::Stack(scope) => supervisor.load_stack(scope, ctx),
                    Unread::Due => supervisor.evict_again(ctx),
                }
            }
            supervisor.await_round(ctx);
        }));
    }
}

#[cfg(test)]
mod tests;
