//! Bypass of one procedure: it ends without its code, wherever it stands.

use std::time::Duration;

use procession::ProcedureId;
use procession::errors::{AskError, ProcedureError};
use procession::operate::{BypassAs, BypassScope, Operated, OperatorRequest};
use procession::status::{CauseKind, Mark, ProcedureState as State, WaitReason};
use procession::testkit::{Fault, FaultPlan, Run, Trouble, World};

use crate::rollback::helper::{commits, enumerate_client, is_parked, submit};
use crate::support::{Act, Lab, Limited, Plan, Planned, Tested, Tidy, UndoAct, failing, kinds, live, plan};

/// Bypasses it, and repeats that with the same key in every life.
pub(crate) async fn bypass(run: &Run, id: ProcedureId, scope: BypassScope) -> Result<Operated, Trouble> {
    bypass_as(run, id, scope, BypassAs::Success).await
}

pub(crate) async fn bypass_as(
    run: &Run,
    id: ProcedureId,
    scope: BypassScope,
    outcome: BypassAs,
) -> Result<Operated, Trouble> {
    let by = OperatorRequest::new("ann", "it hangs").key(format!("bypass {id}"));
    Ok(run.wait(run.executor.bypass(id, scope, outcome, by)).await??)
}

fn hanging() -> Plan {
    plan("a", [Act::Wait("never".to_owned(), Some(50_000)), Act::Done(1)])
}

#[test]
fn e_054_a_parked_procedure_is_bypassed() -> Tested {
    let (done, lab) = enumerate_client(async |_, run| {
        let handle = submit(run, Planned(hanging()), "a").await?;
        run.settle().await;
        bypass(run, handle.id(), BypassScope::Alone).await?;
        assert!(matches!(
            run.wait(handle.outcome()).await?,
            Err(ProcedureError::Bypassed)
        ));
        let outcome = run.executor.outcome(handle.id()).await?;
        assert_eq!((outcome.state, outcome.mark), (State::Success, Some(Mark::Bypassed)));
        run.pass(Duration::from_secs(50)).await;
        let late = run.executor.signal(handle.id(), "never", &1_i64).await;
        assert!(matches!(late, Err(AskError::Finished { .. })));
        Ok(())
    })?;
    assert_eq!((done.commits, lab.line().as_str()), (3, "a1"));
    Ok(())
}

/// It never returns, until it does.
fn stuck(name: &str) -> Plan {
    let act = Act::Add("row".to_owned(), 1, Box::new(Act::Done(5)));
    plan(name, [Act::Held(name.to_owned(), Box::new(act))]).exclusive("t")
}

fn prompt() -> Plan {
    plan("b", [Act::Done(2)]).exclusive("t")
}

#[test]
fn e_055_a_stage_that_does_not_return_is_bypassed() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let set_up = |builder| kinds(&lab, builder).limit("limited", 1);
    world
        .run(FaultPlan::none(), set_up, async |run| {
            let stuck = submit(run, Limited(stuck("a")), "a").await?;
            let waiter = submit(run, Limited(prompt()), "b").await?;
            run.settle().await;
            assert!(matches!(
                waiter.status().await?.wait,
                Some(WaitReason::Permit(_) | WaitReason::Lock(_))
            ));
            let before = commits(run).await?;
            bypass(run, stuck.id(), BypassScope::Alone).await?;
            assert_eq!(run.wait(waiter.outcome()).await??, 2);
            // The bypass, the grant, the waiter's end.
            assert_eq!(commits(run).await?, before + 3);
            let late = run.executor.snapshot().await?.late;
            lab.open("a");
            run.settle().await;
            let snapshot = run.executor.snapshot().await?;
            assert_eq!((snapshot.late, snapshot.commits), (late + 1, before + 3));
            assert_eq!(
                run.executor.get::<i64>("rows", "row").await?,
                None,
                "its write is ignored"
            );
            assert!(matches!(stuck.outcome().await, Err(ProcedureError::Bypassed)));
            let held: u32 = run.executor.limits().await?.iter().map(|limit| limit.used).sum();
            assert_eq!((held, run.executor.locks().await?.len()), (0, 0));
            Ok(())
        })?
        .done()
}

