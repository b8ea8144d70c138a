//! The same request with the same key takes effect once; a row that has changed is left alone.

use procession::errors::{AskError, NotNow};
use procession::messages::Broadcast;
use procession::operate::{AbortAnswer, BypassAs, BypassScope, OperatorRequest, PauseScope};
use procession::status::Seq;
use procession::testkit::World;

use crate::rollback::helper::{commits, submit};
use crate::support::{Act, Lab, Plan, Planned, Tested, live, live_in, plan};

fn waiting(name: &str) -> Plan {
    plan(
        name,
        [
            Act::Wait("go".to_owned(), None),
            Act::Wait("on".to_owned(), None),
            Act::Done(1),
        ],
    )
}

fn ann(key: &str) -> OperatorRequest {
    OperatorRequest::new("ann", "look").key(key)
}

fn is_other_request<T: std::fmt::Debug>(answer: Result<T, AskError>, before: &str) {
    let text = format!("the key was used for another request: {before}");
    assert!(
        matches!(&answer, Err(AskError::NotNow { kind: NotNow::KeyUsed, text: why }) if *why == text),
        "{answer:?}"
    );
}

#[test]
fn e_058_the_same_key_takes_effect_once_over_restarts_too() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let first = live_in(&world, &lab, async |run| {
        let handle = submit(run, Planned(waiting("a")), "a").await?;
        run.settle().await;
        let one = PauseScope::One(handle.id());
        let first = run.executor.pause(one.clone(), ann("p")).await?;
        run.executor.resume(one.clone(), ann("r")).await?;
        let before = commits(run).await?;
        assert_eq!(
            run.executor.pause(one.clone(), ann("p")).await?,
            first,
            "it is answered as it was"
        );
        assert!(!handle.status().await?.paused, "and not done again");
        is_other_request(
            run.executor.resume(one, ann("p")).await,
            &format!("pause {}", handle.id()),
        );
        assert_eq!(commits(run).await?, before);
        Ok(first)
    })?;
    live_in(&world, &lab, async |run| {
        let handle = submit(run, Planned(waiting("a")), "a").await?;
        let other = submit(run, Planned(waiting("b")), "b").await?;
        let before = commits(run).await?;
        let one = PauseScope::One(handle.id());
        assert_eq!(run.executor.pause(one.clone(), ann("p")).await?, first);
        is_other_request(
            run.executor.resume(one.clone(), ann("p")).await,
            &format!("pause {}", handle.id()),
        );
        is_other_request(
            run.executor.pause(PauseScope::One(other.id()), ann("p")).await,
            &format!("pause {}", handle.id()),
        );
        is_other_request(
            run.executor.set_priority(handle.id(), 3, ann("r")).await,
            &format!("resume {}", handle.id()),
        );
        assert_eq!(commits(run).await?, before);
        Ok(())
    })
}

/// What it would refuse now, it answered then.
#[test]
fn a_repeat_is_answered_though_it_could_not_be_done_any_more() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let handle = submit(run, Planned(waiting("a")), "a").await?;
        let bypass = |by| {
            run.executor
                .bypass(handle.id(), BypassScope::Alone, BypassAs::Success, by)
        };
        let first = bypass(ann("b")).await?;
        assert_eq!(bypass(ann("b")).await?, first);
        assert!(matches!(bypass(ann("c")).await, Err(AskError::Finished { .. })));

        let aborted = submit(run, Planned(waiting("b")), "b").await?;
        run.settle().await;
        run.executor.abort(aborted.id(), ann("a")).await?;
        run.wait(aborted.outcome()).await?.err().ok_or("it succeeded")?;
        let again = run.executor.abort(aborted.id(), ann("a")).await?;
        assert_eq!(again.abort, Some(AbortAnswer::WillRollBack));
        Ok(())
    })
}

/// One that was refused may be sent again: nothing was done.
#[test]
fn a_refused_request_does_not_use_its_key_up() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let handle = submit(run, Planned(plan("a", [Act::Retry(1, Box::new(Act::Done(1)))])), "a").await?;
        let other = submit(run, Planned(waiting("b")), "b").await?;
        run.settle().await;
        assert!(run.executor.retry_now(other.id(), ann("k")).await.is_err());
        let done = run.executor.retry_now(handle.id(), ann("k")).await?;
        assert!(done.number.is_some());
        Ok(())
    })
}

