//! Pairs Forks with Joins, one to one, by what the walk has found.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::super::form::{Kind, State, StateIndex};
use super::super::problem::{Problems, shown};
use super::walk::{Arrival, Walked, branch_link, branch_name};
use super::{Branches, RegionIndex, look, name_of};

/// A Fork with the Joins that its branches reach: each once, by the first branch that reaches it.
struct Reached<'a> {
    fork: StateIndex,
    /// Its branches.
    regions: Range<usize>,
    joins: Vec<Arrival<'a>>,
}

struct Pairing<'a, 'p> {
    states: &'a [State],
    walked: &'p mut Walked<'a>,
    problems: &'p mut Problems,
    /// The Fork that each Join ends.
    owners: HashMap<StateIndex, StateIndex>,
}

pub(super) fn pair<'a>(states: &'a [State], branches: &Branches, walked: &mut Walked<'a>, problems: &mut Problems) {
    let reached = reached(walked);
    let mut pairing = Pairing {
        states,
        walked,
        problems,
        owners: HashMap::new(),
    };
    // A Fork with one Join has no other choice, so these Forks choose first.
    for fork in reached.iter().filter(|fork| fork.joins.len() == 1) {
        pairing.pair_one(fork);
    }
    for fork in reached.iter().filter(|fork| fork.joins.len() > 1) {
        pairing.pair_several(fork);
    }
    // From within: a Fork without a Join is why the branch in which it lies reaches none.
    for fork in reached.iter().rev().filter(|fork| fork.joins.is_empty()) {
        pairing.without_join(fork, branches);
    }
    pairing.find_joins_from_outside();
    let ended = pairing.find_ends();
    pairing.find_branches_without_join(&ended);
    pairing.find_joins_of_none();
}

fn reached<'a>(walked: &Walked<'a>) -> Vec<Reached<'a>> {
    let mut of_fork: HashMap<StateIndex, Vec<(usize, Arrival<'a>)>> = HashMap::new();
    for arrival in &walked.arrivals {
        look();
        if let Some(branch) = walked.regions.branch(arrival.region) {
            of_fork.entry(branch.fork).or_default().push((branch.number, *arrival));
        }
    }
    let of = |(fork, regions): &(StateIndex, Range<usize>)| {
        let mut arrivals = of_fork.remove(fork).unwrap_or_default();
        arrivals.sort_by_key(|(number, _)| *number);
        let mut seen = HashSet::new();
        let joins = arrivals.into_iter().map(|(_, arrival)| arrival);
        Reached {
            fork: *fork,
            regions: regions.clone(),
            joins: joins.filter(|arrival| seen.insert(arrival.to)).collect(),
        }
    };
    walked.forks.iter().map(of).collect()
}