#[test]
fn e_055_a_bypass_of_what_runs_through_crashes() -> Tested {
    let (done, lab) = enumerate_client(async |lab, run| {
        lab.lets_overlap();
        let stuck = submit(run, Planned(stuck("a")), "a").await?;
        let waiter = submit(run, Planned(prompt()), "b").await?;
        // Suspects would wait behind it.
        if !lab.has("b1") {
            run.settle().await;
        }
        bypass(run, stuck.id(), BypassScope::Alone).await?;
        assert_eq!(run.wait(waiter.outcome()).await??, 2);
        lab.open("a");
        run.settle().await;
        Ok(())
    })?;
    // Two submissions, the bypass, the grant, the waiter's end.
    assert_eq!((done.commits, lab.line().as_str()), (5, "a1 b1"));
    Ok(())
}

#[test]
fn it_ends_with_the_output_that_the_operator_chose() -> Tested {
    let (done, _) = enumerate_client(async |_, run| {
        let handle = submit(run, Planned(hanging()), "a").await?;
        run.settle().await;
        let by = OperatorRequest::new("ann", "known").key("bypass");
        run.wait(
            run.executor
                .bypass_with_output(handle.id(), BypassScope::Alone, &42_i64, by),
        )
        .await??;
        assert_eq!(run.wait(handle.outcome()).await??, 42);
        assert_eq!(handle.status().await?.mark, Some(Mark::Bypassed));
        Ok(())
    })?;
    assert_eq!(done.commits, 3);
    Ok(())
}

#[test]
fn it_ends_failed_and_nothing_is_undone() -> Tested {
    let (done, lab) = enumerate_client(async |_, run| {
        let handle = submit(run, Planned(hanging()), "a").await?;
        run.settle().await;
        bypass_as(run, handle.id(), BypassScope::Alone, BypassAs::Failed).await?;
        let Err(ProcedureError::Failed { cause }) = run.wait(handle.outcome()).await? else {
            return Err("it did not fail".into());
        };
        assert_eq!(
            (cause.kind, cause.text.as_str()),
            (CauseKind::Aborted, "bypassed by ann: it hangs")
        );
        Ok(())
    })?;
    assert_eq!((done.commits, lab.line().as_str()), (3, "a1"));
    Ok(())
}

#[test]
fn an_output_over_the_bound_is_refused() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let handle = submit(run, Planned(hanging()), "a").await?;
        let by = OperatorRequest::new("ann", "known");
        let large = vec![0_u8; 2 << 20];
        let refused = run
            .executor
            .bypass_with_output(handle.id(), BypassScope::Alone, &large, by)
            .await;
        assert!(matches!(refused, Err(AskError::TooLarge { .. })), "{refused:?}");
        Ok(())
    })
}

/// From every state in which a root can be parked.
#[test]
fn it_ends_from_wherever_it_is_parked() -> Tested {
    let parked = [
        ("sleep", plan("a", [Act::Sleep(60_000), Act::Done(1)]), 3),
        ("backoff", plan("a", [Act::Retry(2, Box::new(Act::Done(1)))]), 3),
        ("undo backoff", failing("a", 1).undo(1, UndoAct::Fail(1)), 4),
        (
            "failed rollback",
            failing("a", 1).undo(1, UndoAct::FailUntil("never".to_owned())),
            8,
        ),
        (
            "aborted while it runs",
            plan("a", [Act::Held("never".to_owned(), Box::new(Act::Next))]),
            3,
        ),
    ];
    for (name, plan, expected) in parked {
        let (done, _) = enumerate_client(async |_, run| {
            let handle = submit(run, Planned(plan.clone()), "a").await?;
            run.settle().await;
            if name == "aborted while it runs" {
                run.executor
                    .abort(handle.id(), OperatorRequest::new("ann", "no").key("abort"))
                    .await?;
            }
            if name == "failed rollback" {
                while !is_parked(&handle.status().await?) && handle.status().await?.ended.is_none() {
                    run.pass(Duration::from_secs(1)).await;
                }
            }
            bypass(run, handle.id(), BypassScope::Alone).await?;
            assert!(matches!(
                run.wait(handle.outcome()).await?,
                Err(ProcedureError::Bypassed)
            ));
            assert_eq!(handle.status().await?.cause, None);
            run.pass(Duration::from_secs(600)).await;
            Ok(())
        })
        .map_err(|why| format!("{name}: {why}"))?;
        assert_eq!(done.commits, expected, "{name}");
    }
    Ok(())
}

