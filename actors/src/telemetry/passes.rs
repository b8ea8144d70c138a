//! How procedures of a kind went from stage to stage since the engine started. The dashboard draws it, and no recorder is
//! told: a series for each pair of stages would be too many.

use procession_kernel::{Ending, ProcedureState};

use super::labels::{OTHER, outcome_place};

/// Stages of one kind, and stages that follow one of them. An enum has fewer variants; further stages count as one.
const STAGES: usize = 64;

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

/// The stages of one kind, in the order in which they were first seen.
#[derive(Default)]
pub(super) struct StagePasses {
    stages: Vec<StagePass>,
    /// Index of the stage that was counted last.
    last: usize,
}

impl StagePasses {
    pub(super) fn all(&self) -> Vec<StagePass> {
        self.stages.clone()
    }

    pub(super) fn begun(&mut self, stage: &str) {
        if let Some(pass) = self.stage(stage) {
            pass.begun += 1;
        }
    }

    /// Counts a call that has ended, and the stage that follows it.
    pub(super) fn ran(&mut self, stage: &str, ending: Ending, next: Option<&str>) {
        let Some(pass) = self.stage(stage) else { return };
        match ending {
            Ending::Retry | Ending::Panic => pass.retries += 1,
            Ending::Undone => pass.undone += 1,
            Ending::UndoFailed => pass.undo_failed += 1,
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
        match pass.next.iter_mut().find(|(name, _)| name == next) {
            Some((_, count)) => *count += 1,
            None => pass.further(next),
        }
    }

    pub(super) fn ended(&mut self, stage: &str, state: ProcedureState) {
        let place = outcome_place(state);
        let pass = self.stage(stage);
        if let Some(count) = pass.zip(place).and_then(|(pass, place)| pass.ended.get_mut(place)) {
            *count += 1;
        }
    }

    /// Finds a stage, which is mostly the one of the previous call.
    fn stage(&mut self, stage: &str) -> Option<&mut StagePass> {
        if self.stages.get(self.last).is_none_or(|pass| pass.stage != stage) {
            self.last = match self.stages.iter().position(|pass| pass.stage == stage) {
                Some(place) => place,
                None => self.add(stage),
            };
        }
        self.stages.get_mut(self.last)
    }

    fn add(&mut self, stage: &str) -> usize {
        let name = if self.stages.len() < STAGES { stage } else { OTHER };
        if let Some(place) = self.stages.iter().position(|pass| pass.stage == name) {
            return place;
        }
        self.stages.push(StagePass {
            stage: name.to_owned(),
            ..StagePass::default()
        });
        self.stages.len() - 1
    }
}

impl StagePass {
    /// Counts a stage that has not followed this one before.
    fn further(&mut self, next: &str) {
        let name = if self.next.len() < STAGES { next } else { OTHER };
        match self.next.iter_mut().find(|(known, _)| known == name) {
            Some((_, count)) => *count += 1,
            None => self.next.push((name.to_owned(), 1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_and_what_follows_them_are_bounded() {
        let mut passes = StagePasses::default();
        for number in 0..1_000 {
            passes.ran(&format!("stage {number}"), Ending::Next, Some("next"));
            passes.ran("one", Ending::Next, Some(&format!("stage {number}")));
        }
        let all = passes.all();
        assert_eq!(all.len(), STAGES + 1);
        let runs = |pass: &StagePass| pass.next.iter().map(|(_, count)| count).sum::<u64>();
        assert_eq!(all.iter().map(runs).sum::<u64>(), 2_000, "none is lost");
        let one = all.iter().find(|pass| pass.stage == "one").expect("it was counted");
        assert_eq!((one.next.len(), runs(one)), (STAGES + 1, 1_000));
    }
}
