//! Pause and resume of one procedure, of a kind, of everything.

use std::time::Duration;

use procession::ProcedureId;
use procession::errors::{AskError, NotNow};
use procession::operate::{Operated, OperatorRequest, PauseScope};
use procession::procedure::Kind;
use procession::status::{ProcedureState as State, WaitReason};
use procession::testkit::{Run, Trouble};

use crate::rollback::helper::{commits, enumerate_client, submit};
use crate::support::{Act, Lab, Plan, Planned, Tested, chain, live, live_in, plan, spawn};

const DAY: Duration = Duration::from_secs(24 * 3600);

pub(crate) fn by(key: &str) -> OperatorRequest {
    OperatorRequest::new("ann", "look first").key(key)
}

/// Pauses, or did so in an earlier life.
pub(crate) async fn pause(run: &Run, what: &PauseScope) -> Result<Operated, Trouble> {
    Ok(run.wait(run.executor.pause(what.clone(), by("pause"))).await??)
}

pub(crate) async fn resume(run: &Run, what: &PauseScope) -> Result<Operated, Trouble> {
    Ok(run.wait(run.executor.resume(what.clone(), by("resume"))).await??)
}

pub(crate) async fn paused(run: &Run, id: ProcedureId) -> Result<bool, Trouble> {
    Ok(run.executor.status(id).await?.wait == Some(WaitReason::Paused))
}

fn planned() -> Kind {
    Kind::from("planned")
}

fn running() -> Plan {
    plan(
        "a",
        [
            Act::Held("gate".to_owned(), Box::new(Act::Next)),
            Act::Next,
            Act::Done(1),
        ],
    )
}

/// E-057 with one way to pause what; `None` is each one alone.
fn paused_and_resumed(what: Option<PauseScope>, expected: u64) -> Tested {
    let sleeper = plan("s", [Act::Sleep(10_000), Act::Done(2)]);
    let (done, lab) = enumerate_client(async |lab, run| {
        let a = submit(run, Planned(running()), "a").await?;
        let s = submit(run, Planned(sleeper.clone()), "s").await?;
        run.settle().await;
        let each = |id| what.clone().map_or(PauseScope::One(id), |what| what);
        let names = |id: ProcedureId, verb: &str| match what {
            Some(_) => by(verb),
            None => by(&format!("{verb} {id}")),
        };
        for id in [a.id(), s.id()] {
            run.wait(run.executor.pause(each(id), names(id, "pause"))).await??;
        }
        lab.open("gate");
        run.settle().await;
        if !lab.is_open("resumed") {
            run.pass(DAY).await;
            for handle in [&a, &s] {
                // One that two crashes met is in doubt, and is held back as that.
                let wait = handle.status().await?.wait;
                if !matches!(wait, Some(WaitReason::Paused | WaitReason::Suspect)) {
                    return Err(format!("{} waits for {wait:?}", handle.id()).into());
                }
            }
            assert_eq!((lab.has("a2"), lab.has("s2")), (false, false));
        }
        lab.open("resumed");
        for id in [a.id(), s.id()] {
            run.wait(run.executor.resume(each(id), names(id, "resume"))).await??;
        }
        assert_eq!(run.wait(a.outcome()).await??, 1);
        assert_eq!(run.wait(s.outcome()).await??, 2);
        Ok(())
    })?;
    let calls: Vec<_> = lab.calls().iter().map(crate::support::Call::short).collect();
    assert_eq!(calls.len(), 5, "{calls:?}");
    assert_eq!(done.commits, expected);
    Ok(())
}

// Two submissions, five stages, the end of the sleep; two or one pauses and as many resumes.
#[test]
fn e_057_one_and_one_are_paused_and_resumed() -> Tested {
    paused_and_resumed(None, 8 + 4)
}

#[test]
fn e_057_a_kind_is_paused_and_resumed() -> Tested {
    paused_and_resumed(Some(PauseScope::Kind(planned())), 8 + 2)
}

#[test]
fn e_057_everything_is_paused_and_resumed() -> Tested {
    paused_and_resumed(Some(PauseScope::All), 8 + 2)
}

#[test]
fn e_057_submissions_are_durable_and_start_first_come_first_served() -> Tested {
    for what in [PauseScope::Kind(planned()), PauseScope::All] {
        let (done, lab) = enumerate_client(async |lab, run| {
            pause(run, &what).await?;
            let mut handles = Vec::new();
            for name in ["a", "b", "c"] {
                handles.push(submit(run, Planned(chain(name, 1)), name).await?);
            }
            run.settle().await;
            if !lab.is_open("resumed") {
                for handle in &handles {
                    let status = handle.status().await?;
                    assert_eq!(
                        (status.state, status.wait),
                        (State::Initializing, Some(WaitReason::Paused))
                    );
                }
                assert_eq!(lab.line(), "");
            }
            lab.open("resumed");
            resume(run, &what).await?;
            for handle in &handles {
                run.wait(handle.outcome()).await??;
            }
            Ok(())
        })?;
        assert_eq!((done.commits, lab.line().as_str()), (8, "a1 b1 c1"));
    }
    Ok(())
}

