//! `SetQuota`: says how much may be read from and written to a table.

use serde::{Deserialize, Serialize};

use crate::demo::faults::Lot;
use crate::demo::master::Master;
use crate::demo::meta::{self, QuotaRow, TableState};
use crate::demo::stage;
use procession::limits::LockNeed;
use procession::procedure::RetryPolicy;
use procession::{Procedure, StageContext, StageError, Step};

/// Sets the quota of a table.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SetQuota {
    lot: Lot,
    table: String,
    quota: QuotaRow,
    before: Option<QuotaRow>,
}

/// Its stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stage {
    /// Remembers how it was.
    Prepare,
    /// Changes it.
    Apply,
}

impl SetQuota {
    /// Sets the quota of a table.
    #[must_use]
    pub fn new(lot: Lot, table: &str, quota: QuotaRow) -> Self {
        Self {
            lot,
            table: table.to_owned(),
            quota,
            before: None,
        }
    }

    async fn prepare(&mut self, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        let table = stage::table(cx, &self.table).await?;
        stage::must_be(&table, &[TableState::Enabled, TableState::Disabled])?;
        self.before = cx.get(meta::QUOTAS, &self.table).await?;
        Ok(Step::Next(Stage::Apply))
    }

    async fn apply(&mut self, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        cx.put(meta::QUOTAS, &self.table, &self.quota)?;
        Ok(Step::Done(()))
    }
}

impl Procedure for SetQuota {
    const KIND: &'static str = "set_quota";
    const HOLD_LOCKS: bool = true;
    type Stage = Stage;
    type Env = Master;
    type Output = ();

    fn first(&self) -> Stage {
        Stage::Prepare
    }

    async fn execute(&mut self, stage: Stage, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        let strike = self.lot.at(Self::KIND, &stage);
        strike.before()?;
        let step = match stage {
            Stage::Prepare => self.prepare(cx).await?,
            Stage::Apply => self.apply(cx).await?,
        };
        strike.after()?;
        Ok(step)
    }

    async fn rollback(&mut self, stage: Stage, cx: &mut StageContext<'_, Self>) -> Result<(), StageError> {
        match stage {
            Stage::Prepare => Ok(()),
            Stage::Apply => {
                match &self.before {
                    Some(before) => cx.put(meta::QUOTAS, &self.table, before)?,
                    None => cx.delete(meta::QUOTAS, &self.table),
                }
                Ok(())
            }
        }
    }

    fn locks(&self, _: &Stage) -> Vec<LockNeed> {
        vec![LockNeed::exclusive(procession::limits::LockPath::of([
            "table",
            &self.table,
            "quota",
        ]))]
    }

    fn retry() -> RetryPolicy {
        stage::quick_retry()
    }
}
