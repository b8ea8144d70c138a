//! Backoffs are lengthened by a part that is drawn from the engine's seed.

use procession::procedure::Timestamp;
use procession::testkit::{FaultPlan, Run, Trouble, World};

use crate::rollback::helper::submit;
use crate::support::{Act, Jittery, Lab, Tested, UndoAct, failing, kinds, plan};

/// Lets eight fail four times each; gives when each attempt began.
fn instants(seed: u64) -> Result<Vec<u64>, Trouble> {
    let (world, lab) = (World::new(), Lab::default());
    let set_up = |builder| kinds(&lab, builder).seed(seed);
    world
        .run(FaultPlan::none(), set_up, async |run: &Run| {
            let mut all = Vec::new();
            for number in 0..8 {
                let root = plan("a", [Act::Retry(4, Box::new(Act::Done(1)))]);
                let handle = submit(run, Jittery(root), &number.to_string()).await?;
                run.wait(handle.outcome()).await??;
                let history = run.executor.history(handle.id()).await?;
                let begun: Vec<u64> = history.iter().map(|entry| entry.begun.0).collect();
                all.extend(begun.iter().zip(begun.iter().skip(1)).map(|(from, to)| to - from));
            }
            Ok(all)
        })?
        .done()
}

#[test]
fn the_same_seed_gives_the_same_instants_and_another_gives_others() -> Tested {
    let (first, again, other) = (instants(1)?, instants(1)?, instants(2)?);
    assert_eq!(first, again);
    assert_ne!(first, other);
    Ok(())
}

#[test]
fn a_delay_is_lengthened_within_its_bound_and_never_shortened() -> Tested {
    let delays = instants(7)?;
    assert_eq!(delays.len(), 32);
    for (place, delay) in delays.iter().enumerate() {
        let plain = 1_000_000 << (place % 4);
        assert!((plain..=plain + plain / 2).contains(delay), "{delay} for {plain}");
    }
    let distinct: std::collections::BTreeSet<_> = delays.iter().collect();
    assert!(distinct.len() > 24, "they do not come back together: {distinct:?}");
    Ok(())
}

#[test]
fn the_instant_is_durable() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let root = || Jittery(plan("a", [Act::Retry(1, Box::new(Act::Done(1)))]));
    let life = |seed| {
        let set_up = |builder: procession::Builder| kinds(&lab, builder).seed(seed);
        world.run(FaultPlan::none(), set_up, async |run: &Run| {
            let handle = submit(run, root(), "a").await?;
            run.settle().await;
            Ok(handle.status().await?.wait.and_then(|wait| wait.deadline()))
        })
    };
    let first: Option<Timestamp> = life(1)?.done()?;
    assert!(first.is_some());
    assert_eq!(life(2)?.done()?, first, "another seed does not move what is on disk");
    Ok(())
}

#[test]
fn undos_have_their_own() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let set_up = |builder| kinds(&lab, builder).seed(3);
    world
        .run(FaultPlan::none(), set_up, async |run: &Run| {
            let handle = submit(run, Jittery(failing("a", 1).undo(1, UndoAct::Fail(4))), "a").await?;
            run.wait(handle.outcome()).await?.err().ok_or("it succeeded")?;
            let history = run.executor.history(handle.id()).await?;
            let undos: Vec<u64> = history
                .iter()
                .filter(|entry| !entry.stands)
                .map(|entry| entry.begun.0)
                .collect();
            let delays: Vec<u64> = undos
                .windows(2)
                .map(|pair| pair[1] - pair[0])
                .filter(|delay| *delay > 0)
                .collect();
            assert_eq!(delays.len(), 4, "{undos:?}");
            for (place, delay) in delays.iter().enumerate() {
                let plain = 1_000_000 << place;
                assert!((plain..=plain + plain / 2).contains(delay), "{delay} for {plain}");
            }
            Ok(())
        })?
        .done()
}
