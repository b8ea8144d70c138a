//! The locks that a row lacks, and those that it records as held, each with the time when it was taken.

use super::Row;
use crate::id::Timestamp;
use crate::lock::LockNeed;

impl Row {
    /// Returns the time since which the procedure has held this lock without a break. Returns `None` if it does not
    /// hold the lock, or if the time was not recorded.
    #[must_use]
    pub fn locked_since(&self, need: &LockNeed) -> Option<Timestamp> {
        let place = self.locked.iter().position(|held| held == need)?;
        self.locked_at.get(place).copied().flatten()
    }

    /// Returns the locks that its next stage needs and it does not hold.
    pub fn lacking_locks(&self) -> impl Iterator<Item = &LockNeed> {
        self.locks.iter().filter(|need| !self.locked.contains(need))
    }

    /// Returns the locks that its next undo needs and it does not hold.
    ///
    /// A member that holds its locks for life already holds every lock of its executed stages until it ends. Locks that
    /// only its next stage would need do not concern its undos, and may be what a deadlock is about.
    pub fn lacking_locks_of_undo(&self) -> impl Iterator<Item = &LockNeed> {
        let has_all = self.locks_for_life && !self.is_ended();
        self.lacking_locks().filter(move |_| !has_all)
    }

    /// Takes locks at this instant. Locks already held keep their times.
    pub(crate) fn lock_all<'a>(&mut self, needs: impl IntoIterator<Item = &'a LockNeed>, now: Timestamp) {
        for need in needs {
            self.lock(need, Some(now));
        }
    }

    fn lock(&mut self, need: &LockNeed, since: Option<Timestamp>) {
        if !self.locked.contains(need) {
            self.locked_at.resize(self.locked.len(), None);
            self.locked.push(need.clone());
            self.locked_at.push(since);
        }
    }

    /// Replaces all held locks by these. A lock held before and after keeps its time, because no other procedure had it
    /// in between.
    pub(crate) fn exchange_locks(&mut self, needs: &[LockNeed], now: Timestamp) {
        let (locked, mut at) = (std::mem::take(&mut self.locked), std::mem::take(&mut self.locked_at));
        at.resize(locked.len(), None);
        for need in needs {
            let before = locked.iter().position(|held| held == need);
            let since = before.map_or(Some(now), |place| at.get(place).copied().flatten());
            self.lock(need, since);
        }
    }

    /// Gives up all locks and returns them.
    pub(crate) fn unlock_all(&mut self) -> Vec<LockNeed> {
        self.locked_at.clear();
        std::mem::take(&mut self.locked).into()
    }

    /// Gives up all locks except the kept ones, and returns the locks given up.
    pub(crate) fn unlock_others(&mut self, is_kept: impl Fn(&Self, &LockNeed) -> bool) -> Vec<LockNeed> {
        let (locked, mut at) = (std::mem::take(&mut self.locked), std::mem::take(&mut self.locked_at));
        at.resize(locked.len(), None);
        let mut given = Vec::new();
        for (need, since) in locked.into_iter().zip(at) {
            if is_kept(self, &need) {
                self.lock(&need, since);
            } else {
                given.push(need);
            }
        }
        given
    }
}

#[cfg(test)]
mod tests {
    //! Each lock keeps its own time, whatever is given up around it.

    use super::*;
    use crate::id::{Blob, Kind, ProcedureId};

    const AT: [Timestamp; 3] = [Timestamp(0), Timestamp(5), Timestamp(9)];

    fn row() -> Row {
        Row::new(ProcedureId::root(1), Kind::from("k"), 1, Blob::default(), AT[0])
    }

    #[test]
    fn each_lock_keeps_its_time() {
        let [a, b, c] = ["a", "b", "c"].map(LockNeed::exclusive);
        let mut row = row();
        row.lock_all([&a], AT[0]);
        row.lock_all([&a, &b], AT[1]);
        row.lock_all([&c], AT[2]);
        let since = |row: &Row| [&a, &b, &c].map(|need| row.locked_since(need));
        assert_eq!(since(&row), AT.map(Some));
        assert_eq!(row.locked_since(&LockNeed::shared("a")), None);
        assert_eq!(row.unlock_others(|_, need| *need != b), std::slice::from_ref(&b));
        assert_eq!(since(&row), [Some(AT[0]), None, Some(AT[2])]);
        assert_eq!(row.unlock_all(), [a.clone(), c.clone()]);
        assert_eq!((since(&row), row.locked_at.len()), ([None; 3], 0));
    }

    #[test]
    fn what_is_had_again_at_once_was_never_given_up() {
        let [a, b, c] = ["a", "b", "c"].map(LockNeed::exclusive);
        let mut row = row();
        row.lock_all([&a, &b], AT[1]);
        row.exchange_locks(&[c.clone(), a.clone()], AT[2]);
        assert_eq!(*row.locked, [c.clone(), a.clone()]);
        let since = [&a, &b, &c].map(|need| row.locked_since(need));
        assert_eq!(since, [Some(AT[1]), None, Some(AT[2])]);
    }

    #[test]
    fn of_locks_from_before_nothing_is_said() {
        let [a, b] = ["a", "b"].map(LockNeed::exclusive);
        let mut row = row();
        row.locked.push(a.clone());
        row.lock_all([&a, &b], AT[1]);
        assert_eq!((row.locked_since(&a), row.locked_since(&b)), (None, Some(AT[1])));
    }
}
