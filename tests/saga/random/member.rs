//! A member of a saga, as the model has it: the root, a branch, an element of a Loop, a sub machine.

use std::collections::BTreeMap;

use procession::ProcedureId;
use procession_kernel::Timestamp;
use serde_json::{Map, Value};

use super::shape::Task;

/// When something happened: its number among all that happens outside the engine, and the time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Moment {
    pub(super) at: Timestamp,
    pub(super) event: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Root,
    Sub,
    Branch { join: usize },
    Element { index: usize, at: String },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Going,
    /// A call of it is out or due, or it sleeps.
    Out,
    /// Children of it have not ended.
    Waits,
    Rests,
    Ended {
        status: &'static str,
        /// Of an element: where its machine goes on.
        next: Option<usize>,
    },
    Failed,
}

/// A visit to a task.
#[derive(Clone, Debug)]
pub(super) struct Visit {
    pub(super) status: &'static str,
    pub(super) is_for_update: bool,
    pub(super) partly: bool,
    pub(super) tries: u32,
    /// None until it was called.
    pub(super) token: Option<String>,
    /// The paths of its sub machines.
    pub(super) children: Vec<String>,
}

impl Visit {
    /// A visit that begins, without a try.
    pub(super) fn of(task: &Task) -> Self {
        Self {
            status: "RU",
            is_for_update: task.is_for_update(),
            partly: false,
            tries: 0,
            token: None,
            children: Vec::new(),
        }
    }
}

/// What counts for the status of a member.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item {
    pub(super) status: &'static str,
    pub(super) is_for_update: bool,
    pub(super) partly: bool,
}

/// A line of the list of state instances.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) state: String,
    pub(super) status: &'static str,
    /// Its stage may have been cut off by the failure of its saga at the same moment.
    pub(super) optional: bool,
}

/// What must be undone if its machine is rolled back.
#[derive(Clone, Debug)]
pub(super) struct Stands {
    pub(super) member: String,
    pub(super) id: Option<ProcedureId>,
    pub(super) state: String,
    pub(super) token: Option<String>,
    /// The how many-th of all.
    pub(super) number: usize,
    /// What it came to is known from here on.
    pub(super) when: Moment,
    /// It was on disk by this event.
    pub(super) until: usize,
    /// It may not stand.
    pub(super) optional: bool,
    /// A task that undoes sub machines and what they did themselves have one key, if it is not known which of them is undone.
    pub(super) key: Option<String>,
    pub(super) instead: Option<String>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub(super) length_ms: u64,
    pub(super) until: Timestamp,
}

#[derive(Clone, Debug)]
pub(super) struct Member {
    pub(super) path: String,
    pub(super) machine: usize,
    /// The machines around it whose failure stops it, the innermost last.
    pub(super) scopes: Vec<String>,
    pub(super) part: Part,
    pub(super) id: Option<ProcedureId>,
    pub(super) pc: Option<usize>,
    pub(super) context: Map<String, Value>,
    /// The context as it is committed.
    pub(super) shown: Map<String, Value>,
    pub(super) written: Vec<String>,
    /// The context has values that its next task commits.
    pub(super) pending: bool,
    /// The stage in hand has a status in its note.
    pub(super) noted: bool,
    /// The task in hand is tried again, or opened again.
    pub(super) again: bool,
    pub(super) visit: Option<Visit>,
    pub(super) items: Vec<Item>,
    pub(super) last: usize,
    pub(super) retried: usize,
    pub(super) results: Vec<Option<Map<String, Value>>>,
    pub(super) windows: Vec<Window>,
    pub(super) now: Moment,
    pub(super) rested: usize,
    pub(super) list: Vec<Line>,
    pub(super) phase: Phase,
    /// From here on it may not have gone on.
    pub(super) maybe: bool,
    pub(super) is_rest_at_end: bool,
}

impl Member {
    pub(super) fn new(path: String, machine: usize, scopes: Vec<String>, part: Part, pc: usize) -> Self {
        Self {
            path,
            machine,
            scopes,
            part,
            id: None,
            pc: Some(pc),
            context: Map::new(),
            shown: Map::new(),
            written: Vec::new(),
            pending: false,
            noted: false,
            again: false,
            visit: None,
            items: Vec::new(),
            last: pc,
            retried: 0,
            results: Vec::new(),
            windows: Vec::new(),
            now: Moment::default(),
            rested: 0,
            list: Vec::new(),
            phase: Phase::Going,
            maybe: false,
            is_rest_at_end: false,
        }
    }

    /// Sets a variable. Null takes it out.
    pub(super) fn put(&mut self, name: &str, value: Value) {
        set(&mut self.context, name, value);
        if matches!(self.part, Part::Branch { .. }) && !self.written.iter().any(|known| known == name) {
            self.written.push(name.to_owned());
        }
    }

    pub(super) fn commit(&mut self) {
        self.pending = false;
        self.shown = self.context.clone();
    }

    pub(super) fn fold(&mut self) {
        self.results.clear();
        self.items.extend(self.visit.take().map(|visit| visit.item()));
    }

    pub(super) fn leave(&mut self) {
        self.results.clear();
        self.retried = 0;
    }

    pub(super) fn all_items(&self) -> Vec<Item> {
        let newest = self.visit.as_ref().map(Visit::item);
        self.items.iter().copied().chain(newest).collect()
    }

    /// What it comes to at an end.
    pub(super) fn status(&self) -> &'static str {
        let items = self.all_items();
        let any = |status| items.iter().any(|item| item.status == status);
        let has_effect = |item: &Item| item.partly || (item.is_for_update && matches!(item.status, "SU" | "SK"));
        if any("UN") {
            "UN"
        } else if !any("FA") {
            "SU"
        } else if items.iter().any(has_effect) {
            "UN"
        } else {
            "FA"
        }
    }

    /// What it comes to by a Fail, or where it stops.
    pub(super) fn status_of_failure(&self) -> &'static str {
        let updates = self.all_items().iter().any(|item| item.is_for_update || item.partly);
        match (self.status(), updates) {
            ("SU", true) => "UN",
            ("SU", false) => "FA",
            (status, _) => status,
        }
    }

    /// A person says that what is in doubt counts as skipped.
    pub(super) fn skip_doubts(&mut self) {
        self.fold();
        for item in self.items.iter_mut().filter(|item| item.status == "UN") {
            item.status = "SK";
        }
    }

    pub(super) fn variable(&self, name: &str) -> Value {
        self.context.get(name).cloned().unwrap_or_default()
    }

    pub(super) fn at(&self) -> String {
        match &self.part {
            Part::Element { at, .. } => at.clone(),
            Part::Root | Part::Sub | Part::Branch { .. } => self
                .context
                .get("at")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned(),
        }
    }

    /// Returns what a branch wrote, in the order of its names.
    pub(super) fn writes(&self) -> BTreeMap<String, Value> {
        self.written
            .iter()
            .map(|name| (name.clone(), self.variable(name)))
            .collect()
    }
}

impl Visit {
    pub(super) const fn item(&self) -> Item {
        Item {
            status: self.status,
            is_for_update: self.is_for_update,
            partly: self.partly,
        }
    }

    /// A try came to this. What was in doubt stays in doubt if it then fails.
    pub(super) fn tried(&mut self, status: &'static str) -> &'static str {
        if !(self.status == "UN" && status == "FA") {
            self.status = status;
        }
        self.status
    }
}

pub(super) fn set(context: &mut Map<String, Value>, name: &str, value: Value) {
    match value {
        Value::Null => drop(context.remove(name)),
        value => drop(context.insert(name.to_owned(), value)),
    }
}
