//! Failed attempts: the last few are kept, their count is not lost, and of each visit the
//! newest alone stands.

use std::future::IntoFuture;

use procession::procedure::RetryPolicy;
use procession::status::{Ending, HistoryEntry, ProcedureState};
use procession::testkit::{FaultPlan, World};
use procession::{Procedure, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

use crate::support::{Act, Lab, Patient, Planned, Tested, live, plan};

/// Attempts of a stage, and of an undo, of [`Stubborn`].
const ATTEMPTS: u32 = 9;
/// Failed attempts that are kept.
const KEPT: u32 = 5;

/// Succeeds at its last attempt, then fails for good, and is undone at the last attempt, too.
#[derive(Serialize, Deserialize)]
struct Stubborn;

impl Procedure for Stubborn {
    const KIND: &'static str = "stubborn";
    type Stage = u32;
    type Env = ();
    type Output = ();

    fn first(&self) -> u32 {
        1
    }

    async fn execute(&mut self, stage: u32, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        match (stage, cx.attempt()) {
            (1, ATTEMPTS) => Ok(Step::Next(2)),
            (1, attempt) => Err(StageError::retry(format!("attempt {attempt}"))),
            _ => Err(StageError::fail("boom")),
        }
    }

    async fn rollback(&mut self, stage: u32, cx: &mut StageContext<'_, Self>) -> Result<(), StageError> {
        match (stage, cx.attempt()) {
            (1, ATTEMPTS) | (2, _) => Ok(()),
            (_, attempt) => Err(StageError::retry(format!("undo {attempt}"))),
        }
    }

    fn retry() -> RetryPolicy {
        RetryPolicy::default().attempts(ATTEMPTS)
    }

    fn retry_undo() -> RetryPolicy {
        RetryPolicy::default().attempts(ATTEMPTS)
    }
}

fn attempts(history: &[HistoryEntry], of: &[Ending], visit: u32) -> Vec<u32> {
    let of_visit = |entry: &&HistoryEntry| entry.visit == visit && of.contains(&entry.ending);
    history.iter().filter(of_visit).map(|entry| entry.attempt).collect()
}

#[test]
fn e_114_of_many_attempts_the_last_few_are_kept_and_the_newest_counts_them() -> Tested {
    let world = World::new();
    world
        .run(
            FaultPlan::none(),
            |builder| builder.register::<Stubborn>(()),
            async |run| {
                let handle = run.wait(run.executor.submit(Stubborn).into_future()).await??;
                let outcome = run.wait(run.executor.outcome(handle.id())).await??;
                assert_eq!(outcome.state, ProcedureState::RolledBack);
                let history = run.executor.history(handle.id()).await?;
                let kept: Vec<u32> = (ATTEMPTS - KEPT..=ATTEMPTS).collect();
                assert_eq!(attempts(&history, &[Ending::Retry, Ending::Next], 0), kept);
                assert_eq!(attempts(&history, &[Ending::UndoFailed, Ending::Undone], 0), kept);
                let undone = history.last().ok_or("there is a history")?;
                assert_eq!(
                    (undone.ending, undone.attempt),
                    (Ending::Undone, ATTEMPTS),
                    "so many there were"
                );
                assert!(history.iter().all(|entry| !entry.stands), "nothing stands any more");
                // Each became ready when its backoff was over, and not when the first did.
                assert!(
                    history
                        .iter()
                        .all(|entry| entry.admitted.is_none() && entry.queued == entry.begun)
                );
                Ok(())
            },
        )?
        .done()
}

#[test]
fn e_114_of_a_visit_the_newest_attempt_stands() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let tried = plan(
            "a",
            [
                Act::Retry(2, Box::new(Act::Next)),
                Act::Wait("go".to_owned(), None),
                Act::Done(1),
            ],
        );
        let handle = run.wait(run.executor.submit(Patient(tried)).into_future()).await??;
        run.pass(std::time::Duration::from_mins(1)).await;
        let history = run.executor.history(handle.id()).await?;
        let standing: Vec<_> = history.iter().map(|entry| (entry.attempt, entry.stands)).collect();
        assert_eq!(standing, [(1, false), (2, false), (3, true), (1, true)]);
        assert_eq!(run.executor.export(handle.id()).await?.history(), history);
        Ok(())
    })
}

#[test]
fn e_114_a_failure_after_attempts_leaves_none_standing() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let tried = plan("a", [Act::Retry(2, Box::new(Act::Fail("boom".to_owned())))]);
        let handle = run.wait(run.executor.submit(Planned(tried)).into_future()).await??;
        run.wait(handle.outcome()).await?.ok();
        let history = run.executor.history(handle.id()).await?;
        assert_eq!(history.len(), 4, "three attempts and the undo");
        assert!(history.iter().all(|entry| !entry.stands), "{history:?}");
        Ok(())
    })
}
