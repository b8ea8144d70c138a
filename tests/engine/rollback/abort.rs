//! Abort: what it says, when it is honoured, and that its intent is durable.

use std::cell::RefCell;
use std::collections::BTreeSet;

use procession::ProcedureId;
use procession::errors::{AskError, ProcedureError};
use procession::operate::{AbortAnswer, OperatorRequest};
use procession::status::{Cause, CauseKind, ProcedureState as State};
use procession::testkit::{Fault, FaultPlan, Run, Trouble, World};

use super::helper::{Order, at_rest, commits, enumerate_client, rolled_back, submit, under_seeds};
use crate::support::{
    Act, Lab, Plan, Planned, Tested, UndoAct, chain, each_crash, enumerate_later, failing, kinds, live, live_in, plan,
    spawn,
};

fn held(gate: &str, act: Act) -> Act {
    Act::Held(gate.to_owned(), Box::new(act))
}

async fn abort(run: &Run, id: ProcedureId) -> Result<Result<AbortAnswer, AskError>, Trouble> {
    let operated = run
        .wait(run.executor.abort(id, OperatorRequest::new("ann", "wrong table")))
        .await?;
    Ok(match operated {
        Ok(operated) => Ok(operated.abort.ok_or("an abort is answered")?),
        Err(error) => Err(error),
    })
}

/// Aborts, unless an earlier life did so and got no answer.
async fn abort_once(run: &Run, id: ProcedureId) -> Tested {
    if at_rest(run, id).await?.cause.is_none() {
        assert_eq!(abort(run, id).await??, AbortAnswer::WillRollBack);
    }
    Ok(())
}

fn is_by_ann(cause: &Cause) {
    assert_eq!(
        (cause.kind, cause.text.as_str()),
        (CauseKind::Aborted, "aborted by ann: wrong table")
    );
}

#[test]
fn e_047_abort_says_what_happens() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let unknown = ProcedureId::root(77);
        assert!(matches!(abort(run, unknown).await?, Err(AskError::Unknown(id)) if id == unknown));

        let finished = submit(run, Planned(chain("f", 1)), "finished").await?;
        run.wait(finished.outcome()).await??;
        assert!(matches!(abort(run, finished.id()).await?, Err(AskError::Finished { id, .. }) if id == finished.id()));
        assert_eq!(run.executor.outcome(finished.id()).await?.state, State::Success);

        let running = submit(
            run,
            Planned(plan("a", [held("gate", Act::Next), Act::Done(1)])),
            "running",
        )
        .await?;
        run.settle().await;
        let before = commits(run).await?;
        assert_eq!(abort(run, running.id()).await??, AbortAnswer::WillRollBack);
        assert_eq!(commits(run).await?, before + 1);
        assert_eq!(abort(run, running.id()).await??, AbortAnswer::WillRollBack);
        assert_eq!(commits(run).await?, before + 1, "aborted before: no second commit");
        lab.open("gate");
        is_by_ann(&rolled_back(run.wait(running.outcome()).await?)?.0);
        Ok(())
    })
}

/// Asks with a key, in every life.
async fn asked(run: &Run, id: ProcedureId, key: &str) -> Result<Result<Option<AbortAnswer>, AskError>, Trouble> {
    let by = OperatorRequest::new("ann", "wrong table").key(key);
    let operated = run.wait(run.executor.abort(id, by)).await?;
    Ok(operated.map(|operated| operated.abort))
}

/// Whatever it crashes at, the answer is the same, and what was answered comes about.
#[test]
fn e_047_abort_says_the_same_however_it_crashes() -> Tested {
    let (done, lab) = enumerate_client(async |lab, run| {
        let unknown = ProcedureId::root(77);
        assert!(matches!(asked(run, unknown, "1").await?, Err(AskError::Unknown(id)) if id == unknown));
        let running = plan("a", [held("gate", Act::Next), Act::Done(1)]);
        let running = submit(run, Planned(running), "running").await?;
        run.settle().await;
        for times in 0..2 {
            let before = commits(run).await?;
            let answer = asked(run, running.id(), "2").await??;
            assert_eq!(answer, Some(AbortAnswer::WillRollBack));
            assert!(
                commits(run).await? <= before + 1 - times,
                "the second time it commits nothing"
            );
        }
        lab.open("gate");
        is_by_ann(&rolled_back(run.wait(running.outcome()).await?)?.0);
        Ok(())
    })?;
    assert_eq!((done.commits, lab.line().as_str()), (4, "a1 a1'"));

    let (done, lab) = enumerate_client(async |_, run| {
        let finished = submit(run, Planned(chain("f", 1)), "finished").await?;
        run.wait(finished.outcome()).await??;
        let answer = asked(run, finished.id(), "3").await?;
        assert!(matches!(answer, Err(AskError::Finished { id, .. }) if id == finished.id()));
        assert_eq!(run.executor.outcome(finished.id()).await?.state, State::Success);

        let past = plan("p", [Act::Wait("go".to_owned(), None), Act::Done(1)]).one_way(1);
        let past = submit(run, Planned(past), "past").await?;
        if at_rest(run, past.id()).await?.state == State::WaitingTimeout {
            let before = commits(run).await?;
            let why = "it passed its point of no return with stage 1".to_owned();
            assert_eq!(asked(run, past.id(), "4").await??, Some(AbortAnswer::TooLate(why)));
            assert_eq!(commits(run).await?, before, "it leaves nothing");
            run.executor.signal(past.id(), "go", &1_i64).key("go").await?;
        }
        assert_eq!(run.wait(past.outcome()).await??, 1, "it was not aborted");
        Ok(())
    })?;
    // Two for the finished one, four for the other with its signal.
    assert_eq!((done.commits, lab.line().as_str()), (6, "f1 p1 p2"));
    Ok(())
}

