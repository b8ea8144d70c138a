//! `MergeTablet`: a tablet and its neighbour become one.

use serde::{Deserialize, Serialize};

use super::reshape::Reshape;
use crate::demo::faults::Lot;
use crate::demo::master::Master;
use crate::demo::meta::{TableState, TabletRow, TabletState};
use crate::demo::stage::{self, Target};
use procession::limits::LockNeed;
use procession::procedure::RetryPolicy;
use procession::{Procedure, StageContext, StageError, Step};

/// Merges a tablet with the one after it; the last one with the one before it.
/// Its output is the name of what became of them.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MergeTablet {
    lot: Lot,
    table: String,
    target: Target,
    pair: Vec<String>,
    shape: Reshape,
}

/// Its stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stage {
    /// Looks up the two tablets, and has a child do the rest.
    Find,
    /// Unloads both tablets.
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
            pair: Vec::new(),
            shape: Reshape::default(),
        }
    }

    /// Has a child merge the two that are meant now.
    async fn find(&self, cx: &StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        stage::by_child(cx, &self.table, Stage::Find, |tablets| {
            let pair = neighbours(tablets, &self.target)?;
            Ok(Self { pair, ..self.clone() })
        })
        .await
    }

    async fn prepare(&mut self, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        let mut both = Vec::new();
        for id in &self.pair {
            match stage::tablet(cx, &self.table, &Target::Found(id.clone())).await? {
                Some(tablet) => both.push(tablet),
                None => return Ok(Step::Done(None)),
            }
        }
        let table = stage::table(cx, &self.table).await?;
        stage::must_be(&table, &[TableState::Enabled])?;
        if let Some(offline) = both.iter().find(|tablet| tablet.state != TabletState::Loaded) {
            return Err(StageError::fail(format!(
                "tablet {} is offline: load it first",
                offline.id
            )));
        }
        self.shape = Reshape::plan(cx, &self.table, table.schema, both, 1);
        Ok(Step::Spawn {
            children: self.shape.unloads(&self.lot)?,
            then: Stage::Write,
        })
    }
}

/// Finds the tablet that is meant and its neighbour, in the order of their keys.
fn neighbours(tablets: &[TabletRow], target: &Target) -> Result<Vec<String>, StageError> {
    let meant = stage::aim(tablets, target)?;
    let after = tablets.iter().find(|tablet| Some(&tablet.start) == meant.end.as_ref());
    let before = tablets.iter().find(|tablet| tablet.end.as_ref() == Some(&meant.start));
    match (before, after) {
        (_, Some(after)) => Ok(vec![meant.id.clone(), after.id.clone()]),
        (Some(before), None) => Ok(vec![before.id.clone(), meant.id.clone()]),
        (None, None) => Err(StageError::fail(format!(
            "tablet {} is the only one of its table",
            meant.id
        ))),
    }
}

impl Procedure for MergeTablet {
    const KIND: &'static str = "merge_tablet";
    const HOLD_LOCKS: bool = true;
    type Stage = Stage;
    type Env = Master;
    type Output = Option<Vec<String>>;

    fn first(&self) -> Stage {
        if self.pair.is_empty() {
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
        let sources = self.pair.iter().map(|id| stage::tablet_lock(&self.table, id)).collect();
        match stage {
            Stage::Find | Stage::Prepare | Stage::Write => sources,
            Stage::Commit | Stage::Finish => [sources, self.shape.locks()].concat(),
        }
    }

    fn retry() -> RetryPolicy {
        stage::quick_retry()
    }

    fn retry_undo() -> RetryPolicy {
        stage::quick_retry()
    }
}
