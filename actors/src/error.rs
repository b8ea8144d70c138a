//! Errors, one enum for each occasion: start, submission, request. Each says what to do now.

use std::path::Path;
use std::time::Duration;

use procession_kernel::{Epoch, Key, Kind, LabelError, LimitKey, LockNeed, NotNow, ProcedureId, ProcedureState, Seq};

/// A value that cannot be encoded, or bytes that are not of the requested type.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{what}: {why}")]
pub struct CodecError {
    pub(crate) what: &'static str,
    pub(crate) why: String,
}

impl CodecError {
    /// Says what could not be encoded or decoded, and why.
    #[doc(hidden)]
    #[must_use]
    pub fn new(what: &'static str, why: impl Into<String>) -> Self {
        Self { what, why: why.into() }
    }
}

/// A store that cannot be opened or read.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Another engine holds the store.
    #[error("the journal in {place} is in use by another engine{holder}; stop it first, or use another directory")]
    Held {
        /// Where the store is.
        place: String,
        /// The holder, as far as the system tells; empty, or begins with a space.
        holder: String,
    },
    /// The store is being read, and an engine needs it alone.
    #[error("the journal in {place} is being read{reader}; start again when that is done")]
    BeingRead {
        /// Where the store is.
        place: String,
        /// The reader, as far as the system tells; empty, or begins with a space.
        reader: String,
    },
    /// The engine that held the store has stopped and released it.
    #[error("the journal in {place} was closed: its engine has stopped; start one to read it")]
    Closed {
        /// Where the store is.
        place: String,
    },
    /// Committed data cannot be read.
    #[error(
        "the journal in {place} is damaged: {why}; restore it from a copy, or remove the directory to start afresh"
    )]
    Damaged {
        /// Where the store is.
        place: String,
        /// What is wrong.
        why: String,
    },
    /// The store was written by a newer release.
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
    /// The operating system reported an error.
    #[error("the journal in {place} cannot be used: {why}")]
    Io {
        /// Where the store is.
        place: String,
        /// What the system reported.
        why: String,
    },
}

impl StoreError {
    /// Returns `true` if the same read may succeed later, since the error does not show that stored data is wrong.
    pub(crate) const fn may_pass(&self) -> bool {
        match self {
            Self::Io { .. } | Self::Held { .. } | Self::BeingRead { .. } | Self::Closed { .. } => true,
            Self::Damaged { .. } | Self::Newer { .. } => false,
        }
    }

    /// Returns the error with the paths of the journal that was copied: the copy is gone when somebody reads this.
    pub(crate) fn of_original(self, copy: &Path, original: &Path) -> Self {
        let named = |text: &str| of_original(text, copy, original);
        match self {
            Self::Damaged { place, why } => Self::Damaged {
                place: named(&place),
                why: named(&why),
            },
            Self::Io { place, why } => Self::Io {
                place: named(&place),
                why: named(&why),
            },
            Self::Newer { place, found, known } => Self::Newer {
                place: named(&place),
                found,
                known,
            },
            Self::Held { place, holder } => Self::Held {
                place: named(&place),
                holder,
            },
            Self::BeingRead { place, reader } => Self::BeingRead {
                place: named(&place),
                reader,
            },
            Self::Closed { place } => Self::Closed { place: named(&place) },
        }
    }
}

/// Returns a text with the paths of an original in place of those of its copy.
pub(crate) fn of_original(text: &str, copy: &Path, original: &Path) -> String {
    text.replace(&copy.display().to_string(), &original.display().to_string())
}

/// User data or an engine value that cannot be read.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The store could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The data is not of the requested type.
    #[error(transparent)]
    Codec(#[from] CodecError),
    /// The data is larger than one read may return.
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
    /// There is no actix system on this thread, whose arbiters an engine needs.
    #[error(
        "no actix system runs on this thread; start the engine within actix_rt::System::new().block_on(..) or under #[actix_rt::main], on a thread of its own beside another runtime"
    )]
    NoSystem,
    /// Two registrations have the same name.
    #[error(
        "two registrations have the kind \"{kind}\"; give one of them another KIND, or register it as another kind"
    )]
    KindTwice {
        /// The name.
        kind: Kind,
    },
    /// The name of a registered kind cannot be stored.
    #[error("the name of a kind must have 1 to {limit} bytes, but a registered one has {size}; register it as another")]
    BadKind {
        /// Size in bytes.
        size: usize,
        /// Limit in bytes.
        limit: usize,
    },
    /// A limit allows what no limiter can keep.
    #[error("the limit \"{key}\" cannot be kept: {why}")]
    BadLimit {
        /// The name.
        key: LimitKey,
        /// The reason, and what to set instead.
        why: String,
    },
    /// Too many kinds are registered.
    #[error(
        "{kinds} kinds are registered, the engine's own among them, and the limit is {limit}; put what tells them apart into values or limits"
    )]
    TooManyKinds {
        /// Registered kinds.
        kinds: usize,
        /// Limit.
        limit: usize,
    },
    /// Under `strict`, live procedures whose code is missing.
    #[error("live procedures have no code in this process: {}; register their kinds, or start without strict", .families.join(", "))]
    NoCode {
        /// Each family with its reason.
        families: Vec<String>,
    },
    /// The start's own commit failed.
    #[error("the engine could not write to its journal: {0}; check the disk, then start again")]
    Journal(String),
    /// Another engine took the journal while this one started.
    #[error(
        "the journal has moved to another engine, with epoch {newer}; leave it to that engine, or stop that engine first"
    )]
    Moved {
        /// The epoch of its owner now.
        newer: Epoch,
    },
    /// A thread could not be started, or ended at once.
    #[error("the engine could not start a thread: {0}")]
    Thread(String),
}

