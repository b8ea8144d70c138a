//! What is finished goes: each family as a whole, a few at a time, its key with it.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::future::try_join_all;
use procession::errors::AskError;
use procession::messages::{Submit, SubmitBatch};
use procession::procedure::Timestamp;
use procession::provider::Space;
use procession::status::ListFilter;
use procession::testkit::{Ended, Fault, FaultPlan, Run, Trouble, World};
use procession::{Builder, ProcedureId};

use super::limits::submit;
use crate::support::{Act, Lab, Plan, Planned, Tested, chain, enumerate, kinds, live_in, plan, spawn};

/// Families that one commit evicts at most.
const AT_ONCE: usize = 64;
/// Evictions at which it crashes.
const CRASHED: usize = 20;
/// A few more than those, so that some are left for a life without crashes.
const FINISHED: usize = AT_ONCE * (CRASHED + 2);
const UNFINISHED: usize = 100;

const DUE: Timestamp = Timestamp(15 * 60_000_000);

/// A family with a child, which waits for its end.
fn family(name: String) -> Plan {
    let child = chain(&format!("{name}-c"), 1);
    plan(&name, [spawn([child]), Act::Wait("end".to_owned(), None), Act::Done(7)])
}

async fn submit_families(run: &Run, name: &str, count: usize) -> Result<Vec<ProcedureId>, Trouble> {
    let batch: Result<Vec<Submit>, Trouble> = (0..count)
        .map(|number| Ok(Submit::new(&Planned(family(format!("{name}{number}"))))?.key(format!("{name}{number}"))))
        .collect();
    let ids = run.executor.supervisor().send(SubmitBatch(batch?)).await??;
    run.settle().await;
    Ok(ids)
}

/// Makes the finished families, each with a signal that nobody consumed, and those that are not.
async fn make(run: &Run) -> Result<Vec<ProcedureId>, Trouble> {
    let live = submit_families(run, "u", UNFINISHED).await?;
    let finished = submit_families(run, "f", FINISHED).await?;
    for event in ["nobody", "end"] {
        let signals = finished
            .iter()
            .map(|id| run.executor.signal(*id, event, &1_i64).into_future());
        try_join_all(signals).await?;
    }
    run.settle().await;
    assert_eq!(run.executor.snapshot().await?.live_families, UNFINISHED);
    assert_eq!(run.now(), Timestamp(0));
    Ok(live)
}

/// Which families have rows, history, signals; and how many keys there are.
fn families(world: &World, space: &Space) -> BTreeSet<u64> {
    let number = |key: &[u8]| {
        key.get(..8)
            .and_then(|bytes| bytes.try_into().ok())
            .map(u64::from_be_bytes)
    };
    world
        .disk
        .dump(space)
        .iter()
        .filter_map(|(key, _)| number(key))
        .collect()
}

/// Every family is wholly there or wholly gone; gives how many finished ones are there.
fn whole(world: &World, live: &[ProcedureId]) -> usize {
    let rows = families(world, &Space::Procedures);
    let unfinished: BTreeSet<u64> = live.iter().map(|id| id.family).collect();
    assert!(rows.is_superset(&unfinished));
    let finished: BTreeSet<u64> = rows.difference(&unfinished).copied().collect();
    assert_eq!(families(world, &Space::Payloads), rows);
    assert_eq!(families(world, &Space::History), rows);
    assert_eq!(families(world, &Space::Signals), finished);
    assert_eq!(world.disk.dump(&Space::Keys).len(), rows.len());
    assert_eq!(world.disk.dump(&Space::Finished).len(), finished.len());
    finished.len()
}

#[test]
fn e_110_eviction_is_whole_and_gradual() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    // Merged, since only the evictions are counted, and each later life reads all that was written.
    let set_up = |builder: Builder| kinds(&lab, builder).merge(4_096);
    let live = world
        .run(FaultPlan::none(), set_up, async |run: &Run| make(run).await)?
        .done()?;
    assert_eq!(whole(&world, &live), FINISHED);
    world.clock.advance_to(DUE);
    for eviction in 0..CRASHED {
        // Torn in its first record or far behind it, a commit is dropped alike: twice is enough.
        let torn = [7, 5_000]
            .map(|cut| Fault::Torn { cut })
            .into_iter()
            .filter(|_| eviction < 2);
        for fault in [Fault::CrashBefore].into_iter().chain(torn).chain([Fault::CrashAfter]) {
            let idle = async |run: &Run| {
                run.settle().await;
                Ok(())
            };
            // Nothing else moves: the first commit after the start is an eviction.
            match world.run(FaultPlan::at(1, fault), |builder| kinds(&lab, builder), idle)? {
                Ended::Crashed => {}
                Ended::Done(()) => return Err("nothing was evicted".into()),
            }
        }
        if [0, CRASHED - 1].contains(&eviction) {
            assert_eq!(whole(&world, &live), FINISHED - (eviction + 1) * AT_ONCE);
        }
    }
    live_in(&world, &lab, async |run| {
        // What is left goes in two more commits, and a root of one stage takes its own two meanwhile.
        let root = submit(run, Planned(chain("meanwhile", 1)), "meanwhile").await?;
        assert_eq!(run.wait(root.outcome()).await??, 7);
        run.settle().await;
        assert_eq!(run.executor.snapshot().await?.commits, 2 + 2);
        let rows = run.executor.list(ListFilter::default(), None, 1_000).await?.items;
        assert_eq!(rows.len(), 2 * UNFINISHED + 1);
        for id in &live {
            assert_eq!(run.executor.signal(*id, "end", &1_i64).await?, 1);
            assert_eq!(run.executor.handle::<Planned>(*id).outcome().await?, 7);
            assert_eq!(run.executor.history(*id).await?.len(), 4);
        }
        Ok(())
    })
}

