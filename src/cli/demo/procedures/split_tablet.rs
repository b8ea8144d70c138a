//! `SplitTablet`: a tablet becomes two of about half its rows each.

use serde::{Deserialize, Serialize};

use super::reshape::Reshape;
use crate::demo::faults::Lot;
use crate::demo::master::Master;
use crate::demo::meta::{TableState, TabletState};
use crate::demo::stage::{self, Target};
use procession::limits::LockNeed;
use procession::procedure::RetryPolicy;
use procession::{Procedure, StageContext, StageError, Step};

/// Splits a tablet. Its output is the names of the two halves.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SplitTablet {
    lot: Lot,
    table: String,
    target: Target,
    shape: Reshape,
}

/// Its stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stage {
    /// Looks up the tablet that holds the key, and has a child do the rest.
    Find,
    /// Unloads the tablet.
    Prepare,
    /// Writes the halves beside it.
    Write,
    /// Names the halves in the meta table in its place, and loads them.
    Commit,
    /// Has the old file swept.
    Finish,
}

impl SplitTablet {
    /// Splits a tablet.
    #[must_use]
    pub fn new(lot: Lot, table: &str, target: Target) -> Self {
        Self {
            lot,
            table: table.to_owned(),
            target,
            shape: Reshape::default(),
        }
    }

    /// Has a child do the work on the tablet that holds the key now.
    async fn find(&self, cx: &StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        stage::by_child(cx, &self.table, Stage::Find, |tablets| {
            let target = Target::Found(stage::aim(tablets, &self.target)?.id.clone());
            Ok(Self { target, ..self.clone() })
        })
        .await
    }

    async fn prepare(&mut self, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        let Some(tablet) = stage::tablet(cx, &self.table, &self.target).await? else {
            return Ok(Step::Done(None));
        };
        let table = stage::table(cx, &self.table).await?;
        stage::must_be(&table, &[TableState::Enabled])?;
        if tablet.state != TabletState::Loaded {
            return Err(StageError::fail(format!(
                "tablet {} is offline: load it first",
                tablet.id
            )));
        }
        if tablet.rows < 2 {
            return Err(StageError::fail(format!(
                "tablet {} has too few rows to be split: {}",
                tablet.id, tablet.rows
            )));
        }
        self.shape = Reshape::plan(cx, &self.table, table.schema, vec![tablet], 2);
        Ok(Step::Spawn {
            children: self.shape.unloads(&self.lot)?,
            then: Stage::Write,
        })
    }
}

impl Procedure for SplitTablet {
    const KIND: &'static str = "split_tablet";
    const HOLD_LOCKS: bool = true;
    type Stage = Stage;
    type Env = Master;
    type Output = Option<Vec<String>>;

    fn first(&self) -> Stage {
        if self.target.is_sought() {
            Stage::Find
        } else {
            Stage::Prepare
        }
    }

    async fn execute(&mut self, stage: Stage, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        let strike = self.lot.at(Self::KIND, &stage);
        strike.before()?;
        let step = match stage {
            Stage::Find => self.find(cx).await?,
            Stage::Prepare => self.prepare(cx).await?,
            Stage::Write => {
                self.shape.write(cx).await?;
                Step::Next(Stage::Commit)
            }
            Stage::Commit => {
                self.shape.commit(cx)?;
                Step::Spawn {
                    children: self.shape.loads(&self.lot)?,
                    then: Stage::Finish,
                }
            }
            Stage::Finish => {
                self.shape.sweep(cx)?;
                Step::Done(Some(self.shape.ids()))
            }
        };
        strike.after()?;
        Ok(step)
    }

    async fn rollback(&mut self, stage: Stage, cx: &mut StageContext<'_, Self>) -> Result<(), StageError> {
        match stage {
            Stage::Write => self.shape.undo_write(cx).await,
            Stage::Commit => self.shape.undo_commit(cx),
            Stage::Find | Stage::Prepare | Stage::Finish => Ok(()),
        }
    }

    fn locks(&self, stage: &Stage) -> Vec<LockNeed> {
        match stage {
            Stage::Find | Stage::Prepare | Stage::Write => self.target.locks(&self.table),
            Stage::Commit | Stage::Finish => [self.target.locks(&self.table), self.shape.locks()].concat(),
        }
    }

    fn retry() -> RetryPolicy {
        stage::quick_retry()
    }

    fn retry_undo() -> RetryPolicy {
        stage::quick_retry()
    }
}
