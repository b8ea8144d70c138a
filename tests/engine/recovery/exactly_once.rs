//! What a stage does through its context happens once, however often it runs;
//! what it does outside carries the same token each time, and a growing fence.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use procession::procedure::{Fence, Token};
use procession::status::ListFilter;
use procession::testkit::{Ended, Fault, FaultPlan, Run, Trouble, World};
use procession::{Builder, Procedure, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

use crate::support::{Lab, Limited, Tested, chain, end, enumerate, kinds};

/// Runs of bodies: name and stage, token, fence.
type Runs = Vec<(String, Token, Fence)>;

/// What survives a crash beside disk and clock.
#[derive(Clone, Default)]
struct Outside {
    lab: Lab,
    runs: Arc<Mutex<Runs>>,
}

impl Outside {
    fn runs(&self) -> Runs {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// One token for each stage, no two stages with one, and fences that grow.
    fn check(&self) -> Tested {
        let mut tokens: BTreeMap<String, Token> = BTreeMap::new();
        let mut newest = None;
        for (stage, token, fence) in self.runs() {
            let known = *tokens.entry(stage.clone()).or_insert(token);
            if known != token {
                return Err(format!("{stage} had the tokens {known} and {token}").into());
            }
            if newest.is_some_and(|newest| newest >= fence) {
                return Err(format!("the fence of {stage} did not grow: {newest:?}, {fence:?}").into());
            }
            newest = Some(fence);
        }
        let mut distinct: Vec<String> = tokens.values().map(Token::to_string).collect();
        distinct.sort();
        distinct.dedup();
        if distinct.len() != tokens.len() {
            return Err(format!("two stages share a token: {tokens:?}").into());
        }
        Ok(())
    }
}

/// Submits two families in its first stage, which fails so often before.
#[derive(Clone, Serialize, Deserialize)]
struct Submitter {
    name: String,
    retries: u32,
}

impl Procedure for Submitter {
    const KIND: &'static str = "submitter";
    type Stage = u32;
    type Env = Outside;
    type Output = i64;

    fn first(&self) -> u32 {
        1
    }

    async fn execute(&mut self, stage: u32, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        let run = (format!("{}{stage}", self.name), cx.token(), cx.fence());
        cx.env().runs.lock().unwrap_or_else(PoisonError::into_inner).push(run);
        if stage == 2 {
            return Ok(Step::Done(1));
        }
        for name in ["x", "y"] {
            cx.submit(&Limited(chain(&format!("{}{name}", self.name), 1)))?;
        }
        if cx.attempt() <= self.retries {
            return Err(StageError::retry("not yet"));
        }
        Ok(Step::Next(2))
    }
}

fn set_up(outside: &Outside, builder: Builder) -> Builder {
    // One at a time, so that few stages are in flight at each crash.
    kinds(&outside.lab, builder)
        .register::<Submitter>(outside.clone())
        .limit("limited", 1)
}

fn submitter(retries: u32) -> Submitter {
    Submitter {
        name: format!("s{retries}-"),
        retries,
    }
}

async fn drive(run: &Run, retries: u32) -> Tested {
    end(run, submitter(retries), "k").await??;
    // The two that were born are waited for as well.
    let born = run.executor.list(ListFilter::default(), None, 1_000).await?.items;
    for status in &born {
        run.wait(run.executor.outcome(status.id)).await??;
    }
    assert_eq!(born.len(), 3, "the submitter, and exactly two that it submitted");
    Ok(())
}

fn crashed_at_every_commit(retries: u32, commits: u64) -> Tested {
    let done = enumerate(
        Outside::default,
        set_up,
        async |_: &Outside, run: &Run| drive(run, retries).await,
        &[],
        |plain, crashed, crashes| {
            crashed.check()?;
            plain.lab.compare(&crashed.lab, crashes)
        },
    )?;
    assert_eq!(done.commits, commits);
    Ok(())
}

#[test]
fn e_098_submitted_exactly_once_by_a_stage_that_goes_on() -> Tested {
    // The submission, two stages, two children, and the grant for which the second waited.
    crashed_at_every_commit(0, 6)
}

#[test]
fn e_098_submitted_exactly_once_by_a_stage_that_is_tried_again() -> Tested {
    // The failed attempt and the end of its backoff besides.
    crashed_at_every_commit(1, 8)
}

/// Crashes before each commit the first time, and lets it pass the second.
fn crash_pass(outside: &Outside, retries: u32) -> Result<usize, Trouble> {
    let world = World::new();
    let mut crashes = 0;
    // In the first life nothing is in flight; later ones pass the start and one commit.
    let mut at = 1;
    loop {
        let plan = FaultPlan::at(at, Fault::CrashBefore);
        match world.run(
            plan,
            |builder| set_up(outside, builder),
            async |run| drive(run, retries).await,
        )? {
            Ended::Done(()) => return Ok(crashes),
            Ended::Crashed if crashes < 100 => crashes += 1,
            Ended::Crashed => return Err("it does not come to an end".into()),
        }
        at = 2;
    }
}

#[test]
fn e_098_every_body_runs_twice_and_submits_once() -> Tested {
    for (retries, commits) in [(0, 6), (1, 8)] {
        let outside = Outside::default();
        assert_eq!(crash_pass(&outside, retries)?, commits, "a crash before each commit");
        outside.check()?;
        let first = format!("s{retries}-1");
        let runs = outside.runs().iter().filter(|(stage, ..)| *stage == first).count();
        assert_eq!(runs, 2 * (1 + retries as usize), "each attempt ran twice");
        for name in ["x1", "y1"] {
            assert!(outside.lab.count(&format!("s{retries}-{name}")) >= 2);
        }
    }
    Ok(())
}
