//! `SplitTablet`: a tablet becomes two of about half its rows each.

use serde::{Deserialize, Serialize};

use super::reshape::Reshape;
use crate::demo::faults::Lot;
use crate::demo::master::Master;
use crate::demo::meta::{TableState, TabletState};
use crate::demo::stage::{self, Claim, Target};
use crate::{Procedure, RetryPolicy, StageContext, StageError, Step};

/// Splits a tablet. Its output is the names of the two halves.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SplitTablet {
    lot: Lot,
    table: String,
    target: Target,
    looks: u64,
    shape: Reshape,
}

/// Its stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stage {
    /// Holds the tablet, and unloads it.
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
            looks: 0,
            shape: Reshape::default(),
        }
    }

    async fn prepare(&mut self, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        let tablet = match stage::claim_tablet(cx, &mut self.looks, &self.table, &self.target).await? {
            Claim::Later(until) => {
                return Ok(Step::Sleep {
                    until,
                    then: Stage::Prepare,
                });
            }
            Claim::Held(tablet) => tablet,
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
        self.shape.hold(cx).await?;
        Ok(Step::Spawn {
            children: self.shape.unloads(&self.lot)?,
            then: Stage::Write,
        })
    }
}

impl Procedure for SplitTablet {
    const KIND: &'static str = "split_tablet";
    type Stage = Stage;
    type Env = Master;
    type Output = Vec<String>;

    fn first(&self) -> Stage {
        Stage::Prepare
    }

    async fn execute(&mut self, stage: Stage, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        let strike = self.lot.at(Self::KIND, &stage);
        strike.before()?;
        let step = match stage {
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
                stage::release(cx).await?;
                Step::Done(self.shape.ids())
            }
        };
        strike.after()?;
        Ok(step)
    }

    async fn rollback(&mut self, stage: Stage, cx: &mut StageContext<'_, Self>) -> Result<(), StageError> {
        match stage {
            Stage::Prepare => stage::release(cx).await,
            Stage::Write => self.shape.undo_write(cx).await,
            Stage::Commit => self.shape.undo_commit(cx),
            Stage::Finish => Ok(()),
        }
    }

    fn retry() -> RetryPolicy {
        stage::quick_retry()
    }

    fn retry_undo() -> RetryPolicy {
        stage::quick_retry()
    }
}
