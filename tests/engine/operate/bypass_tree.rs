//! Bypass in a tree: with whom a procedure ends, and how its parent goes on.

use procession::errors::{AskError, NotNow, ProcedureError};
use procession::operate::{BypassAs, BypassScope};
use procession::procedure::JoinPolicy;
use procession::status::{Mark, ProcedureState as State, Status};
use procession::testkit::{Run, Trouble};
use procession::{Handle, ProcedureId};

use super::bypass::{bypass, bypass_as};
use crate::rollback::helper::{commits, enumerate_client, rolled_back, states, submit};
use crate::support::{Act, Lab, Plan, Planned, Tested, chain, live, plan, spawn};

/// r waits for s, s waits for t, t waits for an event.
fn line() -> Plan {
    let t = plan("t", [Act::Wait("never".to_owned(), None), Act::Done(1)]);
    let s = plan("s", [spawn([t]), Act::See(Box::new(Act::Done(2)))]);
    plan("r", [spawn([s]), Act::See(Box::new(Act::Done(3)))])
}

fn member(handle: &Handle<Planned>, member: u32) -> ProcedureId {
    ProcedureId::new(handle.id().family, member)
}

async fn marks(run: &Run, id: ProcedureId) -> Result<Vec<Option<Mark>>, Trouble> {
    let tree: Vec<Status> = run.executor.tree(id).await?;
    Ok(tree.iter().map(|status| status.mark).collect())
}

const BYPASSED: Option<Mark> = Some(Mark::Bypassed);

#[test]
fn e_056_alone_is_refused_and_names_the_live_child() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let handle = submit(run, Planned(line()), "r").await?;
        let before = commits(run).await?;
        let by = procession::operate::OperatorRequest::new("ann", "it hangs");
        let (s, t) = (member(&handle, 1), member(&handle, 2));
        let refused = run.executor.bypass(s, BypassScope::Alone, BypassAs::Success, by).await;
        let Err(AskError::NotNow {
            kind: NotNow::LiveBelow,
            text: why,
        }) = refused
        else {
            return Err(format!("it was answered with {refused:?}").into());
        };
        assert!(why.starts_with(&format!("{t} is live below {s}")), "{why}");
        assert_eq!(commits(run).await?, before);
        Ok(())
    })
}

#[test]
fn e_056_with_all_below_it_the_parent_goes_on() -> Tested {
    let (done, lab) = enumerate_client(async |_, run| {
        let handle = submit(run, Planned(line()), "r").await?;
        run.settle().await;
        bypass(run, member(&handle, 1), BypassScope::Descendants).await?;
        assert_eq!(run.wait(handle.outcome()).await??, 3);
        assert_eq!(marks(run, handle.id()).await?, [None, BYPASSED, BYPASSED]);
        assert_eq!(states(run, handle.id()).await?, [State::Success; 3]);
        Ok(())
    })?;
    // Submit, r1, s1, t1, the bypass of both, r2.
    assert_eq!((done.commits, lab.line().as_str()), (6, "r1 s1 t1 r2"));
    assert_eq!(lab.noted(), ["r2 saw 1 Success None None"]);
    Ok(())
}

#[test]
fn e_056_a_leaf_alone_lets_its_parent_go_on() -> Tested {
    let (done, lab) = enumerate_client(async |_, run| {
        let handle = submit(run, Planned(line()), "r").await?;
        run.settle().await;
        bypass(run, member(&handle, 2), BypassScope::Alone).await?;
        assert_eq!(run.wait(handle.outcome()).await??, 3);
        assert_eq!(marks(run, handle.id()).await?, [None, None, BYPASSED]);
        Ok(())
    })?;
    assert_eq!((done.commits, lab.line().as_str()), (7, "r1 s1 t1 s2 r2"));
    assert_eq!(
        lab.noted(),
        ["s2 saw 2 Success None None", "r2 saw 1 Success Some(2) None"]
    );
    Ok(())
}

#[test]
fn e_056_with_its_ancestors_all_end_in_one_commit() -> Tested {
    let (done, lab) = enumerate_client(async |_, run| {
        let handle = submit(run, Planned(line()), "r").await?;
        run.settle().await;
        let operated = bypass(run, member(&handle, 2), BypassScope::Ancestors).await?;
        assert_eq!(operated.changed, 3);
        assert!(matches!(
            run.wait(handle.outcome()).await?,
            Err(ProcedureError::Bypassed)
        ));
        assert_eq!(marks(run, handle.id()).await?, [BYPASSED; 3]);
        Ok(())
    })?;
    assert_eq!((done.commits, lab.line().as_str()), (5, "r1 s1 t1"));
    Ok(())
}

