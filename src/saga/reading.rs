//! How a saga stands, read off rows, values and notes.

use std::collections::{BTreeMap, BTreeSet};

use procession_actors::journal::codec;
use procession_actors::view::{HistoryPage, Outcome, Status};
use procession_actors::{AskError, CommittedReader, ReadError};
use procession_kernel::{CauseKind, Ending, HistoryEntry, ProcedureId, ProcedureState, Seq, Timestamp, WaitReason};
use procession_saga_language::Source;
use procession_saga_language::definition::Definition;
use serde_json::{Map, Value};

use super::bundle::{self, Listing};
use super::machine::{Machine, Note, SagaError, SagaStage, UndoNote};
use super::reader::Found;
use super::service::PANIC;
use super::status::SagaStatus;

/// Questions that a sentence repeats.
const QUESTIONS: usize = 3;

/// How a saga stands as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Standing {
    /// It runs, or waits for its turn or a retry.
    Running,
    /// Some of it rests, until a person decides.
    Rests,
    /// What took effect is being undone.
    Compensating,
    /// A compensator has failed, and waits for a person.
    CompensationRests,
    /// It has ended.
    Ended,
}

/// A member of a saga that rests.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Resting {
    /// The member.
    pub id: ProcedureId,
    /// The state at which it stopped, or its last one if it came to an end.
    pub state: String,
    /// Why.
    pub error: SagaError,
    /// Whether [`Saga::skip`](super::Saga::skip) is possible.
    pub can_skip: bool,
    /// What it asks.
    pub question: String,
    /// Since when.
    pub since: Timestamp,
    pub(super) revision: Seq,
}

/// A visit to a state.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct StateInstance {
    /// The state.
    pub state: String,
    /// The member of the saga that visited it.
    pub member: ProcedureId,
    /// What it came to.
    pub status: SagaStatus,
    /// How often it was tried.
    pub tries: u32,
    /// Class and message of the fault of its last try.
    pub fault: Option<(String, String)>,
    /// When its last try began and ended.
    pub ran: (Timestamp, Timestamp),
    /// Whether it was undone.
    pub is_compensated: bool,
    /// The states through which the member went on.
    pub routed: Vec<String>,
    /// Variables that several branches of the Fork before it have written: the last branch in the list has won.
    pub overwritten: Vec<String>,
}

/// How a saga stands.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SagaInstance {
    /// The name of the machine.
    pub machine: String,
    /// How it stands as a whole.
    pub standing: Standing,
    /// What it has come to, or would come to if it stopped here.
    pub status: SagaStatus,
    /// What its compensation has come to; none if it was not compensated.
    pub compensation: Option<SagaStatus>,
    /// What went wrong.
    pub error: Option<SagaError>,
    /// Its context.
    pub context: Map<String, Value>,
    /// Its newest state instances, the oldest of them first, at most those of 1,000 stages.
    pub states: Vec<StateInstance>,
    /// Who rests.
    pub rests: Vec<Resting>,
    /// The states at which its members are that have not ended.
    pub at: Vec<String>,
    /// Undos that whoever decides has passed over, as far as `states` goes.
    pub skipped: Vec<SkippedUndo>,
    /// Stages that took effect and were not undone.
    pub(super) stands: usize,
    /// It has succeeded, and waits for its end.
    pub(super) is_kept: bool,
    /// Who had it undone, and why.
    pub(super) aborted: Option<String>,
    /// Why one of its members goes on only if an operator says so, apart from those that rest.
    pub(super) paused: Option<String>,
}

impl SagaInstance {
    /// Says in a sentence how it stands, and what may be done.
    #[must_use]
    pub fn sentence(&self) -> String {
        let undone = self.states.iter().filter(|state| state.is_compensated).count();
        let at = self.at.join("], [");
        let failed = self.error.as_ref().map(ToString::to_string);
        let why = self
            .aborted
            .clone()
            .or(failed)
            .unwrap_or_else(|| "it failed".to_owned());
        match (self.standing, self.status, self.compensation) {
            (Standing::Running, ..) if self.is_kept => "every step took effect, and it can still be undone".to_owned(),
            (Standing::Running, ..) => match &self.paused {
                Some(why) => format!("at [{at}], {why}"),
                None => format!("at [{at}]"),
            },
            (Standing::Rests, ..) => self.questions(),
            (Standing::Compensating, ..) => {
                format!("undoing, {undone} of {} undone, now [{at}]", undone + self.stands)
            }
            (Standing::CompensationRests, ..) => format!(
                "undoing, {undone} of {} undone; [{at}] is in doubt: retry or skip it",
                undone + self.stands
            ),
            (Standing::Ended, SagaStatus::Success, None) => "every step took effect".to_owned(),
            (Standing::Ended, SagaStatus::Success, Some(_)) => {
                format!("succeeded, then rolled back, {undone} undone{}: {why}", self.left_out())
            }
            (Standing::Ended, _, Some(_)) => format!("rolled back, {undone} undone{}: {why}", self.left_out()),
            (Standing::Ended, _, None) => format!("{why}; nothing had to be undone"),
        }
    }

