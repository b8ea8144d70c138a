//! `InspectTable`: looks whether the files of a table are what the meta table says. It changes
//! nothing, takes its time, and goes on for ever beside a dashboard that somebody may be watching.

use serde::{Deserialize, Serialize};

use super::inspect_tablet::InspectTablet;
use crate::demo::master::Master;
use crate::demo::stage;
use procession::limits::{LockMode, LockNeed};
use procession::procedure::RetryPolicy;
use procession::{Children, Procedure, StageContext, StageError, Step};

/// How many tablets of a table are read at once.
const WIDTH: u32 = 2;

/// Inspects a table. Its output is how many rows it found.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct InspectTable {
    table: String,
    mode: LockMode,
}

/// Its stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stage {
    /// Has each tablet inspected.
    List,
    /// Adds up what was found.
    Sum,
}

impl InspectTable {
    /// Inspects a table beside others that do, or alone.
    #[must_use]
    pub fn new(table: &str, is_alone: bool) -> Self {
        let mode = if is_alone {
            LockMode::Exclusive
        } else {
            LockMode::Shared
        };
        Self {
            table: table.to_owned(),
            mode,
        }
    }
}

impl Procedure for InspectTable {
    const KIND: &'static str = "inspect_table";
    const HOLD_LOCKS: bool = true;
    type Stage = Stage;
    type Env = Master;
    type Output = u64;

    fn first(&self) -> Stage {
        Stage::List
    }

    async fn execute(&mut self, stage: Stage, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        match stage {
            Stage::List => {
                let tablets = stage::tablets(cx, &self.table).await?;
                let each: Vec<_> = tablets.into_iter().map(InspectTablet::new).collect();
                Ok(Step::Spawn {
                    children: Children::of(&each)?.width(WIDTH),
                    then: Stage::Sum,
                })
            }
            Stage::Sum => {
                let mut rows = 0;
                for child in cx.children() {
                    rows += child.output::<u64>()?.unwrap_or(0);
                }
                Ok(Step::Done(rows))
            }
        }
    }

    async fn rollback(&mut self, _: Stage, _: &mut StageContext<'_, Self>) -> Result<(), StageError> {
        Ok(()) // it has changed nothing
    }

    fn locks(&self, _: &Stage) -> Vec<LockNeed> {
        vec![LockNeed {
            mode: self.mode,
            ..stage::table_lock(&self.table)
        }]
    }

    fn retry() -> RetryPolicy {
        stage::quick_retry()
    }
}
