//! What stages and undos write of their users' own data: bounded, for it becomes part of one commit.

use std::collections::BTreeSet;

use super::draft::Draft;
use crate::id::Key;
use crate::record::UserWrite;

impl Draft<'_> {
    /// Refuses more than one commit should hold. Its batch is in memory as a whole, and everybody else's commits
    /// wait while it is written and synced.
    pub(super) fn check_writes(&self, writes: &[UserWrite]) -> Result<(), String> {
        let bounds = &self.kernel.rules.bounds;
        if writes.len() > bounds.writes {
            return Err(format!(
                "{} writes of user data are over the limit of {}; write less in one stage",
                writes.len(),
                bounds.writes
            ));
        }
        let bytes: usize = writes.iter().map(UserWrite::size).sum();
        if bytes > bounds.write_bytes {
            return Err(format!(
                "{bytes} bytes of user data are over the limit of {}; write less in one stage",
                bounds.write_bytes
            ));
        }
        self.check_spaces(writes)
    }

    /// Refuses one keyspace too many before anything is written: the store makes a new one inside the commit, and if
    /// it could not, the commit would fail, and the engine with it.
    fn check_spaces(&self, writes: &[UserWrite]) -> Result<(), String> {
        let (known, bound) = (&self.kernel.spaces, self.kernel.rules.bounds.keyspaces);
        let new: BTreeSet<&Key> = writes.iter().map(|write| &write.space).collect();
        let new = new.into_iter().filter(|space| !known.contains(*space));
        let (mut count, mut first) = (known.len(), None);
        for space in new {
            count += 1;
            first = first.or(Some(space));
        }
        match first.filter(|_| count > bound) {
            Some(first) => Err(format!(
                "{count} keyspaces of user data are over the limit of {bound}, the new one \"{first}\" included; put \
                 what tells them apart into the keys, or raise Builder::max_keyspaces"
            )),
            None => Ok(()),
        }
    }
}
