//! How a command ends: the exit code is part of what it says.

use std::process::ExitCode;

use procession::errors::{AskError, ReadError, StartError, StoreError};

use super::demo::DemoError;

/// What the exit code says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exit {
    /// Done.
    Done,
    /// It failed.
    Failed,
    /// The arguments make no sense.
    Usage,
    /// Done, and something needs you.
    NeedsYou,
    /// Done, and the chain is a circle.
    Cycle,
    /// Refused: an engine holds the journal, or a dashboard lets it not be done.
    Refused,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::NeedsYou => 3,
            Exit::Cycle => 4,
            Exit::Refused => 5,
        })
    }
}

/// Why a command was not carried out, with what to do.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) exit: Exit,
    pub(super) text: String,
}

impl Failure {
    pub(super) fn new(text: impl ToString) -> Self {
        Self {
            exit: Exit::Failed,
            text: text.to_string(),
        }
    }

    pub(super) fn usage(text: impl ToString) -> Self {
        Self {
            exit: Exit::Usage,
            text: text.to_string(),
        }
    }
}

impl Failure {
    /// Passes on what no other request would change: the rest was refused, too.
    pub(super) fn stop_if_refused(self) -> Result<(), Self> {
        match self.exit {
            Exit::Refused | Exit::Usage => Err(self),
            Exit::Done | Exit::Failed | Exit::NeedsYou | Exit::Cycle => Ok(()),
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        if let StoreError::Held { place, holder } = &error {
            return Self {
                exit: Exit::Refused,
                text: format!(
                    "the journal in {place} is held by an engine{holder}; stop the engine first, or query it: \
                     give the address of its dashboard with --url"
                ),
            };
        }
        if matches!(error, StoreError::BeingRead { .. }) {
            return Self {
                exit: Exit::Refused,
                text: error.to_string(),
            };
        }
        Self::new(error)
    }
}

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Self {
        Self::new(error)
    }
}

impl From<StartError> for Failure {
    fn from(error: StartError) -> Self {
        if let StartError::Store(error) = error {
            return Self::from(error);
        }
        Self::new(error)
    }
}

impl From<DemoError> for Failure {
    fn from(error: DemoError) -> Self {
        let is_held = matches!(
            error,
            DemoError::Start(StartError::Store(
                StoreError::Held { .. } | StoreError::BeingRead { .. }
            ))
        );
        Self {
            exit: if is_held { Exit::Refused } else { Exit::Failed },
            text: error.to_string(),
        }
    }
}

impl From<AskError> for Failure {
    fn from(error: AskError) -> Self {
        Self::new(error)
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Self::new(format!("the output cannot be written as JSON: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_demo_in_a_journal_that_is_held_is_refused() {
        let held = StoreError::Held {
            place: "shop".to_owned(),
            holder: String::new(),
        };
        assert_eq!(
            Failure::from(DemoError::Start(StartError::Store(held))).exit,
            Exit::Refused
        );
        assert_eq!(Failure::from(DemoError::Stuck("x".to_owned())).exit, Exit::Failed);
    }
}
