//! `DisableTable`: unloads all tablets of a table.

use serde::{Deserialize, Serialize};

use super::reshape;
use crate::demo::faults::Lot;
use crate::demo::master::Master;
use crate::demo::meta::{self, TableRow, TableState, TabletState};
use crate::demo::stage::{self, Claim};
use crate::{Procedure, RetryPolicy, StageContext, StageError, Step};

/// Disables a table. Its output is how many tablets were unloaded.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DisableTable {
    lot: Lot,
    table: String,
    unloaded: usize,
    looks: u64,
    before: Option<TableRow>,
}

/// Its stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stage {
    /// Holds the table.
    Prepare,
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
            looks: 0,
            before: None,
        }
    }

    async fn prepare(&mut self, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        match stage::claim_table(cx, &mut self.looks, &self.table).await? {
            Claim::Later(until) => Ok(Step::Sleep {
                until,
                then: Stage::Prepare,
            }),
            Claim::Held(()) => Ok(Step::Next(Stage::Begin)),
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
        stage::release(cx).await?;
        Ok(Step::Done(self.unloaded))
    }
}

impl Procedure for DisableTable {
    const KIND: &'static str = "disable_table";
    type Stage = Stage;
    type Env = Master;
    type Output = usize;

    fn first(&self) -> Stage {
        Stage::Prepare
    }

    async fn execute(&mut self, stage: Stage, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        let strike = self.lot.at(Self::KIND, &stage);
        strike.before()?;
        let step = match stage {
            Stage::Prepare => self.prepare(cx).await?,
            Stage::Begin => self.begin(cx).await?,
            Stage::Finish => self.finish(cx).await?,
        };
        strike.after()?;
        Ok(step)
    }

    async fn rollback(&mut self, stage: Stage, cx: &mut StageContext<'_, Self>) -> Result<(), StageError> {
        match stage {
            Stage::Prepare => stage::release(cx).await,
            Stage::Begin => {
                if let Some(before) = &self.before {
                    cx.put(meta::TABLES, &before.name, before)?;
                }
                Ok(())
            }
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
