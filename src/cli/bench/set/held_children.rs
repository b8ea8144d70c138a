//! A parent whose children wait for their places: what nodes that wait are compared with.

use procession::{Children, Procedure, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

/// Has children that are set going one at a time. The first never ends.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct HeldParent {
    pub(super) children: u32,
    pub(super) payload: String,
}

impl Procedure for HeldParent {
    const KIND: &'static str = "bench_held_parent";
    const ROLLBACK: bool = false;
    type Stage = ();
    type Env = ();
    type Output = ();

    fn first(&self) {}

    async fn execute(&mut self, (): (), _: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        let child = HeldChild {
            payload: std::mem::take(&mut self.payload),
        };
        if self.children == 0 {
            return Ok(Step::Done(()));
        }
        let children =
            (0..std::mem::take(&mut self.children)).try_fold(Children::new(), |children, _| children.and(&child))?;
        Ok(Step::Spawn {
            children: children.width(1),
            then: (),
        })
    }
}

/// Waits for an event that nobody sends.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct HeldChild {
    payload: String,
}

impl Procedure for HeldChild {
    const KIND: &'static str = "bench_held_child";
    const ROLLBACK: bool = false;
    type Stage = ();
    type Env = ();
    type Output = ();

    fn first(&self) {}

    async fn execute(&mut self, (): (), _: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        Ok(Step::Wait {
            event: "never".to_owned(),
            timeout: None,
            then: (),
        })
    }
}
