//! What the tests of this theme share.

use std::time::Duration;

use procession::health::{Explanation, Rule, Thresholds, Verdict, WaitingFor};
use procession::procedure::Timestamp;
use procession::testkit::{FaultPlan, Run, Trouble, World};
use procession::{Builder, Procedure, ProcedureId, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

use crate::support::{Lab, kinds, stuck};

/// Returns an instant in seconds.
pub(crate) fn at(seconds: u64) -> Timestamp {
    Timestamp(seconds * 1_000_000)
}

/// Is expected to take a minute; waits, in its body, for the gate of its name.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Slow(pub(crate) String);

impl Procedure for Slow {
    const KIND: &'static str = "slow";
    type Stage = String;
    type Env = Lab;
    type Output = i64;

    fn first(&self) -> String {
        "Copy".to_owned()
    }

    async fn execute(&mut self, _: String, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        let lab = cx.env().clone();
        lab.note(format!("{} runs", self.0));
        lab.gate(&self.0).await;
        Ok(Step::Done(1))
    }

    fn expected(&self, _: &String) -> Option<Duration> {
        Some(Duration::from_mins(1))
    }
}

/// One life with low thresholds, so that little makes a verdict.
pub(crate) fn live_in<T>(
    world: &World,
    lab: &Lab,
    plan: FaultPlan,
    drive: impl AsyncFnOnce(&Run) -> Result<T, Trouble>,
) -> Result<T, Trouble> {
    world.run(plan, |builder| set_up(lab, builder), drive)?.done()
}

pub(crate) fn set_up(lab: &Lab, builder: Builder) -> Builder {
    let thresholds = Thresholds::default()
        .retries(3)
        .same_stage(5)
        .overtaken(3)
        .free(Duration::ZERO);
    kinds(lab, builder)
        .register::<Slow>(lab.clone())
        .limit("limited", 1)
        .thresholds(thresholds)
}

/// Returns the verdicts on what is stuck, each as its rule and whose it is.
pub(crate) async fn told(run: &Run) -> Result<Vec<(Rule, Option<ProcedureId>)>, Trouble> {
    Ok(stuck(run)
        .await?
        .into_iter()
        .map(|verdict| (verdict.rule, verdict.procedure))
        .collect())
}

/// Returns the only verdict that there is.
pub(crate) async fn the_verdict(run: &Run) -> Result<Verdict, Trouble> {
    run.settle().await;
    let verdicts = run.executor.verdicts().await?;
    match <[Verdict; 1]>::try_from(verdicts) {
        Ok([verdict]) => Ok(verdict),
        Err(others) => Err(format!("one verdict is expected, not {others:#?}").into()),
    }
}

/// Returns the links of an explanation without their times.
pub(crate) fn links(explanation: &Explanation) -> Vec<(ProcedureId, ProcedureId, WaitingFor)> {
    let links = explanation.links.iter();
    links.map(|link| (link.from, link.to, link.why.clone())).collect()
}
