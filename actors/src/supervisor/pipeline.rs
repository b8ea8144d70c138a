//! The pipeline wing: from a decision to the receipt. It owns the commits on their way, the journal that takes them,
//! and the feeds of committed changes.
//!
//! Effects, reads and feeds wait here with their commit. They leave only when the journal has proved it: [`proved`]
//! returns them, and there is no other way out. It encodes records and never looks into what they mean.
//!
//! [`proved`]: Pipeline::proved

mod changes;
mod commits;
pub(crate) mod in_place;
mod latest;
mod linger;

use std::sync::Arc;
use std::time::Duration;

use actix::{MailboxError, Recipient};
use procession_kernel::{Commit, Decision, Epoch, Kernel, Receipt, Record, Seq, Timestamp};
use tokio::sync::oneshot;

use super::metrics::observations::Observation;
use crate::clock::Clock;
use crate::error::CodecError;
use crate::journal::encode::{self, LastLook, META_STORE};
use crate::journal::{Append, Appended, Batch, Journal, Release, Space};
use crate::queues::CountedAddr;
use crate::view::{Change, ChangeFeed, LatestFeed};
use changes::{Changes, Pending};
pub(super) use commits::AwaitingReceipt;
use commits::{Commits, Ready};
use in_place::InPlace;
use latest::LatestSubscribers;
use linger::Linger;

/// Subscribers to changes and to the latest rows at once: each subscriber costs a send per commit.
pub(super) const SUBSCRIBERS: usize = 64;

/// Fewer actors than this let a batch gather.
const GATHERING_ACTORS: usize = 8;
/// How long a batch is held back at most.
pub(super) const GATHERING_TIME: Duration = Duration::from_millis(2);

/// The journal's thread has ended, so nothing more can be appended.
pub(super) struct JournalGone;

/// How a pipeline is set up.
pub(super) struct PipelineSettings {
    pub(super) epoch: Epoch,
    /// Decisions of one batch, at most.
    pub(super) merge: usize,
    /// Batches under way, at most.
    pub(super) in_flight: usize,
    /// The store's own number, and whether it was drawn by this start.
    pub(super) store: (u64, bool),
}

/// The pipeline wing.
pub(super) struct Pipeline {
    epoch: Epoch,
    store_number: u64,
    /// The store's number is not in the store yet.
    is_number_new: bool,
    commits: Commits,
    linger: Linger,
    journal: CountedAddr<Journal>,
    in_place: InPlace,
    changes: Changes,
    latest: LatestSubscribers,
}

/// Whether the open batch is held back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gathering {
    /// It goes as soon as it may.
    No,
    /// It is held back from now on, for [`GATHERING_TIME`] at most: the caller then [ends](Pipeline::end_hold) the hold of
    /// this number.
    Begun(u64),
    /// It was held back before, and still is.
    GoesOn,
}

impl Pipeline {
    pub(super) fn new(settings: &PipelineSettings, journal: CountedAddr<Journal>, in_place: InPlace) -> Self {
        Self {
            epoch: settings.epoch,
            store_number: settings.store.0,
            is_number_new: settings.store.1,
            commits: Commits::new(settings.epoch, settings.merge, settings.in_flight),
            linger: Linger::default(),
            journal,
            in_place,
            changes: Changes::default(),
            latest: LatestSubscribers::default(),
        }
    }

    /// Returns the newest commit on disk.
    pub(super) const fn durable(&self) -> Seq {
        self.commits.durable()
    }

    // From a decision to a batch.

    /// Begins to record a decision as this commit. Also returns where the decision's observations go: they are counted
    /// with its receipt. Once every record was taken, the caller ends the recording and folds the decision into
    /// [`Self::open_commit`].
    pub(super) fn begin(&mut self, decision: &Decision, seq: Seq) -> (Recording<'_>, &mut Vec<Observation>) {
        let Ready { batch, waiting, .. } = self.commits.open();
        let AwaitingReceipt {
            changes, observations, ..
        } = waiting;
        encode::make_room(batch, decision.records().len(), decision.value_bytes());
        let recording = Recording {
            seq,
            batch,
            change: self.changes.begin(self.epoch, seq),
            changes,
            latest: &mut self.latest,
            new_number: std::mem::take(&mut self.is_number_new).then_some(self.store_number),
            encoded: Ok(()),
        };
        (recording, observations)
    }

    /// Returns the commit that the recorded decision belongs to.
    pub(super) const fn open_commit(&mut self) -> &mut Commit {
        self.commits.open_commit()
    }

    /// Notes whether a stage runs already that rests on the decision that was taken in last.
    pub(super) const fn overtaken(&mut self, is_overtaken: bool) {
        self.commits.overtaken(is_overtaken);
    }

