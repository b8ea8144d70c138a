//! Which faults happen at which commits or reads of a memory store.

use std::time::Duration;

use super::disk::PLACE;
use super::late::Late;
use crate::error::StoreError;
use crate::journal::keys::Space;

/// A fault of one commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// The process dies before a byte of the commit is written.
    CrashBefore,
    /// The process dies when the commit is on the disk, before it is acknowledged.
    CrashAfter,
    /// The process dies when only the first bytes of the commit's frame are on the disk.
    /// [`MemoryDisk::torn_points`](super::MemoryDisk::torn_points) returns the cuts worth trying.
    Torn {
        /// Number of bytes written; always less than the frame's length.
        cut: usize,
    },
    /// The write fails half way.
    FailWrite,
    /// All bytes are written, but the sync fails. In general the commit may or may not be there after a restart; on
    /// this disk it is.
    FailSync,
    /// The disk is full half way.
    FailNoSpace,
    /// The commit takes effect on the disk. Its receipt and all later ones wait for
    /// [`MemoryStore::release_receipts`](super::MemoryStore::release_receipts).
    Withhold,
}

impl Fault {
    /// Returns the system's error for a fault that is answered, and `None` for the others.
    pub(super) const fn cause(self) -> Option<&'static str> {
        match self {
            Self::FailWrite => Some("a write failed: input/output error"),
            Self::FailSync => Some("a sync failed: input/output error"),
            Self::FailNoSpace => Some("a write failed: no space left on device"),
            Self::CrashBefore | Self::CrashAfter | Self::Torn { .. } | Self::Withhold => None,
        }
    }
}

/// Reads that fail with an input/output error, as a disk's may, or [as damage does](Self::as_damage). The same read
/// succeeds once the fault is over.
///
/// ```
/// use procession_actors::journal::Space;
/// use procession_actors::journal::memory::ReadFault;
///
/// // The second and the third read of the history fail.
/// let fault = ReadFault::times(2).after(1).of(Space::History);
/// # assert_ne!(fault, ReadFault::none());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadFault {
    sound: u64,
    failing: u64,
    space: Option<Space>,
    is_damage: bool,
}

impl ReadFault {
    /// Creates a fault under which no read fails.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Creates a fault under which the next read fails.
    #[must_use]
    pub fn once() -> Self {
        Self::times(1)
    }

    /// Creates a fault under which this many reads fail.
    #[must_use]
    pub fn times(times: u64) -> Self {
        Self {
            failing: times,
            ..Self::default()
        }
    }

    /// Creates a fault under which all reads fail from now on.
    #[must_use]
    pub fn for_good() -> Self {
        Self::times(u64::MAX)
    }

    /// Lets this many reads succeed before the first one fails.
    #[must_use]
    pub fn after(mut self, reads: u64) -> Self {
        self.sound = reads;
        self
    }

    /// Restricts the fault to reads of this keyspace; only they are counted.
    #[must_use]
    pub fn of(mut self, space: Space) -> Self {
        self.space = Some(space);
        self
    }

    /// Makes the reads fail as those of a damaged file do, which no engine tries again.
    #[must_use]
    pub fn as_damage(mut self) -> Self {
        self.is_damage = true;
        self
    }

    /// Counts a read, and returns the error if it fails.
    pub(super) fn strike(&mut self, space: &Space) -> Option<StoreError> {
        if self.space.as_ref().is_some_and(|of| of != space) {
            return None;
        }
        if self.sound > 0 {
            self.sound -= 1;
            return None;
        }
        let strikes = self.failing > 0;
        if self.failing < u64::MAX {
            self.failing = self.failing.saturating_sub(1);
        }
        strikes.then(|| self.error())
    }

    fn error(&self) -> StoreError {
        let place = PLACE.to_owned();
        match self.is_damage {
            true => StoreError::Damaged {
                place,
                why: "a block's checksum is wrong".to_owned(),
            },
            false => StoreError::Io {
                place,
                why: "a read failed: input/output error".to_owned(),
            },
        }
    }
}

/// Which fault happens at which commit. Commits are counted from 0 at each opening; the engine's first commit, by
/// which it takes the store, is number 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FaultPlan {
    faults: Vec<(u64, Fault)>,
    reads: ReadFault,
    late: Late,
    under_way: Option<usize>,
    lease: Option<Duration>,
    recent: Option<u64>,
}

impl FaultPlan {
    /// Creates a plan without faults.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Creates a plan with one fault.
    #[must_use]
    pub fn at(commit: u64, fault: Fault) -> Self {
        Self::none().and(commit, fault)
    }

    /// Adds a fault; of two faults at one commit the first happens.
    #[must_use]
    pub fn and(mut self, commit: u64, fault: Fault) -> Self {
        self.faults.push((commit, fault));
        self
    }

    /// Makes reads fail from the opening on.
    #[must_use]
    pub fn reads(mut self, fault: ReadFault) -> Self {
        self.reads = fault;
        self
    }

    /// Delays every answer of the store by up to this many turns of the executor, drawn from this seed.
    #[must_use]
    pub fn late(mut self, seed: u64, turns: u32) -> Self {
        self.late = Late::new(seed, turns.into());
        self
    }

    /// Sets how many appends the store prefers to have under way at once. Default 1.
    #[must_use]
    pub fn under_way(mut self, appends: usize) -> Self {
        self.under_way = Some(appends);
        self
    }

    /// Sets the lease of ownership. By default ownership never lapses. The store itself revokes it from nobody; only
    /// another store that acquires the disk does.
    #[must_use]
    pub fn lease(mut self, lasts: Duration) -> Self {
        self.lease = Some(lasts);
        self
    }

    /// Lets the store have the newest writes in memory, and say so half of the times that it is asked, drawn from this seed.
    /// By default it always has to be read.
    #[must_use]
    pub fn recent(mut self, seed: u64) -> Self {
        self.recent = Some(seed);
        self
    }

    pub(super) const fn recent_seed(&self) -> Option<u64> {
        self.recent
    }

    pub(super) fn appends_under_way(&self) -> usize {
        self.under_way.unwrap_or(1)
    }

    pub(super) const fn ownership(&self) -> Option<Duration> {
        self.lease
    }

    pub(super) fn read_fault(&self) -> ReadFault {
        self.reads.clone()
    }

    pub(super) fn lateness(&self) -> Late {
        self.late.clone()
    }

    /// Moves the faults from this commit on later, by a number of commits.
    pub(super) fn postpone(&mut self, from: u64, commits: u64) {
        for (number, _) in self.faults.iter_mut().filter(|(number, _)| *number >= from) {
            *number = number.saturating_add(commits);
        }
    }

    pub(super) fn fault(&self, commit: u64) -> Option<Fault> {
        self.faults
            .iter()
            .find(|(number, _)| *number == commit)
            .map(|(_, fault)| *fault)
    }
}
