//! What a saga must be by now, computed from its definition, the calls and the decisions, and from nothing of the engine.
//!
//! All is replayed from the beginning, member by member. A member whose machine failed stops; which machines failed, a first
//! replay finds out.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use procession::ProcedureId;
use procession_kernel::Timestamp;
use serde_json::{Map, Value};

use super::deaths::Death;
use super::member::{Line, Member, Moment, Part, Phase, Stands};
use super::outside::Called;
use super::shape::{Drawn, Graph, State};

/// What a person decided about a member.
#[derive(Clone, Debug)]
pub(super) struct Decided {
    pub(super) path: String,
    pub(super) when: Moment,
    pub(super) decision: Decision,
}

#[derive(Clone, Debug)]
pub(super) enum Decision {
    Forward(Map<String, Value>),
    Skip(Map<String, Value>),
}

/// An undo that a person skipped, as the engine's history says.
#[derive(Clone, Debug)]
pub(super) struct SkippedUndo {
    pub(super) member: ProcedureId,
    pub(super) state: String,
    pub(super) when: Moment,
}

/// What happened so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    pub(super) params: Map<String, Value>,
    pub(super) log: Vec<Called>,
    pub(super) decided: Vec<Decided>,
    pub(super) skipped: Vec<SkippedUndo>,
    /// When nothing was left to do but to wait.
    pub(super) quiet: Vec<Moment>,
    /// The ends of the lives before this one.
    pub(super) deaths: Vec<Death>,
    /// Poisoned members that a person let go on, each with the life in which it did.
    pub(super) released: BTreeSet<(usize, ProcedureId)>,
    /// When the whole saga was aborted.
    pub(super) aborted: Option<Moment>,
    pub(super) life: usize,
    pub(super) now: Timestamp,
    pub(super) started: Timestamp,
    pub(super) root: Option<ProcedureId>,
    /// The ids of the children of each member, in the order of their births.
    pub(super) children: BTreeMap<ProcedureId, Vec<ProcedureId>>,
}

/// A member that rests.
#[derive(Clone, Debug)]
pub(super) struct Resting {
    pub(super) path: String,
    pub(super) id: Option<ProcedureId>,
    pub(super) state: String,
    pub(super) can_skip: bool,
    pub(super) scopes: Vec<String>,
}

/// A call that must be out, or an earlier failure forbids it.
#[derive(Clone, Debug)]
pub(super) struct Due {
    pub(super) scopes: Vec<String>,
    pub(super) since: Timestamp,
    pub(super) state: String,
    pub(super) is_out: bool,
}

/// A member has made a machine fail that it lies in.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    scope: String,
    when: Moment,
    /// The path of the member; `None` for an abort.
    by: Option<String>,
}

/// What was found by a replay.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) members: Vec<Member>,
    pub(super) rests: Vec<Resting>,
    pub(super) due: Vec<Due>,
    pub(super) stands: Vec<Stands>,
    /// Machines that failed, by their paths.
    pub(super) failed: BTreeMap<String, Moment>,
    /// What made them fail.
    pub(super) failures: Vec<Failure>,
    /// Calls that belong to families of their own.
    pub(super) sent: Vec<(String, String)>,
    /// What is wrong.
    pub(super) wrong: Vec<String>,
}

type Key = (String, String, Option<usize>);

pub(super) struct Model<'a> {
    pub(super) drawn: &'a Drawn,
    pub(super) facts: &'a Facts,
    /// Tokens of the visits to a state at a place, in their order.
    tokens: HashMap<Key, Vec<String>>,
    tries: HashMap<(String, u32), usize>,
    used: HashMap<Key, usize>,
    /// Batches in which members have begun children, by their paths.
    batches: HashMap<String, usize>,
    /// How many children members have, by their paths.
    born: HashMap<String, usize>,
    /// How many visits to tasks have stood so far.
    pub(super) stood: usize,
    consumed: BTreeSet<usize>,
    /// Machines that failed, as the replay before found.
    pub(super) failed: BTreeMap<String, Moment>,
    failures: Vec<Failure>,
    pub(super) found: Found,
}

/// The path of the root.
pub(super) const ROOT: &str = "root";

/// Returns what a saga must be by now. The root is the last member.
pub(super) fn replay(drawn: &Drawn, facts: &Facts) -> Found {
    let mut before = Found::default();
    // A failure cuts off another one that a replay without it would find.
    for _ in 0..4 {
        let mut model = Model::new(drawn, facts, &before);
        model.root();
        let found = model.finish();
        if found.failed == before.failed {
            return found;
        }
        before = found;
    }
    let mut model = Model::new(drawn, facts, &before);
    model.root();
    model.finish()
}

