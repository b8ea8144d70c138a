//! `LoadTablet`: a server takes an offline tablet's file and serves it.

use serde::{Deserialize, Serialize};

use crate::demo::faults::Lot;
use crate::demo::master::Master;
use crate::demo::meta::{self, TableState, TabletRow, TabletState};
use crate::demo::rows;
use crate::demo::stage::{self, Target};
use procession::limits::LockNeed;
use procession::procedure::RetryPolicy;
use procession::{Procedure, StageContext, StageError, Step};

/// Loads a tablet. Its output is the server that serves it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LoadTablet {
    lot: Lot,
    table: String,
    target: Target,
    server: Option<String>,
    schema: Option<u32>,
    before: Option<TabletRow>,
}

/// Its stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stage {
    /// Looks up the tablet that holds the key, and has a child do the rest.
    Find,
    /// Looks whether the tablet is offline.
    Prepare,
    /// Checks the file, gives it to the server, and says so in the meta table.
    Open,
}

impl LoadTablet {
    /// Loads a tablet on the server that had it last.
    #[must_use]
    pub fn new(lot: Lot, table: &str, target: Target) -> Self {
        Self {
            lot,
            table: table.to_owned(),
            target,
            server: None,
            schema: None,
            before: None,
        }
    }

    /// Names the server.
    #[must_use]
    pub fn on(mut self, server: Option<&str>) -> Self {
        self.server = server.map(str::to_owned);
        self
    }

    /// Loads it with this schema; else with its table's.
    #[must_use]
    pub(crate) fn with_schema(mut self, schema: u32) -> Self {
        self.schema = Some(schema);
        self
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
        let table = stage::table(cx, &self.table).await?;
        if cx.id().is_root() || self.target.was_sought() {
            stage::must_be(&table, &[TableState::Enabled])?;
        }
        if tablet.state != TabletState::Offline {
            return Err(StageError::fail(format!(
                "tablet {} is loaded already, on {}",
                tablet.id, tablet.server
            )));
        }
        let server = self.server.get_or_insert_with(|| tablet.server.clone());
        if !cx.env().files().servers().contains(server) {
            return Err(StageError::fail(format!("there is no server {server}")));
        }
        self.schema.get_or_insert(table.schema);
        self.before = Some(tablet);
        Ok(Step::Next(Stage::Open))
    }

    async fn open(&mut self, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        let (before, loaded) = self.before_and_after()?;
        let (file, server) = (before.file(), loaded.server.clone());
        stage::on_files(cx, move |master| {
            check(master, &before, &server)?;
            master
                .files()
                .hand_over(&file, &server)
                .map_err(|error| stage::of_system(&error))
        })
        .await?;
        cx.put(meta::TABLETS, loaded.key(), &loaded)?;
        Ok(Step::Done(Some(loaded.server)))
    }

    fn before_and_after(&self) -> Result<(TabletRow, TabletRow), StageError> {
        let before = self
            .before
            .clone()
            .ok_or_else(|| StageError::fail("the first stage left no tablet"))?;
        let loaded = TabletRow {
            state: TabletState::Loaded,
            server: self.server.clone().unwrap_or_else(|| before.server.clone()),
            schema: self.schema.unwrap_or(before.schema),
            ..before.clone()
        };
        Ok((before, loaded))
    }
}

/// Refuses a file that is not what the meta table says; it is in one of two
/// places, since an earlier run of the stage may have moved it.
fn check(master: &Master, tablet: &TabletRow, server: &str) -> Result<(), StageError> {
    let files = master.files();
    let places = [files.on_server(server, &tablet.file()), files.in_shared(&tablet.file())];
    let place = places
        .iter()
        .find(|place| place.exists())
        .ok_or_else(|| StageError::fail(format!("the file {} of tablet {} is missing", tablet.file(), tablet.id)))?;
    let bytes = std::fs::read(place).map_err(|error| stage::of_system(&error))?;
    if rows::digest(&bytes) == tablet.digest {
        Ok(())
    } else {
        Err(StageError::fail(format!(
            "the file {} has changed since it was written",
            place.display()
        )))
    }
}

impl Procedure for LoadTablet {
    const KIND: &'static str = "load_tablet";
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
            Stage::Open => self.open(cx).await?,
        };
        strike.after()?;
        Ok(step)
    }

    async fn rollback(&mut self, stage: Stage, cx: &mut StageContext<'_, Self>) -> Result<(), StageError> {
        match stage {
            Stage::Find | Stage::Prepare => Ok(()),
            Stage::Open => {
                let (before, loaded) = self.before_and_after()?;
                cx.put(meta::TABLETS, before.key(), &before)?;
                stage::on_files(cx, move |master| {
                    stage::undone(master.files().take_back(&before.file(), &loaded.server))
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
