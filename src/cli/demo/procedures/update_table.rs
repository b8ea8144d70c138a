//! `UpdateTable`: sets a property of a table, which raises its schema. Each loaded
//! tablet is reloaded with the new schema by a child; all of them change, or none.

use serde::{Deserialize, Serialize};

use super::{MoveTablet, reshape};
use crate::demo::faults::Lot;
use crate::demo::master::Master;
use crate::demo::meta::{self, TableRow, TableState, TabletRow, TabletState};
use crate::demo::stage;
use procession::Children;
use procession::limits::LockNeed;
use procession::procedure::RetryPolicy;
use procession::{Procedure, StageContext, StageError, Step};

/// Updates a table. Its output is its new schema.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct UpdateTable {
    lot: Lot,
    table: String,
    property: String,
    value: String,
    before: Option<TableRow>,
}

/// Its stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stage {
    /// Says that it is being updated, and reloads its tablets.
    Begin,
    /// Sets the property, and the schema of what is offline.
    Finish,
}

impl UpdateTable {
    /// Sets a property of a table.
    #[must_use]
    pub fn new(lot: Lot, table: &str, property: &str, value: &str) -> Self {
        let (property, value) = (property.to_owned(), value.to_owned());
        Self {
            lot,
            table: table.to_owned(),
            property,
            value,
            before: None,
        }
    }

    async fn begin(&mut self, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        let table = stage::table(cx, &self.table).await?;
        stage::must_be(&table, &[TableState::Enabled, TableState::Disabled])?;
        let mut tablets = stage::tablets(cx, &self.table).await?;
        tablets.retain(|tablet| tablet.state == TabletState::Loaded);
        let mut children = Children::new();
        for (place, tablet) in tablets.iter().enumerate() {
            let lot = self.lot.of_child(place, tablets.len());
            children = children.and_compensated(&MoveTablet::reload(lot, tablet, table.schema + 1))?;
        }
        cx.put(
            meta::TABLES,
            &self.table,
            &TableRow {
                state: TableState::Updating,
                ..table.clone()
            },
        )?;
        self.before = Some(table);
        Ok(Step::Spawn {
            children: children.width(reshape::WIDTH),
            then: Stage::Finish,
        })
    }

    async fn finish(&mut self, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        let mut table = self
            .before
            .clone()
            .ok_or_else(|| StageError::fail("the second stage left no table"))?;
        table.schema += 1;
        table.properties.insert(self.property.clone(), self.value.clone());
        for tablet in stage::tablets(cx, &self.table).await? {
            if tablet.state == TabletState::Offline {
                cx.put(
                    meta::TABLETS,
                    tablet.key(),
                    &TabletRow {
                        schema: table.schema,
                        ..tablet
                    },
                )?;
            }
        }
        cx.put(meta::TABLES, &self.table, &table)?;
        Ok(Step::Done(table.schema))
    }
}

impl Procedure for UpdateTable {
    const KIND: &'static str = "update_table";
    const HOLD_LOCKS: bool = true;
    type Stage = Stage;
    type Env = Master;
    type Output = u32;

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