impl Facts {
    /// Returns the first event after this one at which nothing was left to do but to wait.
    pub(super) fn quiet_after(&self, event: usize) -> usize {
        let mut quiet = self.quiet.iter().map(|quiet| quiet.event);
        quiet.find(|quiet| *quiet > event).unwrap_or(usize::MAX)
    }

    /// Returns whether a crash has lost what an undo came to, so the engine has called it again.
    pub(super) fn is_lost(&self, undo: &Called) -> bool {
        let Some((ended, ..)) = undo.ended else { return false };
        let is_again = |other: &Called| other.undoes && other.token == undo.token && other.life > undo.life;
        self.may_be_lost(ended) && self.log.iter().any(is_again)
    }
}

impl<'a> Model<'a> {
    fn new(drawn: &'a Drawn, facts: &'a Facts, before: &Found) -> Self {
        let (mut tokens, mut tries) = (HashMap::<Key, Vec<String>>::new(), HashMap::new());
        for (place, called) in facts.log.iter().enumerate().filter(|(_, called)| !called.undoes) {
            if called.member.family != called.saga.family {
                continue;
            }
            let key = (called.at.clone(), called.state.clone(), called.index);
            let known = tokens.entry(key).or_default();
            if !known.contains(&called.token) {
                known.push(called.token.clone());
            }
            tries.insert((called.token.clone(), called.attempt), place);
        }
        Self {
            drawn,
            facts,
            tokens,
            tries,
            used: HashMap::new(),
            batches: HashMap::new(),
            born: HashMap::new(),
            stood: 0,
            consumed: BTreeSet::new(),
            failed: before.failed.clone(),
            failures: before.failures.clone(),
            found: Found::default(),
        }
    }

    fn root(&mut self) {
        let graph = self.drawn.graph(0);
        let mut root = Member::new(ROOT.to_owned(), 0, vec![ROOT.to_owned()], Part::Root, graph.start);
        root.id = self.facts.root;
        root.context = self.facts.params.clone();
        root.now.at = self.facts.started;
        if let Some(when) = self.facts.aborted {
            self.fails(ROOT, when, None);
        }
        root.commit();
        self.run(&mut root);
        self.found.members.push(root);
    }

    fn finish(mut self) -> Found {
        for (place, called) in self.facts.log.iter().enumerate() {
            let is_own = !called.undoes && called.member.family == called.saga.family;
            let last = self.tries.get(&(called.token.clone(), called.attempt));
            if is_own && last.is_none_or(|last| !self.consumed.contains(last)) {
                self.found.wrong.push(format!(
                    "call {place} of {} at \"{}\" has no reason",
                    called.state, called.at
                ));
            }
        }
        self.found
    }

