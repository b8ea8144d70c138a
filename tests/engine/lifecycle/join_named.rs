//! Places of a named set: counted over the whole list, each once, and checked when the stage reports.

use procession::ProcedureId;
use procession::errors::ProcedureError;
use procession::procedure::JoinPolicy;
use procession::provider::Space;
use procession::status::{Cause, CauseKind, ProcedureState};
use procession::testkit::{FaultPlan, Run, Trouble, World};
use procession_actors::testkit::format;
use procession_kernel::Record;

use super::kit::submit;
use crate::retention::{fill::copy, world::write};
use crate::support::{Act, Lab, Plan, Planned, Tested, chain, enumerate_plan, failing, kinds, live, live_in, plan};

fn joined(children: Vec<Plan>, places: &[u32]) -> Plan {
    let join = JoinPolicy::Named(places.to_vec());
    plan("r", [Act::Spawn(children, join, 0), Act::Done(1)])
}

/// How the root ends: with its output, or with why it failed.
fn outcome(root: &Plan) -> Result<Result<i64, Cause>, Trouble> {
    live(&Lab::default(), async |run| {
        let handle = submit(run, Planned(root.clone()), "k").await?;
        match run.wait(handle.outcome()).await? {
            Ok(output) => Ok(Ok(output)),
            Err(ProcedureError::RolledBack { cause, .. }) => Ok(Err(cause)),
            Err(other) => Err(other.into()),
        }
    })
}

#[test]
fn a_detached_child_has_a_place_of_its_own() -> Tested {
    let detached = || chain("D", 1).detached();
    let lost = joined(vec![detached(), failing("a", 1), chain("b", 1)], &[1]);
    let cause = outcome(&lost)?.err().ok_or("the named child failed")?;
    assert_eq!((cause.text.as_str(), cause.origin.member), ("boom", 1));
    let met = joined(vec![detached(), chain("a", 1), failing("b", 1)], &[1]);
    assert_eq!(outcome(&met)?, Ok(1));
    assert_eq!(outcome(&joined(vec![detached(), chain("a", 1)], &[1]))?, Ok(1));
    let (_, lab) = enumerate_plan(&joined(vec![detached(), chain("a", 1), failing("b", 1)], &[1]))?;
    assert_eq!(lab.count("r2"), 1);
    Ok(())
}

#[test]
fn a_place_given_twice_is_one() -> Tested {
    let (_, lab) = enumerate_plan(&joined(vec![chain("a", 1), chain("b", 1)], &[0, 0]))?;
    assert_eq!(lab.count("r2"), 1);
    Ok(())
}

#[test]
fn a_place_without_a_child_fails_the_stage() -> Tested {
    let beyond = joined(vec![chain("a", 1), chain("b", 1)], &[2]);
    let detached = joined(vec![chain("D", 1).detached(), chain("b", 1)], &[0]);
    for (root, words) in [(&beyond, "place 2"), (&detached, "detached")] {
        let cause = outcome(root)?.err().ok_or("it succeeded")?;
        assert_eq!(cause.kind, CauseKind::OverBound);
        assert!(cause.text.contains(words), "{}", cause.text);
        let (done, lab) = enumerate_plan(root)?;
        assert_eq!((done.commits, lab.line().as_str()), (3, "r1 r1'"));
    }
    Ok(())
}

/// Writes the root's row again, as an engine has left it that did not look at places.
fn rewrite(world: &World, root: ProcedureId, places: &[u32]) -> Tested {
    let key = [&root.family.to_be_bytes()[..], &root.member.to_be_bytes()].concat();
    let rows = world.disk.dump(&Space::Procedures);
    let (_, stored) = rows.iter().find(|(place, _)| *place == key).ok_or("it has a row")?;
    let mut row = format::row(root, stored)?;
    for round in row.rounds.iter_mut() {
        round.join = JoinPolicy::Named(places.to_vec());
    }
    let mut copied = Ok(());
    write(world, |batch| copied = copy(batch, &Record::Row(Box::new(row))))?;
    copied
}

#[test]
fn what_an_older_engine_left_waits_for_all_and_goes_on() -> Tested {
    let waiting = |name: &str| plan(name, [Act::Wait("go".into(), None), Act::Done(7)]);
    for places in [&[5][..], &[0, 2], &[1, 1]] {
        let (world, lab) = (World::new(), Lab::default());
        let root = live_in(&world, &lab, async |run: &Run| {
            let handle = submit(run, Planned(joined(vec![waiting("a"), waiting("b")], &[0])), "k").await?;
            run.settle().await;
            Ok(handle.id())
        })?;
        rewrite(&world, root, places)?;
        let ended = world.run(
            FaultPlan::none(),
            |builder| kinds(&lab, builder).strict(true),
            async |run| {
                let child = |member| ProcedureId::new(root.family, member);
                for member in [1, 2] {
                    assert_eq!(
                        run.executor.status(root).await?.state,
                        ProcedureState::Waiting,
                        "{places:?}"
                    );
                    run.wait(run.executor.signal(child(member), "go", &1_i64)).await??;
                    run.wait(run.executor.outcome(child(member))).await??;
                    run.settle().await;
                }
                Ok(run.wait(run.executor.outcome(root)).await??.state)
            },
        )?;
        assert_eq!(ended.done()?, ProcedureState::Success, "{places:?}");
    }
    Ok(())
}