#[test]
fn a_dry_run_does_not_use_its_key_up() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        assert_eq!(
            run.executor.pause(PauseScope::All, ann("k").dry_run()).await?.number,
            None
        );
        assert_eq!(run.executor.pause(PauseScope::All, ann("k")).await?.number, Some(0));
        assert_eq!(
            run.executor.pause(PauseScope::All, ann("k").dry_run()).await?.number,
            Some(0),
            "it was done"
        );
        Ok(())
    })
}

#[test]
fn e_058_an_older_revision_is_refused_with_the_newer() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let handle = submit(run, Planned(waiting("a")), "a").await?;
        run.settle().await;
        let seen = handle.status().await?.revision;
        run.executor.signal(handle.id(), "go", &1_i64).await?;
        run.settle().await;
        let status = handle.status().await?;
        let now = status.revision;
        let before = commits(run).await?;
        let is_revised = |answer: Result<procession::operate::Operated, AskError>| {
            let fits = matches!(answer, Err(AskError::Revised { expected, found, state })
                if expected == seen && found == now && state == status.state);
            assert!(fits, "{answer:?}");
        };
        let (id, old) = (handle.id(), || OperatorRequest::new("ann", "look").expecting(seen));
        is_revised(run.executor.pause(PauseScope::One(id), old()).await);
        is_revised(run.executor.resume(PauseScope::One(id), old()).await);
        is_revised(run.executor.retry_now(id, old()).await);
        is_revised(
            run.executor
                .bypass(id, BypassScope::Alone, BypassAs::Success, old())
                .await,
        );
        is_revised(run.executor.override_result(id, &1_i64, old()).await);
        is_revised(run.executor.set_priority(id, 4, old()).await);
        is_revised(run.executor.abort(id, old()).await);
        is_revised(run.executor.abort(id, old().dry_run()).await);
        is_revised(run.executor.skip_undo(id, old()).await);
        is_revised(run.executor.retry_undo(id, old()).await);
        assert_eq!(commits(run).await?, before);
        let fresh = OperatorRequest::new("ann", "look").expecting(now);
        assert!(run.executor.pause(PauseScope::One(id), fresh).await?.number.is_some());
        assert!(handle.status().await?.revision > now, "the verb itself is a revision");
        Ok(())
    })
}

/// Revisions go on over a restart: an old one never fits a new row.
#[test]
fn a_revision_of_an_earlier_life_is_still_known() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let seen: Seq = live_in(&world, &lab, async |run| {
        let handle = submit(run, Planned(waiting("a")), "a").await?;
        run.settle().await;
        Ok(handle.status().await?.revision)
    })?;
    live_in(&world, &lab, async |run| {
        let handle = submit(run, Planned(waiting("a")), "a").await?;
        let by = || OperatorRequest::new("ann", "look").expecting(seen);
        run.executor.pause(PauseScope::One(handle.id()), by()).await?;
        let refused = run.executor.resume(PauseScope::One(handle.id()), by()).await;
        assert!(matches!(refused, Err(AskError::Revised { .. })));
        Ok(())
    })
}

#[test]
fn a_broadcast_with_a_key_is_repeated() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let send = || Ok::<_, procession::errors::CodecError>(Broadcast::new("go", &7_i64)?.key("all"));
    live_in(&world, &lab, async |run| {
        submit(run, Planned(waiting("a")), "a").await?;
        submit(run, Planned(waiting("b")), "b").await?;
        run.settle().await;
        assert_eq!(run.executor.supervisor().send(send()?).await??, 2);
        run.settle().await;
        submit(run, Planned(waiting("c")), "c").await?;
        let before = commits(run).await?;
        assert_eq!(run.executor.supervisor().send(send()?).await??, 2, "as it was answered");
        is_other_request(
            run.executor
                .supervisor()
                .send(Broadcast::new("on", &7_i64)?.key("all"))
                .await?,
            "broadcast go",
        );
        assert_eq!(commits(run).await?, before);
        assert!(!lab.has("c2"));
        Ok(())
    })?;
    live_in(&world, &lab, async |run| {
        assert_eq!(run.executor.supervisor().send(send()?).await??, 2);
        assert_eq!(commits(run).await?, 0);
        is_other_request(run.executor.pause(PauseScope::All, ann("all")).await, "broadcast go");
        Ok(())
    })
}
