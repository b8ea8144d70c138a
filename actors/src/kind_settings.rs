//! What one registration of a type says in place of the type's own code.

use std::time::Duration;

use procession_kernel::RetryPolicy;

use crate::thresholds::KindThresholds;

/// What one kind does otherwise than its type says, for a type that is registered as several kinds, or for settings
/// that come from the host's configuration. A field that is `None` is taken from the type.
///
/// Settings are not stored: each start may have others, and they count for what was submitted before, too.
///
/// ```
/// use procession_actors::KindSettings;
/// use procession_kernel::RetryPolicy;
/// use std::time::Duration;
///
/// let nightly = KindSettings::default()
///     .retry(RetryPolicy::default().attempts(10))
///     .keep_after_end(Duration::from_hours(24));
/// assert_eq!(nightly.retry_undo, None);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct KindSettings {
    /// How often a stage is tried, and the backoff between attempts:
    /// [`Procedure::retry`](crate::Procedure::retry).
    pub retry: Option<RetryPolicy>,
    /// How often an undo is tried, and the backoff between attempts:
    /// [`Procedure::retry_undo`](crate::Procedure::retry_undo).
    pub retry_undo: Option<RetryPolicy>,
    /// How long results are kept after the end:
    /// [`Procedure::keep_after_end`](crate::Procedure::keep_after_end).
    pub keep_after_end: Option<Duration>,
    /// How long results are kept after they were acknowledged:
    /// [`Procedure::keep_after_acknowledgement`](crate::Procedure::keep_after_acknowledgement).
    pub keep_after_acknowledgement: Option<Duration>,
    /// How long failures are kept after the end:
    /// [`Procedure::keep_after_failure`](crate::Procedure::keep_after_failure).
    pub keep_after_failure: Option<Duration>,
    /// The thresholds of the kind's verdicts, all of them:
    /// [`Procedure::thresholds`](crate::Procedure::thresholds).
    pub thresholds: Option<KindThresholds>,
    /// Whether each end is logged: [`Procedure::LOGS_ENDS`](crate::Procedure::LOGS_ENDS).
    pub logs_ends: Option<bool>,
    /// Up to how many bytes of each value that a stage or an undo leaves are kept:
    /// [`Procedure::KEEP_VALUES`](crate::Procedure::KEEP_VALUES).
    pub keep_values: Option<usize>,
}

impl KindSettings {
    /// Sets [`retry`](Self#structfield.retry).
    #[must_use]
    pub const fn retry(mut self, retry: RetryPolicy) -> Self {
        self.retry = Some(retry);
        self
    }

    /// Sets [`retry_undo`](Self#structfield.retry_undo).
    #[must_use]
    pub const fn retry_undo(mut self, retry_undo: RetryPolicy) -> Self {
        self.retry_undo = Some(retry_undo);
        self
    }

    /// Sets [`keep_after_end`](Self#structfield.keep_after_end).
    #[must_use]
    pub const fn keep_after_end(mut self, keep_after_end: Duration) -> Self {
        self.keep_after_end = Some(keep_after_end);
        self
    }

    /// Sets [`keep_after_acknowledgement`](Self#structfield.keep_after_acknowledgement).
    #[must_use]
    pub const fn keep_after_acknowledgement(mut self, keep_after_acknowledgement: Duration) -> Self {
        self.keep_after_acknowledgement = Some(keep_after_acknowledgement);
        self
    }

    /// Sets [`keep_after_failure`](Self#structfield.keep_after_failure).
    #[must_use]
    pub const fn keep_after_failure(mut self, keep_after_failure: Duration) -> Self {
        self.keep_after_failure = Some(keep_after_failure);
        self
    }

    /// Sets [`thresholds`](Self#structfield.thresholds).
    #[must_use]
    pub const fn thresholds(mut self, thresholds: KindThresholds) -> Self {
        self.thresholds = Some(thresholds);
        self
    }

    /// Sets [`logs_ends`](Self#structfield.logs_ends).
    #[must_use]
    pub const fn logs_ends(mut self, logs_ends: bool) -> Self {
        self.logs_ends = Some(logs_ends);
        self
    }

    /// Sets [`keep_values`](Self#structfield.keep_values).
    #[must_use]
    pub const fn keep_values(mut self, bytes: usize) -> Self {
        self.keep_values = Some(bytes);
        self
    }
}
