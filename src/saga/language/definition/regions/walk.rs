//! The walk: finds the region of each state, and reports links that cross the border of a branch.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};

use super::super::form::{Kind, Link, State, StateIndex};
use super::super::problem::{Problems, shown};
use super::{Branches, DEPTH_MAX, RegionIndex, Regions, look, name_of};

/// Steps back from Forks that are taken to find the states before them: enough for several hundred mistakes.
const STEPS_MAX: usize = 1_000_000;

/// What the walk found.
pub(super) struct Walked<'a> {
    pub(super) regions: Regions,
    /// Arrivals at Joins, in the order of the walk.
    pub(super) arrivals: Vec<Arrival<'a>>,
    /// Where a machine ends inside a branch.
    pub(super) ends: Vec<End<'a>>,
    /// Forks in the order of the walk, each with the regions of its branches.
    pub(super) forks: Vec<(StateIndex, std::ops::Range<usize>)>,
    /// Regions whose mistake has been reported, so that what follows from it is not reported as well.
    is_told: Vec<bool>,
}

/// An end inside a branch, and the link to it.
pub(super) struct End<'a> {
    pub(super) region: RegionIndex,
    pub(super) state: StateIndex,
    pub(super) at: &'a str,
}

/// A link that is followed.
#[derive(Clone, Copy)]
pub(super) struct Arrival<'a> {
    pub(super) to: StateIndex,
    pub(super) region: RegionIndex,
    /// None for the first state of the machine.
    pub(super) from: Option<StateIndex>,
    pub(super) at: &'a str,
    /// Whether the link is one of a Fork to the first state of a branch.
    is_first: bool,
    /// Whether the state is taken as reached here although a Fork lists it.
    is_forced: bool,
}

impl Walked<'_> {
    pub(super) fn tell(&mut self, region: RegionIndex) {
        if self.is_told.len() <= region.0 {
            self.is_told.resize(region.0 + 1, false);
        }
        if let Some(told) = self.is_told.get_mut(region.0) {
            *told = true;
        }
    }

    /// Marks a region and those in which it lies, up to the last one.
    pub(super) fn tell_up_to(&mut self, region: RegionIndex, last: Option<RegionIndex>) {
        let mut chain: Vec<RegionIndex> = self.regions.chain(region).collect();
        if let Some(last) = last.and_then(|last| chain.iter().position(|region| *region == last)) {
            chain.truncate(last + 1);
        }
        for region in chain {
            self.tell(region);
        }
    }

    pub(super) fn is_told(&self, region: RegionIndex) -> bool {
        self.is_told.get(region.0).copied().unwrap_or_default()
    }
}

struct Walk<'a, 'p> {
    states: &'a [State],
    branches: &'a Branches,
    problems: &'p mut Problems,
    found: Walked<'a>,
    /// Which state leads to each that has been expanded.
    from: Vec<Option<StateIndex>>,
    /// Whether a Fork lists the state as the first one of a branch.
    is_listed: Vec<bool>,
    todo: VecDeque<Arrival<'a>>,
    /// Arrivals at listed states before their Fork. The Fork says where they lie, if the walk meets it.
    late: VecDeque<Arrival<'a>>,
    /// Arrivals at Joins that have not been led on from: one of each Fork.
    waiting: HashMap<StateIndex, Vec<Arrival<'a>>>,
    /// The Joins with such arrivals, by the depth of each arrival.
    waiting_at: BTreeMap<usize, BTreeSet<StateIndex>>,
    /// The Joins that the branches of each Fork have reached.
    joins_of: HashMap<StateIndex, HashSet<StateIndex>>,
    steps: usize,
}

