//! A kind that has thresholds of its own is told of from these on, and others from the engine's.

use std::future::IntoFuture;
use std::time::Duration;

use procession::health::{KindThresholds, Rule, Thresholds};
use procession::procedure::RetryPolicy;
use procession::testkit::{FaultPlan, Run, Trouble, World};
use procession::{Procedure, ProcedureId, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

use super::kit::told;
use crate::support::Tested;

/// Looks every second whether something is there, or is refused every second; and has its own thresholds, or not.
#[derive(Clone, Serialize, Deserialize)]
struct Poll<const OWN: bool> {
    fails: bool,
}

impl<const OWN: bool> Procedure for Poll<OWN> {
    const KIND: &'static str = if OWN { "own" } else { "plain" };
    type Stage = u32;
    type Env = ();
    type Output = ();

    fn first(&self) -> u32 {
        1
    }

    async fn execute(&mut self, stage: u32, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        if self.fails {
            return Err(StageError::retry("it is refused"));
        }
        Ok(Step::Sleep {
            until: cx.now().after(Duration::from_secs(1)),
            then: stage,
        })
    }

    fn retry() -> RetryPolicy {
        RetryPolicy::default().attempts(1_000).max(Duration::from_secs(1))
    }

    fn thresholds() -> KindThresholds {
        if OWN {
            KindThresholds::default().retries(8).same_stage(9).stages(20)
        } else {
            KindThresholds::default()
        }
    }
}

async fn submit<P: Procedure>(run: &Run, procedure: P) -> Result<ProcedureId, Trouble> {
    let handle = run.wait(run.executor.submit(procedure).into_future()).await??;
    run.settle().await;
    Ok(handle.id())
}

fn live(engine: Thresholds, drive: impl AsyncFnOnce(&Run) -> Tested) -> Tested {
    let set_up = |builder: procession::Builder| {
        builder
            .register::<Poll<true>>(())
            .register::<Poll<false>>(())
            .thresholds(engine)
    };
    World::new().run(FaultPlan::none(), set_up, drive)?.done()
}

#[test]
fn e_115_each_kind_is_measured_by_its_own() -> Tested {
    let engine = Thresholds::default().retries(3).same_stage(4);
    live(engine, async |run| {
        let plain = [
            submit(run, Poll::<false> { fails: true }).await?,
            submit(run, Poll::<false> { fails: false }).await?,
        ];
        let own = [
            submit(run, Poll::<true> { fails: true }).await?,
            submit(run, Poll::<true> { fails: false }).await?,
        ];
        let of = |rule: Rule, id: ProcedureId| (rule, Some(id));
        assert_eq!(told(run).await?, []);
        run.pass(Duration::from_secs(4)).await;
        let [storm, circle] = plain;
        let of_plain = [of(Rule::RetryStorm, storm), of(Rule::NoProgress, circle)];
        assert_eq!(told(run).await?, of_plain);
        run.pass(Duration::from_secs(5)).await;
        let [own_storm, own_circle] = own;
        let mut of_all = vec![
            of(Rule::RetryStorm, storm),
            of(Rule::RetryStorm, own_storm),
            of(Rule::NoProgress, circle),
            of(Rule::NoProgress, own_circle),
        ];
        assert_eq!(told(run).await?, of_all);
        // Twenty stages are many for one of its kind, and few for the engine.
        run.pass(Duration::from_secs(10)).await;
        of_all.push(of(Rule::Size, own_circle));
        assert_eq!(told(run).await?, of_all);
        Ok(())
    })
}

#[test]
fn e_115_a_kind_with_low_thresholds_is_told_of_while_it_only_waits() -> Tested {
    // The engine's are so high that those who only wait need not be looked at.
    live(Thresholds::default(), async |run| {
        submit(run, Poll::<false> { fails: false }).await?;
        let own = submit(run, Poll::<true> { fails: false }).await?;
        // The ninth run in a row is that of the eighth second.
        run.pass(Duration::from_secs(7)).await;
        assert_eq!(told(run).await?, []);
        run.pass(Duration::from_secs(1)).await;
        assert_eq!(told(run).await?, [(Rule::NoProgress, Some(own))]);
        Ok(())
    })
}
