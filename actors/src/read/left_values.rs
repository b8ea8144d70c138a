//! The value behind an entry of a history: which call left it, and what is kept of it.

use procession_kernel::{Blob, HistoryEntry, ProcedureId};

use super::CommittedReader;
use crate::error::AskError;
use crate::view::ValueBehind;

/// Entries of a family's history that one answer looks at, at most.
const ENTRIES_MAX: usize = 100_000;

/// Where it is.
enum Place {
    /// In the entry that left it, which may have its size alone.
    Entry(u32, u32),
    First,
    NotKept,
}

impl CommittedReader {
    /// Reads the value behind an entry of a procedure's history: the one that its call left, or an earlier one if it left
    /// that as it was. Number 0 is before the first entry. Returns `None` if the procedure has no such entry.
    ///
    /// # Errors
    ///
    /// [`AskError`] if an entry or a value cannot be read, or the engine has stopped.
    pub async fn value_behind(&self, id: ProcedureId, number: u32) -> Result<Option<ValueBehind>, AskError> {
        let mut own = self.history_outline(id.family, ENTRIES_MAX).await?;
        own.retain(|entry| entry.member == id.member);
        if number != 0 && !own.iter().any(|entry| entry.number == number) {
            return Ok(None);
        }
        let (left_by, size, bytes) = match place(&own, number) {
            Place::Entry(by, size) => (Some(by), usize::try_from(size).ok(), self.left(id, by).await?),
            Place::First => (Some(0), None, self.first_value(id, &own).await?),
            Place::NotKept => (None, None, None),
        };
        let size = bytes.as_ref().map(Blob::len).or(size);
        Ok(Some(ValueBehind { left_by, size, bytes }))
    }

    /// Reads what an entry keeps.
    async fn left(&self, id: ProcedureId, number: u32) -> Result<Option<Blob>, AskError> {
        let page = self.history_page(id.family, Some(number.saturating_add(1)), 1).await?;
        let entry = page.entries.into_iter().find(|entry| entry.number == number);
        Ok(entry.and_then(|entry| entry.value).and_then(|left| left.bytes))
    }

    /// Reads the first value: a root keeps it, and so does whoever never changed it.
    async fn first_value(&self, id: ProcedureId, own: &[HistoryEntry]) -> Result<Option<Blob>, AskError> {
        let is_unchanged = |entry: &HistoryEntry| entry.value.as_ref().is_some_and(|left| left.size.is_none());
        if own.iter().all(is_unchanged) {
            return Ok(self.values(id).await?.payload.map(Blob::from));
        }
        if id.is_root() {
            self.submitted(id.family).await
        } else {
            Ok(None)
        }
    }
}

/// Finds the newest entry up to this one that changed the value.
fn place(own: &[HistoryEntry], number: u32) -> Place {
    for entry in own.iter().rev().filter(|entry| entry.number <= number) {
        match &entry.value {
            // Nobody knows whether that call changed it.
            None => return Place::NotKept,
            Some(left) => {
                if let Some(size) = left.size {
                    return Place::Entry(entry.number, size);
                }
            }
        }
    }
    // The oldest entries may be gone.
    let is_whole = own.first().is_none_or(|first| first.visit == 0);
    if is_whole { Place::First } else { Place::NotKept }
}
