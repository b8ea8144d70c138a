//! Writes of user data, by stages and undos and by callers. They are bounded, because they become part of one commit.

use std::collections::BTreeSet;
use std::fmt;

use super::draft::Draft;
use crate::effect::{Answer, NotNow, Refusal};
use crate::id::{Key, RequestId};
use crate::record::UserWrite;

/// Why writes cannot become part of one commit.
pub(super) enum Excess {
    /// Too many writes: their number and the limit.
    Writes(usize, usize),
    /// Too many bytes: their number and the limit.
    Bytes(usize, usize),
    /// Too many keyspaces: their number, the limit, and the first new one.
    Keyspaces(usize, usize, Key),
}

impl fmt::Display for Excess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Writes(writes, limit) => write!(
                f,
                "{writes} writes of user data are over the limit of {limit}; write less in one stage"
            ),
            Self::Bytes(bytes, limit) => write!(
                f,
                "{bytes} bytes of user data are over the limit of {limit}; write less in one stage"
            ),
            Self::Keyspaces(count, limit, first) => write!(
                f,
                "{count} keyspaces of user data are over the limit of {limit}, the new one \"{first}\" included; put \
                 what tells them apart into the keys, or raise Builder::max_keyspaces"
            ),
        }
    }
}

impl From<Excess> for Refusal {
    fn from(excess: Excess) -> Self {
        match excess {
            Excess::Writes(writes, limit) => Self::BatchTooLarge(writes, limit),
            Excess::Bytes(bytes, limit) => Self::TooLarge(bytes, limit),
            Excess::Keyspaces(..) => Self::NotNow(NotNow::Full, excess.to_string()),
        }
    }
}

impl Draft<'_> {
    /// Writes a caller's user data in a commit of its own, all of it or none. A drain refuses it as it refuses
    /// submissions: it ends once what runs has ended, and must not wait for callers that write on and on.
    pub(super) fn written(&mut self, request: RequestId, writes: Vec<UserWrite>) {
        if self.kernel.draining {
            let text = "the engine drains, and takes no writes of user data; write again after the next start";
            return self.refuse(request, Refusal::NotNow(NotNow::Draining, text.to_owned()));
        }
        if let Err(excess) = self.check_writes(&writes) {
            return self.refuse(request, excess.into());
        }
        self.write_user(writes);
        self.reply(request, Answer::Done);
    }

    /// Refuses more writes than one commit should hold. The batch is in memory as a whole, and all other commits wait
    /// while it is written and synced.
    pub(super) fn check_writes(&self, writes: &[UserWrite]) -> Result<(), Excess> {
        if writes.is_empty() {
            return Ok(());
        }
        let bounds = &self.kernel.rules.bounds;
        if writes.len() > bounds.writes {
            return Err(Excess::Writes(writes.len(), bounds.writes));
        }
        let bytes: usize = writes.iter().map(UserWrite::size).sum();
        if bytes > bounds.write_bytes {
            return Err(Excess::Bytes(bytes, bounds.write_bytes));
        }
        self.check_spaces(writes)
    }

    /// Refuses excess keyspaces before anything is written. The store creates a keyspace inside the commit; if that
    /// failed, the commit would fail, and the engine with it.
    fn check_spaces(&self, writes: &[UserWrite]) -> Result<(), Excess> {
        let (known, bound) = (&self.kernel.spaces, self.kernel.rules.bounds.keyspaces);
        let new: BTreeSet<&Key> = writes.iter().map(|write| &write.space).collect();
        let new = new.into_iter().filter(|space| !known.contains(*space));
        let (mut count, mut first) = (known.len(), None);
        for space in new {
            count += 1;
            first = first.or(Some(space));
        }
        match first.filter(|_| count > bound) {
            Some(first) => Err(Excess::Keyspaces(count, bound, first.clone())),
            None => Ok(()),
        }
    }
}