#[test]
fn e_111_a_key_dies_with_its_result() -> Tested {
    let drive = async |lab: &Lab, run: &Run| {
        let later = Timestamp(20 * 60_000_000);
        if run.now() < DUE {
            let first = submit(run, Planned(chain("k", 1)), "k").await?;
            run.wait(first.outcome()).await??;
            assert_eq!(lab.id("k"), Some(first.id()));
            lab.note(first.id().to_string());
        }
        run.pass(later.since(run.now())).await;
        let again = submit(run, Planned(chain("k", 1)), "k").await?;
        assert_eq!(run.wait(again.outcome()).await??, 7);
        let first: ProcedureId = lab.noted().first().ok_or("the first was noted")?.parse()?;
        assert!(again.id() > first, "{} runs anew after {first}", again.id());
        assert!(run.executor.status(first).await.is_err());
        assert_eq!(run.now(), later.after(Duration::ZERO));
        Ok(())
    };
    let done = enumerate(Lab::default, kinds, drive, &[], |plain, crashed, _| {
        assert_eq!(plain.line(), "k1 k1");
        assert!(crashed.count("k1") >= 2);
        Ok(())
    })?;
    assert_eq!(done.commits, 2 + 1 + 2);
    Ok(())
}

/// Every family is wholly there or wholly gone: rows, values, history, its key, and the signal of each finished one.
fn nothing_in_part(world: &World, live: u64) {
    let rows = families(world, &Space::Procedures);
    assert_eq!(families(world, &Space::Payloads), rows);
    assert_eq!(families(world, &Space::History), rows);
    assert_eq!(world.disk.dump(&Space::Keys).len(), rows.len());
    let finished: BTreeSet<u64> = rows.into_iter().filter(|family| *family != live).collect();
    assert_eq!(families(world, &Space::Signals), finished);
    assert_eq!(world.disk.dump(&Space::Finished).len(), finished.len());
}

/// Two finished, one of them a minute later, and one that is not: they go in two evictions.
async fn evicted(lab: &Lab, run: &Run) -> Tested {
    let unfinished = if lab.is_open("all are due") {
        lab.noted().first().ok_or("it was noted")?.parse()?
    } else {
        let unfinished = submit(run, Planned(family("u".to_owned())), "u").await?.id();
        for (name, minute) in [("f0", 0), ("f1", 1)] {
            run.pass(Timestamp(minute * 60_000_000).since(run.now())).await;
            let id = submit(run, Planned(family(name.to_owned())), name).await?.id();
            for event in ["nobody", "end"] {
                match run.wait(run.executor.signal(id, event, &1_i64).key(event)).await? {
                    Ok(_) | Err(AskError::Finished { .. }) => {}
                    Err(other) => return Err(other.into()),
                }
            }
            run.wait(run.executor.outcome(id)).await??;
        }
        run.settle().await;
        lab.note(unfinished.to_string());
        lab.open("all are due");
        unfinished
    };
    nothing_in_part(&run.world, unfinished.family);
    run.pass(Timestamp(17 * 60_000_000).since(run.now())).await;
    nothing_in_part(&run.world, unfinished.family);
    assert_eq!(
        families(&run.world, &Space::Procedures),
        BTreeSet::from([unfinished.family])
    );
    assert_eq!(run.executor.history(unfinished).await?.len(), 3);
    Ok(())
}

#[test]
fn e_110_a_few_go_whole_at_every_crash() -> Tested {
    let done = enumerate(Lab::default, kinds, evicted, &[], |plain, crashed, crashes| {
        plain.compare(crashed, crashes)
    })?;
    // Four commits each to where they wait, for two of them two signals and the end, two evictions.
    assert_eq!(done.commits, 3 * 4 + 2 * 3 + 2);
    Ok(())
}