    /// Holds effects that left no record until everything decided is on disk. If it is, returns them with the receipt
    /// that releases them.
    pub(super) fn hold(&mut self, commit: Commit) -> Option<(Commit, Receipt)> {
        let commit = self.commits.hold(commit)?;
        Some((commit, Receipt::new(self.epoch, self.commits.durable())))
    }

    /// Registers a read that must see everything decided; `None` if everything is on disk and the read may go at once.
    pub(super) fn barrier(&mut self) -> Option<oneshot::Receiver<()>> {
        self.commits.barrier()
    }

    /// Returns where to add what is counted with the newest decision; `None` if everything is on disk.
    pub(super) fn last_observations(&mut self) -> Option<&mut Vec<Observation>> {
        self.commits.last_observations()
    }

    // From a batch to the journal.

    /// Holds the open batch back for the decisions that are to follow soon, if nobody waits for it, or only a submitter whose
    /// answer may linger. With more actors somebody always waits, and batches are large anyway.
    pub(super) fn gather(&mut self, actors: usize, clock: &dyn Clock) -> Gathering {
        if actors >= GATHERING_ACTORS || !self.commits.may_gather() {
            return Gathering::No;
        }
        let may_wait = match self.commits.awaited() {
            None => true,
            Some(newest) if self.commits.is_gathered() => self.linger.is_for(newest),
            // While the journal is busy the batch waits anyway, and others join it.
            Some(_) if !self.commits.is_idle() => false,
            Some(submission) => self.linger.begin(submission, clock.now()),
        };
        if !may_wait {
            return Gathering::No;
        }
        self.commits.gather().map_or(Gathering::GoesOn, Gathering::Begun)
    }

    /// Returns `true` if the open batch was held back.
    pub(super) fn is_gathered(&self) -> bool {
        self.commits.is_gathered()
    }

    /// Ends a hold: from now on its batch goes as soon as it may. Returns `true` if it has not gone yet.
    pub(super) fn end_hold(&mut self, number: u64) -> bool {
        self.commits.end_hold(number)
    }

    /// Returns `true` if the open batch may be committed on the supervisor's own thread. The supervisor serves nobody
    /// else meanwhile, so at most one procedure may have an actor (docs/decisions/0017).
    pub(super) fn may_commit_here(&mut self, actors: usize) -> bool {
        self.in_place.is_ready() && self.is_alone(actors)
    }

    /// Begins a turn at whose end the open decision can be committed here.
    pub(super) const fn begin_turn(&mut self) {
        self.in_place.begin_turn();
    }

    /// Leaves the open decision to the end of the turn, and returns `true` if that looks for one.
    pub(super) const fn leave_to_turn(&mut self) -> bool {
        self.in_place.ask_turn()
    }

    /// Ends the turn, and returns `true` if a decision was left to its end.
    pub(super) fn end_turn(&mut self) -> bool {
        self.in_place.end_turn()
    }

    fn is_alone(&self, actors: usize) -> bool {
        self.commits.is_single() && actors <= 1
    }

    /// Hands every batch that may go now to the journal's thread. Each batch is first shown to `append`.
    pub(super) fn flush(&mut self, clock: &dyn Clock, mut append: impl FnMut(&Batch)) -> Result<(), JournalGone> {
        while let Some(batch) = self.next_batch(clock, &mut append) {
            if self.journal.try_send(Append(batch)).is_err() {
                return Err(JournalGone);
            }
        }
        Ok(())
    }

    /// Commits the open decision on this thread, if it is still the only one and the store is open; otherwise flushes.
    /// Returns the store's result if the commit was made here.
    pub(super) fn commit_here(
        &mut self,
        actors: usize,
        clock: &dyn Clock,
        mut append: impl FnMut(&Batch),
    ) -> Result<Option<Appended>, JournalGone> {
        let alone = self.is_alone(actors);
        let Some(store) = self.in_place.store().filter(|_| alone) else {
            return self.flush(clock, append).map(|()| None);
        };
        let batch = self.next_batch(clock, &mut append);
        Ok(batch.map(|batch| Appended(self.in_place.append(&*store, batch))))
    }

    /// Gives the store time for what the commit here left to be done. Nobody waits for it.
    pub(super) fn settle(&self) {
        self.in_place.settle();
    }

    fn next_batch(&mut self, clock: &dyn Clock, append: &mut impl FnMut(&Batch)) -> Option<Batch> {
        let batch = self.commits.next_batch()?;
        append(&batch);
        let now = clock.now();
        self.commits.appended(now);
        self.linger.ended(now);
        Some(batch)
    }

