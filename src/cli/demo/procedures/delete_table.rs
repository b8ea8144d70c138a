//! `DeleteTable`: unloads all tablets of a table, and then forgets it. Its files
//! are swept by a family of their own, once nothing names them.

use serde::{Deserialize, Serialize};

use super::{SweepFiles, reshape};
use crate::demo::faults::Lot;
use crate::demo::master::Master;
use crate::demo::meta::{self, TableRow, TableState, TabletRow, TabletState};
use crate::demo::stage;
use procession::limits::LockNeed;
use procession::procedure::RetryPolicy;
use procession::{Procedure, StageContext, StageError, Step};

/// Deletes a table. Its output is how many tablets it had.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DeleteTable {
    lot: Lot,
    table: String,
    before: Option<TableRow>,
}

/// Its stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stage {
    /// Says that it is on its way out, and unloads its tablets.
    Begin,
    /// Forgets it, and has its files swept.
    Finish,
}

impl DeleteTable {
    /// Deletes a table.
    #[must_use]
    pub fn new(lot: Lot, table: &str) -> Self {
        Self {
            lot,
            table: table.to_owned(),
            before: None,
        }
    }

    async fn begin(&mut self, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        let table = stage::table(cx, &self.table).await?;
        stage::must_be(&table, &[TableState::Enabled, TableState::Disabled])?;
        let mut tablets = stage::tablets(cx, &self.table).await?;
        tablets.retain(|tablet| tablet.state == TabletState::Loaded);
        cx.put(
            meta::TABLES,
            &self.table,
            &TableRow {
                state: TableState::Deleting,
                ..table.clone()
            },
        )?;
        self.before = Some(table);
        Ok(Step::Spawn {
            children: reshape::unloads(&self.lot, &tablets)?,
            then: Stage::Finish,
        })
    }

    async fn finish(&mut self, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        let tablets = stage::tablets(cx, &self.table).await?;
        for tablet in &tablets {
            cx.delete(meta::TABLETS, tablet.key());
        }
        cx.delete(meta::QUOTAS, &self.table);
        cx.delete(meta::TABLES, &self.table);
        cx.submit(&SweepFiles::new(tablets.iter().map(TabletRow::file).collect()))?;
        Ok(Step::Done(tablets.len()))
    }
}

impl Procedure for DeleteTable {
    const KIND: &'static str = "delete_table";
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
