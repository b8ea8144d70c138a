//! One verdict for each way in which a procedure can be stuck, with its facts,
//! and none once the cause is gone. Healthy ones beside it have none.

use std::future::IntoFuture;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use procession::health::{Rule, Verdict};
use procession::operate::{BypassAs, BypassScope, OperatorRequest, PauseScope};
use procession::testkit::{Ended, FaultPlan, MemoryStore, Run, Trouble, World};
use procession::{Builder, Procedure, ProcedureId, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

use super::kit::{Slow, at, live_in, set_up, the_verdict};
use crate::support::{
    Act, Circling, Lab, Limited, Once, Patient, Plan, Planned, Tested, UndoAct, failing, plan, stuck,
};

async fn submit<P: Procedure>(run: &Run, procedure: P) -> Result<ProcedureId, Trouble> {
    let handle = run.wait(run.executor.submit(procedure).into_future()).await??;
    run.settle().await;
    Ok(handle.id())
}

/// Healthy ones: one waits for an event, one sleeps, one runs, but not too long.
async fn healthy(run: &Run) -> Tested {
    submit(
        run,
        Planned(plan("e", [Act::Wait("never".to_owned(), None), Act::Done(1)])),
    )
    .await?;
    submit(run, Planned(plan("s", [Act::Sleep(86_400_000), Act::Done(1)]))).await?;
    submit(
        run,
        Planned(plan("h", [Act::Held("never".to_owned(), Box::new(Act::Done(1)))])),
    )
    .await?;
    Ok(())
}

async fn none_is_left(run: &Run) -> Tested {
    run.settle().await;
    assert_eq!(stuck(run).await?, []);
    Ok(())
}

/// Checks the verdict's rule, whose it is, since when, and these facts.
fn check(verdict: &Verdict, rule: Rule, id: ProcedureId, since: u64, facts: &[(&str, &str)]) {
    assert_eq!(
        (verdict.rule, verdict.procedure, verdict.since),
        (rule, Some(id), at(since)),
        "{verdict:?}"
    );
    for (name, value) in facts {
        assert_eq!(verdict.fact(name), Some(*value), "{name} of {verdict:?}");
    }
    assert!(verdict.text.contains(&id.to_string()), "{}", verdict.text);
}

fn live(lab: &Lab, drive: impl AsyncFnOnce(&Run) -> Tested) -> Tested {
    live_in(&World::new(), lab, FaultPlan::none(), async |run| {
        healthy(run).await?;
        none_is_left(run).await?;
        drive(run).await
    })
}

#[test]
fn e_115_a_stage_over_its_expected_time() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        run.pass(Duration::from_secs(5)).await;
        let id = submit(run, Slow("slow".to_owned())).await?;
        run.pass(Duration::from_mins(1)).await;
        none_is_left(run).await?;
        run.pass(Duration::from_secs(1)).await;
        let verdict = the_verdict(run).await?;
        let facts = [
            ("kind", "slow"),
            ("stage", "Copy"),
            ("expected", "60s"),
            ("time", "61s"),
            ("call", "runs"),
        ];
        check(&verdict, Rule::Overrun, id, 5, &facts);
        lab.open("slow");
        none_is_left(run).await
    })
}

#[test]
fn e_115_time_while_the_engine_is_down_is_no_overrun() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    live_in(&world, &lab, FaultPlan::none(), async |run| {
        submit(run, Slow("slow".to_owned())).await?;
        Ok(())
    })?;
    world.clock.advance(Duration::from_hours(9));
    live_in(&world, &lab, FaultPlan::none(), async |run| {
        none_is_left(run).await?;
        run.pass(Duration::from_secs(61)).await;
        let verdict = the_verdict(run).await?;
        check(
            &verdict,
            Rule::Overrun,
            ProcedureId::root(1),
            9 * 3_600,
            &[("time", "61s")],
        );
        Ok(())
    })
}