pub(super) fn walk<'a>(
    states: &'a [State],
    branches: &'a Branches,
    start: StateIndex,
    problems: &mut Problems,
) -> Walked<'a> {
    let mut is_listed = vec![false; states.len()];
    for (_, first) in branches.iter().flatten() {
        if let Some(listed) = is_listed.get_mut(first.0) {
            *listed = true;
        }
    }
    let regions = Regions {
        branches: Vec::new(),
        of: vec![None; states.len()],
        joins: vec![None; states.len()],
    };
    let found = Walked {
        regions,
        arrivals: Vec::new(),
        ends: Vec::new(),
        forks: Vec::new(),
        is_told: Vec::new(),
    };
    let first = Arrival {
        to: start,
        region: RegionIndex::OUTSIDE,
        from: None,
        at: "/StartState",
        is_first: false,
        is_forced: true,
    };
    let mut walk = Walk {
        states,
        branches,
        problems,
        found,
        from: vec![None; states.len()],
        is_listed,
        todo: VecDeque::from([first]),
        late: VecDeque::new(),
        waiting: HashMap::new(),
        waiting_at: BTreeMap::new(),
        joins_of: HashMap::new(),
        steps: 0,
    };
    walk.run();
    walk.found
}

impl<'a> Walk<'a, '_> {
    fn run(&mut self) {
        loop {
            while let Some(arrival) = self.todo.pop_front() {
                self.arrive(arrival);
            }
            if let Some((depth, joins)) = self.waiting_at.pop_last() {
                self.lead_on(depth, joins);
                continue;
            }
            let Some(arrival) = self.late.pop_front() else { return };
            // Either its Fork has been met, and this compares regions, or no other way leads on.
            self.arrive(Arrival {
                is_forced: true,
                ..arrival
            });
        }
    }

    fn arrive(&mut self, arrival: Arrival<'a>) {
        look();
        let Some(state) = self.states.get(arrival.to.0) else {
            return;
        };
        match state.kind {
            Kind::Fail { .. } | Kind::Trigger | Kind::Unsupported => {}
            Kind::Succeed => self.end(arrival.region, arrival.to, arrival.at),
            Kind::Join => self.arrive_at_join(arrival),
            Kind::Task(_) | Kind::Choice { .. } | Kind::Fork(_) => {
                if let Some(before) = self.found.regions.of(arrival.to) {
                    self.compare(&arrival, before);
                } else if self.is_late(&arrival) {
                    self.late.push_back(arrival);
                } else {
                    self.expand(&arrival, state);
                }
            }
        }
    }

    fn is_late(&self, arrival: &Arrival<'_>) -> bool {
        let is_listed = self.is_listed.get(arrival.to.0).copied().unwrap_or_default();
        is_listed && !arrival.is_first && !arrival.is_forced
    }

    fn assign(&mut self, arrival: &Arrival<'_>, region: RegionIndex) {
        if let Some(of) = self.found.regions.of.get_mut(arrival.to.0) {
            *of = Some(region);
        }
        if let Some(from) = self.from.get_mut(arrival.to.0) {
            *from = arrival.from;
        }
    }

    fn end(&mut self, region: RegionIndex, state: StateIndex, at: &'a str) {
        if region != RegionIndex::OUTSIDE {
            self.found.ends.push(End { region, state, at });
        }
    }

    fn follow(&mut self, state: &'a State, index: StateIndex, region: RegionIndex) {
        for link in state.flow() {
            self.lead(link, link.to, index, region, false);
        }
        if state.is_end() {
            self.end(region, index, &state.at);
        }
    }

    fn lead(&mut self, link: &'a Link, to: Option<StateIndex>, from: StateIndex, region: RegionIndex, is_first: bool) {
        let Some(to) = to else { return };
        self.todo.push_back(Arrival {
            to,
            region,
            from: Some(from),
            at: &link.at,
            is_first,
            is_forced: false,
        });
    }

    fn arrive_at_join(&mut self, arrival: Arrival<'a>) {
        self.found.arrivals.push(arrival);
        // Outside all branches there is no Fork, so nothing says where its followers lie.
        let Some(branch) = self.found.regions.branch(arrival.region).copied() else {
            return;
        };
        if self.found.regions.of(arrival.to).is_some() {
            return;
        }
        let joins = self.joins_of.entry(branch.fork).or_default();
        if joins.insert(arrival.to) {
            let depth = self.found.regions.depth(arrival.region);
            self.waiting_at.entry(depth).or_default().insert(arrival.to);
            self.waiting.entry(arrival.to).or_default().push(arrival);
        }
    }

    /// Leads on from the innermost Joins once nothing else leads on. Of several Forks that reach a Join, the one that
    /// reaches no other says where the followers lie, so that one wrong link does not move all that follows.
    fn lead_on(&mut self, depth: usize, joins: BTreeSet<StateIndex>) {
        let weight = |arrival: &Arrival<'a>| {
            look();
            let fork = self.found.regions.branch(arrival.region).map(|branch| branch.fork);
            let joins = fork.and_then(|fork| self.joins_of.get(&fork)).map_or(0, HashSet::len);
            (joins == 1, self.found.regions.depth(arrival.region))
        };
        let best = |join: &StateIndex| {
            self.waiting
                .get(join)?
                .iter()
                .max_by_key(|arrival| weight(arrival))
                .copied()
        };
        let chosen: Vec<Arrival<'a>> = joins.iter().filter_map(best).collect();
        for arrival in chosen {
            let region_depth = self.found.regions.depth(arrival.region);
            if region_depth < depth {
                // Others that wait lie deeper than the arrival that counts.
                self.waiting_at.entry(region_depth).or_default().insert(arrival.to);
                continue;
            }
            self.waiting.remove(&arrival.to);
            let parent = self.found.regions.parent(arrival.region);
            if let (Some(state), Some(parent)) = (self.states.get(arrival.to.0), parent) {
                self.assign(&arrival, parent);
                self.follow(state, arrival.to, parent);
            }
        }
    }

    fn expand(&mut self, arrival: &Arrival<'a>, state: &'a State) {
        self.assign(arrival, arrival.region);
        let Kind::Fork(fork) = &state.kind else {
            return self.follow(state, arrival.to, arrival.region);
        };
        let depth = self.found.regions.depth(arrival.region) + 1;
        if depth > DEPTH_MAX {
            let text = format!(
                "Fork [{}] is nested {depth} deep, at most {DEPTH_MAX}",
                shown(&state.name)
            );
            self.problems
                .error(&state.at, text, "move inner Forks into sub machines");
            return self.found.tell_up_to(arrival.region, None);
        }
        let first = self.found.regions.branches.len() + 1;
        for (number, to) in self.branches.get(arrival.to.0).into_iter().flatten() {
            let Some(link) = fork.branches.get(*number) else {
                continue;
            };
            let region = self.found.regions.add(arrival.region, arrival.to, *number);
            self.lead(link, Some(*to), arrival.to, region, true);
        }
        let after = self.found.regions.branches.len() + 1;
        self.found.forks.push((arrival.to, first..after));
    }

    /// A state that lies in a region is reached from another one.
    fn compare(&mut self, arrival: &Arrival<'a>, before: RegionIndex) {
        if before == arrival.region {
            return;
        }
        let (one, other) = self.found.regions.apart(before, arrival.region);
        if !self.is_own_branch(arrival, before, other) {
            self.tell_of_border(arrival, one, other);
        }
        if one.is_some() {
            self.found.tell_up_to(before, one);
        }
        self.found.tell(arrival.region);
    }

    /// Reports a Fork that one of its own branches leads to, and returns whether this is so.
    fn is_own_branch(&mut self, arrival: &Arrival<'a>, before: RegionIndex, entered: Option<RegionIndex>) -> bool {
        // The state lies outside of the branch that leads to it, and the Fork of the branch lies behind the state.
        let Some(region) = entered else { return false };
        let Some(branch) = self.found.regions.branch(region).copied() else {
            return false;
        };
        if branch.parent != before || !self.is_before(arrival.to, branch.fork) {
            return false;
        }
        let [fork, branch] = [name_of(self.states, branch.fork), self.branch_name(region)].map(shown);
        let text = format!("Fork [{fork}] is contained in its own branch [{branch}]");
        self.problems.error(arrival.at, text, "let the branch lead to its Join");
        true
    }

    /// Returns whether the walk came through a state on its way to a Fork.
    fn is_before(&mut self, state: StateIndex, fork: StateIndex) -> bool {
        let mut at = Some(fork);
        while let Some(index) = at {
            look();
            self.steps += 1;
            if index == state {
                return true;
            }
            if self.steps > STEPS_MAX {
                return false;
            }
            at = self.from.get(index.0).copied().flatten();
        }
        false
    }

    fn tell_of_border(&mut self, arrival: &Arrival<'a>, one: Option<RegionIndex>, other: Option<RegionIndex>) {
        let regions = &self.found.regions;
        let branch = |region: Option<RegionIndex>| regions.branch(region?);
        if let (Some(a), Some(b)) = (branch(one), branch(other))
            && a.fork == b.fork
        {
            let branches = if a.number <= b.number {
                (one, other)
            } else {
                (other, one)
            };
            let fork = a.fork;
            return self.tell_of_shared(arrival, fork, branches);
        }
        let from_before = self.from.get(arrival.to.0).copied().flatten();
        // By one of the two links the state lies inside a branch, by the other one outside of it.
        let inside = match (one, other) {
            (Some(one), None) => Some((one, from_before, arrival.from)),
            (Some(one), Some(_)) if !arrival.is_first => Some((one, from_before, arrival.from)),
            (_, Some(other)) => Some((other, arrival.from, from_before)),
            (None, None) => None,
        };
        let Some((inside, from_inside, from_outside)) = inside else {
            return;
        };
        let Some(fork) = regions.branch(inside).map(|branch| branch.fork) else {
            return;
        };
        let from = |from: Option<StateIndex>| from.map_or("StartState", |from| name_of(self.states, from));
        let [within, without] = [from(from_inside), from(from_outside)].map(shown);
        let [name, branch] = [name_of(self.states, fork), self.branch_name(inside)].map(shown);
        // The Fork itself leads to the first state of a branch alone.
        if from_inside == Some(fork) {
            let text = format!("state [{without}] enters branch [{branch}] of Fork [{name}] from outside");
            let hint = format!("let [{without}] lead to [{name}], or to a state of its own");
            return self.problems.error(arrival.at, text, hint);
        }
        let state = shown(name_of(self.states, arrival.to));
        let text = format!(
            "state [{state}] is reached both from inside branch [{branch}] of Fork [{name}] (from [{within}]) and \
             from outside it (from [{without}])"
        );
        let hint = format!("remove one of the two links; only its Join leads out of [{name}]");
        self.problems.error(arrival.at, text, hint);
    }

    fn tell_of_shared(
        &mut self,
        arrival: &Arrival<'a>,
        fork: StateIndex,
        (one, other): (Option<RegionIndex>, Option<RegionIndex>),
    ) {
        let branch = |region: Option<RegionIndex>| region.map_or("", |region| self.branch_name(region));
        let [one, other] = [branch(one), branch(other)].map(shown);
        let [state, fork] = [arrival.to, fork].map(|state| shown(name_of(self.states, state)));
        let text = format!(
            "state [{state}] belongs to branches [{one}] and [{other}] of Fork [{fork}]; branches must be disjoint"
        );
        let hint = format!("give branch [{other}] a state of its own, or let both lead to the Join");
        self.problems.error(arrival.at, text, hint);
    }

    fn branch_name(&self, region: RegionIndex) -> &'a str {
        branch_name(self.states, &self.found.regions, region)
    }
}

/// Returns the link of a Fork that is a branch.
pub(super) fn branch_link<'a>(states: &'a [State], regions: &Regions, region: RegionIndex) -> Option<&'a Link> {
    let branch = regions.branch(region)?;
    match &states.get(branch.fork.0)?.kind {
        Kind::Fork(fork) => fork.branches.get(branch.number),
        Kind::Task(_)
        | Kind::Choice { .. }
        | Kind::Trigger
        | Kind::Join
        | Kind::Succeed
        | Kind::Fail { .. }
        | Kind::Unsupported => None,
    }
}

/// Returns the name of a branch: that of its first state.
pub(super) fn branch_name<'a>(states: &'a [State], regions: &Regions, region: RegionIndex) -> &'a str {
    branch_link(states, regions, region).map_or("", |link| link.name.as_str())
}
