//! A world with a clock of one's own, and builders that bring a store or a clock along.

use std::sync::Arc;
use std::time::Duration;

use procession::procedure::{Noop, Timestamp};
use procession::provider::Clock;
use procession::testkit::{FaultPlan, MemoryDisk, MemoryStore, TestClock, World};
use procession::{Builder, Executor};

use crate::Tested;

fn register(builder: Builder) -> Builder {
    builder.register::<Noop>(())
}

fn later(by: u64) -> (TestClock, Timestamp) {
    let clock = TestClock::new();
    clock.advance(Duration::from_secs(by));
    let now = clock.now();
    (clock, now)
}

#[test]
fn a_world_goes_by_the_clock_that_it_was_made_with() -> Tested {
    let (clock, began) = later(3_600);
    let world = World::with_clock(clock.clone());
    world
        .run(FaultPlan::none(), register, async |run| {
            assert_eq!(run.now(), began);
            let handle = run.wait(run.executor.submit(Noop).into_future()).await??;
            assert_eq!(handle.status().await?.submitted, began);
            run.pass(Duration::from_secs(5)).await;
            Ok(())
        })?
        .done()?;
    assert_eq!(clock.now(), began.after(Duration::from_secs(5)), "it is the very clock");
    Ok(())
}

#[test]
fn a_store_of_ones_own_is_refused_in_a_world() -> Tested {
    let own = Arc::new(MemoryStore::open(&MemoryDisk::default(), FaultPlan::none())?);
    let set_up = |_| register(Executor::builder(own));
    let refused = World::new().run(FaultPlan::none(), set_up, async |_| Ok(()));
    let said = refused.err().ok_or("it was taken, and ignored")?.to_string();
    assert!(said.contains("set up the builder that you are given"), "{said}");
    Ok(())
}

#[test]
fn a_run_reads_the_clock_that_the_engine_was_given() -> Tested {
    let (clock, began) = later(60);
    let set_up = |builder| register(builder).clock(Arc::new(clock));
    World::new()
        .run(FaultPlan::none(), set_up, async |run| {
            assert_eq!(run.now(), began);
            Ok(())
        })?
        .done()
}
