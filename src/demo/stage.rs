//! What the stages of several procedures have in common: to find and hold what
//! they work on, and to do a tablet's file work off the worker.

use std::io::{self, ErrorKind};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::guards::{self, Taken, Want};
use super::master::Master;
use super::meta::{self, TableRow, TableState, TabletRow};
use crate::{Procedure, RetryPolicy, StageContext, StageError, Timestamp};

/// The first wait for something that another procedure holds; each further one
/// is this much longer, up to twenty times.
const WAIT_MS: u64 = 5;
/// How often a procedure looks again before it gives up: about a minute in all,
/// far longer than any procedure holds a thing.
const LOOKS_MAX: u64 = 600;
/// How often a tablet is chosen anew because it was gone once held.
const CHOICES: usize = 16;

/// Which tablet is meant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Target {
    /// This one, and no other: if it is gone, there is nothing to do.
    Tablet(String),
    /// Whichever holds this key when its turn comes.
    Holding(String),
}

/// What came of the wish to work on something.
pub(crate) enum Claim<T> {
    /// It is held, and this is how it stands.
    Held(T),
    /// Another has it; look again then.
    Later(Timestamp),
}

/// How stages of the demo are tried: a few times in quick succession, since only
/// the file system can refuse them.
pub(crate) fn quick_retry() -> RetryPolicy {
    RetryPolicy {
        attempts: 3,
        base: Duration::from_millis(20),
        factor: 2,
        max: Duration::from_secs(1),
    }
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
pub(crate) async fn table<P: Procedure>(cx: &StageContext<'_, P>, name: &str) -> Result<TableRow, StageError> {
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
pub(crate) async fn tablets<P: Procedure>(cx: &StageContext<'_, P>, table: &str) -> Result<Vec<TabletRow>, StageError> {
    let rows: Vec<(Vec<u8>, TabletRow)> = cx.scan(meta::TABLETS, meta::tablet_key(table, "")).await?;
    let mut tablets: Vec<TabletRow> = rows.into_iter().map(|(_, tablet)| tablet).collect();
    tablets.sort_by(|a, b| a.start.cmp(&b.start));
    Ok(tablets)
}

/// Finds the tablet that is meant among those of its table.
pub(crate) fn aim<'a>(tablets: &'a [TabletRow], target: &Target) -> Result<&'a TabletRow, StageError> {
    let found = |test: &dyn Fn(&TabletRow) -> bool| tablets.iter().find(|tablet| test(tablet));
    match target {
        Target::Tablet(id) => found(&|tablet| tablet.id == *id).ok_or_else(|| gone(id)),
        Target::Holding(key) => found(&|tablet| tablet.holds(key))
            .ok_or_else(|| StageError::fail(format!("no tablet holds the key {key}: there is no such table"))),
    }
}

fn gone(id: &str) -> StageError {
    StageError::fail(format!("tablet {id} is gone: it was split, merged or deleted"))
}

/// Holds a table, alone, for the life of a root; a child is inside its parent's hold.
pub(crate) async fn claim_table<P>(
    cx: &mut StageContext<'_, P>,
    looks: &mut u64,
    name: &str,
) -> Result<Claim<()>, StageError>
where
    P: Procedure<Env = Master>,
{
    claim(cx, looks, &[Want::exclusive(guards::table(name))]).await
}

/// Holds these things for the life of a root; a child is inside its parent's hold.
pub(crate) async fn claim<P>(
    cx: &mut StageContext<'_, P>,
    looks: &mut u64,
    wants: &[Want],
) -> Result<Claim<()>, StageError>
where
    P: Procedure<Env = Master>,
{
    if !cx.id().is_root() {
        return Ok(Claim::Held(()));
    }
    let guards = cx.env().guards().clone();
    match guards.take(cx, wants).await? {
        Taken::Held => {
            guards.persist(cx).await?;
            Ok(Claim::Held(()))
        }
        Taken::Busy(holder) => later(cx, looks, &format!("procedure {holder} holds it")),
    }
}

/// Holds the tablets that `choose` picks from those of the table. What was
/// picked is looked at again once it is held: until then it may have changed.
pub(crate) async fn claim_tablets<P>(
    cx: &mut StageContext<'_, P>,
    looks: &mut u64,
    table: &str,
    choose: impl Fn(&[TabletRow]) -> Result<Vec<TabletRow>, StageError>,
) -> Result<Claim<Vec<TabletRow>>, StageError>
where
    P: Procedure<Env = Master>,
{
    let guards = cx.env().guards().clone();
    for _ in 0..CHOICES {
        let chosen = choose(&tablets(cx, table).await?)?;
        let mut wants = vec![Want::shared(guards::table(table))];
        wants.extend(chosen.iter().map(|tablet| Want::exclusive(guards::tablet(&tablet.id))));
        if let Taken::Busy(holder) = guards.take(cx, &wants).await? {
            return later(cx, looks, &format!("procedure {holder} holds it"));
        }
        if unchanged(cx, &chosen).await? {
            guards.persist(cx).await?;
            return Ok(Claim::Held(chosen));
        }
        guards.put_back(cx).await?;
    }
    later(cx, looks, "its tablets keep changing")
}

/// Tells whether all of these stand in the meta table as they are here.
async fn unchanged<P: Procedure>(cx: &StageContext<'_, P>, chosen: &[TabletRow]) -> Result<bool, StageError> {
    for tablet in chosen {
        if cx.get::<TabletRow>(meta::TABLETS, tablet.key()).await?.as_ref() != Some(tablet) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Holds the tablet that is meant; a child is inside its parent's hold.
pub(crate) async fn claim_tablet<P>(
    cx: &mut StageContext<'_, P>,
    looks: &mut u64,
    table: &str,
    target: &Target,
) -> Result<Claim<TabletRow>, StageError>
where
    P: Procedure<Env = Master>,
{
    if let (Target::Tablet(id), false) = (target, cx.id().is_root()) {
        let tablet = cx.get(meta::TABLETS, meta::tablet_key(table, id)).await?;
        return Ok(Claim::Held(tablet.ok_or_else(|| gone(id))?));
    }
    let claim = claim_tablets(cx, looks, table, |tablets| Ok(vec![aim(tablets, target)?.clone()])).await?;
    match claim {
        Claim::Later(until) => Ok(Claim::Later(until)),
        Claim::Held(chosen) => match chosen.into_iter().next() {
            Some(tablet) => Ok(Claim::Held(tablet)),
            None => Err(StageError::fail("no tablet was chosen")),
        },
    }
}

/// Says when to look again, or gives up.
fn later<P: Procedure, T>(cx: &StageContext<'_, P>, looks: &mut u64, why: &str) -> Result<Claim<T>, StageError> {
    *looks += 1;
    if *looks > LOOKS_MAX {
        return Err(StageError::fail(format!(
            "busy for too long: {why}; submit it again later"
        )));
    }
    let wait = Duration::from_millis(WAIT_MS * (*looks).min(20));
    Ok(Claim::Later(cx.now().after(wait)))
}

/// Lets go of all that a root holds, with this stage's commit.
pub(crate) async fn release<P>(cx: &mut StageContext<'_, P>) -> Result<(), StageError>
where
    P: Procedure<Env = Master>,
{
    if !cx.id().is_root() {
        return Ok(());
    }
    let guards = cx.env().guards().clone();
    guards.leave(cx).await
}
