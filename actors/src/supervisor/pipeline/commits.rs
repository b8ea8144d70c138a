//! Commits on their way: the open batch, the full batches that wait, and the batches under way.
//!
//! While batches are under way, new decisions merge into the next batch. That batch follows at once if the journal
//! would otherwise stand still. It goes behind a batch under way if it is worth a sync of its own. Effects, reads and
//! the feeds leave only with their receipt.

use std::collections::VecDeque;

use procession_kernel::{Commit, Epoch, Seq, Timestamp};
use tokio::sync::oneshot;

use super::changes::Pending;
use crate::journal::Batch;
use crate::supervisor::metrics::observations::Observation;

/// Everything that waits for one receipt.
#[derive(Default)]
pub(in crate::supervisor) struct AwaitingReceipt {
    pub(super) seq: Seq,
    pub(in crate::supervisor) commits: Vec<Commit>,
    pub(in crate::supervisor) reads: Vec<oneshot::Sender<()>>,
    pub(super) changes: Vec<Pending>,
    pub(in crate::supervisor) observations: Vec<Observation>,
    /// The number of puts and deletes in the batch, and when it went to the journal.
    pub(in crate::supervisor) writes: usize,
    pub(in crate::supervisor) appended: Timestamp,
}

/// A batch that is not under way yet, and what waits for it.
pub(super) struct Ready {
    pub(super) batch: Batch,
    pub(super) commit: Commit,
    pub(super) waiting: AwaitingReceipt,
    /// A stage runs already that rests on the newest decision, so its report may come before the receipt.
    is_overtaken: bool,
    hold: Hold,
}

/// Whether a batch is held back for the decisions that are to follow soon.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Hold {
    /// It never was.
    Never,
    /// It is; the holds are counted.
    Held(u64),
    /// It was. It goes as soon as it may.
    Over,
}

impl Ready {
    fn new(epoch: Epoch) -> Self {
        Self {
            batch: Batch::new(epoch),
            commit: Commit::new(),
            waiting: AwaitingReceipt::default(),
            is_overtaken: false,
            hold: Hold::Never,
        }
    }

    /// Creates the next batch, with room for about as much as this one holds.
    fn after(&self) -> Self {
        Self {
            batch: Batch::like(&self.batch),
            commit: Commit::like(&self.commit),
            waiting: AwaitingReceipt {
                observations: Vec::with_capacity(self.waiting.observations.len()),
                ..AwaitingReceipt::default()
            },
            is_overtaken: false,
            hold: Hold::Never,
        }
    }

    fn is_empty(&self) -> bool {
        self.commit.decisions() == 0
    }

    fn is_full(&self, merge: usize) -> bool {
        self.commit.decisions() >= merge || self.batch.size_bytes() >= LARGEST_BATCH
    }
}

/// The size in bytes beyond which a batch is not extended. A sync of this size is still short, and a few such batches
/// fit in memory.
const LARGEST_BATCH: usize = 8 << 20;

/// The maximum number of writes in a decision that is committed on the supervisor's own thread. The births of many
/// children would hold that thread for as long as many syncs take.
const SINGLE_WRITES: usize = 64;

pub(super) struct Commits {
    epoch: Epoch,
    merge: usize,
    in_flight_max: usize,
    /// Accepts decisions.
    open: Ready,
    /// Batches that accept no more decisions and wait for their turn.
    full: VecDeque<Ready>,
    in_flight: VecDeque<AwaitingReceipt>,
    durable: Seq,
    /// Batches that were held back so far.
    holds: u64,
}

impl Commits {
    pub(super) fn new(epoch: Epoch, merge: usize, in_flight_max: usize) -> Self {
        Self {
            epoch,
            merge: merge.max(1),
            in_flight_max: in_flight_max.max(1),
            open: Ready::new(epoch),
            full: VecDeque::new(),
            in_flight: VecDeque::new(),
            durable: Seq::default(),
            holds: 0,
        }
    }

    /// Returns the batch that the next commit goes into.
    pub(super) fn open(&mut self) -> &mut Ready {
        if self.open.is_full(self.merge) {
            let next = self.open.after();
            self.full.push_back(std::mem::replace(&mut self.open, next));
        }
        &mut self.open
    }

    /// Returns the commit of the batch that was opened last. Opens no new batch, even if that batch is full by now: a
    /// decision's records and its effects belong to the same batch.
    pub(super) const fn open_commit(&mut self) -> &mut Commit {
        &mut self.open.commit
    }

    /// Notes whether a stage runs already that rests on the newest decision.
    pub(super) const fn overtaken(&mut self, is_overtaken: bool) {
        self.open.is_overtaken = is_overtaken;
    }

    /// Returns `true` if nobody waits for the open batch who must not wait a moment longer, and the decision that follows
    /// its newest will come soon: they may share a sync (docs/decisions/0084).
    pub(super) fn may_gather(&self) -> bool {
        let open = &self.open;
        // This comes first, because nearly always it says no, and the effects of a batch are many.
        if !open.is_overtaken || open.hold == Hold::Over || open.is_full(self.merge) || !self.full.is_empty() {
            return false;
        }
        open.waiting.reads.is_empty() && !open.commit.is_urgent()
    }

    /// Returns the newest decision of the open batch if somebody waits for the batch.
    pub(super) fn awaited(&self) -> Option<Seq> {
        self.open.commit.is_awaited().then(|| self.open.batch.seq())
    }

    /// Returns `true` if the open batch was held back.
    pub(super) fn is_gathered(&self) -> bool {
        self.open.hold != Hold::Never
    }

