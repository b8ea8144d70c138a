//! The in-memory twin of the embedded store, with injected faults.
//!
//! Its disk is a log of bytes that outlives the store, so that a torn write really is torn. After a crash the store
//! is dead, as if the process were gone: none of its futures resolves and none of its writes arrives. Race the code
//! that runs on it against [`MemoryStore::crashed`], and drop it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use futures::channel::oneshot;
use futures::future::{BoxFuture, Shared, pending, ready};
use procession_kernel::{Epoch, Key, Receipt};

use super::batch::Batch;
use super::bounds::StoreBounds;
use super::keys::Space;
use super::layout::CLOSED;
use super::store::{AppendError, DiskRoom, Entries, Head, JournalStore, RecentWrites, Scan, SyncTimes};
use crate::error::StoreError;

mod disk;
mod fault;
mod frame;
mod late;
mod recent;

pub use disk::MemoryDisk;
pub use fault::{Fault, FaultPlan, ReadFault};

use super::EMBEDDED_BOUNDS as BOUNDS;
use disk::{PLACE, Sharing, World, apply_marks, apply_one};
use late::Late;
use recent::Recent;

/// A store on a [`MemoryDisk`].
#[derive(Debug)]
pub struct MemoryStore {
    disk: MemoryDisk,
    opening: u64,
    state: Mutex<State>,
    crashed: Shared<oneshot::Receiver<()>>,
    reads: AtomicU64,
}

#[derive(Debug)]
struct State {
    /// What reads see: every batch whose receipt was given.
    world: World,
    plan: FaultPlan,
    commits: u64,
    bytes: u64,
    room: Option<DiskRoom>,
    sync_times: Option<SyncTimes>,
    failure: Option<&'static str>,
    /// What happens to the next commit.
    next_fault: Option<Fault>,
    refused: u64,
    reads: ReadFault,
    failed_reads: u64,
    late: Late,
    recent: Recent,
    /// Batches on the disk whose receipts are withheld; `None` if receipts are given at once.
    withheld: Option<VecDeque<Withheld>>,
    /// Taken when it fires; a store without it is dead.
    bell: Option<oneshot::Sender<()>>,
    is_closed: bool,
}

type Answer = Result<Receipt, AppendError>;

/// The error of every call after a close.
struct Closed;

impl From<Closed> for StoreError {
    fn from(_: Closed) -> Self {
        Self::Closed {
            place: PLACE.to_owned(),
        }
    }
}

impl From<Closed> for AppendError {
    fn from(_: Closed) -> Self {
        Self::Failed(CLOSED.to_owned())
    }
}

#[derive(Debug)]
struct Withheld {
    batch: Batch,
    answer: oneshot::Sender<Answer>,
}

impl MemoryStore {
    /// Opens the disk as the next process would.
    ///
    /// # Errors
    ///
    /// [`StoreError::Held`] while another store on the disk exists, and [`StoreError::Damaged`] if a byte of it was
    /// changed.
    pub fn open(disk: &MemoryDisk, plan: FaultPlan) -> Result<Self, StoreError> {
        Self::open_as(Sharing::Exclusive, disk, plan)
    }

    /// Opens the disk like one of several machines that reach the same store, so others may have it open. The last
    /// opener to acquire it is its owner, and the others are fenced.
    ///
    /// # Errors
    ///
    /// [`StoreError::Damaged`] if a byte of the disk was changed.
    pub fn open_shared(disk: &MemoryDisk, plan: FaultPlan) -> Result<Self, StoreError> {
        Self::open_as(Sharing::Shared, disk, plan)
    }

    fn open_as(sharing: Sharing, disk: &MemoryDisk, plan: FaultPlan) -> Result<Self, StoreError> {
        let mut state = disk.lock();
        let (opening, world) = state.open(sharing)?;
        let (bell, crashed) = oneshot::channel();
        let (late, reads, recent) = (plan.lateness(), plan.read_fault(), Recent::new(plan.recent_seed()));
        Ok(Self {
            disk: disk.clone(),
            opening,
            state: Mutex::new(State {
                world,
                plan,
                commits: 0,
                bytes: 0,
                room: None,
                sync_times: None,
                failure: None,
                next_fault: None,
                refused: 0,
                reads,
                failed_reads: 0,
                late,
                recent,
                withheld: None,
                bell: Some(bell),
                is_closed: false,
            }),
            crashed: crashed.shared(),
            reads: AtomicU64::new(0),
        })
    }

