//! `Noop`: the procedure that does nothing, durably.

use procession_actors::{Procedure, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

/// Succeeds at once (HBase's `NoopProcedure`): a probe of the whole way from
/// submission to outcome, in two commits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Noop;

impl Procedure for Noop {
    const KIND: &'static str = "procession.noop";
    type Stage = ();
    type Env = ();
    type Output = ();

    fn first(&self) -> Self::Stage {}

    async fn execute(&mut self, (): (), _: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        Ok(Step::Done(()))
    }
}
