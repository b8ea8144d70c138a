//! Requests of operators: each verb with its operands, and its name on the wire.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize};

use crate::id::{Blob, EventName, Kind, LimitKey, ProcedureId};
use crate::limit::Limit;
use crate::wait::PauseScope;

/// The members of a family that end with a bypassed procedure. Append-only: the short names are stored on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum BypassScope {
    /// The procedure alone; refused if it has live children.
    #[default]
    #[serde(rename = "o")]
    Alone,
    /// The procedure and all its descendants.
    #[serde(rename = "d")]
    Descendants,
    /// The procedure and all its ancestors; refused if an ancestor has other live children.
    #[serde(rename = "a")]
    Ancestors,
    /// The whole family.
    #[serde(rename = "f")]
    Family,
}

/// How a bypassed procedure ends. Append-only: the short names are stored on disk.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum BypassAs {
    /// `Success` without output (HBase).
    #[default]
    #[serde(rename = "s")]
    Success,
    /// `Success` with this output. An audit entry leaves it out.
    #[serde(rename = "o")]
    Output(#[serde(skip)] Blob),
    /// `Failed`, with the reason given.
    #[serde(rename = "f")]
    Failed,
}

/// The user data that is shown in full. Append-only: the short names are stored on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum RevealScope {
    /// Payload and output of the procedure.
    #[serde(rename = "v")]
    Values,
    /// Everything that the journal holds about its family.
    #[serde(rename = "f")]
    Family,
}

/// A request of an operator, with its operands. Append-only: the short names are stored on disk, in audit entries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verb {
    /// Stop a procedure between stages and roll it back.
    #[serde(rename = "a")]
    Abort(ProcedureId),
    /// Start no more stages and undos of what it names.
    #[serde(rename = "p")]
    Pause(PauseScope),
    /// Resume what was paused by an operator, as poison, or for running one stage too often.
    #[serde(rename = "r")]
    Resume(PauseScope),
    /// End a backoff, or the rest of a procedure that waits for an operator. Failed attempts stay counted.
    #[serde(rename = "n")]
    RetryNow(ProcedureId),
    /// End a procedure without its code.
    #[serde(rename = "b")]
    Bypass(ProcedureId, BypassScope, BypassAs),
    /// Try a failed undo again.
    #[serde(rename = "u")]
    RetryUndo(ProcedureId),
    /// Count a failed undo as done.
    #[serde(rename = "k")]
    SkipUndo(ProcedureId),
    /// Replace the output of a procedure that succeeded.
    #[serde(rename = "o")]
    OverrideResult(ProcedureId, #[serde(skip)] Blob),
    /// Change the priority of a procedure, and its place in the queues.
    #[serde(rename = "i")]
    SetPriority(ProcedureId, i16),
    /// Set what a limit allows.
    #[serde(rename = "l")]
    SetLimit(LimitKey, Limit),
    /// Put a quarantined family into the archive, and free what it holds.
    #[serde(rename = "d")]
    Discharge(u64),
    /// Record that user data of a procedure is shown in full. Nothing changes.
    #[serde(rename = "v")]
    AuditReveal(ProcedureId, RevealScope),
    /// Send a signal. The key of the request is the sender's key.
    #[serde(rename = "s")]
    Signal(ProcedureId, EventName, #[serde(skip)] Blob),
    /// Answer the question that a procedure asks.
    #[serde(rename = "y")]
    Decide(ProcedureId, #[serde(skip)] Blob),
    /// Acknowledge the result of a finished root: that of a success may be evicted earlier, and a failure is not listed
    /// any more.
    #[serde(rename = "c")]
    Acknowledge(ProcedureId),
    /// Submit a failed root again, with the value that it was submitted with, and acknowledge its failure.
    #[serde(rename = "g")]
    RunAgain(ProcedureId),
    /// Submit a root of this kind. Its value and all else of the submission go [beside the verb](crate::StoredTarget::New).
    #[serde(rename = "m")]
    Submit(Kind),
    /// Start no more stages, and stop when nothing runs or this time is up.
    #[serde(rename = "q")]
    Drain(#[serde(with = "millis")] Duration),
}

/// A verb without its operands: its name on the wire, on the page and on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VerbName {
    /// [`Verb::Abort`].
    Abort,
    /// [`Verb::Pause`].
    Pause,
    /// [`Verb::Resume`].
    Resume,
    /// [`Verb::RetryNow`].
    RetryNow,
    /// [`Verb::Bypass`].
    Bypass,
    /// [`Verb::RetryUndo`].
    RetryUndo,
    /// [`Verb::SkipUndo`].
    SkipUndo,
    /// [`Verb::OverrideResult`].
    OverrideResult,
    /// [`Verb::SetPriority`].
    SetPriority,
    /// [`Verb::SetLimit`].
    SetLimit,
    /// [`Verb::Discharge`].
    Discharge,
    /// [`Verb::AuditReveal`] of one procedure's values.
    Reveal,
    /// [`Verb::AuditReveal`] of a whole family.
    Export,
    /// [`Verb::Signal`].
    Signal,
    /// [`Verb::Decide`].
    Decide,
    /// [`Verb::Acknowledge`].
    Acknowledge,
    /// [`Verb::RunAgain`].
    RunAgain,
    /// [`Verb::Submit`].
    Submit,
    /// [`Verb::Drain`].
    Drain,
}

impl VerbName {
    /// Every name.
    pub const ALL: [Self; 19] = [
        Self::Abort,
        Self::Pause,
        Self::Resume,
        Self::RetryNow,
        Self::Bypass,
        Self::RetryUndo,
        Self::SkipUndo,
        Self::OverrideResult,
        Self::SetPriority,
        Self::SetLimit,
        Self::Discharge,
        Self::Reveal,
        Self::Export,
        Self::Signal,
        Self::Decide,
        Self::Acknowledge,
        Self::RunAgain,
        Self::Submit,
        Self::Drain,
    ];

    /// Returns the name as it is written in paths.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Abort => "abort",
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::RetryNow => "retry",
            Self::Bypass => "bypass",
            Self::RetryUndo => "retry-undo",
            Self::SkipUndo => "skip-undo",
            Self::OverrideResult => "override-result",
            Self::SetPriority => "priority",
            Self::SetLimit => "limit",
            Self::Discharge => "discharge",
            Self::Reveal => "reveal",
            Self::Export => "export",
            Self::Signal => "signal",
            Self::Decide => "decide",
            Self::Acknowledge => "acknowledge",
            Self::RunAgain => "run-again",
            Self::Submit => "submit",
            Self::Drain => "drain",
        }
    }
}

