//! What the list of states, the history and the tree of a saga keep.

use procession::saga::{Saga, SagaStatus};
use procession::testkit::{Run, Trouble};
use serde_json::json;

use crate::Tested;
use crate::kit::{Ground, ask, by, status};

#[test]
fn g_029_the_history_has_all_tries() -> Tested {
    let ground = Ground::new(
        &["simple_statelang_with_persist_update_mode.json"],
        "simpleUpdateStateMachine",
    )?;
    ground.live(async |run| {
        let params = json!({ "a": 1, "barThrowException": "true" });
        let saga = ground.start(run, "the saga", params).await?;
        for _ in 0..2 {
            ask(run, saga.forward(&json!({}), by())).await??;
            run.settle().await;
        }
        assert_eq!(saga.instance().await?.states.len(), 2);
        assert_eq!(run.executor.history(saga.id()).await?.len(), 4);
        Ok(())
    })
}

#[test]
fn g_018_the_tree_shows_each_child() -> Tested {
    let files = [
        "simple_statelang_with_compensation_and_sub_machine.json",
        "simple_statelang_with_compensation.json",
        "simple_statelang_with_persist_update_mode.json",
    ];
    let ground = Ground::new(&files, "simpleStateMachineWithCompensationAndSubMachine")?;
    ground.live(async |run| {
        let params = json!({ "a": 2, "barThrowException": "true" });
        let saga = ground.start(run, "the saga", params).await?;
        let healthy = json!({ "barThrowException": "false" });
        ask(run, saga.forward(&healthy, by())).await??;
        run.settle().await;
        let members = run.executor.members(saga.id(), 0, 10).await?.items;
        let shown: Vec<String> = members
            .iter()
            .map(|member| format!("{} {}", member.kind, member.state))
            .collect();
        let expected = [
            "saga.simpleStateMachineWithCompensationAndSubMachine Success",
            "saga.simpleCompensationStateMachine RolledBack",
            "saga.simpleCompensationStateMachine Success",
        ];
        assert_eq!(shown, expected);
        Ok(())
    })
}

/// A sub machine that rolled back without an undo is no part of what the saga undoes later.
#[test]
fn g_020_the_handle_of_a_sub_machine_is_about_it_alone() -> Tested {
    let ground = Ground::new(&["around_failing.json", "fails_at_once.json"], "around_failing")?;
    ground.rules(json!([{ "state": "D", "fault": { "class": "x.Boom", "message": "boom" } }]))?;
    ground.live(async |run| {
        let saga = ground.start(run, "the saga", json!({})).await?;
        assert_eq!(status(&saga).await?, (SagaStatus::Unknown, Some(SagaStatus::Success)));
        let members = run.executor.members(saga.id(), 0, 10).await?.items;
        let sub = members.get(1).ok_or("the sub machine is a member")?.id;
        let sub = run.executor.saga(sub);
        assert_eq!(status(&sub).await?, (SagaStatus::Failed, None));
        let outcome = ask(run, sub.outcome()).await??;
        assert_eq!((outcome.status, outcome.compensation), (SagaStatus::Failed, None));
        assert!(sub.instance().await?.states.is_empty());
        assert_eq!(saga.instance().await?.states.len(), 3);
        Ok(())
    })
}

/// The value of a branch does not say that it has succeeded, and its row not once it is undone. Its history does.
#[test]
fn g_050_a_branch_that_succeeded_says_so_once_it_is_undone() -> Tested {
    let both = (SagaStatus::Success, Some(SagaStatus::Success));
    let standing = Ground::new(&["fork.json"], "fork")?;
    standing.rules(json!([{ "state": "B1", "fault": { "class": "x.Boom", "message": "boom" } }]))?;
    standing.live(async |run| {
        let saga = standing.start(run, "the saga", json!({})).await?;
        let branch = branch(run, &saga, 1).await?;
        assert_eq!(status(&branch).await?, (SagaStatus::Success, None));
        ask(run, saga.compensate(by())).await??;
        run.settle().await;
        assert_eq!(status(&branch).await?, both);
        let outcome = ask(run, branch.outcome()).await??;
        assert_eq!((outcome.status, outcome.compensation), both);
        Ok(())
    })?;
    let plain = Ground::new(&["fork_any_fail.json"], "fork_any_fail")?;
    plain.live(async |run| {
        let saga = plain.start(run, "the saga", json!({ "a": 1 })).await?;
        assert_eq!(status(&saga).await?, (SagaStatus::Failed, None));
        let branch = branch(run, &saga, 2).await?;
        assert_eq!(status(&branch).await?, (SagaStatus::Success, None));
        Ok(())
    })?;
    Ok(())
}

/// Returns the handle of a member of a saga.
async fn branch(run: &Run, saga: &Saga, member: usize) -> Result<Saga, Trouble> {
    let members = run.executor.members(saga.id(), 0, 10).await?.items;
    let branch = members.get(member).ok_or("the branch is a member")?;
    Ok(run.executor.saga(branch.id))
}
