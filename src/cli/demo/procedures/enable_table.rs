//! `EnableTable`: loads all tablets of a disabled table, each where it was last.

use serde::{Deserialize, Serialize};

use super::reshape;
use crate::demo::faults::Lot;
use crate::demo::master::Master;
use crate::demo::meta::{self, TableRow, TableState};
use crate::demo::stage;
use procession::limits::LockNeed;
use procession::procedure::RetryPolicy;
use procession::{Procedure, StageContext, StageError, Step};

/// Enables a table. Its output is how many tablets were loaded.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct EnableTable {
    lot: Lot,
    table: String,
    loaded: usize,
    before: Option<TableRow>,
}

/// Its stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stage {
    /// Says that it is being enabled, and loads its tablets.
    Begin,
    /// Says that it is enabled.
    Finish,
}

impl EnableTable {
    /// Enables a table.
    #[must_use]
    pub fn new(lot: Lot, table: &str) -> Self {
        Self {
            lot,
            table: table.to_owned(),
            loaded: 0,
            before: None,
        }
    }

    async fn begin(&mut self, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        let table = stage::table(cx, &self.table).await?;
        stage::must_be(&table, &[TableState::Disabled])?;
        let tablets = stage::tablets(cx, &self.table).await?;
        let children = reshape::loads(&self.lot, &tablets, table.schema)?;
        cx.put(
            meta::TABLES,
            &self.table,
            &TableRow {
                state: TableState::Enabling,
                ..table.clone()
            },
        )?;
        self.before = Some(table);
        self.loaded = tablets.len();
        Ok(Step::Spawn {
            children,
            then: Stage::Finish,
        })
    }

    async fn finish(&mut self, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        let table = stage::table(cx, &self.table).await?;
        cx.put(
            meta::TABLES,
            &self.table,
            &TableRow {
                state: TableState::Enabled,
                ..table
            },
        )?;
        Ok(Step::Done(self.loaded))
    }
}

impl Procedure for EnableTable {
    const KIND: &'static str = "enable_table";
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
