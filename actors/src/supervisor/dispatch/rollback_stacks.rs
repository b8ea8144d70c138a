//! Rollback stacks: the history entries that a scope undoes. A scope needs the entries of its own members, but the
//! store keeps them by family. So the wing remembers which entry belongs to which member, and scans only behind the
//! last known entry.

pub(super) mod entries;
pub(crate) mod holes;

use std::collections::BTreeMap;

use procession_kernel::{HistoryEntry, Kernel, ProcedureId, settle_standing};
use rustc_hash::FxHashMap;

use self::entries::{EntryIndex, ScopeEntries, ScopeMembers};
use crate::journal::Reader;

/// The number of scopes of one family in one read. They are handed over in one turn of the supervisor.
const GROUP: usize = 64;

/// The maximum number of indexed entries of all families together, some 16 bytes each. A larger family is scanned again
/// for each group of its scopes.
const INDEXED: usize = 1 << 20;

/// What is known about the history of a family that rolls back.
#[derive(Default)]
struct Family {
    index: EntryIndex,
    /// Scopes that wait for a read, in the order of their requests.
    waiting: Vec<ProcedureId>,
    is_read: bool,
}

/// What a read of stacks has found. It is passed back to [`RollbackStacks::end`].
pub(in crate::supervisor) struct StackRead {
    family: u64,
    index: EntryIndex,
    found: ScopeEntries,
}

/// The stacks that the start read. Also the families whose stacks are read later, until those families end.
#[derive(Default)]
pub(super) struct RollbackStacks {
    recovered: BTreeMap<u64, Vec<HistoryEntry>>,
    families: FxHashMap<u64, Family>,
    indexed: usize,
}

impl RollbackStacks {
    pub(super) fn new(recovered: BTreeMap<u64, Vec<HistoryEntry>>) -> Self {
        Self {
            recovered,
            ..Self::default()
        }
    }

    /// Takes the stack that the start read, unless the family has committed entries since. Stages that were in doubt
    /// run to their commit before anything is undone.
    pub(super) fn recovered(&mut self, kernel: &Kernel, family: u64) -> Option<Vec<HistoryEntry>> {
        let entries = self.recovered.remove(&family)?;
        let newest = entries.last().map_or(0, |entry| entry.number);
        let current = kernel.families().get(&family).map(|family| family.history);
        (current == Some(newest)).then_some(entries)
    }

    /// Returns the entries of a scope's members if the store has the whole history of the family in memory. A rollback
    /// mostly follows the stages that it undoes at once.
    pub(super) fn recent(kernel: &Kernel, reader: &Reader, scope: ProcedureId) -> Option<Vec<HistoryEntry>> {
        let family = kernel.families().get(&scope.family)?;
        let mut entries = reader.recent_history(scope.family, family.history)?;
        entries.retain(|entry| family.is_within(scope.member, entry.member));
        settle_standing(&mut entries);
        Some(entries)
    }

    /// Drops what is known about a family. A read that is under way then finds no waiting scope.
    pub(super) fn forget(&mut self, family: u64) {
        // Nearly always.
        if self.families.is_empty() && self.recovered.is_empty() {
            return;
        }
        if let Some(forgotten) = self.families.remove(&family) {
            self.indexed -= forgotten.index.len();
        }
        self.recovered.remove(&family);
    }

    /// Drops everything: nothing is read any more.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Queues a scope to be read.
    pub(super) fn request(&mut self, scope: ProcedureId) {
        self.families.entry(scope.family).or_default().waiting.push(scope);
    }

    /// Returns the read of a family's next group of scopes, unless one is under way.
    pub(super) fn next_read(
        &mut self,
        kernel: &Kernel,
        reader: &Reader,
        family: u64,
    ) -> Option<impl Future<Output = StackRead> + use<>> {
        let (index, group) = self.begin(family)?;
        let wanted = group.into_iter().map(|scope| members_within(kernel, scope)).collect();
        let reader = reader.clone();
        Some(async move {
            let (index, found) = entries::read(&reader, family, index, wanted).await;
            StackRead { family, index, found }
        })
    }

    fn begin(&mut self, family: u64) -> Option<(EntryIndex, Vec<ProcedureId>)> {
        let known = self.families.get_mut(&family)?;
        if known.is_read || known.waiting.is_empty() {
            return None;
        }
        known.is_read = true;
        let group = known.waiting.drain(..known.waiting.len().min(GROUP)).collect();
        let index = std::mem::take(&mut known.index);
        self.indexed -= index.len();
        Some((index, group))
    }

    /// Ends a read: keeps its index within the bound, and returns what was found for each scope.
    pub(super) fn end(&mut self, read: StackRead) -> ScopeEntries {
        let StackRead { family, index, found } = read;
        self.keep(family, index);
        found
    }

    fn keep(&mut self, family: u64, index: EntryIndex) {
        let Some(known) = self.families.get_mut(&family) else {
            return;
        };
        known.is_read = false;
        self.indexed -= std::mem::take(&mut known.index).len();
        if self.indexed + index.len() <= INDEXED {
            self.indexed += index.len();
            known.index = index;
        }
    }
}

fn members_within(kernel: &Kernel, scope: ProcedureId) -> ScopeMembers {
    let family = kernel.families().get(&scope.family);
    let members = family.into_iter().flat_map(|family| family.within(scope.member));
    ScopeMembers {
        scope,
        members: members.map(|row| row.id.member).collect(),
    }
}

#[cfg(test)]
mod tests {
    //! The order in which scopes are read, and how long a family is known.

    use super::*;

    #[test]
    fn one_group_of_a_family_is_read_at_a_time_and_the_others_follow() {
        let mut stacks = RollbackStacks::default();
        let last = u32::try_from(GROUP).expect("it is small");
        let scopes: Vec<ProcedureId> = (0..=last).map(|member| ProcedureId::new(1, member)).collect();
        scopes.iter().for_each(|scope| stacks.request(*scope));
        let (index, group) = stacks.begin(1).expect("scopes wait");
        assert_eq!(group.as_slice(), scopes.get(..GROUP).expect("there are more"));
        assert!(stacks.begin(1).is_none(), "one is under way");
        assert!(stacks.begin(2).is_none());
        stacks.keep(1, index);
        assert_eq!(
            stacks.begin(1).map(|(_, group)| group),
            scopes.last().map(|last| vec![*last])
        );
    }

    #[test]
    fn a_family_that_ends_is_forgotten_while_it_is_read() {
        let mut stacks = RollbackStacks::default();
        stacks.request(ProcedureId::root(1));
        let (index, _) = stacks.begin(1).expect("it waits");
        stacks.forget(1);
        stacks.keep(1, index);
        assert!(stacks.families.is_empty());
        assert_eq!(stacks.indexed, 0);
    }

    #[test]
    fn a_recovered_stack_is_of_no_use_once_its_family_is_unknown() {
        let mut stacks = RollbackStacks::new(BTreeMap::from([(1, Vec::new())]));
        assert!(stacks.recovered(&Kernel::default(), 1).is_none());
        assert!(stacks.recovered.is_empty(), "it is taken once");
    }
}
