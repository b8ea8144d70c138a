//! What goes on while somebody watches after the workload has ended: one inspection after the other,
//! so that there is something to see.

use std::time::Duration;

use crate::demo::error::DemoError;
use crate::demo::meta::{self, TableRow};
use crate::demo::pace;
use crate::demo::procedures::InspectTable;
use procession::errors::SubmitError;
use procession::{Executor, ProcedureId};

/// How long between two inspections.
const INSPECT_EVERY: Duration = Duration::from_secs(1);
/// How many families may be unfinished before no more inspections begin.
const FAMILIES_MAX: usize = 12;
/// Every so many inspections, one wants its table for itself, and others wait for it.
const ALONE_EVERY: usize = 5;

/// Inspects the tables in turn, for ever.
///
/// # Errors
///
/// [`DemoError`] if the engine takes no more.
pub(super) async fn inspect(executor: &Executor) -> Result<std::convert::Infallible, DemoError> {
    let rows: Vec<(Vec<u8>, TableRow)> = executor.scan(meta::TABLES, "").await?;
    let names = rows.iter().map(|(_, table)| table.name.as_str());
    let turns = names.cycle().enumerate();
    for (turn, table) in turns {
        submit(executor, &InspectTable::new(table, turn % ALONE_EVERY == 0)).await?;
        pace::pause(INSPECT_EVERY).await;
        while executor.snapshot().await?.live_families > FAMILIES_MAX {
            pace::pause(INSPECT_EVERY).await;
        }
    }
    std::future::pending().await // there is no table
}

async fn submit(executor: &Executor, inspection: &InspectTable) -> Result<ProcedureId, DemoError> {
    executor
        .submit(inspection.clone())
        .await
        .map(|handle| handle.id())
        .map_err(|why: SubmitError| DemoError::Submit {
            key: "an inspection".to_owned(),
            why,
        })
}
