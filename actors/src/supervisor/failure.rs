//! An engine that has failed: it accepts no more commits, stays up to say why, and owes no caller an answer.

use std::fmt;
use std::sync::{Arc, OnceLock};

use actix::prelude::*;
use procession_kernel::Epoch;

use crate::error::{AskError, StartError, SubmitError};
use crate::journal::AppendError;

/// Why an engine accepts no more commits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FailureCause {
    /// Its journal or a part of it has failed.
    Failed(String),
    /// Another engine has taken its journal, with this epoch.
    Moved(Epoch),
}

impl FailureCause {
    /// Returns the cause that a refused commit implies.
    pub(crate) fn of(refused: &AppendError) -> Self {
        match refused {
            AppendError::Fenced { newer } => Self::Moved(*newer),
            AppendError::Failed(_) | AppendError::Unknown(_) => Self::Failed(refused.to_string()),
        }
    }

    /// Returns the answer to a question that arrived too late.
    pub(super) fn unanswered(&self) -> AskError {
        match self {
            Self::Failed(why) => AskError::JournalFailed(why.clone()),
            Self::Moved(newer) => AskError::Moved { newer: *newer },
        }
    }

    /// Returns the error of a start that this cause ended.
    pub(super) fn unstarted(self) -> StartError {
        match self {
            Self::Failed(why) => StartError::Journal(why),
            Self::Moved(newer) => StartError::Moved { newer },
        }
    }

    /// Returns the answer to a submission that arrived too late.
    pub(super) fn unsubmitted(&self) -> SubmitError {
        match self {
            Self::Failed(why) => SubmitError::JournalFailed(why.clone()),
            Self::Moved(newer) => SubmitError::Moved { newer: *newer },
        }
    }
}

impl fmt::Display for FailureCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(why) => f.write_str(why),
            Self::Moved(newer) => AppendError::Fenced { newer: *newer }.fmt(f),
        }
    }
}

/// Why an engine accepts no more commits, if it has failed. Callers hold a copy, because the supervisor may be gone
/// before it can answer them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Failure(Arc<OnceLock<FailureCause>>);

impl Failure {
    /// Records the cause. The first cause stands.
    pub(super) fn set(&self, cause: FailureCause) {
        self.0.set(cause).ok();
    }

    /// Returns the cause.
    pub(super) fn cause(&self) -> Option<&FailureCause> {
        self.0.get()
    }

    pub(crate) fn why(&self) -> Option<String> {
        self.0.get().map(FailureCause::to_string)
    }

    /// Returns the error of a start that will never be answered.
    pub(super) fn unstarted(&self) -> StartError {
        let stopped = || StartError::Journal("the engine stopped while it started".to_owned());
        self.0.get().cloned().map_or_else(stopped, FailureCause::unstarted)
    }

    /// Returns the answer to a question that will never be answered by the engine.
    pub(crate) fn unanswered(&self) -> AskError {
        self.0.get().map_or(AskError::Stopped, FailureCause::unanswered)
    }

    /// Returns the answer to a submission that will never be answered by the engine.
    pub(crate) fn unsubmitted(&self) -> SubmitError {
        self.0.get().map_or(SubmitError::Stopped, FailureCause::unsubmitted)
    }
}

/// Says that something the supervisor depends on has ended in a panic.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Broken(pub(crate) String);
