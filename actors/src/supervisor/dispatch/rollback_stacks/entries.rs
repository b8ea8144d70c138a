//! Maps each entry of a family's history to its member. Numbers grow from commit to commit, so only entries behind the
//! last known one are new. An entry never changes its member.

use std::collections::{BTreeMap, BTreeSet};

use procession_kernel::{HistoryEntry, ProcedureId, settle_standing};

use crate::error::ReadError;
use crate::journal::keys;
use crate::journal::reader::{PAGE, decode_entry};
use crate::journal::store::Scan;
use crate::journal::{JournalStore, Reader, Space};

/// A scope that is being rolled back, and its members.
pub(super) struct ScopeMembers {
    pub(super) scope: ProcedureId,
    pub(super) members: Vec<u32>,
}

/// The entries that were read for each scope, in the order of the requests.
pub(in crate::supervisor) type ScopeEntries = Vec<(ProcedureId, Result<Vec<HistoryEntry>, ReadError>)>;

/// The entry numbers of each member.
#[derive(Default)]
pub(super) struct EntryIndex {
    /// All entries up to this number are in the index.
    upto: u32,
    of: BTreeSet<(u32, u32)>,
}

impl EntryIndex {
    pub(super) fn len(&self) -> usize {
        self.of.len()
    }

    fn note(&mut self, entry: &HistoryEntry) {
        self.upto = self.upto.max(entry.number);
        self.of.insert((entry.member, entry.number));
    }

    /// Returns the numbers of the entries of these members, lowest first.
    fn numbers(&self, members: &[u32]) -> Vec<u32> {
        let of_member = |member: &u32| self.of.range((*member, 0)..=(*member, u32::MAX));
        let mut numbers: Vec<u32> = members.iter().flat_map(of_member).map(|(_, number)| *number).collect();
        numbers.sort_unstable();
        numbers
    }
}

/// Reads for all scopes in one job of the reader. Returns the index, extended by the new entries.
pub(super) async fn read(
    reader: &Reader,
    family: u64,
    index: EntryIndex,
    wanted: Vec<ScopeMembers>,
) -> (EntryIndex, ScopeEntries) {
    let scopes: Vec<ProcedureId> = wanted.iter().map(|wanted| wanted.scope).collect();
    let all = reader.run(move |store| Box::pin(async move { Ok(find_all(store, family, index, wanted).await) }));
    all.await.unwrap_or_else(|error| {
        let refused = |scope| (scope, Err(error.clone().into()));
        (EntryIndex::default(), scopes.into_iter().map(refused).collect())
    })
}

async fn find_all(
    store: &dyn JournalStore,
    family: u64,
    mut index: EntryIndex,
    wanted: Vec<ScopeMembers>,
) -> (EntryIndex, ScopeEntries) {
    let members: BTreeSet<u32> = wanted.iter().flat_map(|wanted| &wanted.members).copied().collect();
    let mut seen = match index_new(store, family, &mut index, &members).await {
        Ok(seen) => seen,
        Err(error) => {
            let refused = |wanted: ScopeMembers| (wanted.scope, Err(error.clone()));
            return (index, wanted.into_iter().map(refused).collect());
        }
    };
    let mut found = Vec::with_capacity(wanted.len());
    for wanted in wanted {
        let numbers = index.numbers(&wanted.members);
        found.push((wanted.scope, entries_of(store, family, &numbers, &mut seen).await));
    }
    (index, found)
}

/// Indexes the entries behind the known ones. Returns those new entries that belong to `members`, so that none is read
/// twice.
async fn index_new(
    store: &dyn JournalStore,
    family: u64,
    index: &mut EntryIndex,
    members: &BTreeSet<u32>,
) -> Result<BTreeMap<u32, HistoryEntry>, ReadError> {
    let mut seen = BTreeMap::new();
    loop {
        let Some(next) = index.upto.checked_add(1) else {
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
            index.note(&entry);
            if members.contains(&entry.member) {
                seen.insert(entry.number, entry);
            }
        }
        if page.len() < PAGE {
            return Ok(seen);
        }
    }
}

/// Returns these entries, except any that were dropped since.
async fn entries_of(
    store: &dyn JournalStore,
    family: u64,
    numbers: &[u32],
    seen: &mut BTreeMap<u32, HistoryEntry>,
) -> Result<Vec<HistoryEntry>, ReadError> {
    let mut entries = Vec::with_capacity(numbers.len());
    for number in numbers {
        // No other scope of the group needs this entry: scopes that roll back have no member in common.
        if let Some(entry) = seen.remove(number) {
            entries.push(entry);
            continue;
        }
        let key = keys::history(family, *number);
        if let Some(value) = store.get(Space::History, key.to_vec()).await? {
            entries.extend(decode_entry(&key, &value)?);
        }
    }
    settle_standing(&mut entries);
    Ok(entries)
}