/// An import that failed. Nothing of the family is stored, unless the error says otherwise.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The journal cannot be opened or read.
    #[error(transparent)]
    Start(#[from] StartError),
    /// Something in the journal cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The export is incomplete, or not of the form that an engine writes.
    #[error("the export of family {family} cannot be imported: {why}")]
    Unusable {
        /// The family's number.
        family: u64,
        /// What is wrong with it, and what to do.
        why: String,
    },
    /// The journal already has a family of this number.
    #[error(
        "this journal already has a family {family} ({how}), and a family keeps its number: inspect that family, \
         or import yours into another journal"
    )]
    Present {
        /// The family's number.
        family: u64,
        /// The state of the existing family.
        how: String,
    },
    /// The family's idempotency key stands for another procedure.
    #[error(
        "the idempotency key \"{key}\" of the family stands for {id} in this journal; import it once that procedure is evicted, or into another journal"
    )]
    KeyTaken {
        /// The key.
        key: Key,
        /// The procedure for which the key stands.
        id: ProcedureId,
    },
    /// A lock of the family conflicts with a lock that is held in the journal.
    #[error(
        "{id} holds the lock \"{lock}\", and {holder} holds \"{held}\" in this journal; wait until {holder} has ended, \
         or import the family into another journal"
    )]
    Locked {
        /// The family's member that holds the lock.
        id: ProcedureId,
        /// The lock.
        lock: LockNeed,
        /// The procedure that holds the conflicting lock.
        holder: ProcedureId,
        /// The conflicting lock.
        held: LockNeed,
    },
    /// The name, reason or key of the request is too long for the audit log.
    #[error("a name, reason or key of {size} bytes is over the limit of {limit}; use fewer words")]
    TooLong {
        /// Size in bytes.
        size: usize,
        /// Limit in bytes.
        limit: usize,
    },
    /// The commit was not acknowledged.
    #[error("the import was not acknowledged: {0}; check the disk, and whether the family is there")]
    Journal(String),
}

/// A bound that keeps the engine from accepting more submissions for now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SubmitBound {
    /// Requests that wait for their commit.
    #[error("{0} requests wait for their commit, which is the limit (`max_queued`)")]
    Queued(usize),
    /// Families that are awake: neither ended nor waiting only for a time or an event.
    #[error("{0} procedures are awake, which is the limit for submissions (`max_awake`)")]
    Awake(usize),
}

/// A submission that was not accepted; nothing of it is stored.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum SubmitError {
    /// The engine is at one of its bounds.
    #[error("{bound}; submit again in {} ms", .retry_after.as_millis())]
    Busy {
        /// The bound that was reached.
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
    /// The procedure's own check says that it cannot run in this process.
    #[error("the procedure cannot run here: {why}; correct it, or register what it needs")]
    Unsupported {
        /// The reason that the check gives.
        why: String,
    },
    /// The key stands for another submission.
    #[error("the key \"{key}\" was used with another payload for {id}; use a new key, or the same payload")]
    KeyConflict {
        /// The key.
        key: String,
        /// The procedure for which the key stands.
        id: ProcedureId,
    },
    /// Two submissions of one batch have the same key but different contents.
    #[error(
        "submissions {first} and {second} of the batch, counted from 0, have the key \"{key}\" but differ; give one of them another key"
    )]
    BatchConflict {
        /// The key.
        key: String,
        /// Position of the first in the batch.
        first: usize,
        /// Position of the second.
        second: usize,
    },
    /// The key cannot be stored.
    #[error("an idempotency key must have 1 to {limit} bytes, but this key has {size}; use a digest of it")]
    BadKey {
        /// Size in bytes.
        size: usize,
        /// Limit in bytes.
        limit: usize,
    },
    /// The name is too long.
    #[error("a name of {characters} characters is over the limit of {limit}; shorten it")]
    BadName {
        /// Its characters.
        characters: usize,
        /// The limit.
        limit: usize,
    },
    /// The labels are too many, or one of them is out of bounds.
    #[error("{0}")]
    BadLabels(LabelError),
    /// The journal could not tell whether the key was used before, so nothing was submitted.
    #[error("the key \"{key}\" could not be looked up, so nothing was submitted: {why}; {}", after_unread(.why))]
    KeyUnread {
        /// The key.
        key: String,
        /// Why it could not be read.
        why: ReadError,
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
    /// The list of children that the submission brings breaks a rule. Nothing was submitted.
    #[error("the children cannot be born: {why}; correct the list")]
    BadChildren {
        /// The rule, and the place in the list.
        why: String,
    },
    /// The engine is draining.
    #[error("the engine is draining; submit to its successor")]
    Draining,
    /// The journal has no numbers left for new families. Only damage to a stored number causes this.
    #[error(
        "the journal has no numbers left for new families; export the live families, and import them into a new journal"
    )]
    NumbersExhausted,
    /// The value cannot be encoded.
    #[error(transparent)]
    Codec(#[from] CodecError),
    /// The journal failed; it is not known whether this submission is stored.
    #[error("the journal failed: {0}; restart the engine, and repeat with the same key")]
    JournalFailed(String),
    /// Another engine has taken the journal. Nothing has failed: what this engine acknowledged is in the journal, and
    /// continues there. It is not known whether this submission is stored.
    #[error("the journal has moved to another engine, with epoch {newer}; repeat there, with the same key")]
    Moved {
        /// The epoch of its owner now.
        newer: Epoch,
    },
    /// The engine has stopped.
    #[error("the engine has stopped; start it again, and repeat with the same key")]
    Stopped,
}