    /// Holds the open batch back. Returns the number of the hold if it begins now.
    pub(super) fn gather(&mut self) -> Option<u64> {
        if self.open.hold != Hold::Never {
            return None;
        }
        self.holds += 1;
        self.open.hold = Hold::Held(self.holds);
        Some(self.holds)
    }

    /// Ends a hold. Returns `true` if its batch is still open.
    pub(super) fn end_hold(&mut self, number: u64) -> bool {
        let is_open = self.open.hold == Hold::Held(number);
        if is_open {
            self.open.hold = Hold::Over;
        }
        is_open
    }

    /// Returns the newest commit on disk.
    pub(super) const fn durable(&self) -> Seq {
        self.durable
    }

    /// Holds effects that left no record until everything decided is on disk. If it already is, returns them.
    ///
    /// Effects are released in the order of the decisions: a request to the limiter that is decided later must not
    /// overtake one that is withdrawn here.
    pub(super) fn hold(&mut self, commit: Commit) -> Option<Commit> {
        let open = Some(&mut self.open).filter(|open| !open.is_empty());
        if let Some(ready) = open.or(self.full.back_mut()) {
            ready.commit.append(commit);
        } else if let Some(waiting) = self.in_flight.back_mut() {
            waiting.commits.push(commit);
        } else {
            return Some(commit);
        }
        None
    }

    /// Registers a read that must see everything decided; `None` if everything is on disk and the read may go at once.
    pub(super) fn barrier(&mut self) -> Option<oneshot::Receiver<()>> {
        let waiting = self.last()?;
        let (sender, receiver) = oneshot::channel();
        waiting.reads.push(sender);
        Some(receiver)
    }

    /// Returns where to add what is counted with the newest decision; `None` if everything is on disk.
    pub(super) fn last_observations(&mut self) -> Option<&mut Vec<Observation>> {
        self.last().map(|waiting| &mut waiting.observations)
    }

    fn last(&mut self) -> Option<&mut AwaitingReceipt> {
        if !self.open.is_empty() {
            return Some(&mut self.open.waiting);
        }
        match self.full.back_mut() {
            Some(ready) => Some(&mut ready.waiting),
            None => self.in_flight.back_mut(),
        }
    }

    /// Takes the next batch that may go to the journal now.
    pub(super) fn next_batch(&mut self) -> Option<Batch> {
        if !self.may_follow() {
            return None;
        }
        let ready = match self.full.pop_front() {
            Some(ready) => ready,
            None if self.open.is_empty() => return None,
            None => {
                let next = self.open.after();
                std::mem::replace(&mut self.open, next)
            }
        };
        let Ready {
            batch,
            commit,
            mut waiting,
            is_overtaken: _,
            hold: _,
        } = ready;
        waiting.seq = batch.seq();
        waiting.writes = batch.len();
        waiting.commits.insert(0, commit);
        self.in_flight.push_back(waiting);
        Some(batch)
    }

    /// Returns `true` if another batch is worth its sync. It is if the journal would stand still, or if a batch is
    /// full. It also is if the open batch has at least as many writes as the oldest batch under way. Smaller batches
    /// grow until then, and their stages share one sync (docs/decisions/0029).
    fn may_follow(&self) -> bool {
        let Some(first) = self.in_flight.front() else {
            return true;
        };
        let room = self.in_flight.len() < self.in_flight_max;
        room && (!self.full.is_empty() || self.open.batch.len() >= first.writes)
    }

    /// Returns `true` if a single decision waits for the journal, the journal stands still, and the decision has few
    /// enough writes. Such a decision takes little time beside the sync. Decisions that were gathered count as one. If a
    /// stage runs already that rests on it, its report must not wait for the sync.
    pub(super) fn is_single(&self) -> bool {
        let is_one = self.open.commit.decisions() == 1 || self.is_gathered();
        let is_small = self.open.batch.len() <= SINGLE_WRITES;
        self.is_idle() && is_one && is_small && !self.open.is_overtaken
    }

    /// Returns `true` if the journal stands still, and no full batch waits for it.
    pub(super) fn is_idle(&self) -> bool {
        self.in_flight.is_empty() && self.full.is_empty()
    }

    /// Records when the batch that was taken last goes to the journal.
    pub(super) fn appended(&mut self, at: Timestamp) {
        if let Some(waiting) = self.in_flight.back_mut() {
            waiting.appended = at;
        }
    }

    /// Returns since when the journal has had the oldest batch under way.
    pub(super) fn oldest_under_way(&self) -> Option<Timestamp> {
        self.in_flight.front().map(|waiting| waiting.appended)
    }

    /// Returns `true` if everything decided is on disk.
    pub(super) fn is_quiet(&mut self) -> bool {
        self.last().is_none()
    }

    /// Takes everything that waited for the oldest batch under way.
    pub(super) fn proved(&mut self, durable: Seq) -> Option<AwaitingReceipt> {
        let waiting = self.in_flight.pop_front()?;
        self.durable = durable;
        Some(waiting)
    }

    /// Returns `true` if decisions arrive faster than the journal takes them.
    pub(super) fn is_backed_up(&self) -> bool {
        !self.full.is_empty()
    }

    /// Drops everything that waits: none of it will ever be proved.
    pub(super) fn clear(&mut self) {
        self.open = Ready::new(self.epoch);
        self.full.clear();
        self.in_flight.clear();
    }
}

#[cfg(test)]
mod tests;
