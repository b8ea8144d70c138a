//! The bound of an evaluation.

use super::{Mistake, STEPS, STEPS_OF_STAGE};

/// Bytes that one step compares or copies.
const BYTES: usize = 8;

/// How many steps are left: to one evaluation, and to all evaluations of a stage together.
#[derive(Debug)]
pub struct Steps {
    evaluation: usize,
    stage: usize,
}

impl Default for Steps {
    fn default() -> Self {
        Self::new()
    }
}

impl Steps {
    /// Returns the steps of a stage that begins.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            evaluation: STEPS,
            stage: STEPS_OF_STAGE,
        }
    }

    /// Begins another evaluation of the same stage.
    pub const fn again(&mut self) -> &mut Self {
        self.evaluation = STEPS;
        self
    }

    /// Takes steps before they are made, or refuses them all.
    pub(super) fn take(&mut self, steps: usize, at: usize) -> Result<(), Mistake> {
        let Some(evaluation) = self.evaluation.checked_sub(steps) else {
            return Err((at, format!("the evaluation takes more than {STEPS} steps")));
        };
        let Some(stage) = self.stage.checked_sub(steps) else {
            let text = format!("the evaluations of this stage take more than {STEPS_OF_STAGE} steps together");
            return Err((at, text));
        };
        *self = Self { evaluation, stage };
        Ok(())
    }

    /// Takes the steps for bytes that are about to be compared or copied.
    pub(super) fn take_bytes(&mut self, bytes: usize, at: usize) -> Result<(), Mistake> {
        self.take(bytes / BYTES, at)
    }
}