    /// Resolves when the process counts as dead.
    #[must_use]
    pub fn crashed(&self) -> BoxFuture<'static, ()> {
        // The sender is also dropped with the store, which is no crash.
        let crashed = self.crashed.clone();
        async move {
            if crashed.await.is_err() {
                pending::<()>().await;
            }
        }
        .boxed()
    }

    /// Returns `true` if the store has crashed.
    #[must_use]
    pub fn is_dead(&self) -> bool {
        self.lock().bell.is_none()
    }

    /// Crashes the store now, between two commits.
    pub fn crash(&self) {
        self.die(&mut self.lock());
    }

    /// Releases the withheld receipts, in order, and withholds no more.
    pub fn release_receipts(&self) {
        let mut state = self.lock();
        for Withheld { batch, answer } in state.withheld.take().unwrap_or_default() {
            state.apply(&batch);
            answer.send(Ok(Receipt::new(batch.epoch(), batch.seq()))).ok();
        }
    }

    /// Injects this fault into the next commit, whatever its number, instead of the fault that is planned for it.
    /// With [`Fault::Withhold`] receipts are withheld from that commit on. After a fault that fails the commit, no
    /// later commit succeeds.
    pub fn fault_next(&self, fault: Fault) {
        self.lock().next_fault = Some(fault);
    }

    /// Moves every planned fault that is still to come this many commits later, so that commits which are no part of
    /// the scenario, such as an operator's, do not use up its faults.
    pub fn postpone_faults(&self, commits: u64) {
        let state = &mut *self.lock();
        state.plan.postpone(state.commits, commits);
    }

    /// Makes reads fail from now on, instead of any earlier read fault.
    pub fn fail_reads(&self, fault: ReadFault) {
        self.lock().reads = fault;
    }

    /// Returns the number of reads that have failed.
    #[must_use]
    pub fn failed_reads(&self) -> u64 {
        self.lock().failed_reads
    }

    /// Sets the room on the store's disk; until then the store reports none.
    pub fn set_disk_room(&self, room: DiskRoom) {
        self.lock().room = Some(room);
    }

    /// Sets the times of the newest syncs; until then the store reports none.
    pub fn set_sync_times(&self, times: SyncTimes) {
        self.lock().sync_times = Some(times);
    }

    /// Returns `true` if a receipt is withheld.
    #[must_use]
    pub fn is_withholding(&self) -> bool {
        self.lock().withheld.is_some()
    }

    /// Returns the number of commits that were admitted, including the failed one.
    #[must_use]
    pub fn commits(&self) -> u64 {
        self.lock().commits
    }

    /// Returns the size of all whole frames that the store wrote, in bytes.
    #[must_use]
    pub fn appended_bytes(&self) -> u64 {
        self.lock().bytes
    }

    /// Returns the number of rows that were read; a miss counts as one.
    #[must_use]
    pub fn reads(&self) -> u64 {
        self.reads.load(Ordering::Relaxed)
    }

    /// Returns the number of appends that were tried after a failed one.
    #[must_use]
    pub fn appends_after_failure(&self) -> u64 {
        self.lock().refused
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers with a value computed from the state: at once if the store is alive, never if it is dead.
    fn answer<'a, T: Send + 'a, E: From<Closed> + Send + 'a>(
        &'a self,
        compute: impl FnOnce(&mut State) -> Result<T, E>,
    ) -> BoxFuture<'a, Result<T, E>> {
        let mut state = self.lock();
        if state.bell.is_none() {
            return pending().boxed();
        }
        if state.is_closed {
            return ready(Err(Closed.into())).boxed();
        }
        let answer = ready(compute(&mut state)).boxed();
        self.later(&mut state, answer)
    }

    /// Delays an answer as the plan says, unless the store dies before.
    fn later<'a, T: Send + 'a>(&'a self, state: &mut State, answer: BoxFuture<'a, T>) -> BoxFuture<'a, T> {
        let turns = state.late.turns();
        if turns == 0 {
            return answer;
        }
        let late = async move {
            late::pass(turns).await;
            if self.is_dead() {
                pending::<()>().await;
            }
            answer.await
        };
        late.boxed()
    }

    fn die(&self, state: &mut State) {
        self.let_go();
        state.withheld = None;
        if let Some(bell) = state.bell.take() {
            bell.send(()).ok();
        }
    }

    fn let_go(&self) {
        let mut disk = self.disk.lock();
        if disk.holder == Some(self.opening) {
            disk.holder = None;
        }
    }

    fn admit(&self, state: &State, epoch: Epoch) -> Result<(), AppendError> {
        let newer = self.disk.lock().granted();
        if epoch < newer {
            return Err(AppendError::Fenced { newer });
        }
        state
            .failure
            .map_or(Ok(()), |cause| Err(AppendError::Failed(cause.to_owned())))
    }

    fn commit(&self, state: &mut State, batch: Batch) -> Option<BoxFuture<'static, Answer>> {
        if state.failure.is_some() {
            state.refused += 1;
        }
        if let Err(error) = self.admit(state, batch.epoch()) {
            return Some(ready(Err(error)).boxed());
        }
        if let Some(why) = batch.writes().find_map(|write| BOUNDS.refusal(&write)) {
            state.failure = Some("an earlier commit was refused");
            return Some(ready(Err(AppendError::Failed(why))).boxed());
        }
        let number = state.commits;
        state.commits += 1;
        let (frame, ends) = frame::encode(&batch);
        let fault = state.next_fault.take().or_else(|| state.plan.fault(number));
        self.write(fault, &batch, &frame, ends);
        state.bytes += frame.len() as u64;
        self.finish(state, fault, batch)
    }

    /// Writes the part of a batch that the fault lets through to the disk.
    fn write(&self, fault: Option<Fault>, batch: &Batch, frame: &[u8], ends: Vec<usize>) {
        let mut disk = self.disk.lock();
        let kept = match fault {
            Some(Fault::CrashBefore) => 0,
            Some(Fault::Torn { cut }) => cut.min(frame.len() - 1),
            Some(Fault::FailWrite | Fault::FailNoSpace) => frame.len() / 2,
            None | Some(Fault::CrashAfter | Fault::FailSync | Fault::Withhold) => frame.len(),
        };
        disk.write(frame.get(..kept).unwrap_or_default());
        if kept == frame.len() {
            disk.note(self.opening, (batch.epoch(), batch.seq()), ends);
        }
    }

    /// Returns the answer to a commit, or `None` if there will never be one.
    fn finish(&self, state: &mut State, fault: Option<Fault>, batch: Batch) -> Option<BoxFuture<'static, Answer>> {
        match fault {
            Some(Fault::CrashBefore | Fault::CrashAfter | Fault::Torn { .. }) => {
                self.die(state);
                return None;
            }
            Some(fault @ (Fault::FailWrite | Fault::FailNoSpace | Fault::FailSync)) => {
                state.failure = fault.cause();
                let cause = fault.cause().unwrap_or_default().to_owned();
                // After a failed sync it is unknown what is on the disk.
                let error = if fault == Fault::FailSync {
                    AppendError::Unknown(cause)
                } else {
                    AppendError::Failed(cause)
                };
                return Some(ready(Err(error)).boxed());
            }
            Some(Fault::Withhold) => {
                state.withheld.get_or_insert_default();
            }
            None => {}
        }
        let receipt = Receipt::new(batch.epoch(), batch.seq());
        let Some(withheld) = &mut state.withheld else {
            state.apply(&batch);
            return Some(ready(Ok(receipt)).boxed());
        };
        // A receipt proves all earlier commits, so a later receipt must wait as well.
        let (answer, given) = oneshot::channel();
        withheld.push_back(Withheld { batch, answer });
        let answer = async move {
            match given.await {
                Ok(answer) => answer,
                // The store crashed, and a dead process hears nothing.
                Err(oneshot::Canceled) => pending().await,
            }
        };
        Some(answer.boxed())
    }
}