impl<'a> Pairing<'a, '_> {
    fn name(&self, state: StateIndex) -> Cow<'a, str> {
        shown(name_of(self.states, state))
    }

    fn branch(&self, region: RegionIndex) -> Cow<'a, str> {
        shown(branch_name(self.states, &self.walked.regions, region))
    }

    fn place(&self, state: StateIndex) -> &'a str {
        self.states.get(state.0).map_or("", |state| state.at.as_str())
    }

    /// Marks the branches in which a Fork lies: a mistake in it is told.
    fn tell_around(&mut self, fork: StateIndex) {
        if let Some(region) = self.walked.regions.of(fork) {
            self.walked.tell_up_to(region, None);
        }
    }

    fn own(&mut self, fork: StateIndex, join: StateIndex) {
        self.owners.insert(join, fork);
        if let Some(of) = self.walked.regions.joins.get_mut(fork.0) {
            *of = Some(join);
        }
    }

    fn pair_one(&mut self, reached: &Reached<'a>) {
        let Some(arrival) = reached.joins.first() else { return };
        match self.owners.get(&arrival.to).copied() {
            None => self.own(reached.fork, arrival.to),
            Some(owner) => self.tell_of_both(owner, reached.fork, arrival),
        }
    }

    fn tell_of_both(&mut self, owner: StateIndex, fork: StateIndex, arrival: &Arrival<'a>) {
        let [join, one, other] = [arrival.to, owner, fork].map(|state| self.name(state));
        let text =
            format!("Join [{join}] ends both Fork [{one}] and Fork [{other}]; each Fork needs a Join of its own");
        let hint = format!("add a Join, and let the branches of [{other}] lead to it");
        self.problems.error(arrival.at, text, hint);
        self.tell_around(owner);
        self.tell_around(fork);
    }

    fn pair_several(&mut self, reached: &Reached<'a>) {
        let fork = reached.fork;
        let own = reached
            .joins
            .iter()
            .find(|arrival| !self.owners.contains_key(&arrival.to));
        let Some(own) = own.map(|arrival| arrival.to) else {
            for arrival in &reached.joins {
                if let Some(owner) = self.owners.get(&arrival.to).copied() {
                    self.tell_of_both(owner, fork, arrival);
                }
            }
            return;
        };
        self.own(fork, own);
        for arrival in reached.joins.iter().filter(|arrival| arrival.to != own) {
            let owner = self.owners.get(&arrival.to).copied();
            let regions = &self.walked.regions;
            let is_inner = |owner: &StateIndex| regions.of(*owner).and_then(|of| regions.inside(of, fork)).is_some();
            match owner.filter(is_inner) {
                Some(inner) => self.tell_of_outside(inner, arrival),
                None => {
                    let [name, one, other] = [fork, own, arrival.to].map(|state| self.name(state));
                    let branch = self.branch(arrival.region);
                    let text = format!("Fork [{name}] reaches two Joins: [{one}] and [{other}] (branch [{branch}])");
                    self.problems
                        .error(arrival.at, text, format!("let branch [{branch}] lead to [{one}]"));
                }
            }
        }
        self.tell_around(fork);
    }

    fn tell_of_outside(&mut self, owner: StateIndex, arrival: &Arrival<'a>) {
        let [join, fork] = [arrival.to, owner].map(|state| self.name(state));
        let from = arrival.from.map_or(Cow::Borrowed("StartState"), |from| self.name(from));
        let text = format!("Join [{join}] of Fork [{fork}] is reached from outside it (from [{from}])");
        let hint = format!("let [{from}] lead to [{fork}], or to a state behind [{join}]");
        self.problems.error(arrival.at, text, hint);
    }

    fn without_join(&mut self, reached: &Reached<'a>, branches: &Branches) {
        let fork = reached.fork;
        let has_branches = branches.get(fork.0).is_some_and(|branches| !branches.is_empty());
        let is_told = reached
            .regions
            .clone()
            .any(|region| self.walked.is_told(RegionIndex(region)));
        if has_branches && !is_told {
            let text = format!("Fork [{}] has no paired Join", self.name(fork));
            self.problems
                .error(self.place(fork), text, "let its branches lead to a Join");
        }
        self.tell_around(fork);
    }

    /// Arrivals at Joins outside all branches.
    fn find_joins_from_outside(&mut self) {
        let arrivals = self.walked.arrivals.iter().copied();
        let outside: Vec<Arrival<'a>> = arrivals
            .filter(|arrival| arrival.region == RegionIndex::OUTSIDE)
            .collect();
        let mut alone = HashSet::new();
        for arrival in outside {
            match self.owners.get(&arrival.to).copied() {
                Some(owner) => self.tell_of_outside(owner, &arrival),
                None if alone.insert(arrival.to) => self.tell_of_alone(arrival.to),
                None => {}
            }
        }
    }

    fn tell_of_alone(&mut self, join: StateIndex) {
        let text = format!("Join [{}] is not paired with any Fork", self.name(join));
        self.problems.error(
            self.place(join),
            text,
            "remove it, or let the branches of a Fork lead to it",
        );
    }

    /// Reports ends inside branches, and returns these branches in order.
    fn find_ends(&mut self) -> Vec<RegionIndex> {
        let ends = std::mem::take(&mut self.walked.ends);
        let mut ended = Vec::with_capacity(ends.len());
        for end in ends {
            ended.push(end.region);
            let Some(fork) = self.walked.regions.branch(end.region).map(|branch| branch.fork) else {
                continue;
            };
            if self.walked.is_told(end.region) || self.walked.regions.join(fork).is_none() {
                continue;
            }
            let (branch, fork, state) = (self.branch(end.region), self.name(fork), self.name(end.state));
            let text = format!("branch [{branch}] of Fork [{fork}] can end at [{state}] without reaching a Join");
            self.problems
                .error(end.at, text, format!("let it lead to the Join of [{fork}]"));
        }
        ended.sort_unstable();
        ended
    }

    fn find_branches_without_join(&mut self, ended: &[RegionIndex]) {
        let arrived: HashSet<RegionIndex> = self.walked.arrivals.iter().map(|arrival| arrival.region).collect();
        let is_known = |region: &RegionIndex| arrived.contains(region) || ended.binary_search(region).is_ok();
        let all = self.walked.regions.all().map(|(region, branch)| (region, branch.fork));
        let without: Vec<(RegionIndex, StateIndex)> = all
            .filter(|(region, _)| !is_known(region) && !self.walked.is_told(*region))
            .collect();
        for (region, fork) in without {
            let Some(join) = self.walked.regions.join(fork) else {
                continue;
            };
            let at = branch_link(self.states, &self.walked.regions, region).map_or("", |link| link.at.as_str());
            let (branch, fork, join) = (self.branch(region), self.name(fork), self.name(join));
            let text = format!("branch [{branch}] of Fork [{fork}] never reaches Join [{join}]");
            self.problems
                .error(at, text, format!("let one of its states lead to [{join}]"));
        }
    }

    /// Joins that no step leads to. A Join with a link to it may be one because of another mistake.
    fn find_joins_of_none(&mut self) {
        let linked: HashSet<StateIndex> = match self.problems.errors() {
            0 => HashSet::new(),
            _ => self
                .states
                .iter()
                .flat_map(State::flow)
                .filter_map(|link| link.to)
                .collect(),
        };
        let joins = self.states.iter().enumerate();
        let joins = joins.filter(|(_, state)| matches!(state.kind, Kind::Join));
        let joins: Vec<StateIndex> = joins.map(|(index, _)| StateIndex(index)).collect();
        for join in joins.into_iter().filter(|join| !linked.contains(join)) {
            if !self.owners.contains_key(&join) {
                self.tell_of_alone(join);
            }
        }
    }
}
