//! A retry storm is failures in a row that say the same but for numbers, and tells what they say.

use std::future::IntoFuture;
use std::time::Duration;

use procession::health::{Rule, Verdict};
use procession::procedure::{JoinPolicy, RetryPolicy};
use procession::status::{Status, WaitReason};
use procession::testkit::{FaultPlan, Run, World};
use procession::{Builder, Children, Handle, Procedure, ProcedureId, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

use super::kit::{at, set_up, the_verdict, told};
use super::stuck_crashed::follow;
use crate::support::{Lab, Tested, at_every_commit, live_through};

/// Each attempt of its stage, or of its undo, says the next of these; then it goes well.
#[derive(Clone, Serialize, Deserialize)]
struct Saying {
    stage: Vec<String>,
    undo: Vec<String>,
}

fn of(texts: &[&str]) -> Vec<String> {
    texts.iter().copied().map(str::to_owned).collect()
}

/// Returns what an attempt says, if it fails.
fn said(texts: &[String], attempt: u32) -> Result<(), StageError> {
    match texts.get(attempt as usize - 1) {
        Some(text) => Err(StageError::retry(text.clone())),
        None => Ok(()),
    }
}

impl Procedure for Saying {
    const KIND: &'static str = "saying";
    type Stage = u32;
    type Env = ();
    type Output = ();

    fn first(&self) -> u32 {
        1
    }

    async fn execute(&mut self, stage: u32, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        if stage == 1 {
            return Ok(Step::Next(2));
        }
        said(&self.stage, cx.attempt())?;
        if !self.undo.is_empty() {
            return Err(StageError::fail("it is to be undone"));
        }
        Ok(Step::Done(()))
    }

    async fn rollback(&mut self, stage: u32, cx: &mut StageContext<'_, Self>) -> Result<(), StageError> {
        if stage == 1 {
            said(&self.undo, cx.attempt())
        } else {
            Ok(())
        }
    }

    fn rollback_supported(&self, _: &u32) -> bool {
        true
    }

    fn retry() -> RetryPolicy {
        RetryPolicy::default().attempts(20)
    }

    fn retry_undo() -> RetryPolicy {
        Self::retry()
    }
}

/// Has one of these as its child, and goes on whatever comes of that.
#[derive(Serialize, Deserialize)]
struct Above(Saying);

impl Procedure for Above {
    const KIND: &'static str = "above";
    type Stage = u32;
    type Env = ();
    type Output = ();

    fn first(&self) -> u32 {
        1
    }

    async fn execute(&mut self, stage: u32, _: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        if stage == 2 {
            return Ok(Step::Done(()));
        }
        let children = Children::new().and(&self.0)?.join(JoinPolicy::AllFinished);
        Ok(Step::Spawn { children, then: 2 })
    }
}

fn with(lab: &Lab, builder: Builder) -> Builder {
    set_up(lab, builder).register::<Saying>(()).register::<Above>(())
}

async fn submit(run: &Run, saying: &Saying) -> Result<Handle<Saying>, procession::testkit::Trouble> {
    let submit = run.executor.submit(saying.clone()).key("k");
    Ok(submit.into_future().await?)
}

fn live(saying: &Saying, drive: impl AsyncFnOnce(&Run, Handle<Saying>) -> Tested) -> Tested {
    let lab = Lab::default();
    World::new()
        .run(
            FaultPlan::none(),
            |builder| with(&lab, builder),
            async |run| {
                let handle = run.wait(submit(run, saying)).await??;
                drive(run, handle).await
            },
        )?
        .done()
}

fn facts(verdict: &Verdict) -> [Option<&str>; 3] {
    ["attempts", "alike", "error"].map(|name| verdict.fact(name))
}

#[test]
fn e_115_a_storm_tells_what_is_said_and_how_often_in_a_row() -> Tested {
    let stage = of(&[
        "refused",
        "timeout after 31 ms at rs-17",
        "timeout after 29 ms at rs-4",
        "timeout after 5 ms at rs-4",
    ]);
    let saying = Saying {
        stage,
        undo: Vec::new(),
    };
    live(&saying, async |run, handle| {
        // It fails at 0, 1, 3 and 7 s: three times in all, and then three times alike.
        run.pass(Duration::from_secs(3)).await;
        assert_eq!(told(run).await?, []);
        run.pass(Duration::from_secs(4)).await;
        let verdict = the_verdict(run).await?;
        assert_eq!(
            (verdict.rule, verdict.procedure, verdict.since),
            (Rule::RetryStorm, Some(handle.id()), at(1))
        );
        let error = "timeout after 5 ms at rs-4";
        assert_eq!(facts(&verdict), [Some("4"), Some("3"), Some(error)]);
        let said = format!("keeps retrying: it has failed 4 times; the last error 3 times in a row: {error}");
        assert!(verdict.text.ends_with(&said), "{}", verdict.text);
        run.pass(Duration::from_secs(8)).await;
        assert_eq!(told(run).await?, []);
        run.wait(handle.outcome()).await??;
        Ok(())
    })
}

#[test]
fn e_115_failures_that_say_something_else_each_time_are_no_storm() -> Tested {
    let stage = of(&[
        "refused",
        "no such table",
        "refused",
        "it is full",
        "no such table",
        "refused",
    ]);
    let saying = Saying {
        stage,
        undo: Vec::new(),
    };
    live(&saying, async |run, handle| {
        while run.executor.status(handle.id()).await?.ended.is_none() {
            assert_eq!(told(run).await?, []);
            run.pass(Duration::from_secs(1)).await;
        }
        Ok(())
    })
}

#[test]
fn e_115_what_the_stage_said_does_not_count_for_its_undo() -> Tested {
    let saying = Saying {
        stage: of(&["stuck", "stuck"]),
        undo: of(&["stuck", "stuck", "stuck"]),
    };
    live(&saying, async |run, handle| {
        // The stage has failed at 0 and 1 s, and for good at 3 s; its undo at 3, 4 and 6 s.
        run.pass(Duration::from_secs(5)).await;
        assert_eq!(told(run).await?, []);
        run.pass(Duration::from_secs(1)).await;
        let verdict = the_verdict(run).await?;
        assert_eq!((verdict.rule, verdict.procedure), (Rule::RetryStorm, Some(handle.id())));
        assert_eq!(facts(&verdict), [Some("3"), Some("3"), Some("stuck")]);
        assert!(verdict.text.contains("its undo has failed 3 times"), "{}", verdict.text);
        run.pass(Duration::from_secs(4)).await;
        assert_eq!(told(run).await?, []);
        Ok(())
    })
}

#[test]
fn e_115_a_rollback_that_a_larger_one_took_over_is_no_storm_of_its_own() -> Tested {
    let (lab, world) = (Lab::default(), World::new());
    let saying = Saying {
        stage: Vec::new(),
        undo: of(&["stuck"; 19]),
    };
    let root = world.run(
        FaultPlan::none(),
        |builder| with(&lab, builder),
        async |run| {
            let submit = run.executor.submit(Above(saying)).key("k");
            let root = run.wait(submit.into_future()).await??.id();
            let child = ProcedureId::new(root.family, 1);
            // The child's undo has failed at 0, 1 and 3 s.
            run.pass(Duration::from_secs(3)).await;
            assert_eq!(told(run).await?, [(Rule::RetryStorm, Some(child))]);
            assert_eq!(the_verdict(run).await?.fact("error_kind"), None);
            run.executor
                .abort(root, procession::operate::OperatorRequest::new("the test", "enough"))
                .await?;
            run.settle().await;
            assert_eq!(
                told(run).await?,
                [],
                "the root's rollback has begun, and has failed once"
            );
            run.pass(Duration::from_secs(3)).await;
            let verdict = the_verdict(run).await?;
            assert_eq!((verdict.rule, verdict.procedure), (Rule::RetryStorm, Some(root)));
            assert_eq!(facts(&verdict), [Some("3"), Some("3"), Some("stuck")]);
            let kinds = ["kind", "error_kind"].map(|name| verdict.fact(name));
            assert_eq!(kinds, [Some("above"), Some("saying")], "the undo is the child's");
            Ok(root)
        },
    )?;
    let root = root.done()?;
    // Until the next attempt nobody knows whose undo that is, nor who may see what it said.
    let later = world.run(
        FaultPlan::none(),
        |builder| with(&lab, builder),
        async |run| {
            let verdict = the_verdict(run).await?;
            assert_eq!((verdict.rule, verdict.procedure), (Rule::RetryStorm, Some(root)));
            assert_eq!(facts(&verdict), [Some("3"), Some("3"), None]);
            assert!(!verdict.text.contains("stuck"), "{}", verdict.text);
            run.pass(Duration::from_secs(4)).await;
            assert_eq!(facts(&the_verdict(run).await?), [Some("4"), Some("4"), Some("stuck")]);
            Ok(())
        },
    )?;
    later.done()
}

#[test]
fn e_115_failures_in_a_row_are_counted_however_it_crashes() -> Tested {
    // Three alike from the fifth attempt on.
    let saying = Saying {
        stage: of(&[
            "refused",
            "refused by 1",
            "full 1",
            "full 2",
            "full 3",
            "full 4",
            "refused",
        ]),
        undo: Vec::new(),
    };
    let storm = |status: &Status, _: usize| {
        let often = matches!(status.wait, Some(WaitReason::Backoff(5..=6, _)));
        often.then_some(Rule::RetryStorm)
    };
    let drive = async |_: &Lab, run: &Run| {
        let id = submit(run, &saying).await?.id();
        follow(run, id, storm).await
    };
    let done = at_every_commit(false, |faults| {
        live_through(faults, |_| Lab::default(), with, drive, |_, _| Ok(()))
    })?;
    // Submit, the first stage, eight attempts of the second, seven backoffs.
    assert_eq!(done.commits, 17);
    Ok(())
}
