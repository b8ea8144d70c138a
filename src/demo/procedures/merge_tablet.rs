//! `MergeTablet`: a tablet and its neighbour become one.

use serde::{Deserialize, Serialize};

use super::reshape::Reshape;
use crate::demo::faults::Lot;
use crate::demo::master::Master;
use crate::demo::meta::{TableState, TabletRow, TabletState};
use crate::demo::stage::{self, Claim, Target};
use crate::{Procedure, RetryPolicy, StageContext, StageError, Step};

/// Merges a tablet with the one after it; the last one with the one before it.
/// Its output is the name of what became of them.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MergeTablet {
    lot: Lot,
    table: String,
    target: Target,
    looks: u64,
    shape: Reshape,
}

/// Its stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stage {
    /// Holds both tablets, and unloads them.
    Prepare,
    /// Writes their rows into one new file.
    Write,
    /// Names the new tablet in the meta table in their place, and loads it.
    Commit,
    /// Has the old files swept.
    Finish,
}

impl MergeTablet {
    /// Merges a tablet with its neighbour.
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
        let target = &self.target;
        let claim =
            stage::claim_tablets(cx, &mut self.looks, &self.table, |tablets| neighbours(tablets, target)).await?;
        let both = match claim {
            Claim::Later(until) => {
                return Ok(Step::Sleep {
                    until,
                    then: Stage::Prepare,
                });
            }
            Claim::Held(both) => both,
        };
        let table = stage::table(cx, &self.table).await?;
        stage::must_be(&table, &[TableState::Enabled])?;
        if let Some(offline) = both.iter().find(|tablet| tablet.state != TabletState::Loaded) {
            return Err(StageError::fail(format!(
                "tablet {} is offline: load it first",
                offline.id
            )));
        }
        self.shape = Reshape::plan(cx, &self.table, table.schema, both, 1);
        self.shape.hold(cx).await?;
        Ok(Step::Spawn {
            children: self.shape.unloads(&self.lot)?,
            then: Stage::Write,
        })
    }
}

/// Finds the tablet that is meant and its neighbour, in the order of their keys.
fn neighbours(tablets: &[TabletRow], target: &Target) -> Result<Vec<TabletRow>, StageError> {
    let meant = stage::aim(tablets, target)?;
    let after = tablets.iter().find(|tablet| Some(&tablet.start) == meant.end.as_ref());
    let before = tablets.iter().find(|tablet| tablet.end.as_ref() == Some(&meant.start));
    match (before, after) {
        (_, Some(after)) => Ok(vec![meant.clone(), after.clone()]),
        (Some(before), None) => Ok(vec![before.clone(), meant.clone()]),
        (None, None) => Err(StageError::fail(format!(
            "tablet {} is the only one of its table",
            meant.id
        ))),
    }
}

impl Procedure for MergeTablet {
    const KIND: &'static str = "merge_tablet";
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
