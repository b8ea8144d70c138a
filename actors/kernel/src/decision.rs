//! Decide, then commit, then act, as types.
//!
//! A [`Decision`] exposes its records, and hides its effects. [`Commit`] merges decisions. Their effects are released only
//! against the [`Receipt`] that proves the commit to be on disk. What the limiter is told, and calls of pure stages, leave
//! with the [fold](crate::Kernel::fold): they reach memory of this process alone.
//!
//! ```compile_fail,E0616
//! # use procession_kernel::Decision;
//! fn act_early(decision: Decision) {
//!     for effect in decision.effects {
//!         // A private field: effects leave only through `Commit::release`.
//!     }
//! }
//! ```
//!
//! ```compile_fail,E0624
//! # use procession_kernel::Decision;
//! fn act_early(decision: Decision) {
//!     let (_, _, effects) = decision.into_parts();
//! }
//! ```
//!
//! ```compile_fail,E0599
//! # use procession_kernel::Decision;
//! fn look_early(decision: &Decision) {
//!     for effect in decision.planned() {
//!         // No method shows effects before the receipt, not even to read them.
//!     }
//! }
//! ```
//!
//! ```compile_fail,E0616
//! # use procession_kernel::Decision;
//! fn overtake(decision: Decision) {
//!     for effect in decision.immediate.admission {
//!         // A private field: the limiter is told, and stages are called, by what folds the decision, so that no other
//!         // decision overtakes it.
//!     }
//! }
//! ```
//!
//! ```compile_fail,E0423
//! # use procession_kernel::{SpeculativeCall, StageCall};
//! fn hurry(call: Box<StageCall>) -> SpeculativeCall {
//!     // A private field: only the kernel says that a call may leave early.
//!     SpeculativeCall(call)
//! }
//! ```
//!
//! ```compile_fail,E0599
//! # use procession_kernel::{AdmissionEffect, Effect};
//! fn mix(told: AdmissionEffect) -> Effect {
//!     // Nothing turns what leaves before the receipt into what waits for it, or back.
//!     Effect::Admission(told)
//! }
//! ```

use crate::effect::{DispatchEffect, Effect, Immediate, SpeculativeCall};
use crate::id::{Epoch, Seq, Timestamp};
use crate::record::Record;

/// The consequences of one event: facts to be stored, what is done at once, and actions that wait for the facts.
#[derive(Debug, Default)]
#[must_use = "a decision that is dropped loses its records"]
pub struct Decision {
    made: Timestamp,
    records: Vec<Record>,
    value_bytes: usize,
    immediate: Immediate,
    effects: Vec<Effect>,
}

impl Decision {
    pub(crate) fn new(
        made: Timestamp,
        records: Vec<Record>,
        value_bytes: usize,
        immediate: Immediate,
        effects: Vec<Effect>,
    ) -> Self {
        Self {
            made,
            records,
            value_bytes,
            immediate,
            effects,
        }
    }

    /// Returns when the decision was made, so that callers need not read the clock again for it.
    #[must_use]
    pub const fn made(&self) -> Timestamp {
        self.made
    }

    /// Returns the records, in the order in which they must be applied.
    #[must_use]
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// Returns the total size of the values and outputs among the records, so that callers can reserve space without
    /// visiting each record.
    #[must_use]
    pub const fn value_bytes(&self) -> usize {
        self.value_bytes
    }

    /// Returns the records that must go to disk, in order.
    pub fn durable(&self) -> impl Iterator<Item = &Record> {
        self.records.iter().filter(|record| record.is_durable())
    }

    /// Returns `true` if any record goes to disk. Only then is the decision a commit.
    #[must_use]
    pub fn is_commit(&self) -> bool {
        self.records.iter().any(Record::is_durable)
    }

    pub(crate) fn into_parts(self) -> (Vec<Record>, Immediate, Vec<Effect>) {
        (self.records, self.immediate, self.effects)
    }
}

