//! What the stages of several procedures have in common: what they lock and
//! look up, and how they do a tablet's file work off the worker.

use std::io::{self, ErrorKind};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::master::Master;
use super::meta::{self, TableRow, TableState, TabletRow};
use procession::limits::LockNeed;
use procession::procedure::{CallContext, RetryPolicy};
use procession::{Children, Procedure, StageContext, StageError, Step};

/// Which tablet is meant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Target {
    /// This one, and no other: if it is gone, there is nothing to do.
    Tablet(String),
    /// Whichever holds this key when its turn comes.
    Holding(String),
    /// This one, which held a parent's key; if it is gone, the parent looks again.
    Found(String),
}

impl Target {
    /// Tells whether the tablet has yet to be found.
    pub(crate) const fn is_sought(&self) -> bool {
        matches!(self, Self::Holding(_))
    }

    /// Tells whether it was found for a parent that looked for it.
    pub(crate) const fn was_sought(&self) -> bool {
        matches!(self, Self::Found(_))
    }

    /// Lists the lock of the tablet, once it is known which one is meant.
    pub(crate) fn locks(&self, table: &str) -> Vec<LockNeed> {
        match self {
            Self::Tablet(id) | Self::Found(id) => vec![tablet_lock(table, id)],
            Self::Holding(_) => Vec::new(),
        }
    }
}

/// Names the lock of a table with all that is in it.
pub(crate) fn table_lock(table: &str) -> LockNeed {
    LockNeed::exclusive(procession::limits::LockPath::of(["table", table]))
}

/// Names the lock of a tablet; it shares the table with those of the others.
pub(crate) fn tablet_lock(table: &str, id: &str) -> LockNeed {
    LockNeed::exclusive(procession::limits::LockPath::of(["table", table, id]))
}

/// How stages of the demo are tried: a few times in quick succession, since only
/// the file system can refuse them.
pub(crate) fn quick_retry() -> RetryPolicy {
    RetryPolicy::default()
        .base(Duration::from_millis(20))
        .max(Duration::from_secs(1))
}

/// Turns an error of the system into one of the stage: a missing file stays missing.
pub(crate) fn of_system(error: &io::Error) -> StageError {
    if error.kind() == ErrorKind::NotFound {
        StageError::fail(error)
    } else {
        StageError::retry(error)
    }
}

/// Turns the outcome of an undo's file work into the undo's own: what is in
/// neither place was missing before, and is not the undo's to bring back.
pub(crate) fn undone(outcome: io::Result<()>) -> Result<(), StageError> {
    match outcome {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(StageError::retry(error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Does work on files on a thread of its own.
pub(crate) async fn on_files<P, T, F>(cx: &StageContext<'_, P>, work: F) -> Result<T, StageError>
where
    P: Procedure<Env = Master>,
    T: Send + 'static,
    F: FnOnce(&Master) -> Result<T, StageError> + Send + 'static,
{
    let master = cx.env().clone();
    cx.blocking(move || work(&master)).await?
}

/// Reads a table, which must be there.
pub(crate) async fn table(cx: &CallContext<'_>, name: &str) -> Result<TableRow, StageError> {
    cx.get(meta::TABLES, name)
        .await?
        .ok_or_else(|| StageError::fail(format!("there is no table {name}")))
}

/// Refuses a table that is in none of these states.
pub(crate) fn must_be(table: &TableRow, states: &[TableState]) -> Result<(), StageError> {
    if states.contains(&table.state) {
        Ok(())
    } else {
        Err(StageError::fail(format!(
            "table {} is {}",
            table.name,
            table.state.word()
        )))
    }
}

/// Reads the tablets of a table, in the order of their keys.
pub(crate) async fn tablets(cx: &CallContext<'_>, table: &str) -> Result<Vec<TabletRow>, StageError> {
    let rows: Vec<(Vec<u8>, TabletRow)> = cx.scan(meta::TABLETS, meta::tablet_key(table, "")).await?;
    let mut tablets: Vec<TabletRow> = rows.into_iter().map(|(_, tablet)| tablet).collect();
    tablets.sort_by(|a, b| a.start.cmp(&b.start));
    Ok(tablets)
}

/// Finds the tablet that is meant among those of its table.
pub(crate) fn aim<'a>(tablets: &'a [TabletRow], target: &Target) -> Result<&'a TabletRow, StageError> {
    let found = |test: &dyn Fn(&TabletRow) -> bool| tablets.iter().find(|tablet| test(tablet));
    match target {
        Target::Tablet(id) | Target::Found(id) => found(&|tablet| tablet.id == *id).ok_or_else(|| gone(id)),
        Target::Holding(key) => found(&|tablet| tablet.holds(key))
            .ok_or_else(|| StageError::fail(format!("no tablet holds the key {key}: there is no such table"))),
    }
}

fn gone(id: &str) -> StageError {
    StageError::fail(format!("tablet {id} is gone: it was split, merged or deleted"))
}

/// Reads the tablet that is meant, which is locked by now. None is one that is
/// gone, and whose parent looks again.
pub(crate) async fn tablet(
    cx: &CallContext<'_>,
    table: &str,
    target: &Target,
) -> Result<Option<TabletRow>, StageError> {
    match target {
        Target::Tablet(id) => {
            let tablet = cx.get(meta::TABLETS, meta::tablet_key(table, id)).await?;
            tablet.map(Some).ok_or_else(|| gone(id))
        }
        Target::Found(id) => Ok(cx.get(meta::TABLETS, meta::tablet_key(table, id)).await?),
        Target::Holding(_) => Err(StageError::fail("the tablet was not looked up")),
    }
}

/// Looks up what is meant, and has a child do the work there.
///
/// Which tablet holds a key changes until that tablet is locked, and a lock that
/// is held for life cannot be exchanged for another. So the child holds it, from
/// its birth to its end. It ends without output if the tablet is gone when its
/// turn comes, and this same stage looks again: whoever waits for a lock here
/// holds none, and no two wait for each other.
///
/// What the child did stands once it has ended, also if its parent is aborted or fails
/// between the child's end and its own: the child's locks are free by then, others build
/// on what it left, and what it made superfluous is being swept. Taking it back would
/// bring back tablets whose files are gone.
pub(crate) async fn by_child<P, T>(
    cx: &CallContext<'_>,
    table: &str,
    again: P::Stage,
    child_for: impl FnOnce(&[TabletRow]) -> Result<P, StageError>,
) -> Result<Step<P>, StageError>
where
    P: Procedure<Output = Option<T>>,
    T: Serialize + DeserializeOwned + 'static,
{
    if let Some(child) = cx.children().first()
        && let Some(Some(output)) = child.output::<Option<T>>()?
    {
        return Ok(Step::Done(Some(output)));
    }
    let child = child_for(&tablets(cx, table).await?)?;
    Ok(Step::Spawn {
        children: Children::new().and(&child)?,
        then: again,
    })
}
