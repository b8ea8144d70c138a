//! Reading: recent commits take precedence over tables.

use std::iter::Peekable;
use std::ops::Bound;

use fjall::{Keyspace, Readable, Snapshot};

use super::opened::Opened;
use crate::error::StoreError;
use crate::journal::keys::Space;
use crate::journal::recent::{LAST, RangeEntries, ShortKey, part_of};
use crate::journal::store::{Entries, RECENT_BYTES, RecentWrites, Scan};

impl Opened {
    /// Tables are read through a snapshot: only a snapshot shows a batch after its sync, and as a whole.
    pub(super) fn read(&self, space: &Space, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        let Some(keyspace) = self.keyspace(space) else {
            return Ok(None);
        };
        let part = self.part(space);
        let lately = part.and_then(|part| self.checkpoints.layers().get(part, key));
        if let Some(found) = lately {
            return Ok(found);
        }
        let value = self.snapshot(part).get(&keyspace, key);
        value
            .map(|value| value.map(|bytes| bytes.to_vec()))
            .map_err(|error| self.unreadable(space, &error))
    }

    pub(super) fn read_range(&self, scan: &Scan) -> Result<Entries, StoreError> {
        let is_empty = scan.limit == 0 || scan.to.as_ref().is_some_and(|to| *to <= scan.from);
        let Some(keyspace) = self.keyspace(&scan.space).filter(|_| !is_empty) else {
            return Ok(Entries::new());
        };
        let (found, snapshot) = self.lately(scan);
        let read = merge(&found, &snapshot, &keyspace, scan);
        read.map_err(|error| self.unreadable(&scan.space, &error))
    }

    /// Returns the writes of a range that no checkpoint has dropped from memory yet.
    pub(super) fn recent_writes(&self, scan: &Scan) -> Option<RecentWrites> {
        let part = self.part(&scan.space)?;
        let layers = self.checkpoints.try_layers()?;
        let found = layers.few(part, &scan.from, scan.to.as_deref(), RECENT_BYTES)?;
        if found.len() > scan.limit {
            return None;
        }
        let writes = found.into_iter().map(|(short, value)| (short.key().to_vec(), value));
        Some(writes.collect())
    }

    /// Both are from one moment: a checkpoint that ends removes recent entries only after the snapshot has them.
    fn lately(&self, scan: &Scan) -> (RangeEntries, Snapshot) {
        let Some(part) = self.part(&scan.space) else {
            return (RangeEntries::default(), self.snapshot(None));
        };
        let layers = self.checkpoints.layers();
        let found = layers.range(part, &scan.from, scan.to.as_deref(), scan.limit);
        (found, self.snapshot(Some(part)))
    }

    /// Commits write to a part through `recent`, and checkpoints change its tables as a whole. A part needs the
    /// newest snapshot, since an older one may lack the checkpoint that removed the recent entries.
    fn snapshot(&self, part: Option<u8>) -> Snapshot {
        match part {
            Some(_) => self.database.snapshot(),
            None => self.committed.snapshot(),
        }
    }
}

/// Merges recent entries with tables. For the same key the recent entry counts, and its deletes hide the tables'
/// entries.
fn merge(found: &RangeEntries, snapshot: &Snapshot, keyspace: &Keyspace, scan: &Scan) -> Result<Entries, fjall::Error> {
    let cut = found.entries.last().filter(|_| found.is_cut);
    let cut = cut.map(|(place, _)| place.key());
    let to = match cut {
        // There are enough entries up to this key; later ones were not read.
        Some(last) => Bound::Included(last),
        None => scan.to.as_deref().map_or(Bound::Unbounded, Bound::Excluded),
    };
    let rows = snapshot.range::<&[u8], _>(keyspace, (Bound::Included(scan.from.as_slice()), to));
    let rows = rows.map(|row| row.into_inner().map(|(key, value)| (key.to_vec(), value.to_vec())));
    let has_last = part_of(&scan.space).is_some();
    let rows = rows.filter(|row| !(has_last && row.as_ref().is_ok_and(|(key, _)| *key == LAST)));
    if found.entries.is_empty() {
        return rows.take(scan.limit).collect();
    }
    let mut lately = found.entries.iter().peekable();
    let mut merged = Entries::new();
    for row in rows {
        let (key, value) = row?;
        if merged.len() >= scan.limit {
            break;
        }
        take_up_to(&mut merged, &mut lately, |place| place.key() < key.as_slice());
        let is_hidden = lately.peek().is_some_and(|(place, _)| place.key() == key.as_slice());
        if !is_hidden {
            merged.push((key, value));
        }
    }
    take_up_to(&mut merged, &mut lately, |_| true);
    merged.truncate(scan.limit);
    Ok(merged)
}

/// Moves entries with a value, as long as their keys are in the range.
fn take_up_to<'a>(
    merged: &mut Entries,
    lately: &mut Peekable<impl Iterator<Item = &'a (ShortKey, Option<Vec<u8>>)>>,
    is_wanted: impl Fn(&ShortKey) -> bool,
) {
    while let Some((place, value)) = lately.next_if(|(place, _)| is_wanted(place)) {
        merged.extend(value.clone().map(|value| (place.key().to_vec(), value)));
    }
}
