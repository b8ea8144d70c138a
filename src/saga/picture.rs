//! The picture of a saga: the states of its definition, and what its members have come to at each.

mod marks;

use std::collections::BTreeMap;
use std::iter::successors;

use procession_actors::{AskError, view::Status};
use procession_kernel::ProcedureId;
use procession_saga_language::definition::{Definition, RegionIndex, StateIndex};
use procession_saga_language::draw::{EdgeKind, Picture};
use serde_json::{Value, json};

use super::machine::SagaError;
use super::reader::{Found, Most, SagaReader};
use super::reading::{self, Standing};
use marks::Marks;

/// States of a picture at most. What has more is a table.
const DRAWN: usize = 300;
/// How much of a saga one picture reads.
const MOST: Most = Most {
    members: 10_000,
    rests: 100,
    entries: 20_000,
};
/// Sub machines whose values are read, at most.
const SUBS: usize = 100;
/// Members, or sub machines, that are named at one state.
const NAMED: usize = 16;

/// A text of users', which may have to be hidden.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Said {
    /// What a service or an operator said of a failure.
    Error,
    /// What a member asks.
    Question,
}

impl Standing {
    const fn word(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Rests => "rests",
            Self::Compensating => "compensating",
            Self::CompensationRests => "compensation_rests",
            Self::Ended => "ended",
        }
    }
}

impl SagaReader {
    /// Reads the saga as pages and commands show it: how it stands, the states of its machine with the links between them,
    /// who rests, and its context. The id of a branch or of an element of a Loop shows the machine that it is a part of.
    ///
    /// `shown` says what is shown of each text of users', which it gets with the kind of the member that said it.
    ///
    /// # Errors
    ///
    /// [`AskError::Unknown`] if there is no saga with this id, or its result has gone.
    pub async fn picture(&self, shown: impl Fn(&str, Said, &str) -> String) -> Result<Value, AskError> {
        let reader = self.of_machine().await?;
        let mut found = reader.read(MOST).await?;
        hide(&mut found, &shown);
        let mut instance = reading::instance(&found);
        let error = |text: &str| shown(found.root.kind.as_str(), Said::Error, text);
        instance.error.iter_mut().for_each(|said| hide_error(said, error));
        instance.aborted.iter_mut().for_each(|said| *said = error(said));
        let rests = found.rests.iter().map(|rest| {
            json!({
                "id": rest.id.to_string(),
                "state": rest.state,
                "why": rest.error.to_string(),
                "question": rest.question,
                "since": rest.since.to_string(),
                "can_skip": rest.can_skip,
            })
        });
        let since = found.rests.iter().map(|rest| rest.since).min();
        let context = Value::from(instance.context.clone());
        let mut picture = json!({
            "id": found.root.id.to_string(),
            "machine": instance.machine,
            "version": null,
            "standing": instance.standing.word(),
            "status": instance.status,
            "compensation": instance.compensation,
            "sentence": instance.sentence(),
            "since": since.unwrap_or(found.root.since).to_string(),
            "next": found.root.next,
            "drawn": false,
            "regions": [],
            "states": [],
            "edges": [],
            "rests": rests.collect::<Vec<_>>(),
            "truncated": found.is_cut,
            "context": { "size": context.to_string().len(), "value": context },
        });
        if let (Some(source), Some(fields)) = (&found.source, picture.as_object_mut()) {
            let marks = Marks::of(&source.definition, &found, &instance);
            let subs = statuses(&reader, &found, &marks.subs).await?;
            if let Value::Object(drawn) = drawn(&source.definition, marks, &subs) {
                fields.extend(drawn);
            }
        }
        Ok(picture)
    }

    /// Returns the reader of the machine that this is, or is a part of: parts have its kind, and sub machines another one.
    async fn of_machine(&self) -> Result<Self, AskError> {
        let mut row = self.row(self.id).await?;
        if !reading::is_member(&row) {
            return Err(AskError::Unknown(row.id));
        }
        while let Some(parent) = row.parent {
            let above = self.row(parent).await?;
            if above.kind != row.kind {
                break;
            }
            row = above;
        }
        Ok(Self {
            id: row.id,
            ..self.clone()
        })
    }
}

type Subs = BTreeMap<ProcedureId, &'static str>;

