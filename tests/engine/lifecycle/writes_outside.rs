//! User data that is written outside a stage: a commit of its own, durable before it is answered.

use std::future::IntoFuture;
use std::pin::pin;
use std::time::Duration;

use procession::errors::{AskError, NotNow};
use procession::messages::WriteUserData;
use procession::procedure::Noop;
use procession::testkit::{Fault, FaultPlan, Run, World};
use procession::{Builder, Procedure, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

use super::kit::{enumerate_in, submit};
use crate::support::{Act, Lab, Once, Tested, kinds, plan};

/// Doubles the row `x`.
#[derive(Clone, Serialize, Deserialize)]
struct Doubles;

impl Procedure for Doubles {
    const KIND: &'static str = "doubles";
    type Stage = ();
    type Env = ();
    type Output = i64;

    fn first(&self) {}

    async fn execute(&mut self, (): (), cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        let before = cx.get::<i64>("rows", "x").await?;
        let after = before.ok_or(StageError::fail("nothing was written"))? * 2;
        cx.put("rows", "x", &after)?;
        Ok(Step::Done(after))
    }
}

#[test]
fn commits_have_one_order_however_the_engine_crashes() -> Tested {
    let drive = async |_: &Lab, run: &Run| {
        let executor = &run.executor;
        if executor.get::<i64>("rows", "x").await?.is_none() {
            executor.put("rows", "x", &21_i64).await?;
        }
        assert_eq!(run.wait(submit(run, Doubles, "k").await?.outcome()).await??, 42);
        if executor.get::<bool>("rows", "moved").await?.is_none() {
            executor.put("rows", "gone", &true).await?;
            assert_eq!(executor.get::<bool>("rows", "gone").await?, Some(true));
            let moves = WriteUserData::new()
                .delete("rows", "gone")
                .put("rows", "moved", &true)?;
            executor.write(moves).await?;
        }
        executor.delete("rows", "never").await?;
        // One write is not there without the other.
        assert_eq!(executor.get::<bool>("rows", "gone").await?, None);
        assert_eq!(executor.get::<i64>("rows", "x").await?, Some(42));
        Ok(())
    };
    let set_up = |lab: &Lab, builder| kinds(lab, builder).register::<Doubles>(());
    enumerate_in(Lab::default, set_up, drive)?;
    Ok(())
}

#[test]
fn a_write_is_answered_once_it_is_durable() -> Tested {
    let set_up = |builder: Builder| builder.register::<Noop>(());
    World::new()
        .run(FaultPlan::none(), set_up, async |run: &Run| {
            run.store.fault_next(Fault::Withhold);
            let mut put = pin!(run.executor.put("rows", "x", &1_i64));
            assert!(
                run.at_rest(put.as_mut()).await.is_none(),
                "its commit is not acknowledged"
            );
            run.store.release_receipts();
            run.at_rest(put).await.ok_or("it is not answered")??;
            assert_eq!(run.executor.get::<i64>("rows", "x").await?, Some(1));
            Ok(())
        })?
        .done()?;
    Ok(())
}

#[test]
fn what_cannot_be_written_is_refused_and_harms_nothing() -> Tested {
    let set_up = |builder: Builder| {
        let builder = builder.register::<Noop>(());
        builder.max_writes(2).max_write_bytes(1_000).max_keyspaces(1)
    };
    World::new()
        .run(FaultPlan::none(), set_up, async |run: &Run| {
            let executor = &run.executor;
            let commits = run.store.commits();
            let nameless = executor.put("", "x", &1_i64).await;
            assert!(matches!(nameless, Err(AskError::Read(_))), "{nameless:?}");
            let keyless = executor.put("rows", "", &1_i64).await;
            assert!(matches!(keyless, Err(AskError::Read(_))), "{keyless:?}");
            let large = executor.put("rows", "x", &"x".repeat(2_000)).await;
            assert!(
                matches!(large, Err(AskError::TooLarge { limit: 1_000, .. })),
                "{large:?}"
            );
            let mut many = WriteUserData::new();
            for key in ["a", "b", "c"] {
                many = many.put("rows", key, &1_i64)?;
            }
            let many = executor.write(many).await;
            assert!(
                matches!(many, Err(AskError::BatchTooLarge { size: 3, limit: 2 })),
                "{many:?}"
            );
            // Neither name nor key can exist, so there is nothing to delete.
            executor.delete("", "x").await?;
            executor.delete("rows", "").await?;
            assert_eq!(run.store.commits(), commits, "none of it was a commit");

            executor.put("rows", "x", &1_i64).await?;
            let second = executor.put("others", "x", &1_i64).await;
            assert!(
                matches!(second, Err(AskError::NotNow { kind: NotNow::Full, .. })),
                "{second:?}"
            );
            executor.submit(Noop).await?.await?;
            Ok(())
        })?
        .done()?;
    Ok(())
}

#[test]
fn a_draining_engine_refuses_writes() -> Tested {
    let lab = Lab::default();
    let set_up = |builder: Builder| kinds(&lab, builder);
    World::new()
        .run(FaultPlan::none(), set_up, async |run: &Run| {
            let held = plan("p", [Act::Held("gate".to_owned(), Box::new(Act::Next)), Act::Done(2)]);
            run.wait(run.executor.submit(Once(held)).into_future()).await??;
            run.until("its stage runs", || lab.calls().len() == 1).await?;
            let executor = run.executor.clone();
            let drain = actix_rt::spawn(async move { executor.drain(Duration::from_secs(30)).await });
            run.settle().await;
            let refused = run.executor.put("rows", "x", &1_i64).await;
            let is_draining = matches!(
                refused,
                Err(AskError::NotNow {
                    kind: NotNow::Draining,
                    ..
                })
            );
            assert!(is_draining, "{refused:?}");
            lab.open("gate");
            run.wait(drain).await???;
            Ok(())
        })?
        .done()?;
    Ok(())
}