/// Its ancestors have another child that lives.
#[test]
fn with_its_ancestors_is_refused_while_another_child_lives() -> Tested {
    let waits = |name: &str| plan(name, [Act::Wait("never".to_owned(), None), Act::Done(1)]);
    let root = plan("r", [spawn([waits("a"), waits("b")]), Act::Done(3)]);
    let (done, _) = enumerate_client(async |_, run| {
        let handle = submit(run, Planned(root.clone()), "r").await?;
        run.settle().await;
        let (a, b) = (member(&handle, 1), member(&handle, 2));
        if handle.status().await?.ended.is_none() {
            let by = procession::operate::OperatorRequest::new("ann", "it hangs");
            let refused = run
                .executor
                .bypass(a, BypassScope::Ancestors, BypassAs::Success, by)
                .await;
            assert!(
                matches!(&refused, Err(AskError::NotNow { kind: NotNow::LiveBelow, text: why }) if why.starts_with(&format!("{b} is live")))
            );
        }
        bypass(run, a, BypassScope::Family).await?;
        assert_eq!(marks(run, handle.id()).await?, [BYPASSED; 3]);
        Ok(())
    })?;
    assert_eq!(done.commits, 5);
    Ok(())
}

/// What a bypass as failed means is for the parent's join policy to say.
fn with_policy(join: JoinPolicy) -> Plan {
    let waits = plan("w", [Act::Wait("never".to_owned(), None), Act::Done(1)]);
    plan(
        "r",
        [
            Act::Spawn(vec![waits, chain("c", 1)], join, 0),
            Act::See(Box::new(Act::Done(3))),
        ],
    )
}

#[test]
fn as_failed_fails_a_parent_that_needs_all() -> Tested {
    let (done, lab) = enumerate_client(async |_, run| {
        let handle = submit(run, Planned(with_policy(JoinPolicy::AllSucceeded)), "r").await?;
        run.settle().await;
        bypass_as(run, member(&handle, 1), BypassScope::Alone, BypassAs::Failed).await?;
        let (cause, _) = rolled_back(run.wait(handle.outcome()).await?)?;
        assert_eq!(cause.text, "bypassed by ann: it hangs");
        // What it had done stands: nothing of the bypassed one is undone.
        let expected = [State::RolledBack, State::Failed, State::Success];
        assert_eq!(states(run, handle.id()).await?, expected);
        Ok(())
    })?;
    // Submit, r1, w1, c1, the bypass, the undo of r1.
    assert_eq!((done.commits, lab.line().as_str()), (6, "r1 w1 c1 r1'"));
    Ok(())
}

#[test]
fn as_failed_lets_a_parent_go_on_that_needs_one() -> Tested {
    for join in [JoinPolicy::AllFinished, JoinPolicy::Named(vec![1])] {
        let named = matches!(join, JoinPolicy::Named(_));
        let (done, _) = enumerate_client(async |_, run| {
            let handle = submit(run, Planned(with_policy(join.clone())), "r").await?;
            run.settle().await;
            bypass_as(run, member(&handle, 1), BypassScope::Alone, BypassAs::Failed).await?;
            assert_eq!(run.wait(handle.outcome()).await??, 3);
            assert_eq!(
                states(run, handle.id()).await?,
                [State::Success, State::Failed, State::Success]
            );
            Ok(())
        })?;
        assert_eq!(done.commits, 6, "{named}");
    }
    Ok(())
}

#[test]
fn an_output_is_seen_by_the_parent() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let handle = submit(run, Planned(with_policy(JoinPolicy::AllSucceeded)), "r").await?;
        run.settle().await;
        let by = procession::operate::OperatorRequest::new("ann", "it hangs");
        run.executor
            .bypass_with_output(member(&handle, 1), BypassScope::Alone, &9_i64, by)
            .await?;
        assert_eq!(run.wait(handle.outcome()).await??, 3);
        Ok(())
    })?;
    assert_eq!(
        lab.noted(),
        ["r2 saw 1 Success Some(9) None", "r2 saw 2 Success Some(7) None"]
    );
    Ok(())
}

/// The width lets the next child start when one is bypassed.
#[test]
fn a_bypassed_child_makes_room_for_the_next() -> Tested {
    let waits = plan("w", [Act::Wait("never".to_owned(), None), Act::Done(1)]);
    let join = JoinPolicy::AllSucceeded;
    let root = plan("r", [Act::Spawn(vec![waits, chain("c", 1)], join, 1), Act::Done(3)]);
    let (done, lab) = enumerate_client(async |_, run| {
        let handle = submit(run, Planned(root.clone()), "r").await?;
        run.settle().await;
        bypass(run, member(&handle, 1), BypassScope::Alone).await?;
        assert_eq!(run.wait(handle.outcome()).await??, 3);
        Ok(())
    })?;
    assert_eq!((done.commits, lab.line().as_str()), (6, "r1 w1 c1 r2"));
    Ok(())
}