/// Returns what to do about an idempotency key that could not be read.
const fn after_unread(why: &ReadError) -> &'static str {
    match why {
        ReadError::Store(store) if store.may_pass() => "submit again, with the same key",
        ReadError::Store(_) | ReadError::Codec(_) | ReadError::TooLarge { .. } => {
            "run `procession doctor` to see the damage"
        }
    }
}

/// A query or request about a procedure that could not be answered.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum AskError {
    /// The procedure is unknown.
    #[error("no procedure {0} is known: the id is wrong, or its result was evicted")]
    Unknown(ProcedureId),
    /// The procedure has ended.
    #[error("procedure {id} has ended with revision {revision}; ask for its outcome")]
    Finished {
        /// The procedure.
        id: ProcedureId,
        /// Its revision: no stage of it changes that any more.
        revision: Seq,
    },
    /// The data sent is too large.
    #[error("{size} bytes are over the limit of {limit}; send less")]
    TooLarge {
        /// Size in bytes.
        size: usize,
        /// Limit in bytes.
        limit: usize,
    },
    /// Too many signals, or writes of user data, were sent at once.
    #[error("{size} at once are over the limit of {limit}; send them in several messages")]
    BatchTooLarge {
        /// How many were sent.
        size: usize,
        /// How many one message may have.
        limit: usize,
    },
    /// The last signal of this name was sent before.
    #[error("the last signal of \"{name}\" to {id} was sent before, so it takes no more; use another name")]
    Closed {
        /// The receiver.
        id: ProcedureId,
        /// The name of the event.
        name: String,
    },
    /// The receiver's kind does not take this signal: see [`Procedure::accepts`](crate::Procedure::accepts). It was not
    /// kept.
    #[error("{id} does not take the signal \"{name}\": {why}; nothing was sent, so correct it and send it again")]
    NotAccepted {
        /// The receiver.
        id: ProcedureId,
        /// The name of the event.
        name: String,
        /// What the kind says.
        why: String,
    },
    /// The sender's key stands for another signal, with another name or payload.
    #[error(
        "the key \"{key}\" was used for another signal, number {number} to {id}; use a new key, or send the same signal"
    )]
    SignalConflict {
        /// The key.
        key: String,
        /// The procedure to which the other signal was sent.
        id: ProcedureId,
        /// The number of the other signal.
        number: u32,
    },
    /// The key of a signal, a broadcast or a request cannot be stored.
    #[error("a key must have 1 to {limit} bytes, but this key has {size}; use another key, or none")]
    BadKey {
        /// Size in bytes.
        size: usize,
        /// Limit in bytes.
        limit: usize,
    },
    /// The state of the procedure, or of the engine, does not allow the request.
    #[error("{text}")]
    NotNow {
        /// The reason, to match on.
        kind: NotNow,
        /// The reason for people, with what to do.
        text: String,
    },
    /// The procedure has changed since the caller read it.
    #[error("the procedure now has revision {found} instead of {expected}, and is in the state {state}; read it again")]
    Revised {
        /// The revision that the caller expected.
        expected: Seq,
        /// The revision that was found.
        found: Seq,
        /// The state that was found.
        state: ProcedureState,
    },
    /// More requests wait than the engine admits.
    #[error("too many requests wait; ask again in {} ms", .retry_after.as_millis())]
    Busy {
        /// When to try again.
        retry_after: Duration,
    },
    /// It did not happen within the given time.
    #[error("it did not happen within the given time; ask again")]
    NotYet,
    /// The store cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The journal failed.
    #[error("the journal failed: {0}; restart the engine")]
    JournalFailed(String),
    /// Another engine has taken the journal. Nothing has failed: what this engine acknowledged is in the journal, and
    /// continues there.
    #[error("the journal has moved to another engine, with epoch {newer}; ask that engine")]
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
