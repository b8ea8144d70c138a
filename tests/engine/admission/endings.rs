//! A permit comes back exactly once, however its holder ends.

use procession::errors::AskError;
use procession::operate::{AbortAnswer, BypassAs, BypassScope, OperatorRequest};
use procession::status::{ProcedureState, WaitReason};
use procession::testkit::{Run, Trouble, World};
use procession::{Handle, Procedure, ProcedureId};

use super::limits::{begun, held, is_first_life, limited, live_in, submit, usage};
use crate::support::{Act, Final, Lab, Plan, Planned, Tested, chain, enumerate, failing, plan};

/// The ways to end, each with the state that it ends in.
const ENDINGS: [(&str, ProcedureState); 7] = [
    ("success", ProcedureState::Success),
    ("rolled back", ProcedureState::RolledBack),
    ("failed", ProcedureState::Failed),
    ("aborted parked", ProcedureState::RolledBack),
    ("aborted running", ProcedureState::RolledBack),
    ("bypassed parked", ProcedureState::Success),
    ("bypassed running", ProcedureState::Success),
];

fn ending(name: &str) -> Plan {
    let plan = match name {
        "success" => chain(name, 1),
        "rolled back" => failing(name, 2),
        "failed" => failing(name, 1),
        "aborted parked" | "bypassed parked" => plan(name, [Act::Wait("never".to_owned(), None), Act::Done(7)]),
        _ => held(name),
    };
    plan.limit("shared")
}

async fn begin(run: &Run, name: &str) -> Result<ProcedureId, Trouble> {
    Ok(match name {
        "failed" => submit(run, Final(ending(name)), name).await?.id(),
        _ => submit(run, Planned(ending(name)), name).await?.id(),
    })
}

async fn abort(run: &Run, id: ProcedureId) -> Tested {
    let operated = run
        .executor
        .abort(id, OperatorRequest::new("test", "its permit is needed"))
        .await;
    match operated.map(|operated| operated.abort) {
        Ok(Some(AbortAnswer::WillRollBack)) | Err(AskError::Finished { .. }) => Ok(()),
        other => Err(format!("the abort was answered with {other:?}").into()),
    }
}

async fn bypass(run: &Run, id: ProcedureId) -> Tested {
    let by = OperatorRequest::new("test", "its permit is needed").key(format!("bypass {id}"));
    run.executor
        .bypass(id, BypassScope::Alone, BypassAs::Success, by)
        .await?;
    Ok(())
}

/// Lets it end its way, and checks the state.
async fn end(lab: &Lab, run: &Run, name: &str, id: ProcedureId) -> Tested {
    run.settle().await;
    let status = run.executor.status(id).await?;
    match name {
        "aborted parked" => {
            assert!(
                status.ended.is_some() || matches!(status.wait, Some(WaitReason::Event(..))) || status.cause.is_some()
            );
            abort(run, id).await?;
        }
        "aborted running" => {
            abort(run, id).await?;
            lab.open(name);
        }
        "bypassed parked" => bypass(run, id).await?,
        "bypassed running" => {
            bypass(run, id).await?;
            // Its late report gives nothing back a second time.
            lab.open(name);
            run.settle().await;
        }
        _ => {}
    }
    let outcome = run.wait(run.executor.outcome(id)).await??;
    let expected = ENDINGS
        .iter()
        .find(|(other, _)| *other == name)
        .map(|(_, state)| *state);
    assert_eq!(Some(outcome.state), expected, "{name}");
    Ok(())
}

async fn follow<P: Procedure>(
    run: &Run,
    follower: impl Fn(Plan) -> P,
    count: usize,
) -> Result<Vec<Handle<P>>, Trouble> {
    let mut handles = Vec::new();
    for number in 0..count {
        let name = format!("next{number}");
        handles.push(submit(run, follower(held(&name).limit("shared")), &name).await?);
    }
    run.settle().await;
    Ok(handles)
}

/// So many come, the first as many as the limit says start, and all end.
async fn next_ones(lab: &Lab, run: &Run, limit: u32, count: u32) -> Tested {
    let used = usage(run, "shared").await?;
    if !lab.has("next01") {
        assert_eq!((used.used, used.waiting), (0, 0), "everything was given back");
    }
    let handles = follow(run, Planned, count as usize).await?;
    if is_first_life(run).await? {
        let used = usage(run, "shared").await?;
        assert_eq!((used.used, used.waiting), (limit, (count - limit) as usize));
        assert_eq!(
            begun(lab).iter().filter(|name| name.starts_with("next")).count(),
            limit as usize
        );
    }
    for (number, handle) in handles.iter().enumerate() {
        let used = usage(run, "shared").await?;
        assert!(used.used <= limit);
        lab.open(&format!("next{number}"));
        assert_eq!(run.wait(handle.outcome()).await??, 7);
    }
    assert_eq!(usage(run, "shared").await?.used, 0);
    Ok(())
}

#[test]
fn e_065_a_permit_is_given_back_exactly_once() -> Tested {
    let lab = Lab::default();
    live_in(&World::new(), &lab, &[("shared", 3)], async |run| {
        let mut ids = Vec::new();
        for (name, _) in ENDINGS.iter().rev() {
            ids.push((*name, begin(run, name).await?));
            assert!(usage(run, "shared").await?.used <= 3);
        }
        for (name, id) in ids {
            end(&lab, run, name, id).await?;
            assert!(usage(run, "shared").await?.used <= 3);
        }
        next_ones(&lab, run, 3, 4).await
    })
}

#[test]
fn e_065_a_permit_is_given_back_exactly_once_through_crashes() -> Tested {
    for (name, _) in ENDINGS {
        // One is enough to see the permit back; two also see that it is one.
        let count = if name == "success" || name == "aborted running" {
            2
        } else {
            1
        };
        let drive = async |lab: &Lab, run: &Run| {
            let id = begin(run, name).await?;
            end(lab, run, name, id).await?;
            next_ones(lab, run, 1, count).await
        };
        let set_up = |lab: &Lab, builder| limited(lab, builder, &[("shared", 1)]);
        let compare = |plain: &Lab, crashed: &Lab, crashes: usize| plain.compare(crashed, crashes);
        enumerate(Lab::default, set_up, drive, &[], compare).map_err(|why| format!("{name}: {why}"))?;
    }
    Ok(())
}