    fn questions(&self) -> String {
        let shown = self.rests.iter().take(QUESTIONS);
        let mut questions: Vec<String> = shown.map(|rest| rest.question.clone()).collect();
        let more = self.rests.len().saturating_sub(QUESTIONS);
        questions.extend((more > 0).then(|| format!("{more} more rest")));
        questions.extend(self.paused.clone());
        questions.join("; ")
    }

    fn left_out(&self) -> String {
        let states: BTreeSet<&str> = self.skipped.iter().map(|undo| undo.state.as_str()).collect();
        match states.is_empty() {
            true => String::new(),
            false => format!(", [{}] skipped", Vec::from_iter(states).join("], [")),
        }
    }
}

/// What a saga came to.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SagaOutcome {
    /// What its states came to.
    pub status: SagaStatus,
    /// What its compensation came to; none if nothing had to be undone.
    pub compensation: Option<SagaStatus>,
    /// What went wrong.
    pub error: Option<SagaError>,
    /// Its context at the end.
    pub context: Map<String, Value>,
    /// The states whose undo a person skipped.
    pub skipped: Vec<SkippedUndo>,
}

/// An undo that a person skipped.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SkippedUndo {
    /// The state.
    pub state: String,
    /// Who skipped it, and why.
    pub by: String,
}

/// Returns whether a member is a machine or a part of one.
pub(crate) fn is_member(member: &Status) -> bool {
    member.kind.as_str().starts_with("saga.")
}

/// Returns the members that may rest, as their rows say. Those that are being rolled back still ask, and nobody is heard.
pub(super) fn asking(members: &[Status]) -> impl Iterator<Item = &Status> {
    let undone = rolled_back(members);
    let may_rest =
        move |member: &&Status| is_member(member) && member.question.is_some() && !undone.contains(&member.id);
    members.iter().filter(may_rest)
}

/// Returns the members that are being rolled back. A parent comes before its children.
fn rolled_back(members: &[Status]) -> BTreeSet<ProcedureId> {
    let mut undone = BTreeSet::new();
    for member in members {
        let is_below = member.parent.is_some_and(|parent| undone.contains(&parent));
        if is_below || member.state == ProcedureState::Failed {
            undone.insert(member.id);
        }
    }
    undone
}

/// Returns whether nothing of a member moves by itself: it rests, waits for others, or has ended.
pub(super) fn is_still(member: &Status) -> bool {
    let waits = matches!(
        member.wait,
        Some(WaitReason::Decision(_) | WaitReason::Children | WaitReason::Width)
    );
    member.ended.is_some() || (waits && !member.going)
}

/// Says why a member goes on only if an operator says so, apart from those that rest: it asks nothing, so it can be neither
/// forwarded nor skipped.
fn paused(members: &[Status]) -> Option<String> {
    let is_paused =
        |wait: &&WaitReason| matches!(wait, WaitReason::Paused | WaitReason::Poison | WaitReason::RepeatLimit);
    let mut members = members.iter().filter(|member| member.ended.is_none());
    members.find_map(|member| {
        let wait = member.wait.as_ref().filter(is_paused)?;
        Some(format!("{wait} ({}): {}", member.id, member.next))
    })
}

/// Returns the member whose undo has failed as often as it may. One that is rolled back with a larger part is not, whatever
/// its own rollback had come to before.
pub(super) fn stuck(members: &[Status]) -> Option<&Status> {
    let undone = rolled_back(members);
    let is_part = |member: &Status| member.parent.is_some_and(|parent| undone.contains(&parent));
    let mut stuck = members
        .iter()
        .filter(|member| member.wait == Some(WaitReason::RollbackFailed));
    stuck.find(|member| !is_part(member))
}

/// Returns the state whose undo failed last, and why it did.
pub(super) fn stuck_at(page: &HistoryPage) -> (String, String) {
    let failed = page.entries.iter().find(|entry| entry.ending == Ending::UndoFailed);
    let why = failed.and_then(|entry| entry.error.clone());
    (undoing(&page.entries).unwrap_or_default(), why.unwrap_or_default())
}

