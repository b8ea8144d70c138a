//! Stores filled cheaply: one finished family is run, and then written again under other numbers.

use procession::ProcedureId;
use procession::procedure::Timestamp;
use procession::provider::{Batch, Space};
use procession::status::Key;
use procession::testkit::{Trouble, World};
use procession_actors::testkit::format;
use procession_kernel::{KeyEntry, Record};

/// Families in one batch.
const AT_ONCE: u64 = 10_000;

/// All that the journal holds of one finished family.
pub(super) struct Template {
    family: u64,
    entries: Vec<(Space, Vec<u8>, Vec<u8>)>,
    key: Option<KeyEntry>,
}

impl Template {
    /// Reads it off a world in which that family has ended.
    pub(super) fn of(world: &World, family: u64) -> Result<Self, Trouble> {
        let prefix = family.to_be_bytes();
        let mut entries = Vec::new();
        for space in [Space::Procedures, Space::Payloads, Space::History, Space::Signals] {
            for (key, value) in world.disk.dump(&space) {
                if key.starts_with(&prefix) {
                    entries.push((space.clone(), key, value));
                }
            }
        }
        let keys = world.disk.dump(&Space::Keys);
        let entry = |(_, value): &(Vec<u8>, Vec<u8>)| format::key_entry(value);
        let keys = keys.iter().map(entry).collect::<Result<Vec<_>, _>>()?;
        let key = keys.into_iter().find(|entry| entry.id.family == family);
        Ok(Self { family, entries, key })
    }

    /// Writes it again, with this number and, if it had a key, with a key of its own.
    pub(super) fn put(&self, batch: &mut Batch, family: u64) -> Result<(), Trouble> {
        let key = self.key.as_ref().map(|_| Key::from(format!("key {family}")));
        for (space, old, value) in &self.entries {
            let place = [&family.to_be_bytes()[..], old.get(8..).unwrap_or_default()].concat();
            if *space != Space::Procedures {
                batch.put(space.clone(), &place, value);
                continue;
            }
            let member = u32::from_be_bytes(old.get(8..12).unwrap_or_default().try_into()?);
            let mut row = format::row(ProcedureId::new(family, member), value)?;
            row.key = row.key.and(key.clone());
            let due = row.due;
            copy(batch, &Record::Row(Box::new(row)))?;
            if let Some(due) = due {
                batch.put(Space::Finished, &finished(due, family), b"");
            }
        }
        if let (Some(key), Some(entry)) = (key, &self.key) {
            let id = ProcedureId::root(family);
            copy(batch, &Record::Key(key, KeyEntry { id, ..entry.clone() }))?;
        }
        Ok(())
    }

    /// Writes it under so many numbers, the template's own not among them.
    pub(super) fn fill(&self, world: &World, numbers: std::ops::Range<u64>) -> Result<(), Trouble> {
        assert!(!numbers.contains(&self.family));
        let mut begin = numbers.start;
        while begin < numbers.end {
            let end = numbers.end.min(begin + AT_ONCE);
            let mut failed = None;
            super::world::write(world, |batch| {
                for family in begin..end {
                    failed = failed.take().or(self.put(batch, family).err());
                }
                batch.put(Space::Meta, b"families", &(end + 1_024).to_be_bytes());
            })?;
            if let Some(why) = failed {
                return Err(why);
            }
            begin = end;
        }
        Ok(())
    }
}

pub(crate) fn copy(batch: &mut Batch, record: &Record) -> Result<(), Trouble> {
    for write in format::writes(std::slice::from_ref(record))?.writes() {
        match write.value {
            Some(value) => batch.put(write.space.clone(), write.key, value),
            None => batch.delete(write.space.clone(), write.key),
        }
    }
    Ok(())
}

fn finished(due: Timestamp, family: u64) -> Vec<u8> {
    [due.0.to_be_bytes(), family.to_be_bytes()].concat()
}