impl fmt::Display for VerbName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// No verb has this name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownVerb;

impl FromStr for VerbName {
    type Err = UnknownVerb;

    fn from_str(text: &str) -> Result<Self, UnknownVerb> {
        let mut all = Self::ALL.into_iter();
        all.find(|name| name.as_str() == text).ok_or(UnknownVerb)
    }
}

impl Verb {
    /// Returns the verb's name.
    #[must_use]
    pub const fn name(&self) -> VerbName {
        match self {
            Self::Abort(_) => VerbName::Abort,
            Self::Pause(_) => VerbName::Pause,
            Self::Resume(_) => VerbName::Resume,
            Self::RetryNow(_) => VerbName::RetryNow,
            Self::Bypass(..) => VerbName::Bypass,
            Self::RetryUndo(_) => VerbName::RetryUndo,
            Self::SkipUndo(_) => VerbName::SkipUndo,
            Self::OverrideResult(..) => VerbName::OverrideResult,
            Self::SetPriority(..) => VerbName::SetPriority,
            Self::SetLimit(..) => VerbName::SetLimit,
            Self::Discharge(_) => VerbName::Discharge,
            Self::AuditReveal(_, RevealScope::Values) => VerbName::Reveal,
            Self::AuditReveal(_, RevealScope::Family) => VerbName::Export,
            Self::Signal(..) => VerbName::Signal,
            Self::Decide(..) => VerbName::Decide,
            Self::Acknowledge(_) => VerbName::Acknowledge,
            Self::RunAgain(_) => VerbName::RunAgain,
            Self::Submit(_) => VerbName::Submit,
            Self::Drain(_) => VerbName::Drain,
        }
    }

    /// Returns the procedure that the request concerns, if it concerns exactly one.
    #[must_use]
    pub const fn target(&self) -> Option<ProcedureId> {
        match self {
            Self::Abort(id)
            | Self::Pause(PauseScope::One(id))
            | Self::Resume(PauseScope::One(id))
            | Self::RetryNow(id)
            | Self::Bypass(id, ..)
            | Self::RetryUndo(id)
            | Self::SkipUndo(id)
            | Self::OverrideResult(id, _)
            | Self::SetPriority(id, _)
            | Self::AuditReveal(id, _)
            | Self::Signal(id, ..)
            | Self::Decide(id, _)
            | Self::Acknowledge(id)
            | Self::RunAgain(id) => Some(*id),
            Self::Discharge(family) => Some(ProcedureId::root(*family)),
            Self::Pause(_) | Self::Resume(_) | Self::SetLimit(..) | Self::Submit(_) | Self::Drain(_) => None,
        }
    }