    pub(super) fn graph(&self, member: &Member) -> &'a Graph {
        self.drawn.graph(member.machine)
    }

    pub(super) fn state(&self, member: &Member, state: usize) -> &'a State {
        &self.graph(member).states[state]
    }

    /// Returns the names of the children that a member opens at these places of a state, `width` at a time. Each path has the
    /// number of the batch in which the child begins, so the paths differ each time. Children that run one after another are
    /// a batch each. All are born at once, in this order.
    pub(super) fn names(&mut self, member: &Member, state: usize, places: &[usize], width: usize) -> Vec<Name> {
        let name = self.state(member, state).name.clone();
        let batch = self.batches.entry(member.path.clone()).or_default();
        *batch += 1;
        let born = self.born.entry(member.path.clone()).or_default();
        let ids = member.id.and_then(|id| self.facts.children.get(&id));
        let mut names = Vec::with_capacity(places.len());
        for place in places {
            names.push(Name {
                path: format!("{}/{name}[{place}]~{batch}", member.path),
                id: ids.and_then(|ids| ids.get(*born)).copied(),
            });
            *born += 1;
            *batch += usize::from(width == 1);
        }
        names
    }

    pub(super) fn fails(&mut self, scope: &str, when: Moment, by: Option<&str>) {
        let known = self.found.failed.entry(scope.to_owned()).or_insert(when);
        *known = (*known).min(when);
        self.found.failures.push(Failure {
            scope: scope.to_owned(),
            when,
            by: by.map(str::to_owned),
        });
    }

    /// Returns whether a stage of a member came before all that made its machines fail at this moment.
    fn is_before_failures(&self, member: &Member) -> bool {
        let now = member.now;
        let of_scope = |failure: &&Failure| failure.when.at == now.at && member.scopes.contains(&failure.scope);
        let mut failures = self.failures.iter().filter(of_scope);
        failures.all(|failure| {
            // All was quiet between the two, so nothing was left of what the first one began.
            let is_between =
                |quiet: &Moment| quiet.at == now.at && (now.event..failure.when.event).contains(&quiet.event);
            let was_quiet = self.facts.quiet.iter().any(is_between);
            was_quiet || failure.by.as_ref().is_some_and(|by| is_before(&member.path, by))
        })
    }

    /// Returns when the first of the machines failed in which a member lies.
    pub(super) fn failure(&self, scopes: &[String]) -> Option<Moment> {
        scopes.iter().filter_map(|scope| self.failed.get(scope)).min().copied()
    }

    /// A stage begins that calls nothing. Returns whether it can have run.
    pub(super) fn begins(&self, member: &mut Member) -> bool {
        match self.failure(&member.scopes) {
            Some(failure) if failure.at < member.now.at => false,
            Some(failure) if failure.at == member.now.at => {
                member.maybe |= !self.is_before_failures(member);
                true
            }
            Some(_) | None => true,
        }
    }

    /// Begins a visit that calls a service: finds the token of its calls.
    pub(super) fn token(&mut self, member: &Member, state: &str) -> Option<String> {
        let index = match member.part {
            Part::Element { index, .. } => Some(index),
            Part::Root | Part::Sub | Part::Branch { .. } => None,
        };
        let key = (member.at(), state.to_owned(), index);
        let place = *self.used.get(&key).unwrap_or(&0);
        let token = self.tokens.get(&key)?.get(place)?.clone();
        let begun = self.facts.log.iter().find(|called| called.token == token)?.begun;
        // A sub machine that failed may have another one after it, whose calls are those.
        let is_anothers = |failure: Moment| {
            let mut decided = self.facts.decided.iter().map(|decided| decided.when.event);
            failure.at < begun.1 || decided.any(|event| failure.event < event && event < begun.0)
        };
        if self.failure(&member.scopes).is_some_and(is_anothers) {
            return None;
        }
        self.used.insert(key, place + 1);
        Some(token)
    }

    /// Returns the last call of a try.
    pub(super) fn call(&mut self, token: &str, attempt: u32) -> Option<&'a Called> {
        let place = *self.tries.get(&(token.to_owned(), attempt))?;
        self.consumed.insert(place);
        self.facts.log.get(place)
    }

    /// Returns when a try was called for the first time: what a restart cut off is called again.
    pub(super) fn first_call(&self, of: &Called) -> Moment {
        let is_it = |called: &&Called| called.token == of.token && called.attempt == of.attempt && !called.undoes;
        let (event, at) = self.facts.log.iter().find(is_it).unwrap_or(of).begun;
        Moment { at, event }
    }

    /// What a member, those around it and those below it did until it calls is on disk by then.
    pub(super) fn is_behind(&mut self, member: &Member, called: Moment) {
        let is_around = |outer: &str, inner: &str| inner.strip_prefix(outer).is_some_and(|rest| rest.starts_with('/'));
        for stands in &mut self.found.stands {
            let (of, path) = (&stands.member, &member.path);
            if of == path || is_around(of, path) || is_around(path, of) {
                stands.until = stands.until.min(called.event);
            }
        }
    }

    pub(super) fn line(&mut self, member: &mut Member, state: usize, status: &'static str) {
        member.noted = true;
        member.list.push(Line {
            state: self.state(member, state).name.clone(),
            status,
            optional: member.maybe,
        });
    }

    /// Returns the next decision about a member that rests.
    pub(super) fn decision(&self, member: &Member) -> Option<&'a Decided> {
        let mut of = self.facts.decided.iter().filter(|decided| decided.path == member.path);
        of.nth(member.rested)
    }

    /// Runs a member as far as it goes.
    pub(super) fn run(&mut self, member: &mut Member) {
        let is_call = |task: &super::shape::Task| task.is_direct() || matches!(member.part, Part::Element { .. });
        let start = member.pc.map(|start| &self.state(member, start).kind);
        let calls = matches!(start, Some(super::shape::Kind::Task(task)) if is_call(task));
        if !calls && !self.begins(member) {
            member.phase = Phase::Out;
        }
        let mut steps = 0;
        while member.phase == Phase::Going {
            self.step(member);
            steps += 1;
            if steps > 10_000 {
                self.found
                    .wrong
                    .push(format!("the model of {} goes on and on", member.path));
                return;
            }
        }
    }
}

/// What a child is called.
pub(super) struct Name {
    pub(super) path: String,
    /// `None` if the engine has no such child.
    pub(super) id: Option<ProcedureId>,
}

/// Returns whether a stage of one member must have come before a failure of another one. A member goes on only when all the
/// children have ended that it opened last, so what lies in an earlier batch of the same member, or around the one that
/// failed, had come before it. Within a batch nothing is known.
fn is_before(member: &str, failed: &str) -> bool {
    let batch = |part: &str| part.rsplit_once('~').and_then(|(_, batch)| batch.parse::<usize>().ok());
    let mut parts = member.split('/').zip(failed.split('/'));
    match parts.find(|(part, other)| part != other) {
        Some((part, other)) => batch(part) < batch(other),
        None => true,
    }
}
