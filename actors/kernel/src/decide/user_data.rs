//! Writes of user data by stages and undos. They are bounded, because they become part of one commit.

use std::collections::BTreeSet;

use super::draft::Draft;
use crate::id::Key;
use crate::record::UserWrite;

impl Draft<'_> {
    /// Refuses more writes than one commit should hold. The batch is in memory as a whole, and all other commits wait
    /// while it is written and synced.
    pub(super) fn check_writes(&self, writes: &[UserWrite]) -> Result<(), String> {
        if writes.is_empty() {
            return Ok(());
        }
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

    /// Refuses excess keyspaces before anything is written. The store creates a keyspace inside the commit; if that
    /// failed, the commit would fail, and the engine with it.
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
