//! Ten thousand results fall due at once: each family goes as a whole, a few in one commit,
//! and what is unfinished loses nothing.

use std::collections::BTreeSet;
use std::time::Duration;

use std::future::IntoFuture;

use futures::future::try_join_all;
use procession::procedure::Timestamp;
use procession::provider::Space;
use procession::status::ListFilter;
use procession::testkit::{Ended, Fault, FaultPlan, ReadFault, Run, Trouble, World};
use procession::{Builder, ProcedureId};

use super::fill::Template;
use crate::support::{Act, Lab, Plan, Planned, Tested, chain, kinds, live_in, plan, spawn};

/// Families that one commit evicts at most.
const AT_ONCE: usize = 64;
/// Keys of one of them: two rows, two values, two outputs, four entries of history, a signal, its place in the index of
/// dues, its key.
const KEYS: u64 = 2 + 2 + 2 + 4 + 1 + 1 + 1;
/// Evictions at which it crashes.
const CRASHED: usize = 20;
const FINISHED: usize = 10_000;
const UNFINISHED: usize = 100;

const DUE: Timestamp = Timestamp(15 * 60_000_000);

/// A family with a child that has ended, which waits for its end.
fn family(name: &str) -> Plan {
    let child = chain(&format!("{name}-c"), 1);
    plan(name, [spawn([child]), Act::Wait("end".to_owned(), None), Act::Done(7)])
}

/// The unfinished ones, each with a signal that nobody consumes yet, and one that has ended.
async fn make(run: &Run) -> Result<(Vec<ProcedureId>, ProcedureId), Trouble> {
    let mut live = Vec::new();
    for number in 0..UNFINISHED {
        let name = format!("u{number}");
        live.push(run.executor.submit(Planned(family(&name))).key(name).await?.id());
    }
    let ended = run.executor.submit(Planned(family("f"))).key("f").await?.id();
    run.settle().await;
    let all = live.iter().chain([&ended]);
    try_join_all(all.map(|id| run.executor.signal(*id, "nobody", &1_i64).into_future())).await?;
    run.executor.signal(ended, "end", &1_i64).await?;
    run.settle().await;
    assert_eq!(run.executor.snapshot().await?.live_families, UNFINISHED);
    Ok((live, ended))
}

fn families(world: &World, space: &Space) -> BTreeSet<u64> {
    let number = |key: &[u8]| Some(u64::from_be_bytes(key.get(..8)?.try_into().ok()?));
    let entries = world.disk.dump(space);
    entries.iter().filter_map(|(key, _)| number(key)).collect()
}

/// Every family is wholly there or wholly gone; gives how many finished ones are there.
fn whole(world: &World, live: &[ProcedureId]) -> usize {
    let rows = families(world, &Space::Procedures);
    let unfinished: BTreeSet<u64> = live.iter().map(|id| id.family).collect();
    assert!(rows.is_superset(&unfinished));
    for space in [Space::Payloads, Space::History, Space::Signals] {
        assert_eq!(families(world, &space), rows, "{space:?}");
    }
    let finished = rows.len() - unfinished.len();
    assert_eq!(world.disk.dump(&Space::Procedures).len(), 2 * rows.len());
    assert_eq!(world.disk.dump(&Space::Keys).len(), rows.len());
    assert_eq!(world.disk.dump(&Space::Finished).len(), finished);
    finished
}

#[test]
fn e_110_ten_thousand_fall_due_at_once() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let merged = |builder: Builder| kinds(&lab, builder).merge(4_096);
    let (live, ended) = world
        .run(FaultPlan::none(), merged, async |run: &Run| make(run).await)?
        .done()?;
    let first = ended.family + 1;
    Template::of(&world, ended.family)?.fill(&world, first..first + FINISHED as u64 - 1)?;
    assert_eq!(whole(&world, &live), FINISHED);
    world.clock.advance_to(DUE);
    for eviction in 0..CRASHED {
        for fault in [Fault::CrashBefore, Fault::CrashAfter] {
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
        if eviction % 5 == 0 || eviction == CRASHED - 1 {
            assert_eq!(whole(&world, &live), FINISHED - (eviction + 1) * AT_ONCE);
        }
    }
    live_in(&world, &lab, async |run| the_rest_goes(run, &live).await)
}