pub(super) fn resting(member: &Status, machine: &Machine) -> Option<Resting> {
    let (error, can_skip) = machine.rests_for()?;
    Some(Resting {
        id: member.id,
        state: member.stage.clone(),
        error: error.clone(),
        can_skip,
        question: member.question.clone()?,
        since: member.since,
        revision: member.revision,
    })
}

/// Says what a saga does that does not rest.
pub(super) fn doing(status: &Status, page: &HistoryPage) -> String {
    let undone = || undoing(&page.entries).unwrap_or_else(|| status.stage.clone());
    match standing(status, false) {
        Standing::Ended => "it has ended".to_owned(),
        Standing::Compensating => format!("it is being rolled back, at [{}]", undone()),
        Standing::CompensationRests => format!("it is being rolled back, and its rollback rests at [{}]", undone()),
        Standing::Running | Standing::Rests => format!("it is at [{}]: {}", status.stage, status.next),
    }
}

fn standing(root: &Status, rests: bool) -> Standing {
    if root.ended.is_some() {
        return Standing::Ended;
    }
    match (root.state, &root.wait) {
        (ProcedureState::Failed, Some(WaitReason::RollbackFailed)) => Standing::CompensationRests,
        (ProcedureState::Failed, _) => Standing::Compensating,
        _ if rests => Standing::Rests,
        _ => Standing::Running,
    }
}

/// Puts together how a saga stands.
pub(super) fn instance(found: &Found) -> SagaInstance {
    let (root, machine, page) = (&found.root, &found.machine, &found.page);
    let rests = found.rests.clone();
    let is_stuck = stuck(&found.members).is_some();
    let mut standing = standing(root, !rests.is_empty());
    if standing == Standing::Compensating && is_stuck {
        standing = Standing::CompensationRests;
    }
    let compensation = match (standing, root.state) {
        (Standing::Compensating, _) => Some(SagaStatus::Running),
        (Standing::CompensationRests, _) => Some(SagaStatus::Unknown),
        (Standing::Ended, ProcedureState::RolledBack) => compensated(page.entries.iter()),
        (Standing::Running | Standing::Rests | Standing::Ended, _) => None,
    };
    let status = match standing {
        Standing::Running => SagaStatus::Running,
        // A member in doubt leaves the whole in doubt.
        Standing::Rests if !rests.iter().any(|rest| rest.id == root.id) => SagaStatus::Unknown,
        Standing::Rests => machine.status_so_far(),
        Standing::Compensating | Standing::CompensationRests | Standing::Ended => {
            let came_to = status_of(machine, root.state, compensation);
            told_by_history(machine, root.id, &page.entries).unwrap_or(came_to)
        }
    };
    let cause = root.cause.as_ref();
    SagaInstance {
        machine: machine.name().to_owned(),
        standing,
        status,
        compensation,
        error: error(
            machine,
            found.origin.as_ref(),
            cause.map(|cause| (cause.kind, cause.text.as_str())),
        ),
        context: machine.variables(),
        states: states(found),
        rests,
        at: at(&found.members, page),
        stands: standing_of(&page.entries).count(),
        is_kept: !machine.has_no_status() && machine.status_so_far() == SagaStatus::Success,
        skipped: skipped(&page.entries),
        aborted: cause
            .filter(|cause| cause.kind == CauseKind::Aborted)
            .map(|cause| cause.text.clone()),
        paused: paused(&found.members),
    }
}

/// Returns what stands and was not undone, the newest first. The entries are those of a family, the newest first.
pub(super) fn standing_of(entries: &[HistoryEntry]) -> impl Iterator<Item = &HistoryEntry> {
    let (mut undone, mut counted) = (BTreeSet::new(), BTreeSet::new());
    entries.iter().filter(move |entry| {
        let place = (entry.member, entry.visit);
        if matches!(entry.ending, Ending::Undone | Ending::UndoSkipped) {
            undone.insert(place);
        }
        entry.ending.is_stage() && entry.stands && !undone.contains(&place) && counted.insert(place)
    })
}

fn skipped(entries: &[HistoryEntry]) -> Vec<SkippedUndo> {
    let skipped = entries.iter().filter(|entry| entry.ending == Ending::UndoSkipped);
    let skipped = skipped.map(|entry| SkippedUndo {
        state: codec::describe(entry.stage.as_slice()),
        by: entry.error.clone().unwrap_or_default(),
    });
    skipped.collect()
}

