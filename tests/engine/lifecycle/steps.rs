//! `Yield`: the same stage again, with nothing stored.

use procession::testkit::{FaultPlan, Run, World};
use procession::{Procedure, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

use super::kit::{crash, enumerate_in, submit};
use crate::support::{Call, Lab, Tested, live_in};

/// Counts its calls in its value, logs what it has counted, and yields three times.
#[derive(Clone, Serialize, Deserialize)]
struct Counting {
    n: u32,
}

impl Procedure for Counting {
    const KIND: &'static str = "counting";
    type Stage = ();
    type Env = Lab;
    type Output = u32;

    fn first(&self) -> Self::Stage {}

    async fn execute(&mut self, (): (), cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        let lab = cx.env().clone();
        if lab.calls().len() == 2 {
            // Here, after the second yield, one test crashes.
            lab.note("between");
            lab.gate("go on").await;
        }
        self.n += 1;
        let call = Call {
            name: "a".to_owned(),
            stage: 1,
            undo: false,
            attempt: cx.attempt(),
            value: vec![self.n],
        };
        lab.called(cx.id(), call);
        if lab.yields("a", 3) {
            return Ok(Step::Yield);
        }
        Ok(Step::Done(self.n))
    }
}

async fn ended(lab: &Lab, run: &Run) -> Tested {
    lab.open("go on");
    let handle = submit(run, Counting { n: 0 }, "k").await?;
    assert_eq!(run.wait(handle.outcome()).await??, 1);
    let history = run.executor.history(handle.id()).await?;
    let attempts: Vec<u32> = history.iter().map(|entry| entry.attempt).collect();
    assert_eq!(attempts, [1]);
    Ok(())
}

fn counted(lab: &Lab) -> Vec<(u32, Vec<u32>)> {
    lab.calls().into_iter().map(|call| (call.attempt, call.value)).collect()
}

#[test]
fn e_005_yield_persists_nothing() -> Tested {
    let (done, lab) = enumerate_in(
        Lab::default,
        |lab, builder| builder.register::<Counting>(lab.clone()),
        ended,
    )?;
    assert_eq!(done.commits, 2);
    assert_eq!(counted(&lab), vec![(1, vec![1]); 4]);
    Ok(())
}

#[test]
fn e_005_a_crash_between_yields_changes_nothing() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let counting = |builder: procession::Builder| builder.register::<Counting>(lab.clone());
    world.run(FaultPlan::none(), counting, async |run| {
        submit(run, Counting { n: 0 }, "k").await?;
        run.until("it has yielded twice", || !lab.noted().is_empty()).await?;
        assert_eq!(run.executor.snapshot().await?.commits, 1);
        crash::<Tested>(run).await
    })?;
    let second = world.run(FaultPlan::none(), counting, async |run| {
        ended(&lab, run).await?;
        Ok(run.executor.snapshot().await?.commits)
    })?;
    assert_eq!(second.done()?, 1);
    assert_eq!(counted(&lab), vec![(1, vec![1]); 4]);
    // The world is the same one, so that the result is still there.
    live_in(&world, &lab, async |run| {
        assert_eq!(run.executor.snapshot().await?.live_families, 0);
        Ok(())
    })
}
