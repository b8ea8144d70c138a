//! A store of version 5 in which a rollback rests half way: the stages that were undone still say that they stand, and
//! none of them is undone again.

use std::future::IntoFuture;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use procession::operate::OperatorRequest;
use procession::procedure::RetryPolicy;
use procession::status::{Ending, ProcedureState, WaitReason};
use procession::testkit::{FaultPlan, Run, World};
use procession::{Builder, Procedure, ProcedureId, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

use crate::store::{dump, install};
use crate::{Line, Tested, golden};

/// Fails in its last stage. Never changed: its values are in the golden file.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct HalfUndone;

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
enum Stage {
    One,
    Two,
    Three,
}

/// What was undone, and whether the undo of the second stage succeeds.
#[derive(Clone, Default)]
struct Undos {
    done: Arc<Mutex<Vec<Stage>>>,
    succeed: bool,
}

impl Procedure for HalfUndone {
    const KIND: &'static str = "half";
    type Stage = Stage;
    type Env = Undos;
    type Output = ();

    fn first(&self) -> Stage {
        Stage::One
    }

    async fn execute(&mut self, stage: Stage, _: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        match stage {
            Stage::One => Ok(Step::Next(Stage::Two)),
            Stage::Two => Ok(Step::Next(Stage::Three)),
            Stage::Three => Err(StageError::Fail("no".to_owned())),
        }
    }

    async fn rollback(&mut self, stage: Stage, cx: &mut StageContext<'_, Self>) -> Result<(), StageError> {
        let undos = cx.env();
        if stage == Stage::Two && !undos.succeed {
            return Err(StageError::Fail("not yet".to_owned()));
        }
        undos.done.lock().unwrap_or_else(PoisonError::into_inner).push(stage);
        Ok(())
    }

    fn retry_undo() -> RetryPolicy {
        RetryPolicy::default().attempts(1)
    }
}

fn set_up(builder: Builder, undos: &Undos) -> Builder {
    builder.register::<HalfUndone>(undos.clone())
}

async fn id(run: &Run) -> Result<ProcedureId, Box<dyn std::error::Error>> {
    let submitted = run.executor.submit(HalfUndone).key("half").into_future();
    Ok(run.wait(submitted).await??.id())
}

async fn rests(run: &Run) -> Result<ProcedureId, Box<dyn std::error::Error>> {
    let id = id(run).await?;
    run.pass(Duration::from_mins(1)).await;
    let status = run.executor.status(id).await?;
    assert_eq!(
        (status.state, status.wait),
        (ProcedureState::Failed, Some(WaitReason::RollbackFailed))
    );
    let history = run.executor.history(id).await?;
    let entries: Vec<(Ending, bool)> = history.iter().map(|entry| (entry.ending, entry.stands)).collect();
    let expected = [
        (Ending::Next, true),
        (Ending::Next, true),
        (Ending::Fail, false),
        (Ending::Undone, false),
        (Ending::UndoFailed, false),
    ];
    assert_eq!(entries, expected);
    Ok(id)
}

/// Writes such a world; how the golden file was made.
fn write() -> Result<Vec<Line>, Box<dyn std::error::Error>> {
    let world = World::new();
    world
        .run(
            FaultPlan::none(),
            |builder| set_up(builder, &Undos::default()),
            async |run| {
                rests(run).await?;
                Ok(())
            },
        )?
        .done()?;
    Ok(dump(&world))
}

fn history(lines: &[Line]) -> String {
    let history = lines.iter().filter(|line| line.space == "history");
    history.map(Line::text).collect()
}

#[test]
fn a_store_of_version_5_loads_and_its_rollback_goes_on() -> Tested {
    let golden = golden("v5/store.hex", write)?;
    assert_eq!(history(&write()?), history(&golden), "a byte on disk has changed");
    let undos = Undos {
        succeed: true,
        ..Undos::default()
    };
    let done = Arc::clone(&undos.done);
    install(&golden)?
        .run(
            FaultPlan::none(),
            |builder| set_up(builder, &undos).strict(true),
            async |run| {
                let id = rests(run).await?;
                run.executor
                    .retry_undo(id, OperatorRequest::new("ann", "a test"))
                    .await?;
                let outcome = run.wait(run.executor.outcome(id)).await??;
                assert_eq!(outcome.state, ProcedureState::RolledBack);
                Ok(())
            },
        )?
        .done()?;
    let done = done.lock().unwrap_or_else(PoisonError::into_inner).clone();
    assert_eq!(done, [Stage::Two, Stage::One], "the third was undone before");
    Ok(())
}