/// Returns the state whose undo is next or under way: of what stands, and was not undone, the newest.
fn undoing(entries: &[HistoryEntry]) -> Option<String> {
    let newest = standing_of(entries).next()?;
    Some(codec::describe(newest.stage.as_slice()))
}

/// Returns the states of members that have begun, have not ended and do not wait for others. There are few names, however
/// many members.
fn at(members: &[Status], page: &HistoryPage) -> Vec<String> {
    let is_elsewhere = |wait: &WaitReason| matches!(wait, WaitReason::Children | WaitReason::Width);
    let waits = |member: &&Status| member.ended.is_none() && !member.wait.as_ref().is_some_and(is_elsewhere);
    let undone = undoing(&page.entries);
    let states: BTreeSet<&str> = members
        .iter()
        .filter(waits)
        .map(|member| match (member.state, &undone) {
            (ProcedureState::Failed, Some(state)) => state.as_str(),
            _ => member.stage.as_str(),
        })
        .collect();
    states.into_iter().map(str::to_owned).collect()
}

/// A saga that was rolled back has been compensated if anything was undone, or passed over by a person.
fn compensated<'a>(mut history: impl Iterator<Item = &'a HistoryEntry>) -> Option<SagaStatus> {
    let is_undo = |entry: &HistoryEntry| matches!(entry.ending, Ending::Undone | Ending::UndoSkipped);
    history.any(is_undo).then_some(SagaStatus::Success)
}

/// What is known of a saga that has ended.
pub(super) struct Ended<'a> {
    pub(super) id: ProcedureId,
    pub(super) outcome: &'a Outcome,
    pub(super) machine: &'a Machine,
    /// The member in which its failure began, if that is another one.
    pub(super) origin: Option<&'a Machine>,
    pub(super) history: &'a [HistoryEntry],
}

/// Puts together what a saga came to.
pub(super) fn outcome(ended: &Ended<'_>) -> SagaOutcome {
    let Ended {
        id,
        outcome,
        machine,
        origin,
        history,
    } = ended;
    let was_undone = matches!(outcome.state, ProcedureState::RolledBack | ProcedureState::Failed);
    let compensation = was_undone.then(|| compensated(history.iter())).flatten();
    let cause = outcome.cause.as_ref().map(|cause| (cause.kind, cause.text.as_str()));
    SagaOutcome {
        status: told_by_history(machine, *id, history)
            .unwrap_or_else(|| status_of(machine, outcome.state, compensation)),
        compensation,
        error: error(machine, *origin, cause),
        context: machine.variables(),
        skipped: skipped(history),
    }
}

/// A machine that another member has failed does not know what it came to, and a whole saga not that it succeeded.
pub(super) fn status_of(machine: &Machine, state: ProcedureState, compensation: Option<SagaStatus>) -> SagaStatus {
    match (machine.status_so_far(), state, compensation) {
        (_, ProcedureState::Success, _) if machine.has_no_status() => SagaStatus::Success,
        (SagaStatus::Failed, _, Some(_)) => SagaStatus::Unknown,
        (status, ..) => status,
    }
}

/// Returns that a branch or an element has succeeded, whatever became of it since: its last stage came to its end.
fn told_by_history(machine: &Machine, id: ProcedureId, entries: &[HistoryEntry]) -> Option<SagaStatus> {
    let is_end = |entry: &HistoryEntry| entry.member == id.member && entry.ending == Ending::Done;
    let has_ended = machine.is_told_by_history() && entries.iter().any(is_end);
    has_ended.then_some(SagaStatus::Success)
}

/// Returns what went wrong: what the machine knows, or the member in which the failure began; else what the engine does.
fn error(machine: &Machine, origin: Option<&Machine>, cause: Option<(CauseKind, &str)>) -> Option<SagaError> {
    match cause {
        Some((CauseKind::TimedOut, text)) => Some(SagaError::timed_out(text)),
        Some(_) => origin.and_then(Machine::error).or(machine.error()).cloned(),
        None => machine.error().cloned(),
    }
}

/// Returns the state instances that the history tells of, the oldest first.
fn states(found: &Found) -> Vec<StateInstance> {
    let mut list = StateList {
        found,
        states: Vec::new(),
        places: BTreeMap::new(),
        died: BTreeSet::new(),
    };
    for entry in found.page.entries.iter().rev() {
        if entry.ending == Ending::Undone {
            list.undone(entry);
        } else if !matches!(entry.ending, Ending::UndoFailed | Ending::UndoSkipped) {
            list.tried(entry);
        }
    }
    list.states
}

