//! What a start does: it leaves the finished alone, takes up the living in
//! their order, and reads no more than those.

use std::future::IntoFuture;

use procession::messages::{Submit, SubmitBatch};
use procession::provider::Clock;
use procession::testkit::{Ended, Fault, FaultPlan, Run, Trouble, World};
use procession::{HistoryEntry, Noop, Status};

use crate::support::{Act, Lab, Planned, Tested, chain, end, kinds, live_in, plan};

fn one_stage() -> Planned {
    Planned(chain("a", 1))
}

/// All that is shown of the one finished root.
async fn shown(run: &Run) -> Result<(i64, Status, Vec<HistoryEntry>), Trouble> {
    let handle = run
        .wait(run.executor.submit(one_stage()).key("k").into_future())
        .await??;
    let output = run.wait(handle.outcome()).await??;
    Ok((output, handle.status().await?, run.executor.history(handle.id()).await?))
}

#[test]
fn e_094_a_restart_changes_nothing_that_is_finished() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let crash = FaultPlan::at(2, Fault::CrashBefore);
    let ended = world.run(
        crash,
        |builder| kinds(&lab, builder),
        async |run| Ok(end(run, one_stage(), "k").await??),
    )?;
    assert!(matches!(ended, Ended::Crashed));

    world.clock.advance(std::time::Duration::from_secs(10));
    let first = live_in(&world, &lab, shown)?;
    assert_eq!(first.0, 7);
    assert_eq!(first.1.ended, Some(world.clock.now()));
    assert_eq!(first.2.len(), 1);
    for _ in 0..2 {
        world.clock.advance(std::time::Duration::from_secs(10));
        let again = live_in(&world, &lab, async |run| {
            let again = shown(run).await?;
            assert_eq!(run.store.commits(), 1, "the start's own commit only");
            Ok(again)
        })?;
        assert_eq!(again, first);
    }
    assert_eq!(lab.line(), "a1 a1", "once before the crash, once after it");
    Ok(())
}

#[test]
fn e_095_who_goes_first() -> Tested {
    let for_ever = |then: Act| Act::Yield(u32::MAX, Box::new(then));
    let fails = Act::Held("now".to_owned(), Box::new(Act::Fail("boom".to_owned())));
    let families = [
        plan("f1-", [for_ever(Act::Done(1))]),
        plan("f2-", [Act::Next, for_ever(Act::Done(1))]),
        plan("f3-", [fails]),
        plan("f4-", [Act::Next, for_ever(Act::Done(1))]),
    ];
    let (world, lab) = (World::new(), Lab::default());
    // Commits: the batch, the first stages of F2 and F4, the failure of F3.
    let crash = FaultPlan::at(4, Fault::CrashAfter);
    let ended = world.run(
        crash,
        |builder| kinds(&lab, builder),
        async |run| {
            let mut submits = Vec::new();
            for family in &families {
                submits.push(Submit::new(&Planned(family.clone()))?);
            }
            run.wait(run.executor.supervisor().send(SubmitBatch(submits)))
                .await???;
            run.until("F2 and F4 are in their second stage", || {
                lab.has("f2-2") && lab.has("f4-2")
            })
            .await?;
            lab.open("now");
            run.until("F3 has failed", || false).await
        },
    )?;
    assert!(matches!(ended, Ended::Crashed));
    let before = lab.calls().len();
    live_in(&world, &lab, async |run| {
        run.until("four bodies ran", || lab.calls().len() >= before + 4).await
    })?;
    let calls: Vec<String> = lab
        .calls()
        .iter()
        .skip(before)
        .take(4)
        .map(crate::support::Call::short)
        .collect();
    assert_eq!(calls, ["f3-1'", "f2-2", "f4-2", "f1-1"]);
    Ok(())
}

/// Engine spaces that hold a family's data.
fn rows(world: &World) -> usize {
    use procession::provider::Space;
    [
        Space::Procedures,
        Space::Payloads,
        Space::History,
        Space::Signals,
        Space::Keys,
        Space::Finished,
    ]
    .iter()
    .map(|space| world.disk.dump(space).len())
    .sum()
}

/// Reads of a start, until everything is at rest.
fn reads_at_start(world: &World, lab: &Lab) -> Result<u64, Trouble> {
    world
        .run(
            FaultPlan::none(),
            |builder| kinds(lab, builder).register::<Noop>(()),
            async |run| {
                let reads = run.store.reads();
                assert_eq!(run.executor.snapshot().await?.recovered.procedures, 100);
                run.settle().await;
                Ok(reads)
            },
        )?
        .done()
}

#[test]
fn e_099_recovery_reads_the_living() -> Tested {
    /// Finished families between two looks; the scenario's number would only take longer.
    const FINISHED: usize = 5_000;
    let (world, lab) = (World::new(), Lab::default());
    let parked = || plan("p", [Act::Wait("go".to_owned(), None), Act::Done(1)]);
    let set_up = |builder: procession::Builder| kinds(&lab, builder).register::<Noop>(()).merge(4_096);
    let mut looks = Vec::new();
    let mut alone = 0;
    for round in 0..3 {
        world
            .run(FaultPlan::none(), set_up, async |run| {
                let parked = if round == 0 {
                    vec![Submit::new(&Planned(parked()))?; 100]
                } else {
                    Vec::new()
                };
                run.wait(run.executor.supervisor().send(SubmitBatch(parked)))
                    .await???;
                run.settle().await;
                if round == 0 {
                    alone = rows(&world);
                    return Ok(());
                }
                let finished = vec![Submit::new(&Noop)?; FINISHED];
                let ids = run
                    .wait(run.executor.supervisor().send(SubmitBatch(finished)))
                    .await???;
                for id in ids {
                    run.wait(run.executor.outcome(id)).await??;
                }
                Ok(())
            })?
            .done()?;
        looks.push(reads_at_start(&world, &lab)?);
    }
    world
        .run(FaultPlan::none(), set_up, async |run| {
            run.pass(std::time::Duration::from_mins(16)).await;
            Ok(())
        })?
        .done()?;
    looks.push(reads_at_start(&world, &lab)?);
    let [none, some, more, evicted] = looks[..] else {
        return Err("there are four looks".into());
    };
    // One entry more: when the first of the finished falls due.
    assert_eq!((some, more, evicted), (none + 1, none + 1, none));
    assert_eq!(rows(&world), alone, "nothing but the rows of the living is left");
    Ok(())
}
