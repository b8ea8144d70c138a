//! Which entries of a family's history are whose. Numbers grow from commit to commit, so entries
//! behind the last one that was seen are all that is new; an entry never changes its member.

use std::collections::{BTreeMap, BTreeSet};

use procession_kernel::{HistoryEntry, ProcedureId};

use crate::error::ReadError;
use crate::journal::keys;
use crate::journal::reader::{PAGE, decode_entry, settled};
use crate::journal::store::Scan;
use crate::journal::{JournalStore, Reader, Space};

/// A part that rolls back, and who belongs to it.
pub(super) struct Wanted {
    pub(super) scope: ProcedureId,
    pub(super) members: Vec<u32>,
}

/// What was read for each part, in the order in which they asked.
pub(super) type Found = Vec<(ProcedureId, Result<Vec<HistoryEntry>, ReadError>)>;

/// The entries of each member, by number.
#[derive(Default)]
pub(super) struct Places {
    /// All entries up to this one are noted.
    upto: u32,
    of: BTreeSet<(u32, u32)>,
}

impl Places {
    pub(super) fn len(&self) -> usize {
        self.of.len()
    }

    fn note(&mut self, entry: &HistoryEntry) {
        self.upto = self.upto.max(entry.number);
        self.of.insert((entry.member, entry.number));
    }

    /// Gives the numbers of the entries of these members, lowest first.
    fn numbers(&self, members: &[u32]) -> Vec<u32> {
        let of_member = |member: &u32| self.of.range((*member, 0)..=(*member, u32::MAX));
        let mut numbers: Vec<u32> = members.iter().flat_map(of_member).map(|(_, number)| *number).collect();
        numbers.sort_unstable();
        numbers
    }
}

/// Reads for all of them in one go, and gives the places back with what is new.
pub(super) async fn read(reader: &Reader, family: u64, places: Places, wanted: Vec<Wanted>) -> (Places, Found) {
    let scopes: Vec<ProcedureId> = wanted.iter().map(|wanted| wanted.scope).collect();
    let all = reader.run(move |store| Box::pin(async move { Ok(find_all(store, family, places, wanted).await) }));
    all.await.unwrap_or_else(|error| {
        let refused = |scope| (scope, Err(error.clone().into()));
        (Places::default(), scopes.into_iter().map(refused).collect())
    })
}

async fn find_all(store: &dyn JournalStore, family: u64, mut places: Places, wanted: Vec<Wanted>) -> (Places, Found) {
    let members: BTreeSet<u32> = wanted.iter().flat_map(|wanted| &wanted.members).copied().collect();
    let mut seen = match look_behind(store, family, &mut places, &members).await {
        Ok(seen) => seen,
        Err(error) => {
            let refused = |wanted: Wanted| (wanted.scope, Err(error.clone()));
            return (places, wanted.into_iter().map(refused).collect());
        }
    };
    let mut found = Vec::with_capacity(wanted.len());
    for wanted in wanted {
        let numbers = places.numbers(&wanted.members);
        found.push((wanted.scope, entries_of(store, family, &numbers, &mut seen).await));
    }
    (places, found)
}

/// Notes the entries behind those that are known; gives those of them that are wanted, so that none is read twice.
async fn look_behind(
    store: &dyn JournalStore,
    family: u64,
    places: &mut Places,
    members: &BTreeSet<u32>,
) -> Result<BTreeMap<u32, HistoryEntry>, ReadError> {
    let mut seen = BTreeMap::new();
    loop {
        let Some(next) = places.upto.checked_add(1) else {
            return Ok(seen);
        };
        let page = Scan {
            space: Space::History,
            from: keys::history(family, next).to_vec(),
            to: keys::after_prefix(&keys::family(family)),
            limit: PAGE,
        };
        let page = store.scan(page).await?;
        for (key, value) in &page {
            let Some(entry) = decode_entry(key, value)? else {
                continue;
            };
            places.note(&entry);
            if members.contains(&entry.member) {
                seen.insert(entry.number, entry);
            }
        }
        if page.len() < PAGE {
            return Ok(seen);
        }
    }
}

/// Gives these entries; those that were dropped since are left out.
async fn entries_of(
    store: &dyn JournalStore,
    family: u64,
    numbers: &[u32],
    seen: &mut BTreeMap<u32, HistoryEntry>,
) -> Result<Vec<HistoryEntry>, ReadError> {
    let mut entries = Vec::with_capacity(numbers.len());
    for number in numbers {
        // Nobody else of the group wants it: parts that roll back have no member in common.
        if let Some(entry) = seen.remove(number) {
            entries.push(entry);
            continue;
        }
        let key = keys::history(family, *number);
        if let Some(value) = store.get(Space::History, key.to_vec()).await? {
            entries.extend(decode_entry(&key, &value)?);
        }
    }
    Ok(settled(entries))
}
