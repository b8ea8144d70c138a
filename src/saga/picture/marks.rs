//! What the members of a machine have come to at each of its states, and the way that they went.

use std::collections::{BTreeMap, BTreeSet};

use procession_actors::journal::codec;
use procession_actors::view::Status;
use procession_kernel::{Ending, HistoryEntry, ProcedureId, ProcedureState, Timestamp, WaitReason};
use procession_saga_language::definition::{Call, Definition, Kind, RegionIndex, State, StateIndex, Task};

use super::super::machine::{Note, UndoNote};
use super::super::reader::Found;
use super::super::reading::{SagaInstance, Standing, standing_of};
use super::super::status::SagaStatus;

/// What is known of one state.
#[derive(Default)]
pub(super) struct Facts {
    pub(super) visited: bool,
    pub(super) status: Option<SagaStatus>,
    pub(super) tries: u32,
    pub(super) took_ms: u64,
    /// Instances that were undone.
    pub(super) compensated: usize,
    /// Members that are there: `runs`, `waits`, `rests`, `undoes` or `undo_rests`.
    pub(super) here: Vec<(ProcedureId, &'static str)>,
    /// Elements by what they have come to.
    pub(super) counts: BTreeMap<&'static str, u32>,
}

/// A member of the machine: the machine itself, a branch or an element.
struct Member<'a> {
    row: &'a Status,
    /// Where it runs; none for an element.
    region: Option<RegionIndex>,
    /// The state at which it is, as far as entries have told.
    at: Option<StateIndex>,
    /// When its stages began, and at which states.
    begun: Vec<(Timestamp, StateIndex)>,
    /// What its last try came to.
    status: Option<SagaStatus>,
}

pub(super) struct Marks<'a> {
    definition: &'a Definition,
    pub(super) facts: Vec<Facts>,
    pub(super) taken: BTreeSet<(StateIndex, StateIndex)>,
    /// States that were undone.
    pub(super) undone: BTreeSet<StateIndex>,
    /// Sub machines, each with the state that runs it.
    pub(super) subs: Vec<(StateIndex, &'a Status)>,
    members: BTreeMap<u32, Member<'a>>,
}

impl<'a> Marks<'a> {
    pub(super) fn of(definition: &'a Definition, found: &'a Found, instance: &SagaInstance) -> Self {
        let mut marks = Self {
            definition,
            facts: definition.states.iter().map(|_| Facts::default()).collect(),
            taken: BTreeSet::new(),
            undone: BTreeSet::new(),
            subs: Vec::new(),
            members: BTreeMap::new(),
        };
        marks.find_members(found);
        for entry in found.page.entries.iter().rev() {
            marks.follow(entry);
        }
        marks.count(instance);
        marks.find_subs(found);
        marks.place(found, instance.standing);
        marks
    }

    /// Parts of a machine have its kind. What lies in the region of its parent is an element of a Loop, and what lies
    /// deeper a branch.
    fn find_members(&mut self, found: &'a Found) {
        for row in &found.members {
            let parent = row.parent.and_then(|parent| self.members.get(&parent.member));
            let at = self.definition.index_of(&row.stage);
            let own = at.and_then(|at| self.definition.regions.of(at));
            let region = match parent {
                _ if row.id == found.root.id => Some(RegionIndex::OUTSIDE),
                Some(parent) if row.kind == found.root.kind => {
                    let is_loop = self.task(at).is_some_and(|task| task.repeat.is_some());
                    // A branch may have gone on to what lies outside all of them.
                    let is_element = is_loop && (own == parent.region || parent.region.is_none());
                    (!is_element).then(|| own.unwrap_or(RegionIndex(usize::MAX)))
                }
                Some(_) | None => continue,
            };
            let member = Member {
                row,
                region,
                at: None,
                begun: Vec::new(),
                status: None,
            };
            self.members.insert(row.id.member, member);
        }
    }