#[test]
fn e_115_a_retry_storm() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let id = submit(run, Patient(plan("p", [Act::Retry(4, Box::new(Act::Done(1)))]))).await?;
        run.pass(Duration::from_secs(2)).await;
        none_is_left(run).await?;
        // It has failed at 0, 1 and 3 s.
        run.pass(Duration::from_secs(1)).await;
        let facts = [("stage", "1"), ("attempts", "3"), ("next", "7000000")];
        check(&the_verdict(run).await?, Rule::RetryStorm, id, 0, &facts);
        run.pass(Duration::from_secs(4)).await;
        check(&the_verdict(run).await?, Rule::RetryStorm, id, 0, &[("attempts", "4")]);
        run.pass(Duration::from_secs(8)).await;
        none_is_left(run).await
    })
}

#[test]
fn e_115_beyond_the_point_of_no_return_the_budget_counts() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let once = plan("o", [Act::Retry(1, Box::new(Act::Done(1)))]).one_way(1);
        let id = submit(run, Once(once)).await?;
        let verdict = the_verdict(run).await?;
        check(&verdict, Rule::RetryStorm, id, 0, &[("attempts", "1"), ("budget", "1")]);
        run.executor
            .retry_now(id, OperatorRequest::new("the test", "it is repaired"))
            .await?;
        none_is_left(run).await
    })
}

#[test]
fn e_115_an_undo_that_fails_again_and_again() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let id = submit(run, Patient(failing("u", 1).undo(1, UndoAct::Fail(3)))).await?;
        run.pass(Duration::from_secs(3)).await;
        check(
            &the_verdict(run).await?,
            Rule::RetryStorm,
            id,
            0,
            &[("attempts", "3"), ("next", "7000000")],
        );
        run.pass(Duration::from_secs(4)).await;
        none_is_left(run).await
    })
}

#[test]
fn e_115_the_same_stage_again_and_again() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let mut visits = vec![Act::SleepAgain(1_000); 6];
        visits.push(Act::Done(1));
        let id = submit(run, Planned(plan("c", [Act::Visits(visits)]))).await?;
        run.pass(Duration::from_secs(3)).await;
        none_is_left(run).await?;
        run.pass(Duration::from_secs(1)).await;
        check(
            &the_verdict(run).await?,
            Rule::NoProgress,
            id,
            4,
            &[("times", "5"), ("parked", "false")],
        );
        run.pass(Duration::from_secs(2)).await;
        none_is_left(run).await
    })
}

#[test]
fn e_115_one_that_was_parked_for_going_in_circles() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let id = submit(run, Circling(plan("c", [Act::Goto(1)]).one_way(1))).await?;
        check(
            &the_verdict(run).await?,
            Rule::NoProgress,
            id,
            0,
            &[("times", "5"), ("parked", "true")],
        );
        let by = OperatorRequest::new("the test", "it goes in circles");
        run.executor
            .bypass(id, BypassScope::Alone, BypassAs::Success, by)
            .await?;
        none_is_left(run).await
    })
}

fn held(name: &str) -> Plan {
    plan(name, [Act::Held(name.to_owned(), Box::new(Act::Done(1)))])
}

#[test]
fn e_115_starved_by_later_ones_of_higher_priority() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        run.pass(Duration::from_secs(2)).await;
        submit(run, Limited(held("h0"))).await?;
        let low = submit(run, Limited(held("low").priority(-1))).await?;
        for number in 1..=3 {
            none_is_left(run).await?;
            submit(run, Limited(held(&format!("h{number}")).priority(5))).await?;
            lab.open(&format!("h{}", number - 1));
            run.until("it passes", || lab.has(&format!("h{number}1"))).await?;
        }
        let facts = [
            ("passed", "3"),
            ("lacks", "permit limited"),
            ("priority", "-1"),
            ("patience", "256"),
        ];
        check(&the_verdict(run).await?, Rule::Starved, low, 2, &facts);
        lab.open("h3");
        none_is_left(run).await
    })
}

