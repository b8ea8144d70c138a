//! Checks rows as they were read, before any state is built from them: their numbers must be plausible, and they must
//! refer to nothing outside the family.
//!
//! Checksums find bytes that changed. This module finds rows that are intact but wrong. It runs first so that no sum
//! overflows, no count requests huge allocations, and an impossible family is quarantined alone.

use std::borrow::Borrow;
use std::collections::BTreeSet;

use crate::id::Seq;
use crate::kernel::Kernel;
use crate::lifecycle::ProcedureState;
use crate::row::Row;
use crate::wait::{WaitReason, Wake};

/// An upper bound for the numbers of commits, epochs and families. No engine gets that far, and `u64::MAX` is still
/// far away.
pub const NUMBER_MAX: u64 = 1 << 62;

/// The highest family or commit number that a key or a row may state on its own authority. An engine that got further
/// has recorded so in the journal. Without this limit, one damaged number would leave no numbers to continue with.
pub const NAMED_MAX: u64 = NUMBER_MAX >> 1;

/// Numbers kept in reserve below [`NUMBER_MAX`] for work that continues by itself: detached families and reservations.
const ROOM: u64 = 1 << 32;

/// An upper bound for every count that an engine reaches: stages, attempts, history entries, signals.
const COUNT_MAX: u32 = 1 << 31;

impl Kernel {
    /// Checks that an engine that got as far as this one can have assigned this family number.
    pub(crate) fn check_number(&self, family: u64) -> Result<(), String> {
        if family < self.next_family || family <= NAMED_MAX {
            Ok(())
        } else {
            Err("no engine assigned this family number".to_owned())
        }
    }

    /// Checks the number of a family, and that an engine that got as far as this one can have made the commits of its
    /// rows.
    pub(crate) fn check_given(&self, family: u64, rows: &[Box<Row>]) -> Result<(), String> {
        self.check_number(family)?;
        let is_made = |seq: Seq| seq <= self.seq || seq.0 <= NAMED_MAX;
        match rows.iter().find(|row| !is_made(row.revision)) {
            Some(row) => Err(format!(
                "the row of {}: no engine made the commit that it names",
                row.id
            )),
            None => Ok(()),
        }
    }

    /// Returns `true` if too few numbers are left to accept new work. The next start would refuse to read rows written
    /// with higher numbers.
    pub(crate) fn has_exhausted_numbers(&self) -> bool {
        self.next_family.max(self.next_audit) > NUMBER_MAX - ROOM
    }
}

/// Checks the rows of one family, ordered by member.
///
/// # Errors
///
/// One sentence about the first row that no engine can have written.
pub fn check_rows(rows: &[impl Borrow<Row>]) -> Result<(), String> {
    for row in rows.iter().map(Borrow::borrow) {
        check_row(rows, row).map_err(|why| format!("the row of {}: {why}", row.id))?;
    }
    Ok(())
}

fn check_row(rows: &[impl Borrow<Row>], row: &Row) -> Result<(), String> {
    check_numbers(row)?;
    check_end(row)?;
    check_labels(row)?;
    check_rounds(rows, row)?;
    check_graph(rows, row)?;
    match row.wake {
        Some(Wake::Children(first, count)) if !is_within(rows, first, count) => {
            Err("it was woken by children that do not exist".to_owned())
        }
        Some(Wake::Children(..) | Wake::Signal(..) | Wake::Timeout(_) | Wake::Decision(_)) | None => Ok(()),
    }
}

fn check_labels(row: &Row) -> Result<(), String> {
    row.labels
        .check()
        .map_err(|why| format!("its labels are impossible: {why}"))?;
    match row.labels.entry() {
        Some(member) if member > row.id.member || row.labels.is_empty() => {
            Err(format!("its labels are missing: member {member} has none for it"))
        }
        Some(_) | None => Ok(()),
    }
}

