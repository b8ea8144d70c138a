//! The lists of the decision before, emptied, for the next one to fill. Nearly every decision fills both, and most are
//! folded before the next is made, so growing them from nothing can be spared.
//!
//! They hold nothing that a decision may depend on: a kernel is the same with and without them.

use std::cell::Cell;
use std::fmt;

use crate::effect::Effect;
use crate::record::Record;

/// The most entries for which a list keeps room. A decision on thousands of procedures gives its memory back.
const ROOM: usize = 64;

#[derive(Default)]
pub(crate) struct Spare {
    records: Cell<Vec<Record>>,
    effects: Cell<Vec<Effect>>,
}

impl Spare {
    /// Returns two empty lists, with room if a decision was folded since this was called last.
    pub(crate) fn take(&self) -> (Vec<Record>, Vec<Effect>) {
        (self.records.take(), self.effects.take())
    }

    /// Keeps the room of two lists.
    pub(crate) fn keep(&self, mut records: Vec<Record>, mut effects: Vec<Effect>) {
        records.clear();
        effects.clear();
        if records.capacity() <= ROOM {
            self.records.set(records);
        }
        if effects.capacity() <= ROOM {
            self.effects.set(effects);
        }
    }
}

impl Clone for Spare {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl PartialEq for Spare {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Spare {}

impl fmt::Debug for Spare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Spare")
    }
}

#[cfg(test)]
mod tests {
    use super::{ROOM, Spare};
    use crate::id::ProcedureId;
    use crate::record::Record;

    #[test]
    fn room_is_kept_and_bounded_and_nothing_else() {
        let spare = Spare::default();
        let mut records = Vec::with_capacity(4);
        records.push(Record::Late(ProcedureId::root(1)));
        spare.keep(records, Vec::with_capacity(ROOM + 1));
        let (records, effects) = spare.take();
        assert_eq!((records.len(), records.capacity()), (0, 4));
        assert_eq!((effects.len(), effects.capacity()), (0, 0));
        assert_eq!(spare.take().0.capacity(), 0, "each is given once");
    }
}
