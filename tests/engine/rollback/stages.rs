//! Stages as a state machine: each counts once, and the visits are the undo list.

use procession::testkit::{Ended, Fault, FaultPlan, World};
use procession::{Procedure, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

use super::helper::{committed, rolled_back, submit};
use crate::support::{Act, Call, Lab, Plan, Planned, Tested, chain, enumerate_plan, failing, kinds, plan, spawn};

/// Adds 3, 5, 7 and 11 in four stages, and gives the sum.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Adder {
    sum: i64,
}

impl Procedure for Adder {
    const KIND: &'static str = "adder";
    type Stage = u32;
    type Env = Lab;
    type Output = i64;

    fn first(&self) -> u32 {
        1
    }

    async fn execute(&mut self, stage: u32, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        let value = vec![u32::try_from(self.sum).unwrap_or(u32::MAX)];
        let call = Call {
            name: "a".to_owned(),
            stage,
            undo: false,
            attempt: cx.attempt(),
            value,
        };
        cx.env().called(cx.id(), call);
        let terms = [3, 5, 7, 11];
        self.sum += terms.get(stage as usize - 1).copied().unwrap_or(0);
        Ok(if stage == 4 {
            Step::Done(self.sum)
        } else {
            Step::Next(stage + 1)
        })
    }
}

#[test]
fn e_040_each_stage_counts_once() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    for restarts in 0..10 {
        // The first life crashes before the commit of stage 1, each later one before the next but one.
        let fault = FaultPlan::at(2, Fault::CrashBefore);
        let set_up = |builder| kinds(&lab, builder).register::<Adder>(lab.clone());
        let ended = world.run(fault, set_up, async |run| {
            let handle = submit(run, Adder::default(), "k").await?;
            Ok(run.wait(handle.outcome()).await??)
        })?;
        if let Ended::Done(sum) = ended {
            assert_eq!((sum, restarts, lab.line().as_str()), (26, 4, "a1 a1 a2 a2 a3 a3 a4 a4"));
            let seen: Vec<_> = lab.calls().into_iter().flat_map(|call| call.value).collect();
            assert_eq!(
                seen,
                [0, 0, 3, 3, 8, 8, 15, 15],
                "the second call sees what the first saw"
            );
            return Ok(());
        }
    }
    Err("it does not come to an end".into())
}

#[test]
fn e_040_five_commits() -> Tested {
    let (done, _) = enumerate_plan(&chain("a", 4))?;
    assert_eq!(done.commits, 5);
    Ok(())
}

/// Stages 1, 2, 3, of which the second spawns one child.
fn with_child(child: Plan) -> Plan {
    plan("r", [Act::Next, spawn([child]), Act::Done(1)])
}

/// Crashes before every commit the first time and lets it pass the second.
fn doubled(root: &Plan) -> Result<(usize, Lab), procession::testkit::Trouble> {
    let (world, lab) = (World::new(), Lab::default());
    for restarts in 0..20 {
        let fault = FaultPlan::at(2, Fault::CrashBefore);
        let ended = world.run(
            fault,
            |builder| kinds(&lab, builder),
            async |run| {
                let handle = submit(run, Planned(root.clone()), "k").await?;
                match run.wait(handle.outcome()).await? {
                    Ok(_) => Ok(None),
                    failed => Ok(Some(rolled_back(failed)?.0.text)),
                }
            },
        )?;
        if let Ended::Done(cause) = ended {
            lab.note(cause.unwrap_or_default());
            return Ok((restarts, lab));
        }
    }
    Err("it does not come to an end".into())
}

fn executes_and_undos(lab: &Lab) -> (usize, usize) {
    let undos = lab.calls().iter().filter(|call| call.undo).count();
    (lab.calls().len() - undos, undos)
}

/// With `Spawn` in place of `cx.add_child`: the parent's stage and the child's birth are one commit as well.
#[test]
fn e_042_a_child_that_fails_late() -> Tested {
    let (done, lab) = enumerate_plan(&with_child(chain("c", 1)))?;
    assert_eq!((done.commits, executes_and_undos(&lab)), (5, (4, 0)));
    let (done, lab) = enumerate_plan(&with_child(failing("c", 1)))?;
    assert_eq!((done.commits, executes_and_undos(&lab)), (7, (3, 3)));
    assert_eq!(lab.line(), "r1 r2 c1 c1' r2' r1'");

    let (restarts, lab) = doubled(&with_child(chain("c", 1)))?;
    assert_eq!((restarts, executes_and_undos(&lab)), (4, (8, 0)));
    let (restarts, lab) = doubled(&with_child(failing("c", 1)))?;
    assert_eq!((restarts, executes_and_undos(&lab)), (6, (6, 6)));
    assert_eq!(lab.noted(), ["boom"]);
    Ok(())
}

/// The undo of the child takes its lock again. A start that finds it waiting writes
/// nothing of that: else each life would lose the grant, and come no further.
#[test]
fn e_042_a_compensation_that_takes_its_lock_again() -> Tested {
    let child = chain("c", 1).exclusive("t").compensated();
    let root = plan("r", [spawn([child]), Act::Fail("boom".to_owned())]);
    let (done, lab) = enumerate_plan(&root)?;
    // The submission, three stages, three undos, and the grant to the undo of the child.
    assert_eq!((done.commits, lab.line().as_str()), (8, "r1 c1 r2 r2' c1' r1'"));
    let (restarts, lab) = doubled(&root)?;
    assert_eq!((restarts, executes_and_undos(&lab)), (7, (6, 6)));
    assert_eq!(lab.noted(), ["boom"]);
    Ok(())
}

/// Visits 1 2 1 2, the last failing.
fn visits() -> Plan {
    let second = Act::Visits(vec![Act::Goto(1), Act::Fail("boom".to_owned())]);
    plan("a", [Act::Next, second])
}

#[test]
fn e_045_the_visits_are_the_undo_list() -> Tested {
    let (done, lab) = enumerate_plan(&visits())?;
    assert_eq!((done.commits, lab.line().as_str()), (9, "a1 a2 a1 a2 a2' a1' a2' a1'"));

    // A restart after each commit.
    let (world, lab) = (World::new(), Lab::default());
    let mut visited = Vec::new();
    for restarts in 0..12 {
        let fault = FaultPlan::at(1, Fault::CrashAfter);
        let ended = world.run(
            fault,
            |builder| kinds(&lab, builder),
            async |run| {
                let handle = submit(run, Planned(visits()), "k").await?;
                let now = committed(run, handle.id()).await?;
                let cause = rolled_back(run.wait(handle.outcome()).await?)?.0;
                Ok((now, cause.text))
            },
        )?;
        if let Ended::Done((now, cause)) = ended {
            let (stages, undone): (Vec<_>, Vec<_>) = now.into_iter().partition(|(.., undo)| !undo);
            visited.extend(stages.iter().map(|(_, visit, _)| *visit));
            assert_eq!((restarts, undone.len(), cause.as_str()), (9, 4, "boom"));
            break;
        }
    }
    assert_eq!(visited, [0, 1, 2, 3], "the visits are there after every restart");
    assert_eq!(lab.line(), "a1 a2 a1 a2 a2' a1' a2' a1'");
    Ok(())
}
