//! `CreateTable`: writes the files of a new table, names them in the meta table,
//! and loads them all.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::reshape::Reshape;
use crate::demo::faults::Lot;
use crate::demo::input::Share;
use crate::demo::master::Master;
use crate::demo::meta::{self, TableRow, TableState};
use crate::demo::rows;
use crate::demo::stage;
use procession::limits::LockNeed;
use procession::procedure::RetryPolicy;
use procession::{Procedure, StageContext, StageError, Step};

/// Creates a table with a share of the input's rows. Its output is the names of
/// its tablets: as many as asked for, or fewer where the keys allow no more.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CreateTable {
    lot: Lot,
    table: String,
    share: Share,
    tablets: u32,
    shape: Reshape,
}

/// Its stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stage {
    /// Looks whether the name is free.
    Prepare,
    /// Writes the files.
    Write,
    /// Names table and tablets in the meta table, and loads the tablets.
    Commit,
    /// Enables the table.
    Finish,
}

impl CreateTable {
    /// Creates a table of so many tablets.
    #[must_use]
    pub fn new(lot: Lot, table: &str, share: Share, tablets: u32) -> Self {
        Self {
            lot,
            table: table.to_owned(),
            share,
            tablets,
            shape: Reshape::default(),
        }
    }

    async fn prepare(&mut self, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        let plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        if self.table.is_empty() || !self.table.chars().all(plain) {
            return Err(StageError::fail(format!(
                "\"{}\" is no name for a table: use letters, digits and _",
                self.table
            )));
        }
        if cx.get::<TableRow>(meta::TABLES, &self.table).await?.is_some() {
            return Err(StageError::fail(format!("there is a table {} already", self.table)));
        }
        let pieces = usize::try_from(self.tablets).unwrap_or(1).max(1);
        self.shape = Reshape::plan(cx, &self.table, 1, Vec::new(), pieces);
        Ok(Step::Next(Stage::Write))
    }

    async fn write(&mut self, cx: &StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        let (shape, share) = (self.shape.clone(), self.share);
        let pieces = usize::try_from(self.tablets).unwrap_or(1);
        let written = stage::on_files(cx, move |master| {
            let lines = master.input().share(share);
            let pieces = rows::divide(&lines, pieces, "", None);
            let servers = master.files().servers();
            let turn = usize::try_from(share.index)
                .unwrap_or(0)
                .checked_rem(servers.len())
                .unwrap_or(0);
            shape.write_pieces(master, &pieces, servers.get(turn).map_or("", String::as_str))
        });
        self.shape.written(written.await?);
        Ok(Step::Next(Stage::Commit))
    }

    fn row(&self, state: TableState) -> TableRow {
        TableRow {
            name: self.table.clone(),
            state,
            schema: 1,
            properties: BTreeMap::new(),
        }
    }
}

impl Procedure for CreateTable {
    const KIND: &'static str = "create_table";
    const HOLD_LOCKS: bool = true;
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
            Stage::Write => self.write(cx).await?,
            Stage::Commit => {
                cx.put(meta::TABLES, &self.table, &self.row(TableState::Creating))?;
                self.shape.commit(cx)?;
                Step::Spawn {
                    children: self.shape.loads(&self.lot)?,
                    then: Stage::Finish,
                }
            }
            Stage::Finish => {
                cx.put(meta::TABLES, &self.table, &self.row(TableState::Enabled))?;
                Step::Done(self.shape.ids())
            }
        };
        strike.after()?;
        Ok(step)
    }

    async fn rollback(&mut self, stage: Stage, cx: &mut StageContext<'_, Self>) -> Result<(), StageError> {
        match stage {
            Stage::Write => self.shape.undo_write(cx).await,
            Stage::Commit => {
                cx.delete(meta::TABLES, &self.table);
                self.shape.undo_commit(cx)
            }
            Stage::Prepare | Stage::Finish => Ok(()),
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