    fn task(&self, at: Option<StateIndex>) -> Option<&'a Task> {
        at.and_then(|at| self.definition.state(at)).and_then(State::task)
    }

    fn facts(&mut self, at: Option<StateIndex>) -> Option<&mut Facts> {
        at.and_then(|at| self.facts.get_mut(at.0))
    }

    /// Follows a member through one stage, or an undo.
    fn follow(&mut self, entry: &HistoryEntry) {
        let Some(at) = self
            .stage_of(entry)
            .filter(|_| self.members.contains_key(&entry.member))
        else {
            return;
        };
        if !entry.ending.is_stage() {
            return self.undo(at, entry);
        }
        self.go(entry.member, at);
        if let Some(member) = self.members.get_mut(&entry.member) {
            member.begun.push((entry.begun, at));
        }
        for name in note::<Note>(entry).unwrap_or_default().routed {
            if let Some(to) = self.definition.index_of(&name) {
                self.go(entry.member, to);
            }
        }
    }

    fn stage_of(&self, entry: &HistoryEntry) -> Option<StateIndex> {
        self.definition.index_of(&codec::describe(entry.stage.as_slice()))
    }

    fn undo(&mut self, at: StateIndex, entry: &HistoryEntry) {
        let note = note::<UndoNote>(entry).unwrap_or_default();
        let is_undone = entry.ending == Ending::Undone;
        if is_undone && !note.passed_over {
            self.undone.insert(at);
        }
        let compensator = note.compensator.and_then(|name| self.definition.index_of(&name));
        if let Some(facts) = self.facts(compensator) {
            let status = match is_undone {
                true => SagaStatus::Success,
                false => SagaStatus::Failed,
            };
            facts.tried(status, 1, (entry.begun, entry.ended));
        }
    }

    /// Moves a member to a state.
    fn go(&mut self, number: u32, to: StateIndex) {
        let Some(member) = self.members.get_mut(&number) else {
            return;
        };
        let before = member.at.replace(to);
        let regions = &self.definition.regions;
        let from = match before {
            // Behind a Fork a member goes on at its Join, and that costs no stage of its own.
            Some(before) => Some(regions.join(before).filter(|join| *join != to).unwrap_or(before)),
            // A branch begins at its Fork.
            None => regions
                .of(to)
                .and_then(|region| regions.branch(region))
                .map(|branch| branch.fork),
        };
        for at in [from, Some(to)] {
            if let Some(facts) = self.facts(at) {
                facts.visited = true;
            }
        }
        self.taken
            .extend(from.filter(|from| *from != to).map(|from| (from, to)));
    }

    fn count(&mut self, instance: &SagaInstance) {
        for state in &instance.states {
            if let Some(member) = self.members.get_mut(&state.member.member) {
                member.status = Some(state.status);
                if let Some(facts) = self.facts(self.definition.index_of(&state.state)) {
                    facts.tried(state.status, state.tries, state.ran);
                    facts.compensated += usize::from(state.is_compensated);
                }
            }
        }
    }

    /// Sub machines are of another kind. Their state is the one that their parent came to when they were born.
    fn find_subs(&mut self, found: &'a Found) {
        let others = found
            .members
            .iter()
            .filter(|row| !self.members.contains_key(&row.id.member));
        let subs = others.filter_map(|row| {
            let parent = self.members.get(&row.parent?.member)?;
            let name = row.kind.as_str().strip_prefix("saga.")?;
            let runs = |at: &StateIndex| {
                let task = self.task(Some(*at));
                task.is_some_and(|task| matches!(&task.call, Call::Machine { machine } if machine == name))
            };
            let later = parent.begun.iter().filter(|(begun, _)| *begun >= row.submitted);
            let now = self.definition.index_of(&parent.row.stage);
            let at = later.map(|(_, at)| *at).chain(now).find(runs)?;
            Some((at, row))
        });
        self.subs = subs.collect();
    }

    /// Marks where members are that have not ended.
    fn place(&mut self, found: &Found, standing: Standing) {
        let undoes = match standing {
            Standing::Compensating => Some("undoes"),
            Standing::CompensationRests => Some("undo_rests"),
            Standing::Running | Standing::Rests | Standing::Ended => None,
        };
        let rows: Vec<&Status> = self.members.values().map(|member| member.row).collect();
        for row in rows {
            self.count_element(row);
            if undoes.is_none() && row.ended.is_none() && row.state != ProcedureState::Failed && has_begun(row) {
                self.place_member(row);
            }
        }
        let newest = standing_of(&found.page.entries).next().zip(undoes);
        if let Some((entry, does)) = newest.filter(|(entry, _)| self.members.contains_key(&entry.member)) {
            let id = ProcedureId::new(found.root.id.family, entry.member);
            let at = self.stage_of(entry);
            self.mark(at, id, does);
        }
    }

    fn place_member(&mut self, row: &Status) {
        let waits_at = self.members.get(&row.id.member).and_then(|member| member.at);
        let fork = waits_at.filter(|at| {
            matches!(
                self.definition.state(*at),
                Some(State {
                    kind: Kind::Fork(_),
                    ..
                })
            )
        });
        let join = fork.and_then(|fork| self.definition.regions.join(fork));
        let at = join.or_else(|| self.definition.index_of(&row.stage));
        let does = match &row.wait {
            Some(WaitReason::Decision(_)) if !row.going => "rests",
            Some(_) if !row.going => "waits",
            Some(_) | None => "runs",
        };
        if let Some(at) = at.filter(|_| join.is_none()) {
            self.go(row.id.member, at);
            let is_task = self.task(Some(at)).is_some();
            if let Some(facts) = self.facts(Some(at)).filter(|_| is_task && does != "rests") {
                facts.status = Some(SagaStatus::Running);
            }
        }
        self.mark(at, row.id, does);
    }

    /// Counts an element of a Loop by what it has come to.
    fn count_element(&mut self, row: &Status) {
        let element = self
            .members
            .get(&row.id.member)
            .filter(|member| member.region.is_none());
        let Some(status) = element.map(|element| element.status) else {
            return;
        };
        let rests = matches!(row.wait, Some(WaitReason::Decision(_)));
        let word = match row.ended.is_some() || rests {
            true => status.unwrap_or(SagaStatus::Success).word(),
            false if has_begun(row) => "RU",
            false => "waits",
        };
        if let Some(facts) = self.facts(self.definition.index_of(&row.stage)) {
            *facts.counts.entry(word).or_default() += 1;
        }
    }

    fn mark(&mut self, at: Option<StateIndex>, id: ProcedureId, does: &'static str) {
        if let Some(facts) = self.facts(at) {
            facts.here.push((id, does));
        }
    }
}

impl Facts {
    fn tried(&mut self, status: SagaStatus, tries: u32, (begun, ended): (Timestamp, Timestamp)) {
        self.visited = true;
        self.status = Some(status);
        self.tries += tries;
        self.took_ms += u64::try_from(ended.since(begun).as_millis()).unwrap_or(u64::MAX);
    }
}

fn has_begun(row: &Status) -> bool {
    row.going || !matches!(row.wait, Some(WaitReason::Width | WaitReason::Gate))
}

fn note<T: serde::de::DeserializeOwned>(entry: &HistoryEntry) -> Option<T> {
    codec::decode_user(entry.note.as_ref()?.as_slice()).ok()
}
