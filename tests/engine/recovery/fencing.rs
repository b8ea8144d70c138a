//! One owner at a time: who comes second is refused, and who was overtaken stops.

use std::future::IntoFuture;

use procession::errors::{AskError, StartError, StoreError, SubmitError};
use procession::testkit::{Fault, FaultPlan, Run, World};
use procession::{Executor, ProcedureId};
use tempfile::TempDir;

use super::helper::{Other, work};
use crate::support::{Act, Lab, Planned, Tested, chain, enumerate_later, kinds, live_in, plan, spawn};

#[test]
fn e_102_a_second_opener_is_refused_and_the_first_not_disturbed() -> Tested {
    let place = TempDir::new()?;
    let lab = Lab::default();
    actix_rt::System::new().block_on(async {
        let first = kinds(&lab, Executor::builder(place.path())).start().await?;
        let handle = first
            .submit(Planned(plan("a", [Act::Held("go".to_owned(), Box::new(Act::Done(4)))])))
            .await?;

        let me = format!("process {}", std::process::id());
        let second = kinds(&lab, Executor::builder(place.path())).start().await;
        match second.err().ok_or("a second engine has opened the store")? {
            StartError::Store(StoreError::Held { holder, .. }) => assert!(holder.contains(&me), "{holder}"),
            other => return Err(other.into()),
        }
        let elsewhere = place.path().to_owned();
        let said = actix_rt::task::spawn_blocking(move || {
            let mut other = Other::start(&elsewhere, "open").map_err(|error| error.to_string())?;
            other.next("said: ").map_err(|error| error.to_string())
        })
        .await??;
        assert!(
            said.contains("in use by another engine") && said.contains(&me),
            "{said}"
        );

        lab.open("go");
        assert_eq!(handle.outcome().await?, 4);
        assert_eq!(first.submit(Planned(chain("b", 2))).await?.await?, 7);
        first.drain(std::time::Duration::from_secs(5)).await?;
        Ok(())
    })
}

#[test]
fn e_102_who_holds_it_elsewhere_is_named() -> Tested {
    let place = TempDir::new()?;
    let mut other = Other::start(place.path(), "write")?;
    other.next("acknowledged: ")?;
    actix_rt::System::new().block_on(async {
        let refused = kinds(&Lab::default(), Executor::builder(place.path()))
            .start()
            .await
            .err();
        let text = refused.ok_or("the store of another process was opened")?.to_string();
        assert!(text.contains(&format!("process {}", other.id())), "{text}");
        Ok::<_, procession::testkit::Trouble>(())
    })?;
    // It goes on as if nothing had been.
    other.next("acknowledged: ")?;
    Ok(())
}

#[test]
fn e_102_overtaken_it_stops_acknowledging_and_says_why() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    world
        .run(
            FaultPlan::none(),
            |builder| kinds(&lab, builder),
            async |run| {
                let held = plan("a", [Act::Held("go".to_owned(), Box::new(Act::Next)), Act::Done(1)]);
                let handle = run.wait(run.executor.submit(Planned(held)).into_future()).await??;
                run.until("its stage runs", || lab.has("a1")).await?;
                let epoch = world.disk.take_epoch();
                let before = world.disk.len();

                lab.open("go");
                let outcome = run
                    .wait(handle.outcome())
                    .await?
                    .err()
                    .ok_or("it came to an end")?
                    .to_string();
                let moved = format!("the journal has moved to another engine, with epoch {epoch}");
                assert!(outcome.contains(&moved), "{outcome}");
                let refused = run.executor.submit(work(0)).await.err();
                assert!(
                    matches!(&refused, Some(SubmitError::Moved { newer }) if *newer == epoch),
                    "{refused:?}"
                );
                let asked = run.executor.status(handle.id()).await.err();
                assert!(
                    matches!(&asked, Some(AskError::Moved { newer }) if *newer == epoch),
                    "{asked:?}"
                );
                let why = format!("another engine has taken the store with epoch {epoch}");
                assert!(
                    run.executor
                        .snapshot()
                        .await?
                        .poisoned
                        .is_some_and(|text| text.contains(&why))
                );
                assert_eq!(world.disk.len(), before, "nothing of the refused commit is there");
                assert_eq!(lab.line(), "a1", "nothing that rests on it happened");
                Ok(())
            },
        )?
        .done()?;
    // The new owner finds the last state that the first had committed.
    crate::support::live_in(&world, &lab, async |run| {
        run.until("the chain goes on", || lab.has("a2")).await
    })?;
    assert_eq!(lab.line(), "a1 a1 a2");
    Ok(())
}

