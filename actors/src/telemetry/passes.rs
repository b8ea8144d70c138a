//! How procedures of a kind went from stage to stage since the engine started. The dashboard draws it, and no recorder is
//! told: a series for each pair of stages would be too many.

use procession_kernel::{Ending, ProcedureState};

use super::labels::outcome_place;
use super::stage_names::{ByStage, StageNames, StagePlace};

/// How procedures left one stage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StagePass {
    /// Its name.
    pub stage: String,
    /// Procedures that were born with it as their first stage.
    pub begun: u64,
    /// Attempts that failed and were, or would have been, followed by another.
    pub retries: u64,
    /// The stages that followed it, and how often.
    pub next: Vec<(String, u64)>,
    /// Procedures that ended at it: successes, rolled back, and failed.
    pub ended: [u64; 3],
    /// Undos of it that succeeded.
    pub undone: u64,
    /// Undos of it that failed.
    pub undo_failed: u64,
}

/// The stages of one kind.
#[derive(Default)]
pub(super) struct StagePasses(ByStage<Pass>);

/// How procedures left one stage, without names.
#[derive(Default)]
struct Pass {
    /// Its name and what followed are stored elsewhere.
    counts: StagePass,
    next: Vec<(StagePlace, u64)>,
}

impl StagePasses {
    /// Returns the stages that were counted, in the order in which they were first seen.
    pub(super) fn all(&self, names: &StageNames) -> Vec<StagePass> {
        self.0.iter().map(|(stage, pass)| pass.named(stage, names)).collect()
    }

    pub(super) fn begun(&mut self, stage: StagePlace) {
        if let Some(pass) = self.of(stage) {
            pass.counts.begun += 1;
        }
    }

    /// Counts a call that has ended, and the stage that follows it.
    pub(super) fn ran(&mut self, stage: StagePlace, ending: Ending, next: Option<StagePlace>) {
        let Some(pass) = self.of(stage) else { return };
        match ending {
            Ending::Retry | Ending::Panic => pass.counts.retries += 1,
            Ending::Undone => pass.counts.undone += 1,
            Ending::UndoFailed => pass.counts.undo_failed += 1,
            Ending::Next
            | Ending::Done
            | Ending::Spawn
            | Ending::Sleep
            | Ending::Wait
            | Ending::Asked
            | Ending::Fail
            | Ending::UndoSkipped => {}
            _ => {}
        }
        let Some(next) = next else { return };
        match pass.next.iter_mut().find(|(known, _)| *known == next) {
            Some((_, count)) => *count += 1,
            None => pass.next.push((next, 1)),
        }
    }

    pub(super) fn ended(&mut self, stage: StagePlace, state: ProcedureState) {
        let outcome = outcome_place(state);
        let pass = self.of(stage);
        if let Some(count) = pass
            .zip(outcome)
            .and_then(|(pass, outcome)| pass.counts.ended.get_mut(outcome))
        {
            *count += 1;
        }
    }

    fn of(&mut self, stage: StagePlace) -> Option<&mut Pass> {
        self.0.of(stage, Pass::default)
    }
}

impl Pass {
    fn named(&self, stage: StagePlace, names: &StageNames) -> StagePass {
        let next = self.next.iter();
        StagePass {
            stage: names.name(stage).to_owned(),
            next: next
                .map(|(next, count)| (names.name(*next).to_owned(), *count))
                .collect(),
            ..self.counts.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::stage_names::STAGES;
    use super::*;

    #[test]
    fn stages_and_what_follows_them_are_bounded() {
        let (mut names, mut passes) = (StageNames::default(), StagePasses::default());
        let (one, next) = (names.place("one"), names.place("next"));
        for number in 0..1_000 {
            let stage = names.place(&format!("stage {number}"));
            passes.ran(stage, Ending::Next, Some(next));
            passes.ran(one, Ending::Next, Some(stage));
        }
        let all = passes.all(&names);
        assert_eq!(all.len(), STAGES, "`next` was only named");
        let runs = |pass: &StagePass| pass.next.iter().map(|(_, count)| count).sum::<u64>();
        assert_eq!(all.iter().map(runs).sum::<u64>(), 2_000, "none is lost");
        let one = all.iter().find(|pass| pass.stage == "one").expect("it was counted");
        assert_eq!(
            (one.next.len(), runs(one)),
            (STAGES - 1, 1_000),
            "it and `next` did not follow it"
        );
    }
}
