//! The log of failures: a line for each failed attempt and for each failed end, once it is on disk.
//!
//! Lines are limited, because a service that is down fails thousands of attempts a second. What was left out is counted
//! in the next line, and told by the next health check if no further line follows.

use std::fmt;

use procession_kernel::{Key, Kind, ProcedureId, ProcedureState, Row, Timestamp, WaitReason};
use tracing::Span;

use crate::hooks::Finished;
use crate::registry::Registry;
use crate::telemetry::{FailedSpan, Telemetry};

/// Lines of each sort that one second of the engine's clock may have.
const LINES_A_SECOND: u32 = 20;
const SECOND: u64 = 1_000_000;

/// A failed attempt of a stage or an undo.
pub(crate) struct FailedAttempt {
    pub(super) id: ProcedureId,
    pub(super) kind: Kind,
    /// The idempotency key of its root.
    pub(super) key: Option<Key>,
    pub(super) call: &'static str,
    pub(super) stage: String,
    pub(super) attempt: u32,
    pub(super) text: String,
    pub(super) next: NextAttempt,
    pub(super) span: FailedSpan,
}

/// The end of a procedure, for its line and for the hooks.
pub(crate) struct LoggedEnd {
    pub(super) finished: Finished,
    /// The idempotency key of its root.
    pub(super) key: Option<Key>,
    /// The failure began elsewhere in its family, and its root has a line of its own.
    pub(super) is_dragged_along: bool,
}

/// What follows a failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NextAttempt {
    /// Another attempt, at once or as soon as it is admitted.
    Now,
    /// Another attempt at this instant.
    At(Timestamp),
    /// None: the procedure fails.
    Fails,
    /// None, until an operator acts.
    Operator,
}

impl NextAttempt {
    /// Returns what follows, given the row that the failure has left.
    pub(super) const fn of(row: &Row) -> Self {
        match &row.wait {
            Some(WaitReason::Backoff(_, at)) => Self::At(*at),
            Some(WaitReason::RollbackFailed) => Self::Operator,
            Some(_) | None if row.is_failing() || row.is_ended() => Self::Fails,
            Some(_) | None => Self::Now,
        }
    }
}

impl fmt::Display for NextAttempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Now => f.write_str("now"),
            Self::At(at) => at.fmt(f),
            Self::Fails => f.write_str("none: it fails"),
            Self::Operator => f.write_str("none: an operator decides"),
        }
    }
}

/// Lines of one sort.
#[derive(Default)]
struct Budget {
    second: u64,
    written: u32,
    left_out: u64,
}

impl Budget {
    /// Returns how many lines were left out before this one. Returns `None` if this one is left out, too.
    fn take(&mut self, now: Timestamp) -> Option<u64> {
        let second = now.0 / SECOND;
        if second != self.second {
            (self.second, self.written) = (second, 0);
        }
        if self.written == LINES_A_SECOND {
            self.left_out += 1;
            return None;
        }
        self.written += 1;
        Some(std::mem::take(&mut self.left_out))
    }
}

/// Writes the lines.
#[derive(Default)]
pub(super) struct FailureLog {
    /// Whether each kind wants all ends to be logged, by the index of its handles.
    logs_ends: Vec<bool>,
    attempts: Budget,
    ends: Budget,
}

impl FailureLog {
    pub(super) fn new(registry: &Registry, telemetry: &Telemetry) -> Self {
        let mut logs_ends = vec![false; registry.kinds().count()];
        for kind in registry.kinds().filter(|kind| registry.logs_ends(kind)) {
            if let Some(logs) = telemetry.place(kind).and_then(|place| logs_ends.get_mut(place)) {
                *logs = true;
            }
        }
        Self {
            logs_ends,
            ..Self::default()
        }
    }

    /// Writes the line of a failed attempt, inside the span of its call.
    pub(super) fn attempt_failed(&mut self, failed: &FailedAttempt, now: Timestamp) {
        let Some(left_out) = self.attempts.take(now) else {
            return;
        };
        let none = Span::none();
        let span = failed.span.as_deref().unwrap_or(&none);
        tracing::warn!(
            parent: span,
            procedure = %failed.id,
            kind = %failed.kind,
            key = failed.key.as_ref().map(Key::as_str),
            call = failed.call,
            stage = failed.stage,
            attempt = failed.attempt,
            text = failed.text,
            next = %failed.next,
            left_out = (left_out > 0).then_some(left_out),
            "an attempt failed"
        );
    }

    /// Returns `true` if the end of a procedure of this kind in this state may have a line.
    pub(super) fn wants_end(&self, place: usize, state: ProcedureState) -> bool {
        state.is_failure() || self.logs_ends.get(place) == Some(&true)
    }

    /// Writes the line of an end, if it is one of a failure, or if the kind wants all ends to be logged. The kind is the
    /// index of its handles.
    pub(super) fn ended(&mut self, place: usize, end: &LoggedEnd, now: Timestamp) {
        let Finished {
            id,
            kind,
            state,
            cause,
            elapsed,
        } = &end.finished;
        let key = end.key.as_ref().map(Key::as_str);
        let seconds = elapsed.as_secs_f64();
        if state.is_failure() && !end.is_dragged_along {
            let Some(left_out) = self.ends.take(now) else { return };
            let (text, origin) = match cause {
                Some(cause) => (cause.text.as_str(), cause.origin),
                None => ("", *id),
            };
            tracing::error!(
                procedure = %id,
                kind = %kind,
                key,
                state = %state,
                cause = cause.as_ref().map(|cause| tracing::field::debug(cause.kind)),
                text,
                origin = %origin,
                seconds,
                left_out = (left_out > 0).then_some(left_out),
                "a procedure failed"
            );
        } else if self.logs_ends.get(place) == Some(&true) {
            tracing::info!(procedure = %id, kind = %kind, key, state = %state, seconds, "a procedure ended");
        }
    }

    /// Tells what was left out and followed by no further line.
    pub(super) fn tell_left_out(&mut self, now: Timestamp) {
        let before = |budget: &mut Budget| {
            let is_over = budget.second != now.0 / SECOND;
            if is_over {
                std::mem::take(&mut budget.left_out)
            } else {
                0
            }
        };
        let (attempts, ends) = (before(&mut self.attempts), before(&mut self.ends));
        if attempts + ends > 0 {
            tracing::warn!(attempts, ends, "failures were left out of the log");
        }
    }
}