impl State {
    /// Counts a read of this keyspace, and fails it if that is planned.
    fn read(&mut self, space: &Space) -> Result<(), StoreError> {
        let Some(why) = self.reads.strike(space) else {
            return Ok(());
        };
        self.failed_reads += 1;
        Err(why)
    }

    fn apply(&mut self, batch: &Batch) {
        for write in batch.writes() {
            let rows = self.world.entry(write.space.clone()).or_default();
            apply_one(rows, write.key.to_vec(), write.value.map(<[u8]>::to_vec));
            self.recent.note(write.space, write.key);
        }
        apply_marks(&mut self.world, batch.epoch(), batch.seq());
    }
}

impl Drop for MemoryStore {
    fn drop(&mut self) {
        self.let_go();
    }
}

impl JournalStore for MemoryStore {
    fn acquire(&self) -> BoxFuture<'_, Result<Epoch, StoreError>> {
        self.answer(|state| {
            let mut disk = self.disk.lock();
            if let Some(world) = disk.written_by_others(self.opening) {
                state.world = world;
            }
            Ok(disk.grant())
        })
    }

    fn lease(&self) -> Option<Duration> {
        self.lock().plan.ownership()
    }

    fn under_way(&self) -> usize {
        self.lock().plan.appends_under_way()
    }

    fn renew(&self, epoch: Epoch) -> BoxFuture<'_, Result<(), AppendError>> {
        self.answer(|state| self.admit(state, epoch))
    }

    fn release(&self, epoch: Epoch) -> BoxFuture<'_, Result<(), AppendError>> {
        self.answer(|state| self.admit(state, epoch))
    }

    /// A commit whose receipt is withheld is on the disk, but its caller cannot know.
    fn close(&self) -> BoxFuture<'_, ()> {
        let mut state = self.lock();
        state.is_closed = true;
        for Withheld { answer, .. } in state.withheld.take().unwrap_or_default() {
            answer.send(Err(AppendError::Unknown(CLOSED.to_owned()))).ok();
        }
        self.let_go();
        ready(()).boxed()
    }

    fn append(&self, batch: Batch) -> BoxFuture<'_, Answer> {
        let mut state = self.lock();
        if state.bell.is_none() {
            return pending().boxed();
        }
        if state.is_closed {
            return ready(Err(Closed.into())).boxed();
        }
        match self.commit(&mut state, batch) {
            Some(answer) => self.later(&mut state, answer),
            None => pending().boxed(),
        }
    }

    fn head(&self) -> BoxFuture<'_, Result<Option<Head>, StoreError>> {
        let head = self.disk.lock().head();
        self.answer(|state| match state.failure {
            Some(cause) => Err(StoreError::Io {
                place: PLACE.to_owned(),
                why: format!("a commit failed ({cause}); the next opening shows its outcome"),
            }),
            None => Ok(head),
        })
    }

    fn get(&self, space: Space, key: Vec<u8>) -> BoxFuture<'_, Result<Option<Vec<u8>>, StoreError>> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.answer(|state| {
            state.read(&space)?;
            Ok(state.world.get(&space).and_then(|rows| rows.get(&key)).cloned())
        })
    }

    fn scan(&self, scan: Scan) -> BoxFuture<'_, Result<Entries, StoreError>> {
        self.answer(|state| {
            state.read(&scan.space)?;
            let Some(rows) = state.world.get(&scan.space) else {
                return Ok(Entries::new());
            };
            let before = |key: &Vec<u8>| scan.to.as_ref().is_none_or(|to| key < to);
            let entries: Entries = rows
                .range(scan.from.clone()..)
                .take_while(|(key, _)| before(key))
                .take(scan.limit)
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect();
            self.reads.fetch_add(entries.len() as u64, Ordering::Relaxed);
            Ok(entries)
        })
    }

    fn recent_writes(&self, scan: &Scan) -> Option<RecentWrites> {
        let mut state = self.state.try_lock().ok()?;
        if state.bell.is_none() || state.is_closed {
            return None;
        }
        let State { world, recent, .. } = &mut *state;
        recent.writes(world, scan)
    }

    fn user_spaces(&self) -> BoxFuture<'_, Result<Vec<Key>, StoreError>> {
        self.answer(|state| {
            let names = state.world.keys().filter_map(|space| {
                let Space::User(name) = space else { return None };
                Some(name.clone())
            });
            Ok(names.collect())
        })
    }

    fn bounds(&self) -> StoreBounds {
        BOUNDS
    }

    fn size_bytes(&self) -> Option<u64> {
        Some(self.disk.len() as u64)
    }

    fn disk_room(&self) -> Option<DiskRoom> {
        self.lock().room
    }

    fn sync_times(&self) -> Option<SyncTimes> {
        self.lock().sync_times
    }

    fn reads_block(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests;
