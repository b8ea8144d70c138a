//! Errors, one enum per moment: start, submit, ask. Each says what to do now.

use std::time::Duration;

use procession_kernel::{Epoch, Key, Kind, LockNeed, ProcedureId, ProcedureState, Seq};

/// A value that cannot be encoded, or bytes that are not of the type asked for.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{what}: {why}")]
pub struct CodecError {
    pub(crate) what: &'static str,
    pub(crate) why: String,
}

/// A store that cannot be opened or read.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Another engine has it.
    #[error(
        "the journal in {place} is in use by another engine{holder}; stop that one first, or use another directory"
    )]
    Held {
        /// Where the store is.
        place: String,
        /// Who holds it, as far as the system tells; empty, or begins with a space.
        holder: String,
    },
    /// It is being read, and an engine needs it alone.
    #[error("the journal in {place} is being read{reader}; start again when that is done")]
    BeingRead {
        /// Where the store is.
        place: String,
        /// Who reads it, as far as the system tells; empty, or begins with a space.
        reader: String,
    },
    /// The engine that had it has ended, and has given it back.
    #[error("the journal in {place} was closed: its engine has stopped; start one to read it")]
    Closed {
        /// Where the store is.
        place: String,
    },
    /// Data that was committed cannot be read.
    #[error("the journal in {place} is damaged: {why}; restore it from a copy, or remove the directory to begin anew")]
    Damaged {
        /// Where the store is.
        place: String,
        /// What is wrong.
        why: String,
    },
    /// It was written by a newer release.
    #[error(
        "the journal in {place} has format {found}, and this release reads up to {known}; use the release that wrote it"
    )]
    Newer {
        /// Where the store is.
        place: String,
        /// The format found.
        found: u32,
        /// The newest format known.
        known: u32,
    },
    /// The system refused.
    #[error("the journal in {place} cannot be used: {why}")]
    Io {
        /// Where the store is.
        place: String,
        /// What the system said.
        why: String,
    },
}

impl StoreError {
    /// Tells whether the same read may succeed later: nothing that is stored is known to be wrong.
    pub(crate) const fn may_pass(&self) -> bool {
        match self {
            Self::Io { .. } | Self::Held { .. } | Self::BeingRead { .. } | Self::Closed { .. } => true,
            Self::Damaged { .. } | Self::Newer { .. } => false,
        }
    }
}

/// User data or an engine value that cannot be read.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The store did not give it.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// It is not of the type asked for.
    #[error(transparent)]
    Codec(#[from] CodecError),
    /// It is more than may be read at once.
    #[error("{what} has more than {limit} bytes, the limit; read it offline, with a higher limit")]
    TooLarge {
        /// What was to be read.
        what: String,
        /// Limit in bytes.
        limit: usize,
    },
}

/// An engine that cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The store cannot be opened or read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Two registrations have one name.
    #[error("two registrations have the kind \"{kind}\"; give one of them another KIND")]
    KindTwice {
        /// The name.
        kind: Kind,
    },
    /// Under `strict`, live procedures whose code is missing.
    #[error("live procedures have no code in this process: {}; register their kinds, or start without strict", .families.join(", "))]
    NoCode {
        /// Each family with its reason.
        families: Vec<String>,
    },
    /// The start's own commit failed.
    #[error("the engine could not write to its journal: {0}; see to the disk, then start again")]
    Journal(String),
    /// Another engine took the journal while this one started.
    #[error("the journal has moved to another engine, with epoch {newer}; leave it to that one, or stop it first")]
    Moved {
        /// The epoch of its owner now.
        newer: Epoch,
    },
    /// A thread could not be started, or ended at once.
    #[error("the engine could not start a thread: {0}")]
    Thread(String),
}

