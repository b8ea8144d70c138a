//! Children that a stage adds one by one: born in its commit, waited for by the next.

use procession::procedure::JoinPolicy;
use procession::status::{CauseKind, ProcedureState as State};
use procession::testkit::{Run, World};
use procession::{Procedure, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

use crate::recovery::crash::{Expected, check};
use crate::rollback::helper::{enumerate_client, rolled_back, states, submit};
use crate::support::{Act, Call, Lab, Plan, Planned, Tested, chain, enumerate, failing, kinds, live, plan, spawn};

/// Adds 3, 5 and 11; the second stage adds two children, the third spawns one.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Machine {
    sum: i64,
}

impl Procedure for Machine {
    const KIND: &'static str = "machine";
    type Stage = u32;
    type Env = Lab;
    type Output = i64;

    fn first(&self) -> u32 {
        1
    }

    async fn execute(&mut self, stage: u32, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        let call = Call {
            name: "m".to_owned(),
            stage,
            undo: false,
            attempt: cx.attempt(),
            value: vec![u32::try_from(self.sum).unwrap_or(u32::MAX)],
        };
        cx.env().called(cx.id(), call);
        match stage {
            1 => self.sum += 3,
            2 => {
                self.sum += 5;
                cx.add_child(&Planned(chain("a", 1)))?;
                cx.add_child(&Planned(chain("b", 1)))?;
            }
            3 => {
                self.sum += 11;
                let children = procession::Children::new().and(&Planned(chain("c", 1)))?;
                return Ok(Step::Spawn { children, then: 4 });
            }
            _ => return Ok(Step::Done(self.sum)),
        }
        Ok(Step::Next(stage + 1))
    }
}

#[test]
fn e_041_e_092_children_in_the_middle_and_at_the_end() -> Tested {
    let done = enumerate(
        Lab::default,
        |lab: &Lab, builder| kinds(lab, builder).register::<Machine>(lab.clone()),
        async |lab: &Lab, run: &Run| {
            let handle = submit(run, Machine::default(), "m").await?;
            assert_eq!(run.wait(handle.outcome()).await??, 19);
            assert_eq!(states(run, handle.id()).await?, [State::Success; 4]);
            let members = ["a", "b", "c"].map(|name| lab.id(name).map(|id| id.member));
            assert_eq!(members, [Some(1), Some(2), Some(3)]);
            Ok(())
        },
        &[],
        |plain, crashed, crashes| {
            assert_eq!(plain.line(), "m1 m2 a1 b1 m3 c1 m4");
            plain.compare(crashed, crashes)
        },
    )?;
    check(done, &Expected { commits: 8, torn: 55 });
    Ok(())
}

fn add(children: impl IntoIterator<Item = Plan>, then: Act) -> Act {
    let children: Vec<Plan> = children.into_iter().collect();
    children
        .into_iter()
        .rev()
        .fold(then, |then, child| Act::AddChild(Box::new(child), Box::new(then)))
}

#[test]
fn done_with_added_children_ends_when_they_have() -> Tested {
    let root = plan("r", [add([chain("a", 2), chain("b", 1)], Act::Done(5))]);
    let (done, lab) = enumerate_client(async |_, run| {
        let handle = submit(run, Planned(root.clone()), "r").await?;
        assert_eq!(run.wait(handle.outcome()).await??, 5);
        Ok(())
    })?;
    // Submit, r1, a1, b1, and a2 with the end of r.
    assert_eq!((done.commits, lab.line().as_str()), (5, "r1 a1 b1 a2"));
    Ok(())
}

#[test]
fn done_is_not_told_before_the_added_children_have_ended() -> Tested {
    let lab = Lab::default();
    let held = plan("a", [Act::Held("gate".to_owned(), Box::new(Act::Done(1)))]);
    live(&lab, async |run| {
        let handle = submit(run, Planned(plan("r", [add([held], Act::Done(5))])), "r").await?;
        run.settle().await;
        let status = handle.status().await?;
        assert_eq!((status.state, status.ended), (State::Waiting, None));
        lab.open("gate");
        assert_eq!(run.wait(handle.outcome()).await??, 5);
        Ok(())
    })
}

