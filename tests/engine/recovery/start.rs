//! What a start does: it leaves the finished alone, takes up the living in
//! their order, and reads no more than those.

use std::future::IntoFuture;

use procession::ProcedureId;
use procession::messages::{Submit, SubmitBatch};
use procession::procedure::Noop;
use procession::provider::Clock;
use procession::status::{HistoryEntry, Status};
use procession::testkit::{Ended, Fault, FaultPlan, Run, Trouble, World};

use crate::support::{Act, Lab, Plan, Planned, Tested, chain, end, enumerate_later, kinds, live_in, plan};

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
fn e_094_however_often_it_crashes() -> Tested {
    let prepare = || {
        let (world, lab) = (World::new(), Lab::default());
        let drive = async |run: &Run| Ok(end(run, one_stage(), "k").await??);
        world.run(
            FaultPlan::at(2, Fault::CrashBefore),
            |builder| kinds(&lab, builder),
            drive,
        )?;
        Ok((world, lab))
    };
    let drive = async |_: &Lab, run: &Run, _: usize| {
        let (output, status, history) = shown(run).await?;
        assert_eq!((output, history.len()), (7, 1));
        assert_eq!(status.ended, Some(run.now()));
        Ok(())
    };
    let check = |lab: &Lab, crashes: usize| {
        assert!((2..=2 + crashes).contains(&lab.count("a1")), "{}", lab.line());
        Ok(())
    };
    // The start's own, and the stage.
    assert_eq!(enumerate_later(prepare, kinds, drive, check)?, 2);
    Ok(())
}

fn four_families() -> [Plan; 4] {
    let for_ever = |then: Act| Act::Yield(u32::MAX, Box::new(then));
    let fails = Act::Held("now".to_owned(), Box::new(Act::Fail("boom".to_owned())));
    [
        plan("f1-", [for_ever(Act::Done(1))]),
        plan("f2-", [Act::Next, for_ever(Act::Done(1))]),
        plan("f3-", [fails]),
        plan("f4-", [Act::Next, for_ever(Act::Done(1))]),
    ]
}

/// Lives until F3 has failed, and no undo has begun; then it crashes.
fn until_it_fails(world: &World, lab: &Lab) -> Tested {
    let families = four_families();
    // Commits: the batch, the first stages of F2 and F4, the failure of F3.
    let crash = FaultPlan::at(4, Fault::CrashAfter);
    let ended = world.run(
        crash,
        |builder| kinds(lab, builder),
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
    Ok(())
}

/// Returns the first bodies that the next life calls.
fn first_calls(world: &World, lab: &Lab, count: usize) -> Result<Vec<String>, Trouble> {
    let before = lab.calls().len();
    live_in(world, lab, async |run| {
        run.until("they ran", || lab.calls().len() >= before + count).await
    })?;
    let calls = lab.calls();
    let calls = calls.iter().skip(before).take(count);
    Ok(calls.map(crate::support::Call::short).collect())
}

#[test]
fn e_095_who_goes_first() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    until_it_fails(&world, &lab)?;
    assert_eq!(first_calls(&world, &lab, 4)?, ["f3-1'", "f2-2", "f4-2", "f1-1"]);
    Ok(())
}

#[test]
fn e_095_and_after_a_crash_of_that_start() -> Tested {
    // A second death makes suspects of those that had begun: the first of them runs, the others wait for it.
    let cases: [(u64, Fault, &[&str]); 4] = [
        (0, Fault::CrashBefore, &["f3-1'", "f2-2", "f4-2", "f1-1"]),
        (0, Fault::CrashAfter, &["f3-1'", "f2-2", "f2-2"]),
        (1, Fault::CrashBefore, &["f3-1'", "f2-2", "f2-2"]),
        (1, Fault::CrashAfter, &["f2-2", "f2-2"]),
    ];
    for (commit, fault, expected) in cases {
        let (world, lab) = (World::new(), Lab::default());
        until_it_fails(&world, &lab)?;
        let forever = async |run: &Run| run.until("it crashes", || false).await;
        let ended = world.run(FaultPlan::at(commit, fault), |builder| kinds(&lab, builder), forever)?;
        assert!(matches!(ended, Ended::Crashed));
        let calls = first_calls(&world, &lab, expected.len())?;
        assert_eq!(calls, expected, "commit {commit}, {fault:?}");
    }
    Ok(())
}

/// The same four, which yield no more after the crash. However often it crashes, each start takes
/// up first who rolls back, then who has a stage behind it, then who has none.
#[test]
fn e_095_in_this_order_whenever_it_starts() -> Tested {
    let prepare = || {
        let (world, lab) = (World::new(), Lab::default());
        until_it_fails(&world, &lab)?;
        lab.yields_no_more();
        Ok((world, lab))
    };
    let drive = async |lab: &Lab, run: &Run, crashes: usize| {
        for family in 1..=4 {
            run.wait(run.executor.outcome(ProcedureId::root(family))).await??;
        }
        let mut first: Vec<String> = Vec::new();
        for call in lab.calls_of_life() {
            if !first.contains(&call.name) {
                first.push(call.name);
            }
        }
        // Behind the first of those that two deaths have met, the others go one by one, by their ids.
        let orders: &[[&str; 4]] = &[["f3-", "f2-", "f4-", "f1-"], ["f3-", "f2-", "f1-", "f4-"]];
        let is_one = orders.iter().take(1 + crashes).any(|order| {
            let called = order.iter().filter(|name| first.iter().any(|other| other == *name));
            called.eq(&first)
        });
        assert!(is_one, "after {crashes} crashes: {first:?}");
        Ok(())
    };
    // The start's own, the undo of F3, and the last stages of the others.
    assert_eq!(enumerate_later(prepare, kinds, drive, |_, _| Ok(()))?, 5);
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

/// A few living and a few finished, small enough to be crashed at every commit of the start that evicts them.
#[test]
fn e_099_a_start_that_evicts_reads_the_living_however_it_crashes() -> Tested {
    let prepare = || {
        let (world, lab) = (World::new(), Lab::default());
        let living = || plan("p", [Act::Wait("go".to_owned(), None), Act::Done(1)]);
        let mut alone = 0;
        live_in(&world, &lab, async |run| {
            for number in 0..3 {
                let submit = run.executor.submit(Planned(living())).key(number.to_string());
                run.wait(submit.into_future()).await??;
            }
            run.settle().await;
            alone = rows(&world);
            for number in 3..7 {
                end(run, one_stage(), &number.to_string()).await??;
            }
            Ok(())
        })?;
        world.clock.advance(std::time::Duration::from_mins(16));
        Ok((world, (lab, alone)))
    };
    let drive = async |(_, alone): &(Lab, usize), run: &Run, _: usize| {
        assert_eq!(run.executor.snapshot().await?.recovered.procedures, 3);
        run.settle().await;
        assert_eq!(rows(&run.world), *alone, "nothing but the rows of the living is left");
        Ok(())
    };
    let set_up = |(lab, _): &(Lab, usize), builder| kinds(lab, builder);
    // The start's own, and one eviction of all four.
    assert_eq!(enumerate_later(prepare, set_up, drive, |_, _| Ok(()))?, 2);
    Ok(())
}