    /// Returns the user's value that the request brings.
    #[must_use]
    pub const fn value(&self) -> Option<&Blob> {
        match self {
            Self::Signal(_, _, value)
            | Self::Decide(_, value)
            | Self::OverrideResult(_, value)
            | Self::Bypass(_, _, BypassAs::Output(value)) => Some(value),
            Self::Abort(_)
            | Self::Pause(_)
            | Self::Resume(_)
            | Self::RetryNow(_)
            | Self::Bypass(_, _, BypassAs::Success | BypassAs::Failed)
            | Self::RetryUndo(_)
            | Self::SkipUndo(_)
            | Self::SetPriority(..)
            | Self::SetLimit(..)
            | Self::Discharge(_)
            | Self::AuditReveal(..)
            | Self::Acknowledge(_)
            | Self::RunAgain(_)
            | Self::Submit(_)
            | Self::Drain(_) => None,
        }
    }

    /// Returns the verb as an audit entry keeps it, so that it equals the verb that is read back. The user's value is
    /// left out, because the entry has its digest. Times are cut to whole milliseconds.
    #[must_use]
    pub fn recorded(mut self) -> Self {
        match &mut self {
            Self::Signal(_, _, value)
            | Self::Decide(_, value)
            | Self::OverrideResult(_, value)
            | Self::Bypass(_, _, BypassAs::Output(value)) => *value = Blob::default(),
            Self::Drain(time) => *time = Duration::from_millis(whole_millis(*time)),
            Self::Abort(_)
            | Self::Pause(_)
            | Self::Resume(_)
            | Self::RetryNow(_)
            | Self::Bypass(_, _, BypassAs::Success | BypassAs::Failed)
            | Self::RetryUndo(_)
            | Self::SkipUndo(_)
            | Self::SetPriority(..)
            | Self::SetLimit(..)
            | Self::Discharge(_)
            | Self::AuditReveal(..)
            | Self::Acknowledge(_)
            | Self::RunAgain(_)
            | Self::Submit(_) => {}
        }
        self
    }

    /// Returns `true` if the request is recorded even though no row changes.
    #[must_use]
    pub const fn is_always_noted(&self) -> bool {
        matches!(self, Self::AuditReveal(..) | Self::Drain(_))
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Abort(id) => write!(f, "abort {id}"),
            Self::Pause(what) => write!(f, "pause {what}"),
            Self::Resume(what) => write!(f, "resume {what}"),
            Self::RetryNow(id) => write!(f, "retry {id} now"),
            Self::Bypass(id, scope, outcome) => write!(f, "bypass {id}{} as {}", scope.words(), outcome.words()),
            Self::RetryUndo(id) => write!(f, "retry the undo of {id}"),
            Self::SkipUndo(id) => write!(f, "skip the undo of {id}"),
            Self::OverrideResult(id, output) => write!(f, "override the result of {id} by {} bytes", output.len()),
            Self::SetPriority(id, priority) => write!(f, "set the priority of {id} to {priority}"),
            Self::SetLimit(key, Limit::UNLIMITED) => write!(f, "lift the limit {key}"),
            Self::SetLimit(key, limit) => write!(f, "set the limit {key} to {limit}"),
            Self::Discharge(family) => write!(f, "discharge the family {family}"),
            Self::AuditReveal(id, RevealScope::Values) => write!(f, "reveal the values of {id}"),
            Self::AuditReveal(id, RevealScope::Family) => write!(f, "export the family of {id}"),
            Self::Signal(id, name, payload) => write!(f, "signal {name} to {id} with {} bytes", payload.len()),
            Self::Decide(id, answer) => write!(f, "answer the question of {id} with {} bytes", answer.len()),
            Self::Acknowledge(id) => write!(f, "acknowledge {id}"),
            Self::RunAgain(id) => write!(f, "run {id} again"),
            Self::Submit(kind) => write!(f, "submit {kind}"),
            Self::Drain(time) => write!(f, "drain within {} ms", time.as_millis()),
        }
    }
}

impl BypassScope {
    const fn words(self) -> &'static str {
        match self {
            Self::Alone => "",
            Self::Descendants => " and all below it",
            Self::Ancestors => " and all above it",
            Self::Family => " and its whole family",
        }
    }
}

