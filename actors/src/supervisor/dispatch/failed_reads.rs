//! Failed reads that do not indicate damage: a lost connection, an I/O error. They are retried for as long as it takes,
//! and a verdict reports them meanwhile.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use procession_kernel::{ProcedureId, StageCall, Timestamp};

use crate::error::StoreError;

/// The wait before the first retry. Each failed round doubles it.
const SHORTEST: Duration = Duration::from_millis(10);
/// The longest wait: the default interval between health checks.
const LONGEST: Duration = Duration::from_secs(10);
/// The number of reads retried in one round, so that a store that has just recovered is not asked for all of them at
/// once.
const AT_ONCE: usize = 512;

/// A read that failed.
pub(in crate::supervisor) enum FailedRead {
    /// The inputs of a call.
    Call(StageCall),
    /// The history of a scope that rolls back.
    Stack(ProcedureId),
    /// The results that are due for eviction.
    Due,
}

/// What identifies a failed read until it succeeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::supervisor) enum ReadSubject {
    Call(ProcedureId),
    Stack(ProcedureId),
    Due,
}

impl FailedRead {
    const fn subject(&self) -> ReadSubject {
        match self {
            Self::Call(call) => ReadSubject::Call(call.id),
            Self::Stack(scope) => ReadSubject::Stack(*scope),
            Self::Due => ReadSubject::Due,
        }
    }
}

/// Reads that failed and have not succeeded since. Each call, rollback and eviction that is out has at most one failed
/// read, which bounds their number.
#[derive(Default)]
pub(super) struct FailedReads {
    failing: BTreeSet<ReadSubject>,
    waiting: VecDeque<FailedRead>,
    /// Since when reads have failed, and the store's last error.
    since: Option<Timestamp>,
    failures: u64,
    error: String,
    /// Rounds since a failed read last succeeded.
    rounds: u32,
    is_armed: bool,
}

/// How long reads have been failing, and how often.
pub(in crate::supervisor) struct ReadTrouble<'a> {
    pub(in crate::supervisor) since: Timestamp,
    pub(in crate::supervisor) failures: u64,
    pub(in crate::supervisor) waiting: usize,
    pub(in crate::supervisor) error: &'a str,
}

impl FailedReads {
    /// Notes a failed read, to be retried.
    pub(super) fn failed(&mut self, read: FailedRead, why: &StoreError, now: Timestamp) {
        self.failing.insert(read.subject());
        self.waiting.push_back(read);
        self.since.get_or_insert(now);
        self.failures += 1;
        self.error = why.to_string();
    }

    /// Notes that a read succeeded, or is not needed any more.
    pub(super) fn succeeded(&mut self, subject: ReadSubject) {
        if self.failing.is_empty() || !self.failing.remove(&subject) {
            return;
        }
        self.rounds = 0;
        if self.failing.is_empty() {
            self.since = None;
            self.failures = 0;
        }
    }

    /// Drops the reads of a family that is quarantined.
    pub(super) fn forget_family(&mut self, family: u64) {
        let (first, last) = (ProcedureId::root(family), ProcedureId::new(family, u32::MAX));
        let calls = self.failing.range(ReadSubject::Call(first)..=ReadSubject::Call(last));
        let stacks = self.failing.range(ReadSubject::Stack(first)..=ReadSubject::Stack(last));
        let forgotten: Vec<ReadSubject> = calls.chain(stacks).copied().collect();
        if forgotten.is_empty() {
            return;
        }
        self.waiting.retain(|read| !forgotten.contains(&read.subject()));
        forgotten.into_iter().for_each(|subject| self.succeeded(subject));
    }

    /// Drops everything: nothing is read any more.
    pub(super) fn clear(&mut self) {
        *self = Self {
            is_armed: self.is_armed,
            ..Self::default()
        };
    }

    /// Returns how long to wait before the next round; `None` if no round is needed, or a wait is already under way.
    pub(super) fn arm(&mut self) -> Option<Duration> {
        if self.is_armed || self.waiting.is_empty() {
            return None;
        }
        self.is_armed = true;
        let wait = SHORTEST.saturating_mul(1 << self.rounds.min(16)).min(LONGEST);
        self.rounds = self.rounds.saturating_add(1);
        Some(wait)
    }

    /// Takes the reads that this round retries.
    pub(super) fn round(&mut self) -> Vec<FailedRead> {
        self.is_armed = false;
        self.waiting.drain(..self.waiting.len().min(AT_ONCE)).collect()
    }

    /// Returns the procedures whose calls wait for a read to be retried.
    pub(super) fn calls(&self) -> impl Iterator<Item = ProcedureId> {
        self.waiting.iter().filter_map(|read| match read {
            FailedRead::Call(call) => Some(call.id),
            FailedRead::Stack(_) | FailedRead::Due => None,
        })
    }

    /// Describes the failing reads, if there are any.
    pub(super) fn trouble(&self) -> Option<ReadTrouble<'_>> {
        Some(ReadTrouble {
            since: self.since?,
            failures: self.failures,
            waiting: self.failing.len(),
            error: &self.error,
        })
    }
}

#[cfg(test)]
mod tests;
