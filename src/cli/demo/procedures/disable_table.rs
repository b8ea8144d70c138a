//! `DisableTable`: unloads all tablets of a table.

use serde::{Deserialize, Serialize};

use super::reshape;
use crate::demo::faults::Lot;
use crate::demo::master::Master;
use crate::demo::meta::{self, TableRow, TableState, TabletState};
use crate::demo::stage;
use procession::limits::LockNeed;
use procession::procedure::RetryPolicy;
use procession::{Procedure, StageContext, StageError, Step};

/// Disables a table. Its output is how many tablets were unloaded.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DisableTable {
    lot: Lot,
    table: String,
    unloaded: usize,
    before: Option<TableRow>,
}

/// Its stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stage {
    /// Says that it is being disabled, and unloads its tablets.
    Begin,
    /// Says that it is disabled.
    Finish,
}

impl DisableTable {
    /// Disables a table.
    #[must_use]
    pub fn new(lot: Lot, table: &str) -> Self {
        Self {
            lot,
            table: table.to_owned(),
            unloaded: 0,
            before: None,
        }
    }

    async fn begin(&mut self, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        let table = stage::table(cx, &self.table).await?;
        stage::must_be(&table, &[TableState::Enabled])?;
        let mut tablets = stage::tablets(cx, &self.table).await?;
        tablets.retain(|tablet| tablet.state == TabletState::Loaded);
        cx.put(
            meta::TABLES,
            &self.table,
            &TableRow {
                state: TableState::Disabling,
                ..table.clone()
            },
        )?;
        self.before = Some(table);
        self.unloaded = tablets.len();
        Ok(Step::Spawn {
            children: reshape::unloads(&self.lot, &tablets)?,
            then: Stage::Finish,
        })
    }

    async fn finish(&mut self, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        let table = stage::table(cx, &self.table).await?;
        cx.put(
            meta::TABLES,
            &self.table,
            &TableRow {
                state: TableState::Disabled,
                ..table
            },
        )?;
        Ok(Step::Done(self.unloaded))
    }
}

impl Procedure for DisableTable {
    const KIND: &'static str = "disable_table";
    const HOLD_LOCKS: bool = true;
    type Stage = Stage;
    type Env = Master;
    type Output = usize;

    fn first(&self) -> Stage {
        Stage::Begin
    }

    async fn execute(&mut self, stage: Stage, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        let strike = self.lot.at(Self::KIND, &stage);
        strike.before()?;
        let step = match stage {
            Stage::Begin => self.begin(cx).await?,
            Stage::Finish => self.finish(cx).await?,
        };
        strike.after()?;
        Ok(step)
    }

    async fn rollback(&mut self, stage: Stage, cx: &mut StageContext<'_, Self>) -> Result<(), StageError> {
        match stage {
            Stage::Begin => {
                if let Some(before) = &self.before {
                    cx.put(meta::TABLES, &before.name, before)?;
                }
                Ok(())
            }
            Stage::Finish => Ok(()),
        }
    }

    fn locks(&self, _: &Stage) -> Vec<LockNeed> {
        vec![stage::table_lock(&self.table)]
    }

    fn retry() -> RetryPolicy {
        stage::quick_retry()
    }

    fn retry_undo() -> RetryPolicy {
        stage::quick_retry()
    }
}
