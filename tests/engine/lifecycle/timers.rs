//! Sleep, and what costs nothing while it waits.

use std::time::Duration;

use procession::ProcedureId;
use procession::messages::{Submit, SubmitBatch};
use procession::procedure::Timestamp;
use procession::status::ProcedureState;
use procession::testkit::{FaultPlan, Run, Trouble, World};

use super::kit::{at_rest, crash, enumerate_client, submit};
use crate::support::{Act, Lab, Plan, Planned, Tested, enumerate_plan, kinds, live, live_in, plan};

const MINUTE: Duration = Duration::from_secs(60);

/// Sleeps from 0 h to 1 h, crashes half-way, and is started again so long after.
fn slept(down: Duration) -> Result<(Timestamp, u64), Trouble> {
    let (world, lab) = (World::new(), Lab::default());
    let sleeper = plan("a", [Act::SleepUntil(3_600_000), Act::Done(7)]);
    world.run(
        FaultPlan::none(),
        |builder| kinds(&lab, builder),
        async |run| {
            let handle = submit(run, Planned(sleeper.clone()), "k").await?;
            assert_eq!(at_rest(run, handle.id()).await?.state, ProcedureState::WaitingTimeout);
            run.pass(MINUTE * 30).await;
            assert_eq!(run.executor.snapshot().await?.commits, 2);
            crash::<Tested>(run).await
        },
    )?;
    world.clock.advance(down);
    live_in(&world, &lab, async |run| {
        let handle = submit(run, Planned(sleeper.clone()), "k").await?;
        assert_eq!(run.wait(handle.outcome()).await??, 7);
        assert_eq!(lab.line(), "a1 a2");
        let history = run.executor.history(handle.id()).await?;
        let second = history.get(1).ok_or("stage 2 has no entry")?;
        Ok((second.begun, run.executor.snapshot().await?.commits + 2))
    })
}

#[test]
fn e_008_sleep_is_durable_and_absolute() -> Tested {
    let minutes = |minutes: u64| Timestamp(minutes * 60_000_000);
    assert_eq!(slept(MINUTE * 15)?, (minutes(60), 4));
    assert_eq!(slept(MINUTE * 60)?, (minutes(90), 4));
    let (done, lab) = enumerate_plan(&plan("a", [Act::SleepUntil(3_600_000), Act::Done(7)]))?;
    assert_eq!((done.commits, lab.line().as_str()), (4, "a1 a2"));
    Ok(())
}

fn parked(name: &str) -> Plan {
    plan(
        name,
        [
            Act::Wait("go".into(), None),
            Act::Held("gate".into(), Box::new(Act::DoneSignal)),
        ],
    )
}

async fn park(run: &Run, count: usize) -> Result<Vec<ProcedureId>, Trouble> {
    let names: Vec<String> = (0..count).map(|number| format!("w{number}")).collect();
    let submits = names
        .iter()
        .map(|name| Ok(Submit::new(&Planned(parked(name)))?.key(name.as_str())));
    let submits = submits.collect::<Result<Vec<_>, Trouble>>()?;
    Ok(run
        .wait(run.executor.supervisor().send(SubmitBatch(submits)))
        .await???)
}

#[test]
fn e_011_parked_costs_no_actor_and_no_turn() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let ids = park(run, 1_000).await?;
        run.settle().await;
        let before = run.executor.snapshot().await?;
        assert_eq!((before.commits, before.actors, lab.calls().len()), (1_001, 0, 1_000));
        run.pass(Duration::from_secs(86_400)).await;
        let after = run.executor.snapshot().await?;
        assert_eq!((after.commits, after.actors, after.going), (1_001, 0, 0));
        assert_eq!(lab.calls().len(), 1_000);
        let chosen = *ids.get(500).ok_or("there are not so many")?;
        run.executor.signal(chosen, "go", &5_i64).await?;
        run.until("it is revived", || lab.has("w5002")).await?;
        let revived = run.executor.snapshot().await?;
        assert_eq!((revived.actors, revived.going), (1, 1));
        lab.open("gate");
        let outcome = run.wait(run.executor.outcome(chosen)).await??;
        assert_eq!(outcome.output::<i64>()?, Some(5));
        run.settle().await;
        assert_eq!(run.executor.snapshot().await?.actors, 0);
        assert_eq!(lab.calls().len(), 1_001);
        let last = lab.calls().pop().ok_or("nothing was called")?;
        assert_eq!((last.short().as_str(), last.value), ("w5002", vec![1]));
        Ok(())
    })?;
    e_011_parked_roots_survive_crashes()
}

/// The same with few roots, so that every crash can be tried.
fn e_011_parked_roots_survive_crashes() -> Tested {
    let (done, lab) = enumerate_client(async |lab, run| {
        lab.open("gate");
        let ids = park(run, 3).await?;
        run.settle().await;
        // Not so long that a result goes when this is done again after a crash.
        run.pass(MINUTE).await;
        let chosen = *ids.get(1).ok_or("there are not so many")?;
        if run.executor.status(chosen).await?.ended.is_none() {
            run.executor.signal(chosen, "go", &5_i64).key("s").await?;
        }
        run.wait(run.executor.outcome(chosen)).await??;
        Ok(())
    })?;
    assert_eq!((done.commits, lab.line().as_str()), (6, "w01 w11 w21 w12"));
    Ok(())
}