fn four() -> Plan {
    plan("a", [Act::Next, held("gate", Act::Next), Act::Next, Act::Done(1)])
}

#[test]
fn e_048_honoured_between_stages() -> Tested {
    let (done, lab) = enumerate_client(async |lab, run| {
        let handle = submit(run, Planned(four()), "k").await?;
        run.settle().await;
        abort_once(run, handle.id()).await?;
        lab.open("gate");
        is_by_ann(&rolled_back(run.wait(handle.outcome()).await?)?.0);
        Ok(())
    })?;
    assert_eq!((done.commits, lab.line().as_str()), (6, "a1 a2 a2' a1'"));
    Ok(())
}

#[test]
fn e_049_a_whole_family_is_aborted() -> Tested {
    let t = plan("t", [held("gate", Act::Next), Act::Done(1)]);
    let root = plan("r", [spawn([plan("s", [spawn([t]), Act::Done(1)])]), Act::Done(1)]);
    let (done, lab) = enumerate_client(async |lab, run| {
        let handle = submit(run, Planned(root.clone()), "k").await?;
        run.settle().await;
        abort_once(run, handle.id()).await?;
        lab.open("gate");
        is_by_ann(&rolled_back(run.wait(handle.outcome()).await?)?.0);
        Ok(())
    })?;
    assert_eq!((done.commits, lab.line().as_str()), (8, "r1 s1 t1 t1' s1' r1'"));
    Ok(())
}

/// Aborts while stage 2 runs, and crashes when that was answered.
fn aborted_and_crashed() -> Result<(World, Lab), Trouble> {
    let (world, lab) = (World::new(), Lab::default());
    let ended = world.run(
        FaultPlan::none(),
        |builder| kinds(&lab, builder),
        async |run| {
            let handle = submit(run, Planned(four()), "k").await?;
            run.settle().await;
            assert_eq!(abort(run, handle.id()).await??, AbortAnswer::WillRollBack);
            // The effect of stage 2 is in the lab's log; its commit never comes.
            assert_eq!(lab.line(), "a1 a2");
            run.store.crash();
            std::future::pending::<Result<(), Trouble>>().await
        },
    )?;
    assert!(ended.done().is_err(), "it crashed");
    lab.open("gate");
    Ok((world, lab))
}

async fn is_rolled_back(run: &Run) -> Tested {
    let handle = submit(run, Planned(four()), "k").await?;
    is_by_ann(&rolled_back(run.wait(handle.outcome()).await?)?.0);
    Ok(())
}

#[test]
fn e_050_the_intent_is_durable() -> Tested {
    let (world, lab) = aborted_and_crashed()?;
    live_in(&world, &lab, is_rolled_back)?;
    assert_eq!(lab.line(), "a1 a2 a2 a2' a1'");
    Ok(())
}

#[test]
fn e_050_however_often_it_crashes() -> Tested {
    let drive = async |_: &Lab, run: &Run, _: usize| is_rolled_back(run).await;
    let check = |lab: &Lab, crashes: usize| {
        assert!(!lab.has("a3"), "{}", lab.line());
        for (body, once) in [("a2", 2), ("a2'", 1), ("a1'", 1)] {
            assert!(
                (once..=once + crashes).contains(&lab.count(body)),
                "{body} in {}",
                lab.line()
            );
        }
        Ok(())
    };
    // The start's own, stage 2, two undos.
    assert_eq!(enumerate_later(aborted_and_crashed, kinds, drive, check)?, 4);
    Ok(())
}