/// Proof that every commit of an epoch up to a number is on stable storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receipt {
    epoch: Epoch,
    seq: Seq,
}

impl Receipt {
    /// Creates a receipt. Only a store may do this, and only after its sync.
    #[must_use]
    pub const fn new(epoch: Epoch, seq: Seq) -> Self {
        Self { epoch, seq }
    }

    /// Returns the epoch of the owner that committed.
    #[must_use]
    pub const fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Returns the newest commit that the receipt proves.
    #[must_use]
    pub const fn seq(&self) -> Seq {
        self.seq
    }
}

/// Largest number of effects for which a new commit reserves space. Beyond that, growth is cheap per effect.
const ROOM: usize = 4_096;

/// Effects of merged decisions, held until everything up to `seq` is on disk.
#[derive(Debug, Default)]
pub struct Commit {
    seq: Seq,
    decisions: usize,
    effects: Vec<Effect>,
}

impl Commit {
    /// Creates an empty commit.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates an empty commit with capacity for about as many effects as `other`. Growing from nothing would copy
    /// each effect several times.
    #[must_use]
    pub fn like(other: &Self) -> Self {
        Self {
            effects: Vec::with_capacity(other.effects.len().min(ROOM)),
            ..Self::default()
        }
    }

    /// Adds the effects of an applied decision. `seq` is the newest commit that they depend on.
    pub(crate) fn hold(&mut self, seq: Seq, is_commit: bool, effects: &mut Vec<Effect>) {
        self.seq = self.seq.max(seq);
        self.decisions += usize::from(is_commit);
        if self.effects.is_empty() && self.effects.capacity() < effects.len() {
            std::mem::swap(&mut self.effects, effects);
        } else {
            self.effects.append(effects);
        }
    }

    /// Adds a call that is not to leave early after all. It waits for the receipt with the effects of its decision; the
    /// caller has just folded that decision into this commit.
    pub fn defer(&mut self, call: SpeculativeCall) {
        self.effects.push(DispatchEffect::Call(call.into_call()).into());
    }

    /// Adds the effects of another commit behind those of this one. They are released in this order.
    pub fn append(&mut self, later: Self) {
        self.seq = self.seq.max(later.seq);
        self.decisions += later.decisions;
        self.effects.extend(later.effects);
    }

    /// Returns the newest commit that the effects depend on.
    #[must_use]
    pub const fn seq(&self) -> Seq {
        self.seq
    }

    /// Returns the number of merged decisions that go to disk.
    #[must_use]
    pub const fn decisions(&self) -> usize {
        self.decisions
    }

    /// Returns `true` if anything waits for the receipt: a caller, or a call of user code.
    #[must_use]
    pub fn is_awaited(&self) -> bool {
        self.effects.iter().any(Effect::is_awaited)
    }

    /// Returns `true` if anything waits for the receipt that a following decision must not delay: anything but the answer to
    /// a submission, whose first stage may be over in less time than a sync takes.
    #[must_use]
    pub fn is_urgent(&self) -> bool {
        let is_urgent = |effect: &Effect| effect.is_awaited() && !effect.answers_submission();
        self.effects.iter().any(is_urgent)
    }

    /// Returns `true` if the effects answer nobody: what leaves is calls of user code.
    #[must_use]
    pub fn answers_nobody(&self) -> bool {
        self.effects.iter().all(|effect| !matches!(effect, Effect::Requests(_)))
    }

    /// Returns `true` if there is nothing to write and nothing to release.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.decisions == 0 && self.effects.is_empty()
    }

    /// Releases the effects.
    ///
    /// # Errors
    ///
    /// Returns the commit itself if the receipt does not prove it.
    pub fn release(self, receipt: &Receipt) -> Result<Vec<Effect>, Self> {
        if receipt.seq() >= self.seq {
            Ok(self.effects)
        } else {
            Err(self)
        }
    }
}
