//! Rows as they were read, before anything is built of them: whether their
//! numbers are such as an engine writes, and name nothing outside the family.
//!
//! Checksums find bytes that changed; this finds rows that are whole and wrong,
//! so that no sum overflows, no count asks for memory, and a family that cannot
//! be is put aside alone.

use std::borrow::Borrow;

use crate::id::Seq;
use crate::kernel::Kernel;
use crate::lifecycle::ProcedureState;
use crate::row::Row;
use crate::wait::{WaitReason, Wake};

/// Above every number of a commit, an epoch or a family that an engine gets to, and far from the last one.
pub const NUMBER_MAX: u64 = 1 << 62;

/// The highest number of a family or a commit that a key or a row may name by itself. One above was given by an engine
/// that had got so far, and the journal says so: else one damaged number would leave none to go on with.
pub const NAMED_MAX: u64 = NUMBER_MAX >> 1;

/// Numbers before the last that are left to what goes on by itself: detached families, and those reserved ahead.
const ROOM: u64 = 1 << 32;

/// Above every count that an engine gets to: of stages, attempts, history, signals.
const COUNT_MAX: u32 = 1 << 31;

impl Kernel {
    /// Checks that an engine that got as far as this one can have given a family its number.
    pub(crate) fn check_number(&self, family: u64) -> Result<(), String> {
        if family < self.next_family || family <= NAMED_MAX {
            Ok(())
        } else {
            Err("no engine gave it its number".to_owned())
        }
    }

    /// Checks the number of a family, and that an engine that got as far as this one can have made the commits of its
    /// rows.
    pub(crate) fn check_given(&self, family: u64, rows: &[Box<Row>]) -> Result<(), String> {
        self.check_number(family)?;
        let is_made = |seq: Seq| seq <= self.seq || seq.0 <= NAMED_MAX;
        match rows.iter().find(|row| !is_made(row.revision)) {
            Some(row) => Err(format!("the row of {}: no engine made its commit", row.id)),
            None => Ok(()),
        }
    }

    /// Returns `true` if so few numbers are left that nothing new is accepted: the next start would refuse to read
    /// what was written with them.
    pub(crate) fn has_exhausted_numbers(&self) -> bool {
        self.next_family.max(self.next_audit) > NUMBER_MAX - ROOM
    }
}

/// Checks the rows of one family, in the order of their members.
///
/// # Errors
///
/// One sentence for the first row that no engine wrote.
pub fn check_rows(rows: &[impl Borrow<Row>]) -> Result<(), String> {
    for row in rows.iter().map(Borrow::borrow) {
        check_row(rows, row).map_err(|why| format!("the row of {}: {why}", row.id))?;
    }
    Ok(())
}

fn check_row(rows: &[impl Borrow<Row>], row: &Row) -> Result<(), String> {
    check_numbers(row)?;
    check_end(row)?;
    check_rounds(rows, row)?;
    match row.wake {
        Some(Wake::Children(first, count)) if !is_within(rows, first, count) => {
            Err("it was woken by children that are not there".to_owned())
        }
        Some(Wake::Children(..) | Wake::Signal(..) | Wake::Timeout(_)) | None => Ok(()),
    }
}

fn check_numbers(row: &Row) -> Result<(), String> {
    let run = row.going.map_or(Seq::default(), |going| going.run);
    if row.revision.max(run).0 > NUMBER_MAX {
        return Err("the number of its commit is none".to_owned());
    }
    if row.waits_after > row.revision {
        return Err("it waits behind a broadcast that came after it".to_owned());
    }
    let backoff = match row.wait {
        Some(WaitReason::Backoff(attempt, _)) => attempt,
        Some(_) | None => 0,
    };
    let signal = match row.wake {
        Some(Wake::Signal(_, number)) => number,
        Some(Wake::Children(..) | Wake::Timeout(_)) | None => 0,
    };
    let said = row.said.as_ref().map_or(0, |said| said.times);
    let counts = [
        ("visits", row.visit),
        ("attempts", row.attempt.max(row.undo_attempts).max(backoff).max(said)),
        ("entries of history", row.history.max(row.standing)),
        ("times the same stage", row.same_stage),
        ("signals", row.signals.max(signal)),
    ];
    match counts.into_iter().find(|(_, count)| *count > COUNT_MAX) {
        Some((what, count)) => Err(format!("{count} {what} are too many")),
        None => Ok(()),
    }
}

/// Who has a state that is an end has ended, and at a time.
fn check_end(row: &Row) -> Result<(), String> {
    let is_end = matches!(row.state, ProcedureState::Success | ProcedureState::RolledBack);
    if is_end && !row.is_ended() {
        return Err(format!("it is {} and has not ended", row.state));
    }
    Ok(())
}

/// Lists of children follow each other, and each names children of this very parent.
fn check_rounds(rows: &[impl Borrow<Row>], row: &Row) -> Result<(), String> {
    let mut after = row.id.member;
    for round in &row.rounds {
        let first = after.checked_add(1).filter(|least| round.first >= *least);
        if first.is_none() || round.count == 0 || !is_within(rows, round.first, round.count) {
            return Err("it waits for children that are not there".to_owned());
        }
        let mut children = rows
            .iter()
            .map(Borrow::borrow)
            .skip(round.first as usize)
            .take(round.count as usize);
        if children.any(|child| child.parent != Some(row.id.member)) {
            return Err("it waits for children of another".to_owned());
        }
        after = round.first + (round.count - 1);
    }
    if row.wait == Some(WaitReason::Children) && row.rounds.is_empty() {
        return Err("it waits for children and has none".to_owned());
    }
    Ok(())
}

fn is_within(rows: &[impl Borrow<Row>], first: u32, count: u32) -> bool {
    let end = u64::from(first) + u64::from(count);
    end <= rows.len() as u64
}
