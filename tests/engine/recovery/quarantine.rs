//! A family without code is set aside alone, and goes on once its code is back.

use std::future::IntoFuture;

use procession::errors::{AskError, NotNow, StartError};
use procession::health::{WaitingFor, WakeSource};
use procession::operate::OperatorRequest;
use procession::provider::Space;
use procession::status::WaitReason;
use procession::testkit::{FaultPlan, Run, Trouble, World};
use procession::{Builder, Procedure, ProcedureId, StageContext, StageError, Step};
use procession_actors::journal::keys;
use serde::{Deserialize, Serialize};

use crate::support::{Act, Final, Lab, Limited, Patient, Planned, Tested, chain, enumerate_later, kinds, plan};

/// One kind in two versions.
macro_rules! version {
    ($name:ident, $version:literal) => {
        #[derive(Clone, Serialize, Deserialize)]
        struct $name {
            calls: u32,
        }

        impl Procedure for $name {
            const KIND: &'static str = "versioned";
            const VERSION: u16 = $version;
            type Stage = u32;
            type Env = ();
            type Output = u32;

            fn first(&self) -> u32 {
                1
            }

            async fn execute(&mut self, stage: u32, _: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
                self.calls += 1;
                Ok(match stage {
                    1 => Step::Wait {
                        event: "go".to_owned(),
                        timeout: None,
                        then: 2,
                    },
                    _ => Step::Done(self.calls),
                })
            }
        }
    };
}

version!(Older, 1);
version!(Newer, 2);

/// All code is there.
fn whole(lab: &Lab, builder: Builder) -> Builder {
    builder
        .register::<Planned>(lab.clone())
        .register::<Patient>(lab.clone())
        .register::<Newer>(())
}

/// One kind is gone, another is an older version.
fn partial(lab: &Lab, builder: Builder) -> Builder {
    builder
        .register::<Planned>(lab.clone())
        .register::<Final>(lab.clone())
        .register::<Older>(())
}

/// The families: of the kind that goes, of the version that goes, and a healthy one.
struct Families {
    unknown: ProcedureId,
    newer: ProcedureId,
    healthy: ProcedureId,
}

async fn submit(run: &Run) -> Result<Families, Trouble> {
    let waits = |name: &str| plan(name, [Act::Next, Act::Wait("go".to_owned(), None), Act::Done(9)]);
    let unknown = run
        .wait(run.executor.submit(Patient(waits("u"))).key("u").into_future())
        .await??;
    let newer = run
        .wait(run.executor.submit(Newer { calls: 0 }).into_future())
        .await??;
    let healthy = run
        .wait(run.executor.submit(Planned(waits("h"))).into_future())
        .await??;
    run.settle().await;
    Ok(Families {
        unknown: unknown.id(),
        newer: newer.id(),
        healthy: healthy.id(),
    })
}

#[test]
fn e_097_an_unknown_kind_and_a_newer_version_are_quarantined_alone() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let families = world
        .run(FaultPlan::none(), |builder| whole(&lab, builder), submit)?
        .done()?;
    let before = lab.line();

    world
        .run(
            FaultPlan::none(),
            |builder| partial(&lab, builder),
            async |run| {
                set_aside(run, &families).await?;
                // Others run meanwhile.
                run.wait(run.executor.signal(families.healthy, "go", &())).await??;
                let outcome = run.wait(run.executor.outcome(families.healthy)).await??;
                assert_eq!(outcome.output::<i64>()?, Some(9));
                Ok(())
            },
        )?
        .done()?;
    assert_eq!(
        lab.line(),
        format!("{before} h3"),
        "no body of a quarantined family ran"
    );

    strict_refuses(&world, &lab, &families)?;

    // With its code back each family goes on where it was.
    world
        .run(
            FaultPlan::none(),
            |builder| whole(&lab, builder).strict(true),
            async |run| {
                assert!(run.executor.snapshot().await?.quarantined.is_empty());
                run.wait(run.executor.signal(families.unknown, "go", &())).await??;
                run.wait(run.executor.signal(families.newer, "go", &())).await??;
                let unknown = run.wait(run.executor.outcome(families.unknown)).await??;
                assert_eq!(unknown.output::<i64>()?, Some(9));
                let newer = run.wait(run.executor.outcome(families.newer)).await??;
                assert_eq!(newer.output::<u32>()?, Some(2), "the value as it was committed");
                Ok(())
            },
        )?
        .done()?;
    assert_eq!(lab.line(), format!("{before} h3 u3"));
    Ok(())
}

async fn set_aside(run: &Run, families: &Families) -> Tested {
    let snapshot = run.executor.snapshot().await?;
    let numbers: Vec<u64> = snapshot.quarantined.iter().map(|(family, _)| *family).collect();
    assert_eq!(numbers, [families.unknown.family, families.newer.family]);
    let reason = |at: usize| {
        snapshot
            .quarantined
            .get(at)
            .map(|(_, why)| why.clone())
            .unwrap_or_default()
    };
    assert!(
        reason(0).contains("no procedure of kind \"patient\" is registered"),
        "{}",
        reason(0)
    );
    assert!(
        reason(1).contains("version 2 of \"versioned\" is newer than the code, which reads up to 1"),
        "{}",
        reason(1)
    );
    assert_eq!(snapshot.recovered.quarantined, snapshot.quarantined);
    assert_eq!(run.store.commits(), 1, "the start's own commit only");
    for id in [families.unknown, families.newer] {
        assert_eq!(run.executor.status(id).await?.wait, Some(WaitReason::Quarantined));
        let refused = run.executor.signal(id, "go", &()).await;
        assert!(
            matches!(&refused, Err(AskError::NotNow { kind: NotNow::Quarantined, text: why }) if why.contains("quarantined")),
            "{refused:?}"
        );
    }
    // Its key still stands for it.
    let waits = plan("u", [Act::Next, Act::Wait("go".to_owned(), None), Act::Done(9)]);
    let again = run.executor.submit(Patient(waits)).key("u").await;
    assert_eq!(
        again.map(|handle| handle.id()).map_err(|error| error.to_string()),
        Ok(families.unknown)
    );
    Ok(())
}

