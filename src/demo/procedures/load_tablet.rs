//! `LoadTablet`: a server takes an offline tablet's file and serves it.

use serde::{Deserialize, Serialize};

use crate::demo::faults::Lot;
use crate::demo::master::Master;
use crate::demo::meta::{self, TableState, TabletRow, TabletState};
use crate::demo::rows;
use crate::demo::stage::{self, Claim, Target};
use crate::{Procedure, RetryPolicy, StageContext, StageError, Step};

/// Loads a tablet. Its output is the server that serves it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LoadTablet {
    lot: Lot,
    table: String,
    target: Target,
    server: Option<String>,
    schema: Option<u32>,
    looks: u64,
    before: Option<TabletRow>,
}

/// Its stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stage {
    /// Holds the tablet, and looks whether it is offline.
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
            looks: 0,
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

    async fn prepare(&mut self, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        let tablet = match stage::claim_tablet(cx, &mut self.looks, &self.table, &self.target).await? {
            Claim::Later(until) => {
                return Ok(Step::Sleep {
                    until,
                    then: Stage::Prepare,
                });
            }
            Claim::Held(tablet) => tablet,
        };
        let table = stage::table(cx, &self.table).await?;
        if cx.id().is_root() {
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
        stage::release(cx).await?;
        Ok(Step::Done(loaded.server))
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
    type Stage = Stage;
    type Env = Master;
    type Output = String;

    fn first(&self) -> Stage {
        Stage::Prepare
    }

    async fn execute(&mut self, stage: Stage, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        let strike = self.lot.at(Self::KIND, &stage);
        strike.before()?;
        let step = match stage {
            Stage::Prepare => self.prepare(cx).await?,
            Stage::Open => self.open(cx).await?,
        };
        strike.after()?;
        Ok(step)
    }

    async fn rollback(&mut self, stage: Stage, cx: &mut StageContext<'_, Self>) -> Result<(), StageError> {
        match stage {
            Stage::Prepare => stage::release(cx).await,
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

    fn retry() -> RetryPolicy {
        stage::quick_retry()
    }

    fn retry_undo() -> RetryPolicy {
        stage::quick_retry()
    }
}
