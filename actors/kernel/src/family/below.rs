//! Index from parents to children. The members affected by one failure are found without looking at the others.

use std::collections::BTreeMap;
use std::ops::Range;

/// The children of each parent. Children born together have consecutive numbers, so a list of children is one range,
/// however long it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Below(BTreeMap<u32, Vec<Range<u32>>>);

impl Below {
    /// Records a birth. Births must arrive in the order of their numbers.
    pub(super) fn born(&mut self, parent: u32, member: u32) {
        let lists = self.0.entry(parent).or_default();
        match lists.last_mut().filter(|list| list.end == member) {
            Some(list) => list.end = member + 1,
            None => lists.push(member..member + 1),
        }
    }

    /// Returns a member and all its descendants, in the order of their numbers.
    pub(super) fn within(&self, top: u32) -> Vec<u32> {
        let mut within = vec![top];
        let mut next = 0;
        while let Some(parent) = within.get(next).copied() {
            let lists = self.0.get(&parent).into_iter().flatten();
            within.extend(lists.flat_map(Range::clone));
            next += 1;
        }
        within.sort_unstable();
        within
    }
}
