//! `MoveTablet`: a tablet goes from one server to another, by an unload and a
//! load that are its children. To the same server it is a reload. Its own stages
//! change nothing: there is only its children's work to undo.

use serde::{Deserialize, Serialize};

use super::{LoadTablet, UnloadTablet};
use crate::demo::faults::Lot;
use crate::demo::master::Master;
use crate::demo::meta::{TableState, TabletRow, TabletState};
use crate::demo::rows;
use crate::demo::stage::{self, Target};
use procession::limits::LockNeed;
use procession::procedure::RetryPolicy;
use procession::{Children, Procedure, StageContext, StageError, Step};

/// Moves a tablet. Its output is the server that serves it now.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MoveTablet {
    lot: Lot,
    table: String,
    target: Target,
    to: Option<String>,
    schema: Option<u32>,
    before: Option<TabletRow>,
}

/// Its stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stage {
    /// Looks up the tablet that holds the key, and has a child do the rest.
    Find,
    /// Chooses the server, and unloads.
    Prepare,
    /// Loads on the other server.
    Reload,
    /// Says where it is.
    Finish,
}

impl MoveTablet {
    /// Moves a tablet to this server, or to one that the master chooses.
    #[must_use]
    pub fn new(lot: Lot, table: &str, target: Target, to: Option<&str>) -> Self {
        Self {
            lot,
            table: table.to_owned(),
            target,
            to: to.map(str::to_owned),
            schema: None,
            before: None,
        }
    }

    /// Reloads a tablet where it is, with another schema.
    #[must_use]
    pub(crate) fn reload(lot: Lot, tablet: &TabletRow, schema: u32) -> Self {
        let target = Target::Tablet(tablet.id.clone());
        Self {
            schema: Some(schema),
            ..Self::new(lot, &tablet.table, target, Some(&tablet.server))
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
            return Err(StageError::fail(format!(
                "tablet {} is offline: load it instead",
                tablet.id
            )));
        }
        self.to = Some(self.destination(&tablet, cx.env().files().servers())?);
        let unload = UnloadTablet::new(self.lot.clone(), &self.table, Target::Tablet(tablet.id.clone()));
        self.before = Some(tablet);
        Ok(Step::Spawn {
            children: Children::new().and_compensated(&unload)?,
            then: Stage::Reload,
        })
    }

    fn destination(&self, tablet: &TabletRow, servers: &[String]) -> Result<String, StageError> {
        let others: Vec<&String> = servers.iter().filter(|server| **server != tablet.server).collect();
        match &self.to {
            Some(to) if !servers.contains(to) => Err(StageError::fail(format!("there is no server {to}"))),
            Some(to) if *to == tablet.server && self.schema.is_none() => {
                Err(StageError::fail(format!("tablet {} is on {to} already", tablet.id)))
            }
            Some(to) => Ok(to.clone()),
            None => {
                let draw = crate::demo::draw::Draw::new(rows::digest(tablet.id.as_bytes()))
                    .one(&others)
                    .copied();
                draw.cloned()
                    .ok_or_else(|| StageError::fail("there is no other server"))
            }
        }
    }

    fn reload_on_other(&self) -> Result<Step<Self>, StageError> {
        let before = self
            .before
            .as_ref()
            .ok_or_else(|| StageError::fail("the first stage left no tablet"))?;
        let load = LoadTablet::new(self.lot.clone(), &self.table, Target::Tablet(before.id.clone()))
            .on(self.to.as_deref())
            .with_schema(self.schema.unwrap_or(before.schema));
        Ok(Step::Spawn {
            children: Children::new().and_compensated(&load)?,
            then: Stage::Finish,
        })
    }
}

impl Procedure for MoveTablet {
    const KIND: &'static str = "move_tablet";
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
            Stage::Reload => self.reload_on_other()?,
            Stage::Finish => Step::Done(self.to.clone()),
        };
        strike.after()?;
        Ok(step)
    }

    fn locks(&self, _: &Stage) -> Vec<LockNeed> {
        self.target.locks(&self.table)
    }

    fn retry() -> RetryPolicy {
        stage::quick_retry()
    }
}
