//! The closed gates of a family, counted from its rows: what each still waits for, and who waits for a member.
//! What the rules of gates say is not in the rows; a start asks them again.

use std::collections::{BTreeMap, BTreeSet};

use super::Members;
use crate::latch::{Latch, LatchState};
use crate::row::Row;
use crate::seldom::Empty;

/// The closed gates of a family. An open gate never closes again, so it is forgotten.
#[derive(Clone, Debug, Default)]
pub struct Gates {
    /// Counts of the siblings before each closed gate, by the member that waits there.
    latches: BTreeMap<u32, Latch>,
    /// Each member that a closed gate waits for, with the member that waits there. Pairs, because all dependants of one
    /// member may leave in one commit, each at a cost that does not depend on the others.
    dependants: BTreeSet<(u32, u32)>,
    /// Why gates can no longer open, as their own rules say, by the member that waits there for a person.
    unmeetable: BTreeMap<u32, String>,
}

/// Compares what the rows imply. What the rules say is known to a running engine alone.
impl PartialEq for Gates {
    fn eq(&self, other: &Self) -> bool {
        (&self.latches, &self.dependants) == (&other.latches, &other.dependants)
    }
}

impl Eq for Gates {}

impl Empty for Gates {
    const EMPTY: &'static Self = &Self {
        latches: BTreeMap::new(),
        dependants: BTreeSet::new(),
        unmeetable: BTreeMap::new(),
    };
}

impl Gates {
    /// Returns `true` if no member waits at a gate.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.latches.is_empty()
    }

    /// Returns the counts of the siblings before a member that waits at its gate.
    #[must_use]
    pub fn latch(&self, member: u32) -> Option<&Latch> {
        self.latches.get(&member)
    }

    /// Returns the members that wait for this one at a gate, lowest number first.
    pub fn dependants(&self, member: u32) -> impl Iterator<Item = u32> + '_ {
        let all = self.dependants.range((member, 0)..=(member, u32::MAX));
        all.map(|(_, dependant)| *dependant)
    }

    /// Returns `true` if a member waits for this sibling at its gate.
    #[must_use]
    pub fn waits_for(&self, member: u32, sibling: u32) -> bool {
        self.dependants.contains(&(sibling, member))
    }

    /// Returns why the gate of a member can no longer open, if the gate's own rule says so. The member then waits for a
    /// person.
    #[must_use]
    pub fn unmeetable(&self, member: u32) -> Option<&str> {
        self.unmeetable.get(&member).map(String::as_str)
    }

    /// Notes that the rule of a closed gate says why it can no longer open.
    pub(crate) fn ruled(&mut self, member: u32, why: String) {
        if self.latches.contains_key(&member) {
            self.unmeetable.insert(member, why);
        }
    }

    /// Counts the move of a member at each gate that waits for it.
    pub(crate) fn moved(&mut self, members: &Members, member: u32, from: Option<LatchState>, to: LatchState) {
        let dependants = self.dependants.range((member, 0)..=(member, u32::MAX));
        for (_, dependant) in dependants {
            let gate = members.get(*dependant as usize).and_then(|row| row.gate());
            if let Some((gate, latch)) = gate.zip(self.latches.get_mut(dependant)) {
                latch.count_before(gate, member, from, to);
                self.unmeetable.remove(dependant);
            }
        }
    }

    /// Follows the row of a member to its gate, or away from it. The siblings are older, so their rows are there.
    pub(crate) fn put(&mut self, members: &Members, row: &Row) {
        let member = row.id.member;
        match row.closed_gate() {
            Some(_) if self.latches.contains_key(&member) => {}
            Some(gate) => {
                let mut latch = Latch::of_gate(gate);
                for sibling in &gate.after {
                    if let Some(row) = members.get(*sibling as usize) {
                        latch.count_before(gate, *sibling, None, LatchState::of(row));
                    }
                    self.dependants.insert((*sibling, member));
                }
                self.latches.insert(member, latch);
            }
            None => {
                if self.latches.remove(&member).is_some() {
                    self.unmeetable.remove(&member);
                    for sibling in row.gate().into_iter().flat_map(|gate| &gate.after) {
                        self.dependants.remove(&(*sibling, member));
                    }
                }
            }
        }
    }
}
