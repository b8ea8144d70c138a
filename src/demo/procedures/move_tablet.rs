//! `MoveTablet`: a tablet goes from one server to another, by an unload and a
//! load that are its children. To the same server it is a reload.

use serde::{Deserialize, Serialize};

use super::{LoadTablet, UnloadTablet};
use crate::demo::faults::Lot;
use crate::demo::master::Master;
use crate::demo::meta::{TableState, TabletRow, TabletState};
use crate::demo::rows;
use crate::demo::stage::{self, Claim, Target};
use crate::{Children, Procedure, RetryPolicy, StageContext, StageError, Step};

/// Moves a tablet. Its output is the server that serves it now.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MoveTablet {
    lot: Lot,
    table: String,
    target: Target,
    to: Option<String>,
    schema: Option<u32>,
    looks: u64,
    before: Option<TabletRow>,
}

/// Its stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stage {
    /// Holds the tablet, chooses the server, and unloads.
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
            looks: 0,
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
        if cx.id().is_root() {
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
            Stage::Reload => self.reload_on_other()?,
            Stage::Finish => {
                stage::release(cx).await?;
                Step::Done(self.to.clone().unwrap_or_default())
            }
        };
        strike.after()?;
        Ok(step)
    }

    async fn rollback(&mut self, stage: Stage, cx: &mut StageContext<'_, Self>) -> Result<(), StageError> {
        match stage {
            Stage::Prepare => stage::release(cx).await,
            Stage::Reload | Stage::Finish => Ok(()),
        }
    }

    fn retry() -> RetryPolicy {
        stage::quick_retry()
    }
}