impl BypassAs {
    const fn words(&self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Output(_) => "success with an output",
            Self::Failed => "failed",
        }
    }
}

/// What an abort meets. Append-only: the short names are stored on disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum AbortAnswer {
    /// The procedure rolls back as soon as its running stages have ended.
    #[serde(rename = "r")]
    WillRollBack,
    /// The procedure was failing already, for another reason.
    #[serde(rename = "a")]
    AlreadyRollingBack,
    /// The procedure can no longer be aborted, for this reason.
    #[serde(rename = "l")]
    TooLate(String),
}

/// The act that an audit entry records. Append-only: the short names are stored on disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Act {
    /// A request of an operator, [as it is recorded](Verb::recorded).
    #[serde(rename = "o")]
    Operate(Verb),
    /// A broadcast with a key.
    #[serde(rename = "b")]
    Broadcast(EventName),
    /// The import of a family into a closed journal, which leaves a live root paused.
    #[serde(rename = "i")]
    Import(u64),
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Operate(verb) => write!(f, "{verb}"),
            Self::Broadcast(name) => write!(f, "broadcast {name}"),
            Self::Import(family) => write!(f, "import the family {family}"),
        }
    }
}

impl Act {
    /// Returns the name of the act: that of its verb, `broadcast` or `import`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Operate(verb) => verb.name().as_str(),
            Self::Broadcast(_) => "broadcast",
            Self::Import(_) => "import",
        }
    }

    /// Returns what the act paused. An import may have paused its root.
    #[must_use]
    pub fn paused(&self) -> Option<PauseScope> {
        match self {
            Self::Operate(Verb::Pause(what)) => Some(what.clone()),
            Self::Import(family) => Some(PauseScope::One(ProcedureId::root(*family))),
            Self::Operate(_) | Self::Broadcast(_) => None,
        }
    }

    /// Reads an act from the words of an entry that was written before acts were recorded. This is the only place that
    /// reads these words. It reads only the words that the engine and the dashboard rely on.
    pub(crate) fn from_words(words: &str) -> Option<Self> {
        let (verb, rest) = words.split_once(' ')?;
        match verb {
            "abort" => rest.parse().ok().map(|id| Self::Operate(Verb::Abort(id))),
            "pause" => paused_in(rest).map(|what| Self::Operate(Verb::Pause(what))),
            "import" => rest.strip_prefix("the family ")?.parse().ok().map(Self::Import),
            _ => None,
        }
    }

    /// Reads an act. Returns `None` if a later release added the act, so that this release still reads the entry.
    pub(crate) fn known<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Self>, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Read {
            Known(Act),
            Unknown(IgnoredAny),
        }
        Ok(match Read::deserialize(deserializer)? {
            Read::Known(act) => Some(act),
            Read::Unknown(_) => None,
        })
    }
}

fn paused_in(words: &str) -> Option<PauseScope> {
    match words.strip_prefix("the kind ") {
        Some(kind) => Some(PauseScope::Kind(kind.into())),
        None if words == "everything" => Some(PauseScope::All),
        None => words.parse().ok().map(PauseScope::One),
    }
}

fn whole_millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// A duration on disk, as whole milliseconds.
mod millis {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(super::whole_millis(*time))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        u64::deserialize(deserializer).map(Duration::from_millis)
    }
}

#[cfg(test)]
mod tests {
    //! Names of verbs, and acts that are read from the words of older entries.

    use super::*;

    #[test]
    fn a_name_is_read_back() {
        for name in VerbName::ALL {
            assert_eq!(name.as_str().parse(), Ok(name));
        }
        assert_eq!("Abort".parse::<VerbName>(), Err(UnknownVerb));
    }

    #[test]
    fn words_of_older_entries_are_read_back() {
        let id = ProcedureId::new(7, 2);
        let acts = [
            Act::Operate(Verb::Abort(id)),
            Act::Operate(Verb::Pause(PauseScope::One(id))),
            Act::Operate(Verb::Pause(PauseScope::Kind("a kind of its own".into()))),
            Act::Operate(Verb::Pause(PauseScope::All)),
            Act::Import(7),
        ];
        for act in acts {
            assert_eq!(Act::from_words(&act.to_string()), Some(act));
        }
        for words in [
            "",
            "pause",
            "pause something",
            "abort 7",
            "import 7",
            "broadcast abort 7.2",
        ] {
            assert_eq!(Act::from_words(words), None, "{words}");
        }
    }
}
