//! `UnloadTablet`: a server gives up a tablet; its file goes to the shared directory.

use serde::{Deserialize, Serialize};

use crate::demo::faults::Lot;
use crate::demo::master::Master;
use crate::demo::meta::{self, TableState, TabletRow, TabletState};
use crate::demo::stage::{self, Target};
use procession::limits::LockNeed;
use procession::procedure::RetryPolicy;
use procession::{Procedure, StageContext, StageError, Step};

/// Unloads a tablet. Its output is the server that served it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct UnloadTablet {
    lot: Lot,
    table: String,
    target: Target,
    before: Option<TabletRow>,
}

/// Its stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stage {
    /// Looks up the tablet that holds the key, and has a child do the rest.
    Find,
    /// Looks whether the tablet is loaded.
    Prepare,
    /// Takes the file from the server, and says so in the meta table.
    Close,
}

impl UnloadTablet {
    /// Unloads a tablet.
    #[must_use]
    pub fn new(lot: Lot, table: &str, target: Target) -> Self {
        Self {
            lot,
            table: table.to_owned(),
            target,
            before: None,
        }
    }

    /// Has a child do the work on the tablet that holds the key now.
    async fn find(&self, cx: &StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        stage::by_child(cx, &self.table, Stage::Find, |tablets| {
            let target = Target::Found(stage::aim(tablets, &self.target)?.id.clone());
            Ok(Self { target, ..self.clone() })
        })
        .await
    }

    async fn prepare(&mut self, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        let Some(tablet) = stage::tablet(cx, &self.table, &self.target).await? else {
            return Ok(Step::Done(None));
        };
        if cx.id().is_root() || self.target.was_sought() {
            stage::must_be(&stage::table(cx, &self.table).await?, &[TableState::Enabled])?;
        }
        if tablet.state != TabletState::Loaded {
            return Err(StageError::fail(format!("tablet {} is offline already", tablet.id)));
        }
        self.before = Some(tablet);
        Ok(Step::Next(Stage::Close))
    }

    async fn close(&mut self, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        let before = self.before()?;
        cx.put(meta::TABLETS, before.key(), &before.offline())?;
        let (file, server) = (before.file(), before.server.clone());
        stage::on_files(cx, move |master| {
            master
                .files()
                .take_back(&file, &server)
                .map_err(|error| stage::of_system(&error))
        })
        .await?;
        Ok(Step::Done(Some(before.server)))
    }

    fn before(&self) -> Result<TabletRow, StageError> {
        self.before
            .clone()
            .ok_or_else(|| StageError::fail("the first stage left no tablet"))
    }
}

impl Procedure for UnloadTablet {
    const KIND: &'static str = "unload_tablet";
    const HOLD_LOCKS: bool = true;
    type Stage = Stage;
    type Env = Master;
    type Output = Option<String>;

    fn first(&self) -> Stage {
        if self.target.is_sought() {
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
            Stage::Close => self.close(cx).await?,
        };
        strike.after()?;
        Ok(step)
    }

    async fn rollback(&mut self, stage: Stage, cx: &mut StageContext<'_, Self>) -> Result<(), StageError> {
        match stage {
            Stage::Find | Stage::Prepare => Ok(()),
            Stage::Close => {
                let before = self.before()?;
                cx.put(meta::TABLETS, before.key(), &before)?;
                stage::on_files(cx, move |master| {
                    stage::undone(master.files().hand_over(&before.file(), &before.server))
                })
                .await
            }
        }
    }

    fn locks(&self, _: &Stage) -> Vec<LockNeed> {
        self.target.locks(&self.table)
    }

    fn retry() -> RetryPolicy {
        stage::quick_retry()
    }

    fn retry_undo() -> RetryPolicy {
        stage::quick_retry()
    }
}
