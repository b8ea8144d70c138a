//! The newest failure, and how many failures in a row had the same text, numbers aside.

use serde::{Deserialize, Serialize};

use super::Row;
use crate::cause::cut;
use crate::fingerprint::fingerprint;
use crate::id::Timestamp;

/// The newest failure of a run of equal ones, among the attempts of a stage or of an undo.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailureStreak {
    /// [`fingerprint`] of the failure's text.
    #[serde(rename = "p")]
    pub print: u64,
    /// How many failures in a row had this fingerprint, the newest included.
    #[serde(rename = "n")]
    pub times: u32,
    /// The failure's text, cut to [`FailureStreak::TEXT_MAX`] bytes; the history keeps more of it.
    #[serde(rename = "t", default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// When the first failure of the run happened; `None` for runs that began before this was recorded.
    #[serde(rename = "f", default, skip_serializing_if = "Option::is_none")]
    pub first: Option<Timestamp>,
}

impl FailureStreak {
    /// Longest text kept, in bytes. One sentence tells errors apart, and the row is written at each attempt.
    pub const TEXT_MAX: usize = 256;
}

impl Row {
    /// Records the text of a failed attempt. Failures of another stage or undo have been cleared before: see
    /// [`Self::clear_failure_streak`].
    pub(crate) fn note_failure(&mut self, text: &str, now: Timestamp) {
        const CUT: &str = "\u{2026}";
        // The history cuts the text at this length; text that is not kept must not make a difference.
        let print = fingerprint(cut(text, crate::cause::Cause::TEXT_MAX));
        let before = self.rare_if_any().and_then(|rare| rare.failure_streak.take());
        let before = before.filter(|before| before.print == print);
        let (times, first) = before.map_or((0, Some(now)), |before| (before.times, before.first));
        let mut kept = text.to_owned();
        if text.len() > FailureStreak::TEXT_MAX {
            kept = format!("{}{CUT}", cut(text, FailureStreak::TEXT_MAX - CUT.len()));
        }
        self.rare_mut().failure_streak = Some(Box::new(FailureStreak {
            print,
            times: times.saturating_add(1),
            text: kept,
            first,
        }));
    }

    /// Clears a failure that no longer matters: the stage has succeeded, was stopped by its family's failure, or the
    /// undo is done.
    pub(crate) fn clear_failure_streak(&mut self) {
        if self.rare().failure_streak.is_some() && (self.is_ended() || self.failed_in_a_row() == 0) {
            self.clear_rare(|rare| rare.failure_streak = None);
        }
    }

    /// Returns the number of failed attempts of the current task: the undo on top of the stack during a rollback,
    /// otherwise the stage.
    #[must_use]
    pub const fn failed_in_a_row(&self) -> u32 {
        if self.is_failing() {
            self.rare().undo_attempts
        } else {
            self.attempt
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{Blob, Kind, ProcedureId};
    use crate::lifecycle::ProcedureState;

    fn row() -> Row {
        Row::new(
            ProcedureId::root(1),
            Kind::from("kind"),
            1,
            Blob::default(),
            Timestamp(0),
        )
    }

    fn failed(row: &mut Row, text: &str) -> u32 {
        row.attempt += 1;
        row.note_failure(text, Timestamp(u64::from(row.attempt)));
        row.clear_failure_streak();
        row.rare().failure_streak.as_ref().map_or(0, |streak| streak.times)
    }

    #[test]
    fn it_counts_those_that_say_the_same_but_for_numbers() {
        let mut row = row();
        let said = [
            "timeout after 31 ms",
            "timeout after 7 ms",
            "refused by rs-1",
            "timeout after 2 ms",
        ];
        assert_eq!(said.map(|text| failed(&mut row, text)), [1, 2, 1, 1]);
        let told = row
            .rare()
            .failure_streak
            .as_ref()
            .map(|streak| (streak.text.as_str(), streak.first));
        assert_eq!(told, Some(("timeout after 2 ms", Some(Timestamp(4)))));
        row.attempt = 0;
        row.clear_failure_streak();
        assert_eq!(
            (
                row.rare().failure_streak.is_none(),
                failed(&mut row, "timeout after 2 ms")
            ),
            (true, 1)
        );
        // It rolls back: the undo counts, and has not failed.
        row.state = ProcedureState::Failed;
        row.clear_failure_streak();
        assert_eq!(row.rare().failure_streak, None);
    }

    #[test]
    fn a_long_text_is_cut_and_compared_as_the_history_has_it() {
        let mut row = row();
        let long = "\u{e4}".repeat(1_024);
        assert_eq!(failed(&mut row, &long), 1);
        let text = row
            .rare()
            .failure_streak
            .as_ref()
            .map(|streak| streak.text.clone())
            .unwrap_or_default();
        assert_eq!((text.len(), text.ends_with("\u{e4}\u{2026}")), (255, true));
        assert_eq!(
            failed(&mut row, &format!("{long}, and more")),
            2,
            "2,048 bytes are compared"
        );
        assert_eq!(failed(&mut row, &"\u{e4}".repeat(1_023)), 1);
    }
}