fn check_numbers(row: &Row) -> Result<(), String> {
    let run = row.in_flight.map_or(Seq::default(), |in_flight| in_flight.run);
    if row.revision.max(run).0 > NUMBER_MAX {
        return Err("its commit number is impossible".to_owned());
    }
    if row.waits_after > row.revision {
        return Err("it waits behind a broadcast newer than its own commit".to_owned());
    }
    if row.history_from > row.history.saturating_add(1) {
        return Err("it keeps only history entries that it has not written yet".to_owned());
    }
    let backoff = match row.wait {
        Some(WaitReason::Backoff(attempt, _)) => attempt,
        Some(_) | None => 0,
    };
    let signal = match row.wake {
        Some(Wake::Signal(_, number)) => number,
        Some(Wake::Children(..) | Wake::Timeout(_) | Wake::Decision(_)) | None => 0,
    };
    let alike = row.rare().failure_streak.as_ref().map_or(0, |streak| streak.times);
    let counts = [
        ("visits", row.visit),
        (
            "attempts",
            row.attempt.max(row.rare().undo_attempts).max(backoff).max(alike),
        ),
        ("history entries", row.history.max(row.standing).max(row.history_from)),
        ("runs of the same stage", row.same_stage),
        ("runs that were cut off", row.repeated),
        ("signals", row.signals.max(signal)),
    ];
    match counts.into_iter().find(|(_, count)| *count > COUNT_MAX) {
        Some((what, count)) => Err(format!("{count} {what} are too many")),
        None => Ok(()),
    }
}

/// Checks that a row in a final state has also recorded when it ended.
fn check_end(row: &Row) -> Result<(), String> {
    let is_end = matches!(row.state, ProcedureState::Success | ProcedureState::RolledBack);
    if is_end && !row.is_ended() {
        return Err(format!("its state is {}, but it has not ended", row.state));
    }
    Ok(())
}

/// Checks that the lists of children are in ascending order, and that each contains only children of this parent.
fn check_rounds(rows: &[impl Borrow<Row>], row: &Row) -> Result<(), String> {
    let mut after = row.id.member;
    for round in &row.rounds {
        let first = after.checked_add(1).filter(|least| round.first >= *least);
        if first.is_none() || round.count == 0 || !is_within(rows, round.first, round.count) {
            return Err("it waits for children that do not exist".to_owned());
        }
        let mut children = rows
            .iter()
            .map(Borrow::borrow)
            .skip(round.first as usize)
            .take(round.count as usize);
        if children.any(|child| child.parent != Some(row.id.member)) {
            return Err("it waits for children of another parent".to_owned());
        }
        after = round.first + (round.count - 1);
    }
    if row.wait == Some(WaitReason::Children) && row.rounds.is_empty() {
        return Err("it waits for children, but has none".to_owned());
    }
    Ok(())
}

/// Checks that a gate names children of the same parent that are older than its own, each once.
fn check_graph(rows: &[impl Borrow<Row>], row: &Row) -> Result<(), String> {
    if row.wait == Some(WaitReason::Gate) && (row.gate().is_none() || row.in_flight.is_some()) {
        return Err("it waits at a gate, but has none, or runs".to_owned());
    }
    let Some(gate) = row.gate() else { return Ok(()) };
    let mut named = BTreeSet::new();
    for sibling in &gate.after {
        let older = rows.get(*sibling as usize).filter(|_| *sibling < row.id.member);
        let is_sibling = older.is_some_and(|older| row.parent.is_some() && older.borrow().parent == row.parent);
        if !is_sibling || !named.insert(*sibling) {
            return Err(format!(
                "its gate waits for {sibling}, which is no older child of its parent"
            ));
        }
    }
    if named.is_empty() {
        return Err("its gate waits for nothing".to_owned());
    }
    gate.check_policy()
        .map_err(|why| format!("its gate is impossible: {why}"))
}

fn is_within(rows: &[impl Borrow<Row>], first: u32, count: u32) -> bool {
    let end = u64::from(first) + u64::from(count);
    end <= rows.len() as u64
}