/// One that killed its process twice, and waits for an operator.
#[test]
fn poison_is_bypassed() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let root = plan("a", [Act::Next, Act::Held("gate".to_owned(), Box::new(Act::Done(1)))]);
    for life in 0..4 {
        let set_up = |builder| kinds(&lab, builder);
        let ended = world.run(FaultPlan::none(), set_up, async |run| {
            let handle = submit(run, Planned(root.clone()), "a").await?;
            run.settle().await;
            if handle.status().await?.wait != Some(WaitReason::Poison) {
                run.store.crash();
                return std::future::pending().await;
            }
            bypass(run, handle.id(), BypassScope::Alone).await?;
            assert!(matches!(
                run.wait(handle.outcome()).await?,
                Err(ProcedureError::Bypassed)
            ));
            Ok(life)
        })?;
        if let procession::testkit::Ended::Done(life) = ended {
            assert_eq!(life, 3, "three deaths made it poison");
            return Ok(());
        }
    }
    Err("it was never paused as poison".into())
}

/// The one suspect that runs alone is bypassed: those that wait behind it go on.
#[test]
fn the_suspect_that_others_wait_behind_is_bypassed() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let root = |name: &str| plan(name, [Act::Held(name.to_owned(), Box::new(Act::Done(1)))]);
    for _ in 0..2 {
        let ended = world.run(
            FaultPlan::at(99, Fault::CrashBefore),
            |builder| kinds(&lab, builder),
            async |run| {
                submit(run, Planned(root("a")), "a").await?;
                submit(run, Planned(root("b")), "b").await?;
                run.settle().await;
                run.store.crash();
                std::future::pending::<Tested>().await
            },
        )?;
        assert!(matches!(ended, procession::testkit::Ended::Crashed));
    }
    crate::support::live_in(&world, &lab, async |run| {
        let first = submit(run, Planned(root("a")), "a").await?;
        let second = submit(run, Planned(root("b")), "b").await?;
        run.settle().await;
        assert_eq!(second.status().await?.wait, Some(WaitReason::Suspect));
        bypass(run, first.id(), BypassScope::Alone).await?;
        lab.open("b");
        assert_eq!(run.wait(second.outcome()).await??, 1);
        Ok(())
    })
}

#[test]
fn a_kind_that_cleans_up_does_so_after_a_bypass() -> Tested {
    let (done, lab) = enumerate_client(async |_, run| {
        let handle = submit(run, Tidy(hanging()), "a").await?;
        run.settle().await;
        bypass(run, handle.id(), BypassScope::Alone).await?;
        run.settle().await;
        Ok(())
    })?;
    assert_eq!((done.commits, lab.line().as_str()), (4, "a1 a~0"));
    Ok(())
}

#[test]
fn who_is_not_live_is_not_bypassed() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let unknown = ProcedureId::root(77);
        let by = || OperatorRequest::new("ann", "it hangs");
        let answer = run
            .executor
            .bypass(unknown, BypassScope::Alone, BypassAs::Success, by())
            .await;
        assert!(matches!(answer, Err(AskError::Unknown(id)) if id == unknown));
        let handle = submit(run, Planned(crate::support::chain("a", 1)), "a").await?;
        run.wait(handle.outcome()).await??;
        let answer = run
            .executor
            .bypass(handle.id(), BypassScope::Alone, BypassAs::Success, by())
            .await;
        assert!(matches!(answer, Err(AskError::Finished { id, .. }) if id == handle.id()));
        assert_eq!(handle.outcome().await?, 7);
        Ok(())
    })
}
