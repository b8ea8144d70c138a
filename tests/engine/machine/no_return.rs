//! Past its point of no return a procedure fails no more, and an abort comes too late.

use procession::ProcedureId;
use procession::errors::AskError;
use procession::health::Rule;
use procession::operate::{AbortAnswer, OperatorRequest};
use procession::procedure::Timestamp;
use procession::status::{ProcedureState as State, WaitReason};
use procession::testkit::{Run, Trouble};

use crate::rollback::helper::{at_rest, commits, enumerate_client, rolled_back, submit};
use crate::support::{Act, Final, Lab, Patient, Plan, Planned, Tested, chain, failing, live, plan, spawn};

fn boxed(act: Act) -> Box<Act> {
    Box::new(act)
}

fn machine() -> Plan {
    let acts = [
        Act::Next,
        Act::FailFirst(2, boxed(Act::Next)),
        Act::FailFirst(5, boxed(Act::Done(3))),
    ];
    plan("a", acts).one_way(2)
}

async fn too_late(run: &Run, id: ProcedureId) -> Result<(), Trouble> {
    let operated = run
        .wait(run.executor.abort(id, OperatorRequest::new("ann", "wrong table")))
        .await?;
    match operated.map(|operated| operated.abort) {
        Ok(Some(AbortAnswer::TooLate(why))) => {
            assert_eq!(why, "it passed its point of no return with stage 2");
            Ok(())
        }
        Err(AskError::Finished { .. }) => Ok(()),
        other => Err(format!("the abort was answered with {other:?}").into()),
    }
}

async fn abort_at(run: &Run, id: ProcedureId, at_ms: u64) -> Tested {
    run.pass(Timestamp(at_ms * 1_000).since(run.now())).await;
    let before = (at_rest(run, id).await?, commits(run).await?);
    too_late(run, id).await?;
    assert_eq!(
        before,
        (at_rest(run, id).await?, commits(run).await?),
        "no intent is left"
    );
    Ok(())
}

#[test]
fn e_044_a_failure_is_tried_again_for_ever_and_an_abort_is_too_late() -> Tested {
    let (done, lab) = enumerate_client(async |_, run| {
        let handle = submit(run, Planned(machine()), "a").await?;
        abort_at(run, handle.id(), 500).await?;
        abort_at(run, handle.id(), 3_500).await?;
        assert_eq!(run.wait(handle.outcome()).await??, 3);
        Ok(())
    })?;
    // Submit, 1, three attempts of 2, six of 3, and seven ends of a backoff.
    assert_eq!(
        (done.commits, lab.line().as_str()),
        (18, "a1 a2 a2 a2 a3 a3 a3 a3 a3 a3")
    );
    Ok(())
}

#[test]
fn e_044_from_the_last_attempt_on_the_backoff_is_the_longest() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let handle = submit(run, Planned(machine()), "a").await?;
        let mut seen = Vec::new();
        for _ in 0..7 {
            let status = at_rest(run, handle.id()).await?;
            assert_eq!(
                (status.state, status.past_no_return.as_deref()),
                (State::WaitingTimeout, Some("2"))
            );
            let Some(WaitReason::Backoff(attempt, until)) = status.wait else {
                return Err(format!("it waits for {:?}", status.wait).into());
            };
            let verdicts = run.executor.verdicts().await?;
            let told = verdicts.iter().any(|verdict| {
                let attempts = attempt.to_string();
                let facts = [("attempts", attempts.as_str()), ("budget", "3")];
                let storm = verdict.rule == Rule::RetryStorm && verdict.procedure == Some(handle.id());
                storm && facts.iter().all(|(name, value)| verdict.fact(name) == Some(value))
            });
            // With a verdict once its attempts are used up, and not before.
            assert_eq!(
                (told, verdicts.len()),
                (attempt >= 3, usize::from(told)),
                "{verdicts:?}"
            );
            seen.push((status.stage, attempt, until.0 / 1_000_000));
            run.pass(until.since(run.now())).await;
        }
        let expected = [
            ("2", 1, 1),
            ("2", 2, 3),
            ("3", 1, 4),
            ("3", 2, 6),
            ("3", 3, 306),
            ("3", 4, 606),
            ("3", 5, 906),
        ];
        let expected = expected.map(|(stage, attempt, at)| (stage.to_owned(), attempt, at));
        assert_eq!(seen, expected);
        assert_eq!(run.wait(handle.outcome()).await??, 3);
        assert_eq!(run.executor.verdicts().await?, []);
        Ok(())
    })
}

#[test]
fn e_047_every_answer_to_an_abort() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let abort = |id| run.executor.abort(id, OperatorRequest::new("ann", "wrong table"));
        let unknown = ProcedureId::root(77);
        assert!(matches!(abort(unknown).await, Err(AskError::Unknown(id)) if id == unknown));

        let finished = submit(run, Planned(chain("f", 1)), "finished").await?;
        run.wait(finished.outcome()).await??;
        assert!(matches!(abort(finished.id()).await, Err(AskError::Finished { id, .. }) if id == finished.id()));
        assert_eq!(run.executor.outcome(finished.id()).await?.state, State::Success);

        let past = submit(run, Planned(machine()), "past").await?;
        run.settle().await;
        too_late(run, past.id()).await?;

        let running = submit(run, Planned(plan("a", [Act::Wait("go".to_owned(), None)])), "running").await?;
        run.settle().await;
        let failing = submit(
            run,
            Planned(failing("b", 1).undo(1, crate::support::UndoAct::Held("b".to_owned()))),
            "b",
        );
        let failing = failing.await?;
        let before = commits(run).await?;
        assert_eq!(abort(failing.id()).await?.abort, Some(AbortAnswer::AlreadyRollingBack));
        assert_eq!(commits(run).await?, before);
        let slow = submit(run, Planned(held("c")), "slow").await?;
        let before = commits(run).await?;
        assert_eq!(abort(slow.id()).await?.abort, Some(AbortAnswer::WillRollBack));
        assert_eq!(commits(run).await?, before + 1);
        assert_eq!(abort(slow.id()).await?.abort, Some(AbortAnswer::WillRollBack));
        assert_eq!(commits(run).await?, before + 1, "aborted before: no second commit");
        assert_eq!(abort(running.id()).await?.abort, Some(AbortAnswer::WillRollBack));
        Ok(())
    })
}