/// Whichever commit is its last: nothing of the next is there, and the new owner goes on behind it.
#[test]
fn e_102_overtaken_at_each_of_its_commits() -> Tested {
    /// Submit, the root, its child, the root again.
    const COMMITS: u64 = 4;
    let root = || plan("r", [spawn([chain("c", 1)]), Act::Done(1)]);
    for commit in 1..=COMMITS {
        let (world, lab) = (World::new(), Lab::default());
        let withheld = FaultPlan::at(commit, Fault::Withhold);
        let drive = async |run: &Run| {
            let submitting = run.executor.submit(Planned(root())).key("k").into_future();
            let submitted = actix_rt::spawn(submitting);
            run.until("its last commit is on the disk", || run.store.is_withholding())
                .await?;
            let epoch = world.disk.take_epoch();
            let before = world.disk.len();
            run.store.release_receipts();
            run.settle().await;
            let why = format!("another engine has taken the store with epoch {epoch}");
            // With its last commit behind it, it learns so from the next that it tries.
            let next = run.executor.submit(work(0)).await.err();
            let has_moved = |error: &SubmitError| matches!(error, SubmitError::Moved { newer } if *newer == epoch);
            assert!(next.as_ref().is_some_and(has_moved), "commit {commit}: {next:?}");
            assert!(
                run.executor
                    .snapshot()
                    .await?
                    .poisoned
                    .is_some_and(|text| text.contains(&why))
            );
            assert_eq!(world.disk.len(), before, "nothing of the refused commit is there");
            submitted.await?.ok();
            Ok(lab.calls().len())
        };
        let called = world.run(withheld, |builder| kinds(&lab, builder), drive)?.done()?;
        let all: Vec<&str> = ["r1", "c1", "r2"].into_iter().collect();
        live_in(&world, &lab, async |run| {
            let outcome = run.wait(run.executor.outcome(ProcedureId::root(1))).await??;
            assert_eq!(outcome.output::<i64>()?, Some(1));
            Ok(())
        })?;
        let mut calls: Vec<String> = lab.calls().iter().map(crate::support::Call::short).collect();
        assert!(calls.len() <= all.len() + 1 && called <= calls.len(), "{calls:?}");
        calls.dedup();
        assert_eq!(calls, all, "commit {commit}");
    }
    Ok(())
}

#[test]
fn e_102_the_new_owner_goes_on_however_it_crashes() -> Tested {
    let prepare = || {
        let (world, lab) = (World::new(), Lab::default());
        let id = live_in(&world, &lab, async |run| {
            let held = plan("a", [Act::Held("go".to_owned(), Box::new(Act::Next)), Act::Done(1)]);
            let handle = run.wait(run.executor.submit(Planned(held)).into_future()).await??;
            run.until("its stage runs", || lab.has("a1")).await?;
            world.disk.take_epoch();
            lab.open("go");
            assert!(run.wait(handle.outcome()).await?.is_err(), "it was overtaken");
            Ok(handle.id())
        })?;
        Ok((world, (lab, id)))
    };
    let set_up = |(lab, _): &(Lab, _), builder| kinds(lab, builder);
    let drive = async |(_, id): &(Lab, ProcedureId), run: &Run, _: usize| {
        let outcome = run.wait(run.executor.outcome(*id)).await??;
        assert_eq!(outcome.output::<i64>()?, Some(1));
        Ok(())
    };
    let check = |(lab, _): &(Lab, ProcedureId), crashes: usize| {
        assert!((2..=2 + crashes).contains(&lab.count("a1")), "{}", lab.line());
        assert!((1..=1 + crashes).contains(&lab.count("a2")), "{}", lab.line());
        Ok(())
    };
    // The start's own, and two stages.
    assert_eq!(enumerate_later(prepare, set_up, drive, check)?, 3);
    Ok(())
}
