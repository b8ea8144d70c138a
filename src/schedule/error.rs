//! What is wrong with a schedule, and why one could not be set up.

use std::time::Duration;

use procession_actors::{AskError, CodecError, SubmitError};
use procession_kernel::ProcedureId;

/// A schedule that cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadSchedule {
    /// The expression is wrong, or no day matches it.
    #[error(
        "the cron expression \"{expression}\" cannot be read: {why}; it has five fields, minute, hour, day of month, month \
         and day of week, such as \"30 2 * * *\""
    )]
    Expression {
        /// The expression.
        expression: String,
        /// What is wrong with it.
        why: String,
    },
    /// The time zone is not known.
    #[error(
        "the time zone \"{zone}\" is not known: {why}; give a name of the IANA database, such as \"Europe/Berlin\" or \"UTC\""
    )]
    Zone {
        /// The name of the zone.
        zone: String,
        /// What the look-up said.
        why: String,
    },
    /// The interval is out of bounds.
    #[error("an interval of {interval:?} is not possible: a schedule's is from 1 second to 366 days")]
    Interval {
        /// The interval.
        interval: Duration,
    },
    /// The name is empty or too long.
    #[error("a schedule's name has 1 to 128 bytes, and this one has {size}")]
    Name {
        /// Bytes of the name.
        size: usize,
    },
}

impl BadSchedule {
    pub(super) fn expression(expression: &str, why: String) -> Self {
        Self::Expression {
            expression: expression.to_owned(),
            why,
        }
    }
}

/// Why a schedule could not be set up or changed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ScheduleError {
    /// It cannot be submitted: its job or the kind [`Schedule`](super::Schedule) is not registered, or the engine takes
    /// nothing.
    #[error(transparent)]
    Submit(#[from] SubmitError),
    /// The schedule of this name could not be asked, or did not take the change.
    #[error(transparent)]
    Ask(#[from] AskError),
    /// The change cannot be encoded.
    #[error(transparent)]
    Codec(#[from] CodecError),
    /// The schedule of this name has ended, and its result does not go. Call again later.
    #[error("the schedule \"{name}\", {id}, has ended, and its result has not gone yet; call again in a few seconds")]
    Ended {
        /// Its name.
        name: String,
        /// The schedule that has ended.
        id: ProcedureId,
    },
}