fn held(gate: &str) -> Plan {
    plan(gate, [Act::Held(gate.to_owned(), boxed(Act::Next)), Act::Done(1)])
}

/// The point is passed when the stage is set going, not when it is named.
#[test]
fn one_that_sleeps_before_the_point_can_be_aborted() -> Tested {
    let root = plan("a", [Act::Sleep(10_000), Act::Done(1)]).one_way(2);
    let (done, lab) = enumerate_client(async |_, run| {
        let handle = submit(run, Planned(root.clone()), "a").await?;
        run.settle().await;
        run.wait(
            run.executor
                .abort(handle.id(), OperatorRequest::new("ann", "no").key("abort")),
        )
        .await??;
        rolled_back(run.wait(handle.outcome()).await?)?;
        Ok(())
    })?;
    assert_eq!((done.commits, lab.line().as_str()), (4, "a1 a1'"));
    Ok(())
}

#[test]
fn a_panic_past_the_point_is_tried_again_too() -> Tested {
    let root = plan("a", [Act::Panic(5, boxed(Act::Done(1)))]).one_way(1);
    let lab = Lab::default();
    live(&lab, async |run| {
        let handle = submit(run, Planned(root), "a").await?;
        assert_eq!(run.wait(handle.outcome()).await??, 1);
        Ok(())
    })?;
    assert_eq!(lab.count("a1"), 6);
    Ok(())
}

#[test]
fn a_time_out_past_the_point_comes_too_late() -> Tested {
    let root = plan("a", [Act::Next, Act::Sleep(60_000), Act::Done(1)])
        .one_way(2)
        .timeout(2_500);
    let (done, lab) = enumerate_client(async |_, run| {
        let handle = submit(run, Planned(root.clone()), "a").await?;
        assert_eq!(run.wait(handle.outcome()).await??, 1);
        Ok(())
    })?;
    // Submit, three stages, the end of the sleep, and the expiry, which leaves nothing to expire.
    assert_eq!((done.commits, lab.line().as_str()), (6, "a1 a2 a3"));
    Ok(())
}

#[test]
fn a_parent_past_the_point_goes_on_when_its_children_fail() -> Tested {
    let acts = [spawn([failing("b", 2), chain("c", 1)]), Act::See(boxed(Act::Done(4)))];
    let (done, lab) = enumerate_client(async |_, run| {
        let handle = submit(run, Planned(plan("r", acts.clone()).one_way(1)), "r").await?;
        assert_eq!(run.wait(handle.outcome()).await??, 4);
        Ok(())
    })?;
    // Submit, r1, b1, c1, b2, r2, two undos. The undo of b2 has all that it needs at hand, so it follows b2 at once.
    assert_eq!((done.commits, lab.line().as_str()), (8, "r1 b1 c1 b2 b2' r2 b1'"));
    Ok(())
}

/// It is told how they stand, also of one that still rolls back.
#[test]
fn it_sees_the_children_that_failed() -> Tested {
    let acts = [spawn([failing("b", 1), chain("c", 1)]), Act::See(boxed(Act::Done(4)))];
    let lab = Lab::default();
    live(&lab, async |run| {
        let handle = submit(run, Patient(plan("r", acts).one_way(1)), "r").await?;
        assert_eq!(run.wait(handle.outcome()).await??, 4);
        Ok(())
    })?;
    let noted = lab.noted();
    assert_eq!(noted.len(), 2);
    assert!(
        noted
            .iter()
            .any(|seen| seen.starts_with("r2 saw 1 ") && seen.contains("boom")),
        "{noted:?}"
    );
    Ok(())
}

/// With `Done` and added children it waits for them, and is done however they end.
#[test]
fn done_past_the_point_is_done_also_when_an_added_child_fails() -> Tested {
    let acts = [Act::AddChild(boxed_plan(failing("b", 1)), boxed(Act::Done(4)))];
    let (done, lab) = enumerate_client(async |_, run| {
        let handle = submit(run, Planned(plan("r", acts.clone()).one_way(1)), "r").await?;
        assert_eq!(run.wait(handle.outcome()).await??, 4);
        Ok(())
    })?;
    assert_eq!((done.commits, lab.line().as_str()), (4, "r1 b1 b1'"));
    Ok(())
}

fn boxed_plan(plan: Plan) -> Box<Plan> {
    Box::new(plan)
}

/// A kind without rollback has no point either: it fails at once, as ever.
#[test]
fn a_kind_without_rollback_that_names_a_point_is_tried_again() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let root = plan("a", [Act::FailFirst(4, boxed(Act::Done(2)))]).one_way(1);
        let handle = submit(run, Final(root), "a").await?;
        assert_eq!(run.wait(handle.outcome()).await??, 2);
        Ok(())
    })
}