#[test]
fn done_with_an_added_child_that_fails_is_rolled_back() -> Tested {
    let root = plan("r", [Act::Next, add([chain("a", 1), failing("b", 2)], Act::Done(5))]);
    let (done, lab) = enumerate_client(async |_, run| {
        let handle = submit(run, Planned(root.clone()), "r").await?;
        let (cause, not_undone) = rolled_back(run.wait(handle.outcome()).await?)?;
        assert_eq!((cause.kind, cause.text.as_str()), (CauseKind::Failed, "boom"));
        assert!(not_undone.is_empty());
        let expected = [State::RolledBack, State::Success, State::RolledBack];
        assert_eq!(states(run, handle.id()).await?, expected);
        Ok(())
    })?;
    // Submit, five stages, four undos; a succeeded child is kept.
    assert_eq!(
        (done.commits, lab.line().as_str()),
        (10, "r1 r2 a1 b1 b2 b2' b1' r2' r1'")
    );
    Ok(())
}

#[test]
fn added_children_follow_those_of_a_spawn() -> Tested {
    let step = add([chain("c", 1)], spawn([chain("a", 1), chain("b", 1)]));
    let root = plan("r", [step, Act::See(Box::new(Act::Done(1)))]);
    let (done, lab) = enumerate_client(async |_, run| {
        let handle = submit(run, Planned(root.clone()), "r").await?;
        run.wait(handle.outcome()).await??;
        Ok(())
    })?;
    assert_eq!((done.commits, lab.line().as_str()), (6, "r1 a1 b1 c1 r2"));
    let seen = [1, 2, 3].map(|member| format!("r2 saw {member} Success Some(7) None"));
    assert_eq!(lab.noted(), seen);
    Ok(())
}

/// They are part of the list, and the policy is the list's.
#[test]
fn the_policy_of_a_spawn_counts_added_children() -> Tested {
    let step = add(
        [chain("b", 1)],
        Act::Spawn(vec![failing("a", 1)], JoinPolicy::AtLeast(1), 0),
    );
    let lab = Lab::default();
    live(&lab, async |run| {
        let handle = submit(run, Planned(plan("r", [step.clone(), Act::Done(3)])), "r").await?;
        assert_eq!(run.wait(handle.outcome()).await??, 3);
        Ok(())
    })
}

#[test]
fn children_are_not_added_by_a_stage_that_parks() -> Tested {
    for then in [Act::Sleep(1_000), Act::Wait("go".to_owned(), None)] {
        let root = plan("r", [add([chain("a", 1)], then), Act::Done(1)]);
        let (done, lab) = enumerate_client(async |_, run| {
            let handle = submit(run, Planned(root.clone()), "r").await?;
            let (cause, _) = rolled_back(run.wait(handle.outcome()).await?)?;
            assert_eq!(cause.kind, CauseKind::OverBound);
            assert!(cause.text.contains("children were added"), "{}", cause.text);
            assert!(cause.text.contains("return Next, Spawn or Done"), "{}", cause.text);
            Ok(())
        })?;
        assert_eq!((done.commits, lab.line().as_str()), (3, "r1 r1'"));
    }
    Ok(())
}

#[test]
fn children_added_by_a_stage_that_fails_or_yields_are_not_born() -> Tested {
    let child = || [chain("a", 1)];
    let acts = [
        (Act::Retry(1, Box::new(Act::Done(1))), "r1 r1 a1"),
        (Act::Yield(1, Box::new(Act::Done(1))), "r1 r1 a1"),
        (Act::Panic(1, Box::new(Act::Done(1))), "r1 r1 a1"),
    ];
    for (then, line) in acts {
        let lab = Lab::default();
        live(&lab, async |run| {
            let handle = submit(run, Planned(plan("r", [add(child(), then)])), "r").await?;
            run.wait(handle.outcome()).await??;
            assert_eq!(run.executor.tree(handle.id()).await?.len(), 2, "one child is born");
            Ok(())
        })?;
        assert_eq!(lab.line(), line);
    }
    Ok(())
}

#[test]
fn more_added_children_than_the_bound_are_refused() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let root = plan(
        "r",
        [add((0..3).map(|n| chain(&format!("a{n}"), 1)), Act::Next), Act::Done(1)],
    );
    let set_up = |builder| kinds(&lab, builder).max_children(2);
    world
        .run(procession::testkit::FaultPlan::none(), set_up, async |run| {
            let handle = submit(run, Planned(root), "r").await?;
            let (cause, _) = rolled_back(run.wait(handle.outcome()).await?)?;
            assert_eq!(cause.text, "3 children are over the limit of 2");
            Ok(())
        })?
        .done()
}