async fn the_rest_goes(run: &Run, live: &[ProcedureId]) -> Tested {
    let left = FINISHED - CRASHED * AT_ONCE;
    let evictions = left.div_ceil(AT_ONCE) as u64;
    let root = run.executor.submit(Planned(chain("meanwhile", 1))).await?;
    assert_eq!(root.outcome().await?, 7);
    let meanwhile = run.executor.snapshot().await?;
    assert!(meanwhile.commits < evictions, "it ran while they went");
    run.settle().await;
    let snapshot = run.executor.snapshot().await?;
    // The root takes its own two, as ever, and no eviction more than its bound.
    assert_eq!(snapshot.commits, evictions + 2);
    let of_root = snapshot.appended_writes - left as u64 * KEYS;
    assert!(of_root < 20, "each key was deleted once: {of_root} more");
    let page = run.executor.list(ListFilter::default(), None, 1_000).await?;
    assert_eq!(page.items.len(), 2 * UNFINISHED + 1);
    for id in live {
        assert_eq!(run.executor.signal(*id, "end", &1_i64).await?, 2);
        assert_eq!(run.executor.handle::<Planned>(*id).outcome().await?, 7);
        assert_eq!(run.executor.history(*id).await?.len(), 4);
    }
    Ok(())
}

#[test]
fn e_110_wide_families_go_in_smaller_commits() -> Tested {
    /// Members of one, so that four have as many keys as a commit deletes.
    const WIDE: usize = 1_000;
    let (world, lab) = (World::new(), Lab::default());
    let merged = |builder: Builder| kinds(&lab, builder).merge(4_096);
    let children = vec![chain("c", 1); WIDE];
    let id = world
        .run(FaultPlan::none(), merged, async |run| {
            let wide = plan("w", [spawn(children), Act::Done(7)]);
            let handle = run.executor.submit(Planned(wide)).await?;
            run.wait(handle.outcome()).await??;
            Ok(handle.id())
        })?
        .done()?;
    Template::of(&world, id.family)?.fill(&world, id.family + 1..id.family + 10)?;
    world.clock.advance_to(DUE);
    live_in(&world, &lab, async |run| {
        run.settle().await;
        // Each has 3 keys a member and an entry of history a stage: three pass the bound of 10,000.
        assert_eq!(run.executor.snapshot().await?.commits, 4);
        let page = run.executor.list(ListFilter::default(), None, 10).await?;
        assert!(page.items.is_empty());
        Ok(())
    })
}

/// A damaged block of one family's rows keeps that family, and holds back no other.
#[test]
fn damage_of_one_that_is_due_holds_back_no_other() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    live_in(&world, &lab, async |run| {
        let done = async |name: &str| -> Result<(), Trouble> {
            let handle = run
                .wait(run.executor.submit(Planned(chain(name, 1))).into_future())
                .await??;
            assert_eq!(run.wait(handle.outcome()).await??, 7);
            Ok(())
        };
        for name in ["a", "b"] {
            done(name).await?;
        }
        run.store
            .fail_reads(ReadFault::once().of(Space::Procedures).as_damage());
        run.pass(Duration::from_mins(16)).await;
        assert_eq!(run.store.failed_reads(), 1);
        assert_eq!(families(&world, &Space::Procedures).len(), 1, "the other has gone");
        // The next one that falls due takes it along, if it can be read by then.
        done("c").await?;
        run.pass(Duration::from_mins(16)).await;
        assert!(families(&world, &Space::Procedures).is_empty());
        Ok(())
    })
}
