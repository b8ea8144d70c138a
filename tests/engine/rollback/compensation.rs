//! What becomes of children that had succeeded, and of what cannot be undone.

use procession::errors::ProcedureError;
use procession::operate::OperatorRequest;
use procession::procedure::JoinPolicy;
use procession::status::ProcedureState as State;

use super::helper::{commits, enumerate_client, enumerate_single, rolled_back, states, submit};
use crate::support::{Act, Final, Lab, Plan, Planned, Tested, chain, enumerate_plan, live, plan, spawn};

fn boom() -> Act {
    Act::Fail("boom".to_owned())
}

#[test]
fn e_029_a_child_that_succeeded_is_kept() -> Tested {
    let root = plan("r", [spawn([chain("c", 1)]), boom()]);
    let (done, lab) = enumerate_plan(&root)?;
    assert_eq!((done.commits, lab.line().as_str()), (6, "r1 c1 r2 r2' r1'"));
    live(&Lab::default(), async |run| {
        let handle = submit(run, Planned(root), "k").await?;
        rolled_back(run.wait(handle.outcome()).await?)?;
        assert_eq!(states(run, handle.id()).await?, [State::RolledBack, State::Success]);
        Ok(())
    })
}

/// K is kept, C is compensated and spawns G.
fn compensating(g: Plan) -> Plan {
    let c = plan("c", [spawn([g]), Act::Done(1)]).compensated();
    plan(
        "r",
        [Act::Spawn(vec![chain("k", 1), c], JoinPolicy::AllSucceeded, 1), boom()],
    )
}

#[test]
fn e_030_or_compensated_at_any_depth() -> Tested {
    let kept = [State::RolledBack, State::Success, State::RolledBack, State::Success];
    let all = [State::RolledBack, State::Success, State::RolledBack, State::RolledBack];
    let cases = [
        (
            chain("g", 1).compensated(),
            12,
            "r1 k1 c1 g1 c2 r2 r2' c2' g1' c1' r1'",
            all,
        ),
        (chain("g", 1), 11, "r1 k1 c1 g1 c2 r2 r2' c2' c1' r1'", kept),
    ];
    for (g, commits, calls, ends) in cases {
        let root = compensating(g);
        let (done, lab) = enumerate_plan(&root)?;
        assert_eq!((done.commits, lab.line().as_str()), (commits, calls));
        live(&Lab::default(), async |run| {
            let handle = submit(run, Planned(root), "k").await?;
            rolled_back(run.wait(handle.outcome()).await?)?;
            assert_eq!(states(run, handle.id()).await?, ends);
            Ok(())
        })?;
    }
    Ok(())
}

#[test]
fn e_037_a_kind_without_rollback_as_a_root() -> Tested {
    let root = plan("a", [Act::Next, boom(), Act::Done(1)]);
    let (done, lab) = enumerate_client(async |_, run| {
        run.wait(
            run.executor
                .set_limit("final", Some(1), OperatorRequest::new("ann", "a test")),
        )
        .await??;
        let handle = submit(run, Final(root.clone()), "k").await?;
        match run.wait(handle.outcome()).await? {
            Err(error @ ProcedureError::Failed { .. }) => {
                assert!(error.to_string().contains("was not rolled back: boom"), "{error}");
            }
            other => return Err(format!("it ended so: {other:?}").into()),
        }
        run.settle().await;
        let status = run.executor.status(handle.id()).await?;
        assert!(status.state == State::Failed && status.ended.is_some() && !status.holds);
        assert_eq!(
            run.executor.limits().await?.iter().map(|limit| limit.used).sum::<u32>(),
            0
        );
        Ok(())
    })?;
    assert_eq!(
        (done.commits, lab.line().as_str()),
        (1 + 3, "a1 a2"),
        "the limit was set in one commit more"
    );
    Ok(())
}

#[test]
fn e_037_a_kind_without_rollback_as_a_child() -> Tested {
    let child = plan("c", [Act::Next, boom()]).without_rollback();
    let root = plan("r", [spawn([child]), Act::Done(1)]);
    let (done, lab) = enumerate_plan(&root)?;
    assert_eq!((done.commits, lab.line().as_str()), (5, "r1 c1 c2 r1'"));
    live(&Lab::default(), async |run| {
        let handle = submit(run, Planned(root), "k").await?;
        let (cause, not_undone) = rolled_back(run.wait(handle.outcome()).await?)?;
        assert_eq!(cause.text, "boom");
        assert_eq!(not_undone.iter().map(|left| left.member).collect::<Vec<_>>(), [1, 1]);
        assert_eq!(states(run, handle.id()).await?, [State::RolledBack, State::Failed]);
        assert_eq!(commits(run).await?, 5);
        Ok(())
    })
}

/// Not a scenario of its own: a grandchild that still runs under a success that
/// is kept stops with the family, and is undone; the success stays.
#[test]
fn a_live_grandchild_under_a_kept_success_stops_with_the_family() -> Tested {
    let g = plan("g", [Act::Wait("never".to_owned(), None), Act::Done(1)]);
    let k = plan(
        "k",
        [
            Act::Spawn(vec![chain("h", 1), g], JoinPolicy::AtLeast(1), 0),
            Act::Done(1),
        ],
    );
    let z = plan("z", [Act::Held("z".to_owned(), Box::new(boom()))]);
    let root = plan("r", [spawn([k, z]), Act::Done(1)]);
    let (_, lab) = enumerate_single(async |lab, run| {
        let handle = submit(run, Planned(root.clone()), "k").await?;
        run.settle().await;
        lab.open("z");
        rolled_back(run.wait(handle.outcome()).await?)?;
        let ends = states(run, handle.id()).await?;
        assert_eq!(
            ends,
            [
                State::RolledBack,
                State::Success,
                State::RolledBack,
                State::Success,
                State::RolledBack
            ]
        );
        Ok(())
    })?;
    assert_eq!(lab.count("g1'"), 1);
    assert_eq!(lab.count("k1'") + lab.count("k2'") + lab.count("h1'"), 0);
    Ok(())
}
