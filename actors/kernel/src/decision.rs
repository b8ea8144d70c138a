//! Decide, then commit, then act, as types.
//!
//! A [`Decision`] shows its records and its bindings, and hides its effects. [`Commit`] merges
//! decisions; once its records are handed to the journal, the effects leave
//! only against the [`Receipt`] that proves the commit to be on disk.
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
//!     let (_, effects) = decision.into_parts();
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

use crate::effect::Effect;
use crate::id::{ClaimId, Epoch, ProcedureId, Seq};
use crate::record::Record;

/// What the shell must note of a decision at once, before its records are on disk.
///
/// A binding changes only how the shell reads the limiter's answers, which may arrive before the receipt.
/// It is lost with the process, as those answers are, so nothing outside can ever see one that was not committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binding {
    /// From now on this claim is this procedure's.
    Claim(ClaimId, ProcedureId),
    /// From now on this procedure waits for the answer to a new request. The request leaves with the receipt, as
    /// [`AdmissionEffect::Ask`](crate::AdmissionEffect::Ask); until it is answered, what an earlier request is granted
    /// may be for another stage.
    Request(ProcedureId),
}

/// What one event leads to: bindings that take effect at once, facts to be stored, and actions that wait for them.
#[derive(Debug, Default)]
#[must_use = "a decision that is dropped loses its records"]
pub struct Decision {
    bindings: Vec<Binding>,
    records: Vec<Record>,
    value_bytes: usize,
    effects: Vec<Effect>,
}

impl Decision {
    pub(crate) const fn new(
        bindings: Vec<Binding>,
        records: Vec<Record>,
        value_bytes: usize,
        effects: Vec<Effect>,
    ) -> Self {
        Self {
            bindings,
            records,
            value_bytes,
            effects,
        }
    }

    /// Returns what must be noted before anything else is decided or heard.
    #[must_use]
    pub fn bindings(&self) -> &[Binding] {
        &self.bindings
    }

    /// Returns the records, in the order in which they must be applied.
    #[must_use]
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// Returns how many bytes the values and outputs among the records have, so that room for them can be made without
    /// looking at each record.
    #[must_use]
    pub const fn value_bytes(&self) -> usize {
        self.value_bytes
    }

    /// Returns the records that must go to disk, in order.
    pub fn durable(&self) -> impl Iterator<Item = &Record> {
        self.records.iter().filter(|record| record.is_durable())
    }

    /// Returns `true` if anything goes to disk; only then is the decision a commit.
    #[must_use]
    pub fn is_commit(&self) -> bool {
        self.records.iter().any(Record::is_durable)
    }

    pub(crate) fn into_parts(self) -> (Vec<Record>, Vec<Effect>) {
        (self.records, self.effects)
    }
}

/// Proof that every commit of an epoch up to a number is on stable storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receipt {
    epoch: Epoch,
    seq: Seq,
}

impl Receipt {
    /// Makes a receipt. Only a store does so, and only after its sync.
    #[must_use]
    pub const fn new(epoch: Epoch, seq: Seq) -> Self {
        Self { epoch, seq }
    }

    /// Gives the epoch of the owner that committed.
    #[must_use]
    pub const fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Gives the newest commit that is proved.
    #[must_use]
    pub const fn seq(&self) -> Seq {
        self.seq
    }
}

/// Effects for which a commit has room from its start, at most: beyond that, growing it costs little for each.
const ROOM: usize = 4_096;

/// Effects of merged decisions that wait until everything up to `seq` is on disk.
#[derive(Debug, Default)]
pub struct Commit {
    seq: Seq,
    decisions: usize,
    effects: Vec<Effect>,
}

impl Commit {
    /// Starts an empty commit.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Starts an empty commit that will hold about as much as this one: growing it
    /// from nothing would copy each effect several times.
    #[must_use]
    pub fn like(other: &Self) -> Self {
        Self {
            effects: Vec::with_capacity(other.effects.len().min(ROOM)),
            ..Self::default()
        }
    }

    /// Takes the effects of a decision that was applied, and of which `seq` is
    /// the newest commit that it rests on.
    pub(crate) fn hold(&mut self, seq: Seq, is_commit: bool, effects: Vec<Effect>) {
        self.seq = self.seq.max(seq);
        self.decisions += usize::from(is_commit);
        if self.effects.is_empty() && self.effects.capacity() < effects.len() {
            self.effects = effects;
        } else {
            self.effects.extend(effects);
        }
    }

    /// Gives the newest commit that the effects rest on.
    #[must_use]
    pub const fn seq(&self) -> Seq {
        self.seq
    }

    /// Gives how many decisions that go to disk it merges.
    #[must_use]
    pub const fn decisions(&self) -> usize {
        self.decisions
    }

    /// Tells whether it holds nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.decisions == 0 && self.effects.is_empty()
    }

    /// Lets the effects go.
    ///
    /// # Errors
    ///
    /// The commit itself, if the receipt does not prove it.
    pub fn release(self, receipt: &Receipt) -> Result<Vec<Effect>, Self> {
        if receipt.seq() >= self.seq {
            Ok(self.effects)
        } else {
            Err(self)
        }
    }
}