#[test]
fn e_115_a_rollback_that_failed() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let stuck = failing("f", 2).undo(2, UndoAct::FailUntil("repaired".to_owned()));
        let id = submit(run, Planned(stuck)).await?;
        run.pass(Duration::from_secs(3)).await;
        let member = id.to_string();
        let facts = [
            ("attempts", "3"),
            ("undo", "2"),
            ("member", member.as_str()),
            ("cause", "boom"),
        ];
        check(&the_verdict(run).await?, Rule::RollbackFailed, id, 3, &facts);
        lab.open("repaired");
        run.executor
            .retry_undo(id, OperatorRequest::new("the test", "it is repaired"))
            .await?;
        none_is_left(run).await
    })
}

#[test]
fn e_115_without_code() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let submitted = live_in(&world, &lab, FaultPlan::none(), async |run| {
        submit(run, Slow("slow".to_owned())).await
    })?;
    world.clock.advance(Duration::from_secs(9));
    let without = |builder: Builder| builder.register::<Planned>(lab.clone());
    world
        .run(FaultPlan::none(), without, async |run| {
            run.pass(Duration::from_secs(9)).await;
            let verdict = the_verdict(run).await?;
            // Its row says nothing of it: it counts from the start that has no code.
            assert_eq!((verdict.rule, verdict.procedure), (Rule::Quarantined, Some(submitted)));
            assert_eq!(verdict.since, at(9));
            assert!(
                verdict.fact("why").is_some_and(|why| why.contains("slow")),
                "{verdict:?}"
            );
            Ok(())
        })?
        .done()?;
    live_in(&world, &lab, FaultPlan::none(), async |run| none_is_left(run).await)
}

/// The process, as a stage sees it.
#[derive(Clone, Default)]
pub(super) struct Process {
    store: Arc<Mutex<Option<Arc<MemoryStore>>>>,
    pub(super) lab: Lab,
}

impl Process {
    /// The next stage that runs kills this life.
    pub(super) fn arm(&self, run: &Run) {
        *self.store.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&run.store));
    }
}

/// Kills the process, until the lab says that it is cured.
#[derive(Serialize, Deserialize)]
pub(super) struct Deadly;

impl Procedure for Deadly {
    const KIND: &'static str = "deadly_too";
    type Stage = String;
    type Env = Process;
    type Output = i64;

    fn first(&self) -> String {
        "Explode".to_owned()
    }

    async fn execute(&mut self, _: String, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        let process = cx.env().clone();
        while !process.lab.is_open("cured") {
            if let Some(store) = process.store.lock().unwrap_or_else(PoisonError::into_inner).take() {
                store.crash();
            }
            tokio::task::yield_now().await;
        }
        Ok(Step::Done(1))
    }
}

#[test]
fn e_115_poison() -> Tested {
    let (world, process) = (World::new(), Process::default());
    let with = |builder| set_up(&process.lab, builder).register::<Deadly>(process.clone());
    for life in 0..3 {
        let ended = world.run(FaultPlan::none(), with, async |run| {
            if life == 0 {
                run.executor.submit(Deadly).await?;
            }
            process.arm(run);
            run.pass(Duration::from_secs(1)).await;
            run.until("it dies", || false).await
        })?;
        assert!(matches!(ended, Ended::Crashed));
    }
    let drive = async |run: &Run| -> Tested {
        let now = run.now().0 / 1_000_000;
        let id = ProcedureId::root(1);
        check(
            &the_verdict(run).await?,
            Rule::Poison,
            id,
            now,
            &[("kind", "deadly_too"), ("stage", "Explode")],
        );
        process.lab.open("cured");
        run.executor
            .resume(PauseScope::One(id), OperatorRequest::new("the test", "it is cured"))
            .await?;
        none_is_left(run).await
    };
    world.run(FaultPlan::none(), with, drive)?.done()
}
