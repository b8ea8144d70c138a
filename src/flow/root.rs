//! The root of a set: a procedure that is never called. It is born with its nodes, and ends with the last of them.

use procession_actors::{Procedure, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

/// The root of a set. Its children are the nodes. [`Builder::processor`](crate::Builder::processor) and
/// [`Builder::sets`](crate::Builder::sets) register it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetRoot;

impl Procedure for SetRoot {
    const KIND: &'static str = "procession.set";
    const ROLLBACK: bool = false;
    type Stage = ();
    type Env = ();
    type Output = ();

    fn first(&self) {}

    async fn execute(&mut self, (): (), _: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        Ok(Step::Done(()))
    }
}