#[test]
fn e_052_abort_against_done() -> Tested {
    let seen = RefCell::new(BTreeSet::new());
    under_seeds(|seed| {
        let (lab, mut order) = (Lab::default(), Order::new(seed));
        let (merge, flights) = (1 + order.below(4), 1 + order.below(2));
        let (root, turns) = (plan("a", [order.late(Act::Done(7))]), order.below(30));
        let set_up = |builder| {
            let merge = usize::try_from(merge).unwrap_or(1);
            kinds(&lab, builder)
                .merge(merge)
                .in_flight(usize::try_from(flights).unwrap_or(1))
        };
        let ended = World::new().run(FaultPlan::none(), set_up, async |run| {
            let (executor, root) = (run.executor.clone(), root.clone());
            let aborting = actix_rt::spawn(async move {
                let handle = executor.submit(Planned(root)).await?;
                for _ in 0..turns {
                    tokio::task::yield_now().await;
                }
                let answer = executor
                    .abort(handle.id(), OperatorRequest::new("ann", "wrong table"))
                    .await;
                let answer = answer.map(|operated| operated.abort);
                Ok::<_, procession::errors::SubmitError>((handle, answer))
            });
            let (handle, answer) = run.wait(aborting).await???;
            let outcome = run.wait(handle.outcome()).await?;
            let decided = match (&answer, &outcome) {
                (Ok(Some(AbortAnswer::WillRollBack)), Err(ProcedureError::RolledBack { cause, .. })) => {
                    is_by_ann(cause);
                    "aborted"
                }
                (Err(AskError::Finished { .. }), Ok(7)) => "done",
                _ => return Err(format!("the answer was {answer:?}, the outcome {outcome:?}").into()),
            };
            assert_eq!(lab.has("a1'"), decided == "aborted");
            seen.borrow_mut().insert(decided);
            Ok(())
        })?;
        ended.done()
    })?;
    assert!(
        seen.borrow().len() == 2 || std::env::var("SEED").is_ok(),
        "both happen: {:?}",
        seen.borrow()
    );
    Ok(())
}

/// Whichever comes first on the disk decides, also where a crash takes one of them away: whoever was
/// told something, in whatever life, was told what came about.
#[test]
fn e_052_abort_against_done_however_it_crashes() -> Tested {
    let seen = RefCell::new(BTreeSet::new());
    for turns in [0, 40] {
        let drive = async |lab: &Lab, run: &Run| {
            let (executor, asked) = (run.executor.clone(), lab.clone());
            let aborting = actix_rt::spawn(async move {
                let root = plan("a", [Act::Turns(20, Box::new(Act::Done(7)))]);
                let handle = executor.submit(Planned(root)).key("k").await?;
                for _ in 0..turns {
                    tokio::task::yield_now().await;
                }
                let by = OperatorRequest::new("ann", "wrong table").key("abort");
                match executor.abort(handle.id(), by).await {
                    Ok(operated) if operated.abort == Some(AbortAnswer::WillRollBack) => asked.note("aborted"),
                    Err(AskError::Finished { .. }) => asked.note("done"),
                    other => asked.note(format!("{other:?}")),
                }
                Ok::<_, procession::errors::SubmitError>(handle)
            });
            let handle = run.wait(aborting).await???;
            match run.wait(handle.outcome()).await? {
                Ok(7) => lab.note("done"),
                Err(ProcedureError::RolledBack { cause, .. }) => {
                    is_by_ann(&cause);
                    lab.note("aborted");
                }
                other => lab.note(format!("{other:?}")),
            }
            Ok(())
        };
        let check = |lab: &Lab, faults: &[(u64, Fault)]| {
            let told: BTreeSet<String> = lab.noted().into_iter().collect();
            assert_eq!(told.len(), 1, "{told:?}");
            assert_eq!(lab.has("a1'"), told.contains("aborted"));
            seen.borrow_mut().insert((turns, faults.is_empty(), told));
            Ok(())
        };
        each_crash(|_| Lab::default(), kinds, drive, check)?;
    }
    let undisturbed = |turns, told: &str| {
        let told = BTreeSet::from([told.to_owned()]);
        seen.borrow().contains(&(turns, true, told))
    };
    assert!(
        undisturbed(0, "aborted") && undisturbed(40, "done"),
        "{:?}",
        seen.borrow()
    );
    Ok(())
}

#[test]
fn e_053_abort_during_rollback() -> Tested {
    let root = failing("a", 3).undo(2, UndoAct::Held("gate".to_owned()));
    let (done, lab) = enumerate_client(async |lab, run| {
        let handle = submit(run, Planned(root.clone()), "k").await?;
        run.settle().await;
        let before = commits(run).await?;
        if !lab.is_open("gate") {
            assert_eq!(abort(run, handle.id()).await??, AbortAnswer::AlreadyRollingBack);
            assert_eq!(commits(run).await?, before);
        }
        lab.open("gate");
        let (cause, _) = rolled_back(run.wait(handle.outcome()).await?)?;
        assert_eq!((cause.kind, cause.text.as_str()), (CauseKind::Failed, "boom"));
        Ok(())
    })?;
    assert_eq!((done.commits, lab.line().as_str()), (7, "a1 a2 a3 a3' a2' a1'"));
    Ok(())
}
