//! A priority that is set later moves a waiter in its queue, also over a restart.

use procession::errors::AskError;
use procession::operate::OperatorRequest;
use procession::testkit::{FaultPlan, Run, Trouble, World};
use procession::{Handle, ProcedureId};

use crate::rollback::helper::{commits, submit};
use crate::support::{Act, Lab, Limited, Planned, Tested, chain, kinds, plan, spawn};

async fn queue(run: &Run) -> Result<Vec<Handle<Limited>>, Trouble> {
    let mut handles = Vec::new();
    let held = plan("h", [Act::Held("h".to_owned(), Box::new(Act::Done(1)))]);
    handles.push(submit(run, Limited(held), "h").await?);
    for name in ["a", "b", "c"] {
        handles.push(submit(run, Limited(chain(name, 1)), name).await?);
    }
    run.settle().await;
    Ok(handles)
}

fn nth(handles: &[Handle<Limited>], place: usize) -> Result<ProcedureId, Trouble> {
    let handle = handles.get(place).ok_or("four were submitted")?;
    Ok(handle.id())
}

fn lives(restart: bool) -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let set_up = |builder| kinds(&lab, builder).limit("limited", 1);
    let prioritise = async |run: &Run| {
        let handles = queue(run).await?;
        let before = commits(run).await?;
        let by = || OperatorRequest::new("ann", "it is urgent");
        run.executor.set_priority(nth(&handles, 3)?, 5, by()).await?;
        run.executor.set_priority(nth(&handles, 1)?, -5, by()).await?;
        assert_eq!(commits(run).await?, before + 2);
        assert!(!lab.has("c1"), "it does not take the permit away");
        Ok(())
    };
    let finish = async |run: &Run| {
        let handles = queue(run).await?;
        lab.open("h");
        for handle in &handles {
            run.wait(handle.outcome()).await??;
        }
        let ended = run
            .executor
            .set_priority(nth(&handles, 3)?, 5, OperatorRequest::new("ann", "late"))
            .await;
        assert!(matches!(ended, Err(AskError::Finished { .. })));
        Ok(())
    };
    if restart {
        world.run(FaultPlan::none(), set_up, prioritise)?.done()?;
        world.run(FaultPlan::none(), set_up, finish)?.done()?;
    } else {
        let both = async |run: &Run| {
            prioritise(run).await?;
            finish(run).await
        };
        world.run(FaultPlan::none(), set_up, both)?.done()?;
    }
    let order: Vec<String> = lab
        .calls()
        .into_iter()
        .map(|call| call.name)
        .filter(|name| name != "h")
        .collect();
    assert_eq!(order, ["c", "b", "a"]);
    Ok(())
}

#[test]
fn an_undo_that_waits_moves_with_the_root_of_its_rollback() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let gate = |name: &str, act| Act::Held(name.to_owned(), Box::new(act));
    let child = chain("c", 1).exclusive("t").compensated();
    let root = plan("r", [spawn([child]), gate("r2", Act::Fail("boom".to_owned()))]);
    let set_up = |builder| kinds(&lab, builder);
    world
        .run(FaultPlan::none(), set_up, async |run: &Run| {
            let family = submit(run, Planned(root.clone()), "r").await?;
            run.settle().await;
            let holder = plan("s", [gate("s", Act::Done(1))]).exclusive("t");
            let holder = submit(run, Planned(holder), "s").await?;
            let waiter = submit(run, Planned(chain("w", 1).exclusive("t")), "w").await?;
            run.settle().await;
            lab.open("r2");
            run.settle().await;
            let by = || OperatorRequest::new("ann", "it is urgent");
            let child = lab.id("c").ok_or("c has an id")?;
            let ended = run.executor.set_priority(child, 5, by()).await;
            assert!(matches!(ended, Err(AskError::Finished { .. })), "{ended:?}");
            run.executor.set_priority(family.id(), 5, by()).await?;
            lab.open("s");
            run.wait(holder.outcome()).await??;
            assert!(run.wait(family.outcome()).await?.is_err(), "it is rolled back");
            run.wait(waiter.outcome()).await??;
            Ok::<_, Trouble>(())
        })?
        .done()?;
    assert_eq!(lab.line(), "r1 c1 r2 s1 r2' c1' r1' w1");
    Ok(())
}

#[test]
fn a_waiter_moves_in_its_queue() -> Tested {
    lives(false)
}

#[test]
fn its_place_survives_a_restart() -> Tested {
    lives(true)
}
