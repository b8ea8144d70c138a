//! What goes wrong at which commit, or at which read, of a memory store.

use std::time::Duration;

use super::late::Late;
use crate::journal::keys::Space;

/// Something that happens to one commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// The process dies before a byte of it is written.
    CrashBefore,
    /// The process dies when it is on the disk and nobody was told.
    CrashAfter,
    /// The process dies when only so many bytes of its frame are on the disk;
    /// [`MemoryDisk::torn_points`](super::MemoryDisk::torn_points) gives those worth trying.
    Torn {
        /// How many bytes; always fewer than the frame has.
        cut: usize,
    },
    /// The write fails half way.
    FailWrite,
    /// All bytes are written, and the sync fails: it may or may not be there
    /// after a restart, and on this disk it is.
    FailSync,
    /// The disk is full half way.
    FailNoSpace,
    /// It takes effect on the disk; its receipt, and those of all later
    /// commits, wait for [`MemoryStore::release_receipts`](super::MemoryStore::release_receipts).
    Withhold,
}

impl Fault {
    /// Gives what the system says of a fault that is answered; none for the others.
    pub(super) const fn cause(self) -> Option<&'static str> {
        match self {
            Self::FailWrite => Some("a write failed: input/output error"),
            Self::FailSync => Some("a sync failed: input/output error"),
            Self::FailNoSpace => Some("a write failed: no space left on device"),
            Self::CrashBefore | Self::CrashAfter | Self::Torn { .. } | Self::Withhold => None,
        }
    }
}

/// Reads that fail with an input/output error, as a disk's may. Nothing is damaged: the same
/// read succeeds once the fault is over.
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
}

impl ReadFault {
    /// No read fails.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// The next read fails.
    #[must_use]
    pub fn once() -> Self {
        Self::times(1)
    }

    /// So many reads fail.
    #[must_use]
    pub fn times(times: u64) -> Self {
        Self {
            failing: times,
            ..Self::default()
        }
    }

    /// All reads fail from now on.
    #[must_use]
    pub fn for_good() -> Self {
        Self::times(u64::MAX)
    }

    /// So many reads succeed before the first one fails.
    #[must_use]
    pub fn after(mut self, reads: u64) -> Self {
        self.sound = reads;
        self
    }

    /// Only reads of this keyspace fail, and only they are counted.
    #[must_use]
    pub fn of(mut self, space: Space) -> Self {
        self.space = Some(space);
        self
    }

    /// Counts a read, and tells whether it fails.
    pub(super) fn strikes(&mut self, space: &Space) -> bool {
        if self.space.as_ref().is_some_and(|of| of != space) {
            return false;
        }
        if self.sound > 0 {
            self.sound -= 1;
            return false;
        }
        let strikes = self.failing > 0;
        if self.failing < u64::MAX {
            self.failing = self.failing.saturating_sub(1);
        }
        strikes
    }
}

/// Which fault happens at which commit. Commits are counted from 0 at each
/// opening, and the engine's first, by which it takes the store, is number 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FaultPlan {
    faults: Vec<(u64, Fault)>,
    reads: ReadFault,
    late: Late,
    under_way: Option<usize>,
    lease: Option<Duration>,
}

impl FaultPlan {
    /// Plans no fault.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Plans one fault.
    #[must_use]
    pub fn at(commit: u64, fault: Fault) -> Self {
        Self::none().and(commit, fault)
    }

    /// Adds a fault; of two at one commit the first happens.
    #[must_use]
    pub fn and(mut self, commit: u64, fault: Fault) -> Self {
        self.faults.push((commit, fault));
        self
    }

    /// Has reads fail from the opening on.
    #[must_use]
    pub fn reads(mut self, fault: ReadFault) -> Self {
        self.reads = fault;
        self
    }

    /// Lets every answer of the store come late, by up to so many turns of the
    /// executor, drawn from this seed.
    #[must_use]
    pub fn late(mut self, seed: u64, turns: u32) -> Self {
        self.late = Late::new(seed, turns.into());
        self
    }

    /// Has the store like so many appends under way at once; 1 unless told.
    #[must_use]
    pub fn under_way(mut self, appends: usize) -> Self {
        self.under_way = Some(appends);
        self
    }

    /// Has ownership last for this time; for good unless told. The store itself takes it from nobody: another one
    /// that acquires the disk does.
    #[must_use]
    pub fn lease(mut self, lasts: Duration) -> Self {
        self.lease = Some(lasts);
        self
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

    pub(super) fn fault(&self, commit: u64) -> Option<Fault> {
        self.faults
            .iter()
            .find(|(number, _)| *number == commit)
            .map(|(_, fault)| *fault)
    }
}