/// State instances, and where the entries of the history are in the list.
struct StateList<'a> {
    found: &'a Found,
    states: Vec<StateInstance>,
    /// By member and visit: of a try, and of the first try of its instance.
    places: BTreeMap<(u32, u32), Vec<usize>>,
    /// Those of which nobody knows what their calls have come to.
    died: BTreeSet<usize>,
}

impl StateList<'_> {
    fn undone(&mut self, entry: &HistoryEntry) {
        let note = entry.note.as_ref();
        let note = note.and_then(|note| codec::decode_user::<UndoNote>(note.as_slice()).ok());
        if note.as_ref().is_some_and(|note| note.passed_over) {
            return;
        }
        let has_called = note.is_some_and(|note| note.compensator.is_some());
        for place in self.places.get(&(entry.member, entry.visit)).into_iter().flatten() {
            // What died is undone whether or not anything undoes it.
            if let Some(state) = self.states.get_mut(*place) {
                state.is_compensated = has_called || !self.died.contains(place);
            }
        }
    }

    /// Returns what a task's note would say if its machine was rolled back while nobody knew what its call had come to:
    /// process after process had died with it, so it counts as executed, and is undone.
    fn died(&self, entry: &HistoryEntry) -> Option<Note> {
        if entry.ending != Ending::Panic {
            return None;
        }
        let stage: SagaStage = codec::decode_user(entry.stage.as_slice()).ok()?;
        if !stage.is_task(self.definition_of(entry.member)) {
            return None;
        }
        let text = entry.error.clone().unwrap_or_default();
        Some(Note {
            status: Some(SagaStatus::Unknown),
            fault: Some((PANIC.to_owned(), text)),
            ..Note::default()
        })
    }

    /// Returns the definition by which a member goes; none for a sub machine, whose definition is not read.
    fn definition_of(&self, member: u32) -> Option<&Definition> {
        let of_member = self.found.members.iter().find(|status| status.id.member == member);
        let is_part = of_member.is_some_and(|status| status.kind == self.found.root.kind);
        let source = self.found.source.as_ref().filter(|_| is_part);
        source.map(|source| &*source.definition)
    }

    /// Returns whether the list shows the newest of several tries alone.
    fn shows_newest(&self) -> bool {
        let source = self.found.source.as_ref();
        source.is_some_and(|source| source.definition.updates.retry == Some(true))
    }

    /// Adds a try, or puts it in the place of the one before it if the list shows the newest alone.
    fn tried(&mut self, entry: &HistoryEntry) {
        let note = entry.note.as_ref();
        let note = note.and_then(|note| codec::decode_user::<Note>(note.as_slice()).ok());
        let has_died = note.is_none();
        let Some(note) = note.or_else(|| self.died(entry)) else {
            return;
        };
        let Some(status) = note.status else { return };
        let began = note.began.unwrap_or(entry.visit);
        let mut instance = StateInstance {
            state: note.task.unwrap_or_else(|| codec::describe(entry.stage.as_slice())),
            member: ProcedureId::new(entry.family, entry.member),
            status,
            tries: 1,
            fault: note.fault,
            ran: (entry.begun, entry.ended),
            is_compensated: false,
            routed: note.routed,
            overwritten: note.twice,
        };
        let known = self
            .places
            .get(&(entry.member, began))
            .and_then(|places| places.last().copied());
        let place = match known.filter(|_| self.shows_newest()) {
            Some(place) => place,
            None => self.states.len(),
        };
        match self.states.get_mut(place) {
            Some(before) => {
                instance.tries += before.tries;
                *before = instance;
            }
            None => self.states.push(instance),
        }
        if has_died {
            self.died.insert(place);
        }
        let visits = BTreeSet::from([began, entry.visit]);
        for visit in visits {
            self.places.entry((entry.member, visit)).or_default().push(place);
        }
    }
}

/// Reads the definition by which a saga goes; none if it has not begun.
pub(super) async fn definition_of(committed: &CommittedReader, machine: &Machine) -> Result<Option<Source>, AskError> {
    let Some(digest) = machine.pinned() else {
        return Ok(None);
    };
    let read = async {
        let key = format!("{}{digest}", bundle::BUNDLE);
        let Some(listing) = committed.get::<Listing>(bundle::SPACE, key).await? else {
            return Ok(None);
        };
        let Some(file) = listing.files.get(machine.name()) else {
            return Ok(None);
        };
        committed
            .get::<String>(bundle::SPACE, format!("{}{file}", bundle::FILE))
            .await
    };
    let text: Result<Option<String>, ReadError> = read.await;
    let text = text.map_err(AskError::Read)?;
    Ok(text.and_then(|text| Source::stored(text).ok()))
}
