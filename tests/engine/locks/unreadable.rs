//! A row that cannot be read names no locks: whoever asks why its family is quarantined is told.

use procession::health::Rule;
use procession::provider::Space;
use procession::testkit::{Run, World};

use crate::lifecycle::kit::submit;
use crate::retention::world::write;
use crate::support::{Act, Holding, Lab, Planned, Tested, live_in, plan};

#[test]
fn the_verdict_says_that_its_locks_are_not_known() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let held = || plan("h", [Act::Wait("never".into(), None), Act::Done(1)]).exclusive("x");
    let family = live_in(&world, &lab, async |run: &Run| {
        let id = submit(run, Holding(held()), "h").await?.id();
        run.settle().await;
        assert_eq!(run.executor.locks().await?.len(), 1, "it holds its lock while it waits");
        Ok(id.family)
    })?;
    write(&world, |batch| {
        let key = [&family.to_be_bytes()[..], &[0; 4]].concat();
        batch.put(Space::Procedures, &key, b"\x01no row");
    })?;
    live_in(&world, &lab, async |run: &Run| {
        let verdicts = run.executor.verdicts().await?;
        let quarantined = verdicts.iter().find(|verdict| verdict.rule == Rule::Quarantined);
        let text = &quarantined.ok_or("it is quarantined")?.text;
        assert!(text.contains("locks") && text.contains("unknown"), "{text}");
        // The exception that the promise names.
        let other = submit(run, Planned(plan("o", [Act::Done(1)]).exclusive("x")), "o").await?;
        assert_eq!(run.wait(other.outcome()).await??, 1);
        Ok(())
    })
}