/// Who has waited longest goes first, whatever its number.
#[test]
fn at_the_resume_they_go_on_in_the_order_in_which_they_were_held_back() -> Tested {
    let lab = Lab::default();
    let sleeps = |name: &str, ms| plan(name, [Act::Sleep(ms), Act::Done(1)]);
    live(&lab, async |run| {
        for (name, ms) in [("a", 3_000), ("b", 1_000), ("c", 2_000)] {
            submit(run, Planned(sleeps(name, ms)), name).await?;
        }
        run.settle().await;
        pause(run, &PauseScope::All).await?;
        run.pass(Duration::from_secs(5)).await;
        assert_eq!(lab.line(), "a1 b1 c1");
        resume(run, &PauseScope::All).await?;
        run.settle().await;
        Ok(())
    })?;
    assert_eq!(lab.line(), "a1 b1 c1 b2 c2 a2");
    Ok(())
}

/// Restarts change nothing: not the pause, not the order.
#[test]
fn a_pause_survives_restarts() -> Tested {
    for what in [
        PauseScope::One(ProcedureId::root(1)),
        PauseScope::Kind(planned()),
        PauseScope::All,
    ] {
        let (world, lab) = (procession::testkit::World::new(), Lab::default());
        live_in(&world, &lab, async |run| {
            submit(run, Planned(plan("a", [Act::Sleep(1_000), Act::Done(1)])), "a").await?;
            run.settle().await;
            pause(run, &what).await?;
            Ok(())
        })?;
        for life in 0..3 {
            live_in(&world, &lab, async |run| {
                run.pass(DAY).await;
                assert!(paused(run, ProcedureId::root(1)).await?, "life {life}");
                assert_eq!(lab.line(), "a1");
                Ok(())
            })?;
        }
        live_in(&world, &lab, async |run| {
            resume(run, &what).await?;
            run.settle().await;
            assert_eq!(lab.line(), "a1 a2");
            Ok(())
        })?;
    }
    Ok(())
}

/// Descendants, also those born later; others of their family go on.
#[test]
fn one_is_paused_with_all_below_it() -> Tested {
    let t = plan("t", [Act::Wait("go".to_owned(), None), Act::Done(1)]);
    let s = plan("s", [spawn([t]), spawn([chain("u", 1)]), Act::Done(2)]);
    let root = plan("r", [spawn([s, chain("c", 2)]), Act::Done(3)]);
    let (done, lab) = enumerate_client(async |lab, run| {
        let handle = submit(run, Planned(root.clone()), "r").await?;
        run.settle().await;
        let (s, t) = (
            ProcedureId::new(handle.id().family, 1),
            ProcedureId::new(handle.id().family, 3),
        );
        pause(run, &PauseScope::One(s)).await?;
        match run.wait(run.executor.signal(t, "go", &1_i64).key("go")).await? {
            Ok(_) | Err(AskError::Finished { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        run.settle().await;
        if !lab.is_open("resumed") {
            assert!(paused(run, t).await?);
            assert_eq!((lab.has("t2"), lab.has("c2")), (false, true));
        }
        lab.open("resumed");
        resume(run, &PauseScope::One(s)).await?;
        assert_eq!(run.wait(handle.outcome()).await??, 3);
        Ok(())
    })?;
    // Submit, r1, s1, c1, t1, c2, pause, signal, resume, t2, s2, u1, s3, r2.
    assert_eq!(
        (done.commits, lab.line().as_str()),
        (14, "r1 s1 c1 t1 c2 t2 s2 u1 s3 r2")
    );
    Ok(())
}

/// Each pause is lifted by its own resume.
#[test]
fn pauses_of_three_kinds_are_independent() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let handle = submit(run, Planned(plan("a", [Act::Sleep(1_000), Act::Done(1)])), "a").await?;
        let all = [
            PauseScope::One(handle.id()),
            PauseScope::Kind(planned()),
            PauseScope::All,
        ];
        let ann = || OperatorRequest::new("ann", "look first");
        for what in &all {
            run.executor.pause(what.clone(), ann()).await?;
        }
        run.pass(DAY).await;
        for what in &all {
            assert!(
                paused(run, handle.id()).await?,
                "still held back before {what} is resumed"
            );
            run.executor.resume(what.clone(), ann()).await?;
        }
        assert_eq!(run.wait(handle.outcome()).await??, 1);
        Ok(())
    })
}

#[test]
fn pausing_twice_and_resuming_what_is_not_paused() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let handle = submit(run, Planned(plan("a", [Act::Sleep(1_000), Act::Done(1)])), "a").await?;
        let ann = || OperatorRequest::new("ann", "look first");
        let one = PauseScope::One(handle.id());
        let before = commits(run).await?;
        let refused = run.executor.resume(one.clone(), ann()).await;
        assert!(
            matches!(&refused, Err(AskError::NotNow { kind: NotNow::NotPaused, text: why }) if why.contains("nothing to resume")),
            "{refused:?}"
        );
        assert_eq!(run.executor.resume(PauseScope::All, ann()).await?.number, None);
        assert_eq!(commits(run).await?, before);
        for what in [one, PauseScope::Kind(planned()), PauseScope::All] {
            let before = commits(run).await?;
            assert!(run.executor.pause(what.clone(), ann()).await?.number.is_some());
            assert_eq!(run.executor.pause(what, ann()).await?.number, None, "nothing changes");
            assert_eq!(commits(run).await?, before + 1);
        }
        let unknown = run.executor.pause(PauseScope::One(ProcedureId::root(9)), ann()).await;
        assert!(matches!(unknown, Err(AskError::Unknown(_))));
        Ok(())
    })
}