/// A family that was not imported; nothing of it is stored, unless it says otherwise.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The journal cannot be opened or read.
    #[error(transparent)]
    Start(#[from] StartError),
    /// Something in the journal cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The export is not such as an engine gives, or not whole.
    #[error("the export of family {family} cannot be imported: {why}")]
    Unusable {
        /// The family's number.
        family: u64,
        /// What is wrong with it, and what to do.
        why: String,
    },
    /// The journal has a family of this number.
    #[error(
        "this journal has a family {family} already ({how}), and a family keeps its number: look at that one, \
         or import this one into another journal"
    )]
    Present {
        /// The family's number.
        family: u64,
        /// How the one that is there stands.
        how: String,
    },
    /// Its idempotency key stands for another procedure.
    #[error(
        "the idempotency key \"{key}\" of the family stands for {id} in this journal; import it when that has gone, or into another journal"
    )]
    KeyTaken {
        /// The key.
        key: Key,
        /// What it stands for.
        id: ProcedureId,
    },
    /// A lock that it holds is held in the journal, and the two exclude each other.
    #[error(
        "{id} holds the lock \"{lock}\", and {holder} holds \"{held}\" in this journal; let {holder} come to its end, or \
         import the family into another journal"
    )]
    Locked {
        /// Who of the family holds it.
        id: ProcedureId,
        /// The lock.
        lock: LockNeed,
        /// Who holds one that excludes it.
        holder: ProcedureId,
        /// Which.
        held: LockNeed,
    },
    /// Who or why is too long for the audit.
    #[error("{size} bytes of who, why or key are over the limit of {limit}; say it in fewer words")]
    TooLong {
        /// Size in bytes.
        size: usize,
        /// Limit in bytes.
        limit: usize,
    },
    /// The commit was not acknowledged.
    #[error("the import was not acknowledged: {0}; see to the disk, and look whether the family is there")]
    Journal(String),
}

/// What keeps an engine from taking more submissions for now; each with its bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SubmitBound {
    /// Requests that wait for their commit.
    #[error("{0} requests wait for their commit, as many as may (`max_queued`)")]
    Queued(usize),
    /// Families that are awake: neither ended nor waiting for a time or an event alone.
    #[error("{0} procedures are awake, as many as submissions may bring the engine to (`max_awake`)")]
    Awake(usize),
}

/// A submission that was not accepted; nothing of it is stored.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum SubmitError {
    /// The engine has as much as it admits.
    #[error("{bound}; submit again in {} ms", .retry_after.as_millis())]
    Busy {
        /// What it has as much of.
        bound: SubmitBound,
        /// When to try again.
        retry_after: Duration,
    },
    /// The kind is not registered.
    #[error("no procedure of kind \"{kind}\" is registered; register it with the builder")]
    UnknownKind {
        /// The kind.
        kind: Kind,
    },
    /// Its own check says that it cannot run in this process.
    #[error("the procedure cannot run here: {why}; correct it, or register what it needs")]
    Unfit {
        /// What it says.
        why: String,
    },
    /// The key stands for another submission.
    #[error("the key \"{key}\" was used with another payload for {id}; use a new key, or the same payload")]
    KeyConflict {
        /// The key.
        key: String,
        /// What it stands for.
        id: ProcedureId,
    },
    /// Two submissions of one batch have one key, and are not the same.
    #[error(
        "submissions {first} and {second} of the batch, counted from 0, have the key \"{key}\" and are not the same; give one of them another key"
    )]
    BatchConflict {
        /// The key.
        key: String,
        /// Place of the one in the batch.
        first: usize,
        /// Place of the other.
        second: usize,
    },
    /// The key cannot be stored.
    #[error("an idempotency key has 1 to {limit} bytes, and this one has {size}; use a digest of it")]
    BadKey {
        /// Size in bytes.
        size: usize,
        /// Limit in bytes.
        limit: usize,
    },
    /// The value is too large.
    #[error(
        "the payload of {size} bytes is over the limit of {limit}; store it elsewhere and submit its name, or raise the limit"
    )]
    TooLarge {
        /// Size in bytes.
        size: usize,
        /// Limit in bytes.
        limit: usize,
    },
    /// A batch has too many submissions.
    #[error("the batch of {size} submissions is over the limit of {limit}; split it")]
    BatchTooLarge {
        /// Submissions in the batch.
        size: usize,
        /// Limit.
        limit: usize,
    },
    /// The engine is draining.
    #[error("the engine is draining; submit to its successor")]
    Draining,
    /// The journal has no numbers left for new families. Only damage to a stored number brings this about.
    #[error("the journal has no numbers left for new families; export what is live, and import it into a new one")]
    NumbersExhausted,
    /// The value cannot be encoded.
    #[error(transparent)]
    Codec(#[from] CodecError),
    /// The journal failed; whether this submission is stored is not known.
    #[error("the journal failed: {0}; restart the engine, and repeat with the same key")]
    JournalFailed(String),
    /// Another engine has taken the journal. Nothing has failed: what this one acknowledged is in the journal, and
    /// goes on there. Whether this submission is stored is not known.
    #[error("the journal has moved to another engine, with epoch {newer}; repeat there, with the same key")]
    Moved {
        /// The epoch of its owner now.
        newer: Epoch,
    },
    /// The engine has stopped.
    #[error("the engine has stopped; start it again, and repeat with the same key")]
    Stopped,
}

