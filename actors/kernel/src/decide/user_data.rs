//! What stages and undos write of their users' own data: bounded, for it becomes part of one commit.

use super::draft::Draft;
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
        Ok(())
    }
}
