//! Questions to a person: asked by a stage, and ended by an answer, an operator, or time.

use std::time::Duration;

use super::draft::Draft;
use crate::cause::{Cause, CauseKind};
use crate::effect::{NotNow, Refusal};
use crate::id::{Blob, ProcedureId};
use crate::lifecycle::ProcedureState;
use crate::row::{Round, Row};
use crate::wait::{Question, WaitReason, Wake};

impl Draft<'_> {
    /// Parks a procedure until a person decides. A sibling takes its place in the width, unless its list keeps places or
    /// it is past its point of no return.
    pub(super) fn ask_person(&mut self, mut row: Box<Row>, text: &str, timeout: Option<Duration>) {
        let id = row.id;
        let round = self.round_of(&row);
        // Past its point of no return it may end although its family fails, and a rollback waits for that. If it had to
        // wait for a place, one that a failed sibling keeps until the rollback, neither would ever move.
        let is_shielded = row.rare().past_no_return.is_some();
        let keeps_place = is_shielded || round.as_ref().is_some_and(|round| round.keep_places);
        let question = Question {
            // The same cut as in the history entry.
            text: Cause::new(CauseKind::Failed, text, id).text,
            until: timeout.map(|timeout| self.now.after(timeout)),
            keeps_place,
        };
        // Where the list itself fails, its other children run no more, though this one may end first.
        let list_fails = self.parent(&row).is_some_and(|parent| self.is_stopped(parent));
        let reason = WaitReason::Decision(Box::new(question));
        self.park(&mut row, ProcedureState::Runnable, reason);
        self.put(row);
        if let Some(round) = round.filter(|_| !list_fails && !self.is_stopped(id)) {
            self.fill_width(id.family, &round);
        }
    }

    /// Takes a person's answer. Refused if nobody asks, so no answer is kept for a later question.
    pub(super) fn decide_question(&mut self, id: ProcedureId, answer: Blob) -> Result<(), Refusal> {
        let Some(row) = self.row(id).filter(|row| !row.is_ended()) else {
            return Err(Refusal::NotLive(id));
        };
        if row.wait.as_ref().and_then(WaitReason::question).is_none() {
            return Err(Refusal::NotNow(
                NotNow::NoQuestion,
                format!("{id} asks no question; there is nothing to decide"),
            ));
        }
        let limit = self.kernel.rules.bounds.note;
        if answer.len() > limit {
            return Err(Refusal::TooLarge(answer.len(), limit));
        }
        self.end_question(id, Some(Wake::Decision(Some(answer))))
    }

    /// Lets a procedure go on that asked a person, with or without an answer.
    pub(super) fn end_question(&mut self, id: ProcedureId, wake: Option<Wake>) -> Result<(), Refusal> {
        if self.is_stopped(id) {
            return Err(Refusal::NotNow(
                NotNow::Failing,
                format!("the family of {id} fails; it does not run again"),
            ));
        }
        if let Some(mut row) = self.take(id) {
            row.wake = wake;
            self.leave_question(&mut row);
            self.put(row);
        }
        Ok(())
    }

    /// Sets a procedure going that asked a person. If it gave its place in the width to a sibling, it takes a free one,
    /// or waits for one as a child that has not begun does.
    pub(super) fn leave_question(&mut self, row: &mut Row) {
        let gave_place = matches!(&row.wait, Some(WaitReason::Decision(question)) if !question.keeps_place);
        let round = self.round_of(row).filter(|_| gave_place);
        let has_place = round.is_none_or(|round| self.latch(row.id.family, &round).has_place(&round));
        if has_place {
            self.set_going(row, None);
        } else {
            row.wait = Some(WaitReason::Width);
            row.since = self.now;
        }
    }

    /// Returns the list of children that the procedure belongs to.
    fn round_of(&self, row: &Row) -> Option<Round> {
        let parent = self.row(self.parent(row)?)?;
        let mut rounds = parent.rounds.iter().rev();
        rounds.find(|round| round.contains(row.id.member)).cloned()
    }
}
