//! Where a procedure may meet its fault: at its own stages, and at those of the
//! children that it has for certain.

use crate::demo::procedures::{
    CreateTable, EnableTable, LoadTablet, MoveTablet, SetQuota, UnloadTablet, UpdateAuth, UpdateTable,
};
use procession::Procedure;

/// Kind and stage.
pub(super) type Point = (&'static str, &'static str);

/// Returns the points of what first looks for its tablet.
pub(super) fn sought(kind: &'static str) -> Vec<Point> {
    let of_work = match kind {
        LoadTablet::KIND => load(),
        UnloadTablet::KIND => unload(),
        MoveTablet::KIND => relocate(),
        _ => [of(kind, &["Prepare", "Write", "Commit", "Finish"]), unload(), load()].concat(),
    };
    [of(kind, &["Find"]), of_work].concat()
}

fn load() -> Vec<Point> {
    of(LoadTablet::KIND, &["Prepare", "Open"])
}

fn unload() -> Vec<Point> {
    of(UnloadTablet::KIND, &["Prepare", "Close"])
}

fn relocate() -> Vec<Point> {
    [of(MoveTablet::KIND, &["Prepare", "Reload", "Finish"]), unload(), load()].concat()
}

/// Returns the points of a creation.
pub(super) fn create() -> Vec<Point> {
    [of(CreateTable::KIND, &["Prepare", "Write", "Commit", "Finish"]), load()].concat()
}

/// Returns the points of what unloads all tablets of a table: only those of an
/// enabled one are loaded.
pub(super) fn unload_all(kind: &'static str, enabled: bool) -> Vec<Point> {
    let children = if enabled { unload() } else { Vec::new() };
    [fan_out(kind), children].concat()
}

/// Returns the points of an enabling.
pub(super) fn enable() -> Vec<Point> {
    [fan_out(EnableTable::KIND), load()].concat()
}

/// Returns the points of an update: only an enabled table has its tablets reloaded.
pub(super) fn update(enabled: bool) -> Vec<Point> {
    let children = if enabled { relocate() } else { Vec::new() };
    [fan_out(UpdateTable::KIND), children].concat()
}

/// Returns the points of a quota's setting.
pub(super) fn quota() -> Vec<Point> {
    of(SetQuota::KIND, &["Prepare", "Apply"])
}

/// Returns the points of a user's change.
pub(super) fn auth() -> Vec<Point> {
    of(UpdateAuth::KIND, &["Prepare", "Apply"])
}

fn fan_out(kind: &'static str) -> Vec<Point> {
    of(kind, &["Begin", "Finish"])
}

fn of(kind: &'static str, stages: &[&'static str]) -> Vec<Point> {
    stages.iter().map(|stage| (kind, *stage)).collect()
}