fn drawn(definition: &Definition, marks: Marks<'_>, subs: &Subs) -> Value {
    let picture = Picture::of(definition);
    let name = |index: StateIndex| definition.state(index).map(|state| &state.name);
    let edges = picture.edges.iter().map(|edge| {
        let is_taken = match edge.kind == EdgeKind::Undo {
            true => marks.undone.contains(&edge.from),
            false => marks.taken.contains(&(edge.from, edge.to)),
        };
        json!({ "from": name(edge.from), "to": name(edge.to), "kind": edge.kind, "label": edge.label, "taken": is_taken })
    });
    let edges: Vec<Value> = edges.collect();
    let frames = &picture.frames;
    let regions = frames.iter().enumerate().map(|(index, frame)| {
        let parent = frames
            .iter()
            .position(|outer| outer.inner.contains(&RegionIndex(index)));
        json!({ "title": frame.title, "parent": parent })
    });
    let regions: Vec<Value> = regions.collect();
    let mut below: BTreeMap<StateIndex, Vec<&Status>> = BTreeMap::new();
    for (at, sub) in marks.subs {
        below.entry(at).or_default().push(sub);
    }
    let nodes = frames.iter().enumerate();
    let nodes = nodes.flat_map(|(region, frame)| frame.nodes.iter().map(move |node| (region, node)));
    let mut nodes: Vec<_> = nodes.collect();
    nodes.sort_by_key(|(_, node)| node.index);
    let states = definition.states.iter().zip(nodes).zip(marks.facts);
    let states = states.map(|((state, (region, node)), mut facts)| {
        let machines = below.get(&node.index).map_or(&[][..], Vec::as_slice);
        let of = |sub: &Status| subs.get(&sub.id).copied().unwrap_or("RU");
        for sub in machines {
            *facts.counts.entry(of(sub)).or_default() += 1;
        }
        // Who needs a person is among those that are named.
        facts.here.sort_by_key(|(_, does)| !does.ends_with("rests"));
        let here = facts.here.iter().take(NAMED);
        let machines_named = machines.iter().take(NAMED);
        json!({
            "name": state.name,
            "type": state.word(),
            "detail": node.detail,
            "place": state.drawn,
            "region": region,
            "repeats": state.task().is_some_and(|task| task.repeat.is_some()),
            "visited": facts.visited,
            "status": facts.status,
            "tries": facts.tries,
            "took_ms": facts.took_ms,
            "compensated": facts.compensated,
            "here": here.map(|(id, does)| json!({ "id": id.to_string(), "does": does })).collect::<Vec<_>>(),
            "here_more": facts.here.len().saturating_sub(NAMED),
            "counts": facts.counts,
            "machines": machines_named.map(|sub| json!({ "id": sub.id.to_string(), "status": of(sub) })).collect::<Vec<_>>(),
            "machines_more": machines.len().saturating_sub(NAMED),
        })
    });
    json!({
        "version": definition.version,
        "drawn": definition.states.len() <= DRAWN,
        "states": states.collect::<Vec<_>>(),
        "edges": edges,
        "regions": regions,
    })
}

/// Says of each sub machine what it came to, of those behind the first ones that they have ended, or that something in it
/// rests.
async fn statuses(reader: &SagaReader, found: &Found, subs: &[(StateIndex, &Status)]) -> Result<Subs, AskError> {
    let parents: BTreeMap<_, _> = found.members.iter().map(|row| (row.id, row.parent)).collect();
    let above = |id: &ProcedureId| parents.get(id).copied().flatten();
    let around = found.rests.iter().flat_map(|rest| successors(Some(rest.id), above));
    let mut statuses: Subs = around.map(|id| (id, "rests")).collect();
    for (number, (_, sub)) in subs.iter().enumerate().filter(|(_, (_, sub))| sub.ended.is_some()) {
        let word = match number < SUBS {
            true => reading::status_of(&reader.machine(sub.id).await?, sub.state, None).word(),
            false => "ended",
        };
        statuses.insert(sub.id, word);
    }
    Ok(statuses)
}

/// Hides what users said before any sentence is made of it.
fn hide(found: &mut Found, shown: &impl Fn(&str, Said, &str) -> String) {
    for rest in &mut found.rests {
        let place = found.members.binary_search_by_key(&rest.id, |member| member.id);
        let member = place.ok().and_then(|place| found.members.get(place));
        let kind = member.map_or("", |member| member.kind.as_str());
        rest.question = shown(kind, Said::Question, &rest.question);
        hide_error(&mut rest.error, |text| shown(kind, Said::Error, text));
    }
}

fn hide_error(error: &mut SagaError, shown: impl Fn(&str) -> String) {
    for text in [&mut error.message, &mut error.fault].into_iter().flatten() {
        *text = shown(text);
    }
}
