//! Live procedures that wait beside the chains: what a stage costs must not
//! depend on how many there are.

use procession::{Executor, Procedure, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

use super::super::BenchError;
use super::super::common::{submit_all, until};

/// Name of an event that never comes.
const EVENT: &str = "never";

/// Waits, and is waiting still when the run ends.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Bystander {
    pub(super) payload: String,
}

impl Procedure for Bystander {
    const KIND: &'static str = "bench_bystander";
    type Stage = ();
    type Env = ();
    type Output = ();

    fn first(&self) -> Self::Stage {}

    async fn execute(&mut self, (): (), _: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        Ok(Step::Wait {
            event: EVENT.to_owned(),
            timeout: None,
            then: (),
        })
    }
}

/// Submits so many, and comes back when each is parked.
pub(super) async fn park(executor: &Executor, number: u32, payload: &str) -> Result<(), BenchError> {
    let bystander = Bystander {
        payload: payload.to_owned(),
    };
    submit_all(executor, number, &bystander).await?;
    until(executor, |snapshot| snapshot.going == 0 && snapshot.actors == 0).await
}
