//! `InspectTablet`: waits for its turn, as a server in use would let it, then reads the tablet's file.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::demo::draw::Draw;
use crate::demo::master::Master;
use crate::demo::meta::TabletRow;
use crate::demo::{rows, stage};
use procession::procedure::RetryPolicy;
use procession::{Procedure, StageContext, StageError, Step};

/// Longest time that a server lets it wait, in milliseconds.
const TURN_MAX: usize = 4_000;
/// Share of the first attempts at which a server is too busy to answer.
const BUSY: f64 = 0.15;

/// Inspects a tablet. Its output is how many rows its file has.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct InspectTablet {
    tablet: TabletRow,
}

/// Its stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stage {
    /// Asks the server for a turn.
    Ask,
    /// Reads the file.
    Read,
}

impl InspectTablet {
    /// Inspects this tablet.
    pub(super) fn new(tablet: TabletRow) -> Self {
        Self { tablet }
    }

    async fn read(&self, cx: &StageContext<'_, Self>) -> Result<u64, StageError> {
        let tablet = self.tablet.clone();
        let (rows, digest) = stage::on_files(cx, move |master| {
            let text = std::fs::read_to_string(master.files().place_of(&tablet));
            let text = text.map_err(|error| stage::of_system(&error))?;
            Ok((text.lines().count() as u64, rows::digest(text.as_bytes())))
        })
        .await?;
        if digest == self.tablet.digest {
            return Ok(rows);
        }
        let (id, expected) = (&self.tablet.id, self.tablet.rows);
        Err(StageError::fail(format!(
            "the file of tablet {id} is another than the meta table says: it has {rows} rows of {expected}"
        )))
    }
}

impl Procedure for InspectTablet {
    const KIND: &'static str = "inspect_tablet";
    type Stage = Stage;
    type Env = Master;
    type Output = u64;

    fn first(&self) -> Stage {
        Stage::Ask
    }

    async fn execute(&mut self, stage: Stage, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        let mut draw = Draw::of(cx.id().family, u64::from(cx.id().member));
        match stage {
            Stage::Ask => {
                let turn = Duration::from_millis(draw.below(TURN_MAX) as u64);
                Ok(Step::Sleep {
                    until: cx.now().after(turn),
                    then: Stage::Read,
                })
            }
            Stage::Read if cx.attempt() == 1 && draw.chance(BUSY) => {
                let server = &self.tablet.server;
                Err(StageError::retry(format!("server {server} is too busy to answer")))
            }
            Stage::Read => Ok(Step::Done(self.read(cx).await?)),
        }
    }

    async fn rollback(&mut self, _: Stage, _: &mut StageContext<'_, Self>) -> Result<(), StageError> {
        Ok(()) // it has changed nothing
    }

    fn retry() -> RetryPolicy {
        RetryPolicy::default().base(Duration::from_secs(1))
    }
}
