//! The rules of the registered kinds, as decisions look them up: mostly those of the kind that was looked up before.

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;

use crate::id::Kind;
use crate::kernel::{KindRules, Rules};

/// The registered kinds by name. The kind looked up last is tried first; it is no part of the kernel's state. They are
/// a copy, because rules do not change while an engine runs, and a decision cannot leave a reference to the next one.
#[derive(Clone, Default)]
pub(crate) struct KindIndex {
    /// Shared by the copies of a kernel.
    kinds: Arc<[(Kind, KindRules)]>,
    last: Cell<usize>,
}

impl KindIndex {
    pub(crate) fn new(rules: &Rules) -> Self {
        let kinds = rules.kinds.iter();
        Self {
            kinds: kinds.map(|(kind, rules)| (kind.clone(), rules.clone())).collect(),
            last: Cell::default(),
        }
    }

    /// Returns a registered kind, as the rules hold it, and its rules.
    #[inline]
    pub(crate) fn get(&self, kind: &Kind) -> Option<(&Kind, &KindRules)> {
        match self.kinds.get(self.last.get()) {
            Some((known, rules)) if known == kind => Some((known, rules)),
            Some(_) | None => self.find(kind),
        }
    }

    fn find(&self, kind: &Kind) -> Option<(&Kind, &KindRules)> {
        let place = self.kinds.binary_search_by(|(known, _)| known.cmp(kind)).ok()?;
        self.last.set(place);
        self.kinds.get(place).map(|(known, rules)| (known, rules))
    }
}

impl PartialEq for KindIndex {
    fn eq(&self, other: &Self) -> bool {
        self.kinds == other.kinds
    }
}

impl Eq for KindIndex {}

impl fmt::Debug for KindIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.kinds.iter().map(|(kind, _)| kind)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_found_whatever_was_looked_up_before() {
        let names = ["b", "a", "d", "c"];
        let rules = Rules {
            kinds: names
                .map(|name| (Kind::from(name), KindRules::new(u16::from(name.as_bytes()[0]))))
                .into(),
            ..Rules::default()
        };
        let index = KindIndex::new(&rules);
        for name in ["a", "c", "c", "x", "d", "", "a", "b"] {
            let found = index.get(&Kind::from(name));
            assert_eq!(found, rules.kinds.get_key_value(&Kind::from(name)), "{name}");
        }
        assert_eq!(KindIndex::new(&Rules::default()).get(&Kind::from("a")), None);
    }
}
