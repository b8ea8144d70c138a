//! Values, when all have ended: each is what its stages and undos made of the first one, and the history of a kind that
//! keeps values has each of them, save large ones.

use std::collections::BTreeMap;

use procession::Procedure;
use procession::status::{Ending, HistoryEntry, left_value};
use procession::testkit::{Run, Trouble};
use procession_actors::journal::codec;
use procession_kernel::Row;

use super::past::stage_of;
use super::story::Story;
use super::support::{Kept, Plan};

impl Story {
    /// Lives all histories of procedures again, and compares the values.
    pub(crate) async fn values(
        &mut self,
        run: &Run,
        rows: &[Row],
        families: &BTreeMap<u64, Vec<HistoryEntry>>,
    ) -> Result<(), Trouble> {
        let plans = super::past::plans(run).await?;
        for row in rows {
            let Some(stored) = plans.get(&row.id) else {
                return Err(format!("{} has no value", row.id).into());
            };
            let is_kept = row.kind.as_str() == Kept::KIND;
            let mut replayed = Plan {
                value: Vec::new(),
                ..stored.clone()
            };
            let entries = families.get(&row.id.family).into_iter().flatten();
            for entry in entries.filter(|entry| entry.member == row.id.member) {
                let changed = replayed.takes(entry)?;
                self.left(entry, is_kept, changed.then_some(&replayed))?;
            }
            if replayed.value != stored.value {
                let (id, expected, found) = (row.id, &replayed.value, &stored.value);
                return Err(format!("the value of {id} is to be {expected:?}, and is {found:?}").into());
            }
            if is_kept {
                told(run, row, families, stored).await?;
            }
        }
        Ok(())
    }

    /// Compares what an entry says of the value with what it left: this one, or the one before.
    fn left(&mut self, entry: &HistoryEntry, is_kept: bool, changed: Option<&Plan>) -> Result<(), Trouble> {
        let Some(value) = entry.value.as_deref().filter(|_| is_kept) else {
            let is_told = is_kept || entry.value.is_some();
            return match is_told {
                true => Err(format!("whether {entry:?} tells its value is the kind's to say").into()),
                false => Ok(()),
            };
        };
        let encoded = changed.map(codec::encode_user).transpose()?;
        let size = encoded.as_ref().map(|encoded| encoded.len());
        let fits = encoded.filter(|encoded| encoded.len() <= Kept::KEEP_VALUES);
        if value.size.map(|size| size as usize) != size || value.bytes != fits {
            return Err(format!("{entry:?} is to tell {size:?} bytes, {fits:?}").into());
        }
        match (size, fits) {
            (Some(_), Some(_)) => self.cover("KeptValue"),
            (Some(_), None) => self.cover("LargeValue"),
            (None, _) => {}
        }
        Ok(())
    }
}

/// Callers are told the same: the history, the newest value that it keeps, and the value.
async fn told(run: &Run, row: &Row, families: &BTreeMap<u64, Vec<HistoryEntry>>, stored: &Plan) -> Result<(), Trouble> {
    let history = run.executor.history(row.id).await?;
    // Which entries stand is worked out where they are read.
    let plain = |entries: &[HistoryEntry]| -> Vec<HistoryEntry> {
        let entries = entries.iter().cloned();
        entries.map(|entry| HistoryEntry { stands: false, ..entry }).collect()
    };
    let stored_entries = families.get(&row.id.family);
    if stored_entries.is_some_and(|entries| plain(entries) != plain(&history)) {
        return Err(format!("of {} another history is told than is stored", row.id).into());
    }
    let value: Option<Kept> = run.executor.value(row.id).await?;
    if value.as_ref().map(|kept| &kept.0.value) != Some(&stored.value) {
        return Err(format!(
            "of {} the value {value:?} is told, and {:?} is stored",
            row.id, stored.value
        )
        .into());
    }
    let own = history.iter().filter(|entry| entry.member == row.id.member);
    let newest = own
        .rev()
        .find(|entry| entry.value.as_ref().is_some_and(|left| left.size.is_some()));
    let left: Option<Kept> = newest.map(left_value).transpose()?.flatten();
    match left.filter(|left| left.0.value != stored.value) {
        Some(other) => Err(format!("{} ends with {:?}, and kept {other:?} last", row.id, stored.value).into()),
        None => Ok(()),
    }
}

impl Plan {
    /// Does to the value what a stage or an undo did. Returns `true` if that changes it.
    fn takes(&mut self, entry: &HistoryEntry) -> Result<bool, Trouble> {
        let stage = stage_of(entry)?;
        let is_pushed = match entry.ending {
            Ending::Next | Ending::Done | Ending::Spawn | Ending::Sleep | Ending::Wait | Ending::Asked => true,
            Ending::Fail => self.keeps_failed(stage),
            Ending::Undone if self.value.last() == Some(&stage) => return Ok(self.value.pop().is_some()),
            _ => false,
        };
        if is_pushed {
            self.value.push(stage);
        }
        Ok(is_pushed)
    }
}