fn strict_refuses(world: &World, lab: &Lab, families: &Families) -> Tested {
    let before = world.disk.len();
    let strict = world.run(
        FaultPlan::none(),
        |builder| partial(lab, builder).strict(true),
        async |_| Ok(()),
    );
    let error = strict.err().ok_or("strict started without the code")?;
    let Some(StartError::NoCode { families: listed }) = error.downcast_ref::<StartError>() else {
        return Err(format!("another error: {error}").into());
    };
    assert_eq!(listed.len(), 2);
    for (text, id) in listed.iter().zip([families.unknown, families.newer]) {
        assert!(text.contains(&id.to_string()), "{text} names {id}");
    }
    assert_eq!(world.disk.len(), before, "nothing was written");
    Ok(())
}

#[test]
fn e_097_they_are_set_aside_however_the_start_crashes() -> Tested {
    let prepare = || {
        let (world, lab) = (World::new(), Lab::default());
        let families = world
            .run(FaultPlan::none(), |builder| whole(&lab, builder), submit)?
            .done()?;
        Ok((world, (lab, families)))
    };
    let set_up = |(lab, _): &(Lab, Families), builder| partial(lab, builder);
    let drive = async |(_, families): &(Lab, Families), run: &Run, _: usize| {
        let quarantined = run.executor.snapshot().await?.quarantined;
        let numbers: Vec<u64> = quarantined.iter().map(|(family, _)| *family).collect();
        assert_eq!(numbers, [families.unknown.family, families.newer.family]);
        let sent = run
            .wait(run.executor.signal(families.healthy, "go", &()).key("go"))
            .await?;
        assert!(matches!(sent, Ok(_) | Err(AskError::Finished { .. })), "{sent:?}");
        let outcome = run.wait(run.executor.outcome(families.healthy)).await??;
        assert_eq!(outcome.output::<i64>()?, Some(9));
        Ok(())
    };
    let check = |(lab, _): &(Lab, Families), _: usize| {
        assert!(!lab.has("u3"), "no body of a quarantined family ran: {}", lab.line());
        Ok(())
    };
    // The start's own, the signal, the stage.
    assert_eq!(enumerate_later(prepare, set_up, drive, check)?, 3);
    Ok(())
}

/// A permit of a family that was set aside, whenever that was, is held and shown as held.
#[test]
fn its_permit_is_not_free_and_who_waits_is_told_why() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let set_up = |builder: Builder| kinds(&lab, builder).limit("limited", 1);
    let waits = plan("a", [Act::Wait("go".to_owned(), None), Act::Done(1)]);
    let (a, b) = world
        .run(FaultPlan::none(), set_up, async |run| {
            let a = run
                .wait(run.executor.submit(Limited(waits.clone())).into_future())
                .await??;
            let b = run
                .wait(run.executor.submit(Limited(chain("b", 1))).into_future())
                .await??;
            run.settle().await;
            Ok((a.id(), b.id()))
        })?
        .done()?;
    crate::retention::world::write(&world, |batch| {
        batch.delete(Space::Payloads, &keys::payload(a, keys::PAYLOAD));
    })?;
    // Set aside in the first life when its value is read, in the second by the start's own call.
    for first in [true, false] {
        world
            .run(FaultPlan::none(), set_up, async |run| {
                if first {
                    run.executor.signal(a, "go", &()).await?;
                }
                run.settle().await;
                assert_eq!(run.executor.snapshot().await?.quarantined.len(), 1);
                let limits = run.executor.limits().await?;
                let limit = limits.iter().find(|limit| limit.key.as_str() == "limited");
                let limit = limit.ok_or("the limit is not known")?;
                assert_eq!((limit.used, limit.waiting), (1, 1));
                let status = run.executor.status(a).await?;
                assert_eq!((status.holds, status.wait), (true, Some(WaitReason::Quarantined)));
                let explained = run.executor.explain(b).await?;
                let links: Vec<_> = explained.links.iter().map(|link| (link.to, link.why.clone())).collect();
                assert_eq!(links, [(a, WaitingFor::Permit("limited".into()))]);
                let ends: Vec<_> = explained.ends.iter().map(|end| (end.id, end.until.clone())).collect();
                assert_eq!(ends, [(a, WakeSource::Operator(WaitReason::Quarantined))]);
                assert!(!lab.has("b1"));
                Ok(())
            })?
            .done()?;
    }
    // It is free once an operator discharges the family.
    world
        .run(FaultPlan::none(), set_up, async |run| {
            run.settle().await;
            run.executor
                .discharge(a.family, OperatorRequest::new("ann", "it is lost"))
                .await?;
            let outcome = run.wait(run.executor.outcome(b)).await??;
            assert_eq!(outcome.output::<i64>()?, Some(7));
            Ok(())
        })?
        .done()
}
