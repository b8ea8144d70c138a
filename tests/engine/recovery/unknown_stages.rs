//! A release is taken back: procedures that stand at a stage which only it knows wait for it, and nothing of them is undone.

use std::future::IntoFuture;

use procession::operate::OperatorRequest;
use procession::status::{ProcedureState, WaitReason};
use procession::testkit::{FaultPlan, Run, Trouble, World};
use procession::{Builder, Handle, Procedure, ProcedureId, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

use crate::support::{Lab, Tested};

/// An order of a release with these stages. The second waits for the event `go`; the third fails if the order says so.
macro_rules! release {
    ($name:ident, $stages:ident { $($stage:ident),* }, $next:expr) => {
        #[derive(Clone, Debug, Serialize, Deserialize)]
        enum $stages {
            $($stage),*
        }

        #[derive(Clone, Debug, Serialize, Deserialize)]
        struct $name {
            fails: bool,
        }

        impl Procedure for $name {
            const KIND: &'static str = "order";
            type Stage = $stages;
            type Env = Lab;
            type Output = i64;

            fn first(&self) -> $stages {
                $stages::Reserve
            }

            async fn execute(&mut self, stage: $stages, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
                cx.env().note(format!("{stage:?}"));
                $next(self, stage)
            }

            async fn rollback(&mut self, stage: $stages, cx: &mut StageContext<'_, Self>) -> Result<(), StageError> {
                cx.env().note(format!("{stage:?}'"));
                Ok(())
            }
        }
    };
}

fn wait(event: &str, then: NewerStage) -> Step<Newer> {
    Step::Wait {
        event: event.to_owned(),
        timeout: None,
        then,
    }
}

release!(Older, OlderStage { Reserve, Pay }, |_: &Older, stage| Ok(match stage {
    OlderStage::Reserve => Step::Next(OlderStage::Pay),
    OlderStage::Pay => Step::Done(1),
}));
release!(
    Newer,
    NewerStage { Reserve, Insure, Pay },
    |order: &Newer, stage| match stage {
        NewerStage::Reserve => Ok(wait("go", NewerStage::Insure)),
        NewerStage::Insure => Ok(wait("on", NewerStage::Pay)),
        NewerStage::Pay if order.fails => Err(StageError::fail("no money")),
        NewerStage::Pay => Ok(Step::Done(2)),
    }
);

fn life<P: Procedure<Env = Lab>, T>(
    world: &World,
    lab: &Lab,
    drive: impl AsyncFnOnce(&Run) -> Result<T, Trouble>,
) -> Result<T, Trouble> {
    let set_up = |builder: Builder| builder.register::<P>(lab.clone());
    world.run(FaultPlan::none(), set_up, drive)?.done()
}

async fn signalled(run: &Run, id: ProcedureId, event: &str) -> Tested {
    run.wait(run.executor.signal(id, event, &1_i64)).await??;
    run.settle().await;
    Ok(())
}

/// Its family is set aside, with the reason.
async fn waits_for_its_code(run: &Run, id: ProcedureId) -> Tested {
    run.settle().await;
    let aside = run.executor.status(id).await?;
    assert_eq!(aside.wait, Some(WaitReason::Quarantined));
    let quarantined = run.executor.snapshot().await?.quarantined;
    let why = quarantined.first().map(|(_, why)| why.as_str()).unwrap_or_default();
    assert!(why.contains("this code has no such stage"), "{why}");
    Ok(())
}

#[test]
fn one_at_a_stage_that_only_a_later_release_knows_waits_for_that_release() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let id = life::<Newer, _>(&world, &lab, async |run| {
        let order = run
            .wait(run.executor.submit(Newer { fails: false }).into_future())
            .await??;
        run.settle().await;
        Ok(order.id())
    })?;
    life::<Older, _>(&world, &lab, async |run| {
        signalled(run, id, "go").await?;
        waits_for_its_code(run, id).await
    })?;
    // It is met as it is by the next start as well.
    life::<Older, _>(&world, &lab, async |run| waits_for_its_code(run, id).await)?;
    life::<Newer, _>(&world, &lab, async |run| {
        run.settle().await;
        signalled(run, id, "on").await?;
        let order: Handle<Newer> = run.executor.handle(id);
        assert_eq!(run.wait(order.outcome()).await??, 2);
        Ok(())
    })?;
    assert_eq!(lab.noted(), ["Reserve", "Insure", "Pay"]);
    Ok(())
}

#[test]
fn an_undo_of_a_stage_that_only_a_later_release_knows_waits_for_that_release() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let id = life::<Newer, _>(&world, &lab, async |run| {
        let order = run
            .wait(run.executor.submit(Newer { fails: true }).into_future())
            .await??;
        run.settle().await;
        signalled(run, order.id(), "go").await?;
        Ok(order.id())
    })?;
    life::<Older, _>(&world, &lab, async |run| {
        let by = OperatorRequest::new("ann", "no longer wanted");
        run.wait(run.executor.abort(id, by)).await??;
        waits_for_its_code(run, id).await
    })?;
    life::<Newer, _>(&world, &lab, async |run| {
        run.settle().await;
        assert_eq!(
            run.wait(run.executor.outcome(id)).await??.state,
            ProcedureState::RolledBack
        );
        Ok(())
    })?;
    assert_eq!(lab.noted(), ["Reserve", "Insure", "Insure'", "Reserve'"]);
    Ok(())
}
