//! The newest ends that nobody was waiting for. A procedure of pure stages is often over before its submission is answered,
//! and its submitter asks for the outcome a moment later: it need not be read from the store.

use std::collections::VecDeque;

use procession_kernel::{ProcedureId, ProcedureState};
use rustc_hash::FxHashMap;

use crate::view::Outcome;

/// Ends that are kept. Between an answer and the question that follows it, fewer than that many procedures end.
const ENDS: usize = 1024;
/// Bytes of the largest output that is kept, so that all of them take some megabytes at most.
const OUTPUT: usize = 1024;

/// The newest ends, each until it was asked for. None is kept before [`begin`](Self::begin).
#[derive(Default)]
pub(super) struct NewestEnds {
    has_begun: bool,
    outcomes: FxHashMap<ProcedureId, Outcome>,
    /// In the order of their ends, with those that are no longer kept.
    order: VecDeque<ProcedureId>,
}

impl NewestEnds {
    /// Begins to keep ends: a stage runs ahead of the disk, so a procedure may be over before its submission is answered.
    pub(super) const fn begin(&mut self) {
        self.has_begun = true;
    }

    /// Keeps an end, if it is one of a root that succeeded with an output. That of another may still change while its family
    /// goes on.
    pub(super) fn keep(&mut self, outcome: Outcome) {
        let is_small = outcome.output_len().is_some_and(|length| length <= OUTPUT);
        if !self.has_begun || !outcome.id.is_root() || outcome.state != ProcedureState::Success || !is_small {
            return;
        }
        if self.order.len() == ENDS
            && let Some(oldest) = self.order.pop_front()
        {
            self.outcomes.remove(&oldest);
        }
        self.order.push_back(outcome.id);
        self.outcomes.insert(outcome.id, outcome);
    }

    /// Takes the end of a procedure.
    pub(super) fn take(&mut self, id: ProcedureId) -> Option<Outcome> {
        self.outcomes.remove(&id)
    }

    /// Drops the end of a family on which something is decided.
    pub(super) fn forget(&mut self, family: u64) {
        self.outcomes.remove(&ProcedureId::root(family));
    }

    pub(super) fn clear(&mut self) {
        self.outcomes.clear();
        self.order.clear();
    }
}

#[cfg(test)]
mod tests {
    use procession_kernel::{Blob, Ended, Kind, Timestamp};

    use super::*;

    fn end(id: ProcedureId, state: ProcedureState, output: Option<Vec<u8>>) -> Outcome {
        Outcome::of(Ended {
            id,
            kind: Kind::from("k"),
            state,
            cause: None,
            not_undone: Vec::new(),
            output: output.map(Blob::from),
            mark: None,
            submitted: Timestamp(0),
        })
    }

    fn success(family: u64) -> Outcome {
        end(ProcedureId::root(family), ProcedureState::Success, Some(vec![1]))
    }

    #[test]
    fn an_end_is_kept_until_it_is_asked_for_or_decided_on_or_old() {
        let mut ends = NewestEnds::default();
        ends.keep(success(1));
        assert!(ends.outcomes.is_empty() && ends.order.is_empty());
        ends.begin();
        (1..=3).for_each(|family| ends.keep(success(family)));
        assert!(ends.take(ProcedureId::root(1)).is_some());
        assert!(ends.take(ProcedureId::root(1)).is_none());
        ends.forget(2);
        assert!(ends.take(ProcedureId::root(2)).is_none());
        (4..4 + ENDS as u64).for_each(|family| ends.keep(success(family)));
        assert!(ends.take(ProcedureId::root(3)).is_none());
        assert!(ends.take(ProcedureId::root(4)).is_some());
        assert!(ends.outcomes.len() < ENDS && ends.order.len() == ENDS);
    }

    #[test]
    fn only_a_root_that_succeeded_with_a_small_output_is_kept() {
        let root = ProcedureId::root(1);
        let mut ends = NewestEnds::default();
        ends.begin();
        ends.keep(end(root, ProcedureState::Failed, None));
        ends.keep(end(root, ProcedureState::Success, None));
        ends.keep(end(root, ProcedureState::Success, Some(vec![0; OUTPUT + 1])));
        ends.keep(end(ProcedureId::new(1, 1), ProcedureState::Success, Some(vec![1])));
        assert!(ends.outcomes.is_empty() && ends.order.is_empty());
    }
}