    // From the receipt to what waited for it.

    /// Takes everything that waited for the oldest batch under way, which this receipt proves.
    pub(super) fn proved(&mut self, receipt: &Receipt) -> Option<AwaitingReceipt> {
        self.commits.proved(receipt.seq())
    }

    /// Notes how long the newest batch took, from the journal's mailbox to the receipt.
    pub(super) const fn took(&mut self, time: Duration) {
        self.linger.synced(time);
    }

    /// Sends the feeds what was proved. Must run before any reply: commit, then publish, then reply.
    pub(super) fn publish(&mut self, proved: &AwaitingReceipt, kernel: &Kernel, durable: Seq) {
        self.changes.reached(durable);
        for change in &proved.changes {
            self.changes.publish(change);
        }
        self.latest.reached(kernel, durable);
    }

    /// Returns `true` if no batch is on its way to the journal.
    pub(super) fn is_idle(&self) -> bool {
        self.commits.is_idle()
    }

    /// Returns `true` if everything decided is on disk.
    pub(super) fn is_quiet(&mut self) -> bool {
        self.commits.is_quiet()
    }

    /// Returns `true` if decisions arrive faster than the journal takes them.
    pub(super) fn is_backed_up(&self) -> bool {
        self.commits.is_backed_up()
    }

    /// Returns since when the journal has had the oldest batch under way.
    pub(super) fn appending_since(&self) -> Option<Timestamp> {
        self.commits.oldest_under_way()
    }

    // Feeds.

    /// Returns `true` if there is room for another subscriber. Those that are gone take none.
    pub(super) fn takes_subscribers(&mut self) -> bool {
        self.changes.drop_gone();
        self.latest.drop_gone();
        self.changes.len() + self.latest.len() < SUBSCRIBERS
    }

    /// Adds a subscriber to all changes after this commit.
    pub(super) fn subscribe(&mut self, to: Recipient<ChangeFeed>, from: Seq) {
        self.changes.subscribe(to, from, self.commits.durable());
    }

    /// Adds a subscriber to the latest rows.
    pub(super) fn subscribe_latest(&mut self, to: Recipient<LatestFeed>, kernel: &Kernel) {
        self.latest.add(to, kernel, self.commits.durable());
    }

    /// Sends a subscriber everything that has changed since its last request, once that is on disk.
    pub(super) fn poll_latest(&mut self, subscriber: &Recipient<LatestFeed>, kernel: &Kernel) {
        self.latest.asked(subscriber, kernel, self.commits.durable());
    }

    // The end.

    /// Drops everything that waits: none of it will ever be proved.
    pub(super) fn clear(&mut self) {
        self.commits.clear();
    }

    /// Makes the journal give the store back.
    pub(super) fn release(&self) -> impl Future<Output = Result<(), MailboxError>> + use<> {
        let (journal, epoch) = (self.journal.clone(), self.epoch);
        async move { journal.send(Release(epoch)).await.map(|_| ()) }
    }
}

/// A decision that is being encoded into the open batch and noted for the feeds.
#[must_use = "a recording that is not ended leaves its batch without a number"]
pub(super) struct Recording<'a> {
    seq: Seq,
    batch: &'a mut Batch,
    change: Option<Change>,
    changes: &'a mut Vec<Pending>,
    latest: &'a mut LatestSubscribers,
    /// The store's own number, which is written with the first commit in the store's life.
    new_number: Option<u64>,
    encoded: Result<(), CodecError>,
}

impl Recording<'_> {
    /// Takes the next record of the decision.
    pub(super) fn take(&mut self, record: &Record) {
        if !record.is_durable() {
            return;
        }
        // The result is not stored for each record: it is large and was only just written, so copying it waits for all
        // that the encoder wrote before, which took 0.15 us per stage.
        if self.encoded.is_ok()
            && let Err(error) = encode::write(self.batch, record)
        {
            self.encoded = Err(error);
        }
        if let Some(change) = &mut self.change {
            Changes::describe(change, record);
        }
        self.latest.note(record);
    }

    /// Ends the decision, together with a reading of the clocks. Fails if something could not be encoded. The engine
    /// cannot continue then, because the kernel would be ahead of the disk for good.
    pub(super) fn end(self, look: Option<LastLook>) -> Result<(), CodecError> {
        let encoded = self
            .encoded
            .and_then(|()| look.map_or(Ok(()), |look| encode::write_look(self.batch, &look)));
        self.batch.advance_to(self.seq);
        if let Some(number) = self.new_number {
            self.batch.put(Space::Meta, META_STORE, &number.to_be_bytes());
        }
        self.changes.extend(self.change.map(Arc::new));
        encoded
    }
}
