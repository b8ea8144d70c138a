//! Which states lie in which branch of which Fork, and which Join ends which Fork.
//!
//! One walk from the first state gives each state a *region*: the path of (Fork, branch) in which it lies. The first
//! state of a branch lies in the Fork's region and that branch; what follows a state lies where the state lies; what
//! follows a Join lies where its Fork lies. Fail and CompensationTrigger lie outside all regions, and any branch may
//! reach them. Each state is expanded once and each further arrival only compares regions, so the walk is linear in
//! states and links. It has a queue of its own: a hostile file cannot exhaust the stack.

mod lists;
mod pairing;
mod walk;

use super::form::{State, StateIndex};
use super::machine::Draft;
use super::problem::Problems;

/// Counts one look at a state, a link or a region, in tests: their number says whether the walk is linear.
#[cfg(test)]
fn look() {
    tests::LOOKS.with(|looks| looks.set(looks.get() + 1));
}
#[cfg(not(test))]
const fn look() {}

/// Forks that may lie in one another.
const DEPTH_MAX: usize = 16;

/// A region by its number; the first one is the machine outside all branches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RegionIndex(
    /// The number, from 0.
    pub usize,
);

impl RegionIndex {
    /// Outside all branches.
    pub const OUTSIDE: Self = Self(0);
}

/// A branch of a Fork.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Branch {
    /// The region in which the Fork lies.
    pub parent: RegionIndex,
    /// The Fork that begins it.
    pub fork: StateIndex,
    /// The place of the branch in the Fork's list.
    pub number: usize,
    depth: usize,
}

/// The regions of a machine.
#[derive(Debug, Default)]
pub struct Regions {
    /// Of each region but the first.
    branches: Vec<Branch>,
    /// Of each state; none for those that lie outside all regions, or that no step leads to.
    of: Vec<Option<RegionIndex>>,
    /// Of each state that is a paired Fork: its Join.
    joins: Vec<Option<StateIndex>>,
}

impl Regions {
    /// Returns the region of a state; none if it lies outside all, or if no step leads to it.
    pub fn of(&self, state: StateIndex) -> Option<RegionIndex> {
        self.of.get(state.0).copied().flatten()
    }

    /// Returns the branch that is a region; none for the first one.
    pub fn branch(&self, region: RegionIndex) -> Option<&Branch> {
        self.branches.get(region.0.checked_sub(1)?)
    }

    /// Returns all regions but the first, each after the one in which it lies.
    pub(crate) fn all(&self) -> impl Iterator<Item = (RegionIndex, &Branch)> {
        self.branches
            .iter()
            .enumerate()
            .map(|(index, branch)| (RegionIndex(index + 1), branch))
    }

    /// Returns the Join that ends a Fork.
    pub fn join(&self, fork: StateIndex) -> Option<StateIndex> {
        self.joins.get(fork.0).copied().flatten()
    }

    fn parent(&self, region: RegionIndex) -> Option<RegionIndex> {
        self.branch(region).map(|branch| branch.parent)
    }

    fn depth(&self, region: RegionIndex) -> usize {
        self.branch(region).map_or(0, |branch| branch.depth)
    }

    fn add(&mut self, parent: RegionIndex, fork: StateIndex, number: usize) -> RegionIndex {
        let depth = self.depth(parent) + 1;
        self.branches.push(Branch {
            parent,
            fork,
            number,
            depth,
        });
        RegionIndex(self.branches.len())
    }

    /// Returns a region and those in which it lies, the innermost first, without the first one.
    fn chain(&self, region: RegionIndex) -> impl Iterator<Item = RegionIndex> {
        let first = (region != RegionIndex::OUTSIDE).then_some(region);
        std::iter::successors(first, |region| {
            look();
            self.parent(*region).filter(|parent| *parent != RegionIndex::OUTSIDE)
        })
    }

    /// Returns the branch of this Fork in which a region lies.
    fn inside(&self, region: RegionIndex, fork: StateIndex) -> Option<RegionIndex> {
        self.chain(region)
            .find(|region| self.branch(*region).is_some_and(|branch| branch.fork == fork))
    }

    /// Returns, of two regions, the outermost branch of each that the other does not lie in.
    fn apart(&self, one: RegionIndex, other: RegionIndex) -> (Option<RegionIndex>, Option<RegionIndex>) {
        let (mut one, mut other) = (one, other);
        let (mut below_one, mut below_other) = (None, None);
        while one != other {
            look();
            let is_deeper = self.depth(one) >= self.depth(other);
            let (region, below) = match is_deeper {
                true => (&mut one, &mut below_one),
                false => (&mut other, &mut below_other),
            };
            *below = Some(*region);
            let Some(parent) = self.parent(*region) else { break };
            *region = parent;
        }
        (below_one, below_other)
    }
}

/// Finds regions and pairs, and reports all that breaks their rules.
pub(super) fn find(draft: &Draft, problems: &mut Problems) -> Regions {
    let branches = lists::check(&draft.states, problems);
    let Some(start) = draft.start.as_ref().and_then(|link| link.to) else {
        return Regions::default();
    };
    let mut walked = walk::walk(&draft.states, &branches, start, problems);
    pairing::pair(&draft.states, &branches, &mut walked, problems);
    walked.regions
}

/// The branches of each state that is a Fork, as far as they are right: their places in its list and first states.
type Branches = Vec<Vec<(usize, StateIndex)>>;

/// Returns the name of a state.
fn name_of(states: &[State], index: StateIndex) -> &str {
    states.get(index.0).map_or("", |state| state.name.as_str())
}

#[cfg(test)]
mod tests;