/// A question or request about a procedure that was not answered.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum AskError {
    /// No such procedure.
    #[error("no procedure {0} is known: the id is wrong, or its result has gone")]
    Unknown(ProcedureId),
    /// It has ended.
    #[error("procedure {id} has ended with revision {revision}; ask for its outcome")]
    Finished {
        /// Which.
        id: ProcedureId,
        /// The revision that it has: no stage of it changes that any more.
        revision: Seq,
    },
    /// What was sent is too large.
    #[error("{size} bytes are over the limit of {limit}")]
    TooLarge {
        /// Size in bytes.
        size: usize,
        /// Limit in bytes.
        limit: usize,
    },
    /// The sender's key stands for another signal: another name, or another payload.
    #[error(
        "the key \"{key}\" was used for another signal, number {number} to {id}; use a new key, or send the same signal"
    )]
    SignalConflict {
        /// The key.
        key: String,
        /// To whom the other was sent.
        id: ProcedureId,
        /// The number of the other.
        number: u32,
    },
    /// The key of a signal, a broadcast or a request cannot be stored.
    #[error("a key has 1 to {limit} bytes, and this one has {size}; give one, or leave it out")]
    BadKey {
        /// Size in bytes.
        size: usize,
        /// Limit in bytes.
        limit: usize,
    },
    /// It is not in a state in which this makes sense.
    #[error("{0}")]
    NotNow(String),
    /// It has changed since whoever asks looked at it.
    #[error("the procedure has revision {found} by now, not {expected}, and is in the state {state}; look at it again")]
    Revised {
        /// The revision that was expected.
        expected: Seq,
        /// The revision that it has.
        found: Seq,
        /// The state that it has.
        state: ProcedureState,
    },
    /// More requests wait than the engine admits.
    #[error("too many requests wait; ask again in {} ms", .retry_after.as_millis())]
    Busy {
        /// When to try again.
        retry_after: Duration,
    },
    /// It did not happen in the time given.
    #[error("not yet")]
    NotYet,
    /// The store cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The journal failed.
    #[error("the journal failed: {0}; restart the engine")]
    JournalFailed(String),
    /// Another engine has taken the journal. Nothing has failed: what this one acknowledged is in the journal, and
    /// goes on there.
    #[error("the journal has moved to another engine, with epoch {newer}; ask that one")]
    Moved {
        /// The epoch of its owner now.
        newer: Epoch,
    },
    /// The engine has stopped.
    #[error("the engine has stopped; start it again")]
    Stopped,
}

impl From<StoreError> for AskError {
    fn from(error: StoreError) -> Self {
        Self::Read(error.into())
    }
}

impl From<CodecError> for AskError {
    fn from(error: CodecError) -> Self {
        Self::Read(error.into())
    }
}
