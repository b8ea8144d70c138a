//! What has ended costs nothing at a start, and what was evicted takes up no space.

use std::future::IntoFuture;
use std::sync::Arc;
use std::time::Duration;

use procession::messages::{Submit, SubmitBatch};
use procession::procedure::Noop;
use procession::provider::{Clock, Space};
use procession::testkit::{FaultPlan, TestClock, Trouble, World};
use procession::{Builder, Executor};

use super::fill::Template;
use crate::support::{Act, Lab, Planned, Tested, kinds, plan};

/// Parked for good, from the first commit on.
fn parked() -> Planned {
    Planned(plan("p", [Act::Wait("go".to_owned(), None), Act::Done(1)]))
}

/// Entries that a start reads.
fn reads_at_start(world: &World, set_up: &dyn Fn(Builder) -> Builder) -> Result<u64, Trouble> {
    world
        .run(FaultPlan::none(), set_up, async |run| {
            let reads = run.store.reads();
            assert_eq!(run.executor.snapshot().await?.recovered.procedures, 100);
            Ok(reads)
        })?
        .done()
}

#[test]
fn e_099_a_start_reads_no_more_for_a_hundred_thousand_that_ended() -> Tested {
    const FINISHED: u64 = 100_000;
    let (world, lab) = (World::new(), Lab::default());
    let set_up = |builder: Builder| kinds(&lab, builder).register::<Noop>(()).merge(4_096);
    let ended = world
        .run(FaultPlan::none(), set_up, async |run| {
            let parked = vec![Submit::new(&parked())?; 100];
            run.wait(run.executor.supervisor().send(SubmitBatch(parked)))
                .await???;
            let ended = run.wait(run.executor.submit(Noop).key("k").into_future()).await??;
            run.wait(ended.outcome()).await??;
            run.settle().await;
            Ok(ended.id().family)
        })?
        .done()?;
    let few = reads_at_start(&world, &set_up)?;
    Template::of(&world, ended)?.fill(&world, ended + 1..ended + FINISHED)?;
    assert_eq!(reads_at_start(&world, &set_up)?, few, "however many have ended");
    world.clock.advance(Duration::from_mins(16));
    world
        .run(FaultPlan::none(), set_up, async |run| {
            run.settle().await;
            Ok(())
        })?
        .done()?;
    // The one entry of `finished` that told when the first falls due.
    assert_eq!(reads_at_start(&world, &set_up)?, few - 1);
    let rows = |space: &Space| world.disk.dump(space).len();
    assert_eq!(
        [rows(&Space::Procedures), rows(&Space::Payloads), rows(&Space::History)],
        // Each has changed its value; its entry of the history has the one that it was submitted with.
        [100, 100, 100]
    );
    assert_eq!(
        [rows(&Space::Keys), rows(&Space::Finished), rows(&Space::Live)],
        [0, 0, 100]
    );
    Ok(())
}

/// Runs and evicts so many families in the real store beside the parked one; gives the bytes that it takes up.
async fn round(executor: &Executor, clock: &TestClock) -> Result<u64, Trouble> {
    /// With a value of 8 KiB each, written twice: about 8 MB, four checkpoints.
    const FAMILIES: usize = 500;
    let value = "x".repeat(8 << 10);
    let mut submits = Vec::new();
    for _ in 0..FAMILIES {
        submits.push(Submit::new(&Planned(plan(&value, [Act::Next, Act::Done(1)])))?);
    }
    let ids = executor.supervisor().send(SubmitBatch(submits)).await??;
    for id in ids {
        executor.outcome(id).await?;
    }
    clock.advance(Duration::from_mins(16));
    while executor.snapshot().await?.live_families > 1 || !evicted(executor).await? {
        tokio::task::yield_now().await;
    }
    Ok(executor.snapshot().await?.size_bytes.unwrap_or_default())
}

async fn evicted(executor: &Executor) -> Result<bool, Trouble> {
    let page = executor
        .list(procession::status::ListFilter::default(), None, 10)
        .await?;
    Ok(page.items.len() == 1)
}

#[test]
fn e_099_the_parked_one_holds_back_no_space_of_what_was_evicted() -> Tested {
    const ROUNDS: usize = 8;
    let (place, lab, clock) = (tempfile::tempdir()?, Lab::default(), TestClock::default());
    actix_rt::System::new().block_on(async {
        // A round is four checkpoints, so tables are merged in each; by default that would take 100 MB a round.
        let builder = kinds(&lab, Executor::builder(place.path())).checkpoint_at(2 << 20);
        let executor = builder.clock(Arc::new(clock.clone())).start().await?;
        let parked = executor.submit(parked()).await?;
        let mut sizes = Vec::new();
        for _ in 0..ROUNDS {
            sizes.push(round(&executor, &clock).await?);
        }
        // Each round wrote as much again; what is left over is tables that wait to be merged.
        let (early, late) = sizes.split_at(ROUNDS / 2);
        let most = |sizes: &[u64]| sizes.iter().copied().max().unwrap_or_default();
        assert!(most(late) <= most(early) * 3 / 2, "it grows: {sizes:?}");
        assert!(clock.now() > procession::procedure::Timestamp(0));
        executor.signal(parked.id(), "go", &1_i64).await?;
        assert_eq!(parked.outcome().await?, 1);
        executor.drain(Duration::from_secs(10)).await?;
        Ok(())
    })
}
