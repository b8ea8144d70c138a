//! Children in the model: elements of Loops, sub machines, branches of Forks.

use std::time::Duration;

use procession::ProcedureId;
use serde_json::{Map, Value};

use super::member::{Member, Moment, Part, Phase, Stands, Visit, Window, set};
use super::model::{Facts, Model};
use super::outside::{Called, Came};
use super::shape::{Each, Kind, LONGEST, Task, Undo, Work, undo_of};

/// Elements of a Loop, in the order in which they begin, with when they ended.
struct Width {
    limit: usize,
    /// When those ended that have not made room yet; `None` for one that has not.
    running: Vec<Option<Moment>>,
}

impl Width {
    /// Returns when the next one begins; `None` if it does not yet.
    fn next(&mut self, opened: Moment) -> Option<Moment> {
        if self.limit == 0 || self.running.len() < self.limit {
            return Some(opened);
        }
        let (first, when) = self
            .running
            .iter()
            .enumerate()
            .filter_map(|(place, ended)| Some((place, (*ended)?)))
            .min_by_key(|(_, ended)| *ended)?;
        self.running.remove(first);
        Some(when)
    }
}

/// How many elements a Loop begins.
fn begun(each: Each) -> usize {
    let all = each.elements;
    let width = if each.parallel == 0 { all } else { each.parallel };
    let goes_on = |begun: &usize| (begun + 1).saturating_sub(width) * 2 < all;
    match each.half {
        true => (0..all).take_while(goes_on).count(),
        false => all,
    }
}

impl Model<'_> {
    /// Runs a Loop or a sub machine.
    pub(super) fn open(&mut self, member: &mut Member, at: usize, task: &Task) {
        if std::mem::take(&mut member.again) {
            member.noted = false;
        } else {
            member.fold();
        }
        if Self::is_window_over(member) {
            return self.rest(member, at, false, true);
        }
        member.last = at;
        member.visit.get_or_insert_with(|| Visit::of(task)).tries += 1;
        let count = task.each.map_or(1, begun);
        member.results.resize(count, None);
        let places: Vec<usize> = (0..count).filter(|place| member.results[*place].is_none()).collect();
        if places.is_empty() {
            if task.each.is_some() && !member.noted {
                self.line(member, at, "SU");
            }
            member.visit = None;
            return self.back_of_loop(member, at, &[]);
        }
        member.commit();
        let limit = task.each.map_or(0, |each| each.parallel);
        let mut width = Width {
            limit,
            running: Vec::new(),
        };
        let mut children = Vec::new();
        let names = self.names(member, at, &places, limit);
        if let Some(visit) = &mut member.visit {
            visit.children.extend(names.iter().map(|name| name.path.clone()));
        }
        for (place, name) in places.iter().zip(names) {
            let Some(begins) = width.next(member.now) else { break };
            let mut child = self.child(member, at, task, *place, name.path);
            child.id = name.id;
            child.now = begins;
            self.run(&mut child);
            width.running.push(self.ended(&child));
            children.push(child);
        }
        let all_ended = children.len() == places.len();
        let ends: Option<Vec<Moment>> = children.iter().map(|child| self.ended(child)).collect();
        let last = ends.filter(|_| all_ended).and_then(|ends| ends.into_iter().max());
        match last {
            Some(last) => {
                member.now = last;
                match task.work {
                    Work::Machine(_) => self.back_of_machines(member, at, task, &places, &children),
                    _ => self.back_of_elements(member, at, &children),
                }
            }
            None => member.phase = Phase::Waits,
        }
        self.found.members.extend(children);
    }

    fn child(&mut self, member: &Member, at: usize, task: &Task, place: usize, path: String) -> Member {
        let Work::Machine(machine) = task.work else {
            let part = Part::Element {
                index: place,
                at: member.at(),
            };
            let mut child = Member::new(path, member.machine, member.scopes.clone(), part, at);
            child.windows.clone_from(&member.windows);
            child.again = true;
            return child;
        };
        let mut scopes = member.scopes.clone();
        scopes.push(path.clone());
        let start = self.drawn.graph(machine).start;
        let mut child = Member::new(path, machine, scopes, Part::Sub, start);
        child.windows.clone_from(&member.windows);
        let at = match task.each {
            Some(_) => format!("{}:{place}", member.at()),
            None => member.at(),
        };
        set(&mut child.context, "at", at.into());
        for name in ["heal", "x", "y", "p"] {
            set(&mut child.context, name, member.variable(name));
        }
        for length in 0..=LONGEST {
            let name = format!("l{length}");
            set(&mut child.context, &name, member.variable(&name));
        }
        child.commit();
        child
    }

    /// Returns when a child ended; a machine that failed ends when all of it is undone.
    fn ended(&self, child: &Member) -> Option<Moment> {
        match (&child.phase, &child.part) {
            (Phase::Ended { .. }, _) if !self.found.failed.contains_key(&child.path) => Some(child.now),
            // Calls that were out have ended by then, too.
            (_, Part::Sub) => self.rolled_back(&child.path).map(|ended| ended.max(child.now)),
            _ => None,
        }
    }

    /// Returns when all of a machine was undone that failed; `None` if it did not fail, or is not undone yet.
    pub(super) fn rolled_back(&self, scope: &str) -> Option<Moment> {
        let mut when = *self.found.failed.get(scope)?;
        let is_inside = |scopes: &[String]| scopes.iter().any(|inside| inside == scope);
        if self.found.due.iter().any(|due| is_inside(&due.scopes) && due.is_out) {
            return None;
        }
        for stands in self.standing(scope) {
            match self.undone(stands) {
                Some(undone) => when = when.max(undone),
                None if self.is_undone_instead(stands) => {}
                // All is quiet, so an undo that had to come would have been called.
                None if stands.optional && !self.is_tried(stands) => {}
                None => return None,
            }
        }
        for member in self.found.members.iter().filter(|member| is_inside(&member.scopes)) {
            when = when.max(member.now);
        }
        Some(when)
    }

    /// Returns whether its compensator was called.
    fn is_tried(&self, stands: &Stands) -> bool {
        let name = undo_of(&stands.state);
        let mut undos = self
            .facts
            .log
            .iter()
            .filter(|called| called.undoes && called.state == name);
        undos.any(|undo| match &stands.token {
            Some(token) => undo.token == *token,
            None => stands.id.is_none_or(|id| id == undo.member),
        })
    }

    /// Returns what must be undone with a machine: of those below it too, unless they did it themselves.
    pub(super) fn standing<'m>(&'m self, scope: &'m str) -> impl Iterator<Item = &'m Stands> {
        let within = format!("{scope}/");
        let is_inside = move |stands: &&Stands| stands.member == scope || stands.member.starts_with(&within);
        self.found.stands.iter().filter(is_inside)
    }

    /// Returns when something was undone, or passed over by a person.
    pub(super) fn undone(&self, stands: &Stands) -> Option<Moment> {
        undone(self.facts, &self.found.stands, stands)
    }

    fn back_of_elements(&mut self, member: &mut Member, at: usize, children: &[Member]) {
        if !self.begins(member) {
            member.phase = Phase::Waits;
            return;
        }
        let failed = |child: &Member| matches!(child.phase, Phase::Ended { status: "FA", .. });
        let status = if children.iter().any(failed) { "FA" } else { "SU" };
        self.line(member, at, status);
        member.visit = None;
        self.back_of_loop(member, at, children);
    }

    fn back_of_loop(&mut self, member: &mut Member, at: usize, children: &[Member]) {
        let mut caught = None;
        for child in children {
            member.items.extend(child.all_items());
            take_windows(member, child);
            if let Phase::Ended { next: Some(next), .. } = child.phase {
                caught.get_or_insert(next);
            }
        }
        let results = children.iter().map(|child| child.context.clone().into());
        member.put("loopResult", results.collect::<Vec<Value>>().into());
        member.leave();
        member.pc = caught.or(self.state(member, at).next);
    }

    fn back_of_machines(&mut self, member: &mut Member, at: usize, task: &Task, places: &[usize], children: &[Member]) {
        if !self.begins(member) {
            member.phase = Phase::Waits;
            return;
        }
        let (mut all, mut some) = ("SU", false);
        for (place, child) in places.iter().zip(children) {
            let has_failed = self.found.failed.contains_key(&child.path);
            let is_well = !has_failed && matches!(child.phase, Phase::Ended { status: "SU", .. });
            if is_well {
                some = true;
            } else {
                all = "FA";
            }
            let mut outputs = Map::new();
            if let Some(output) = task.output {
                let value = child.shown.get("x").cloned().unwrap_or_default();
                match task.each {
                    None => member.put(output, value),
                    Some(_) => drop(outputs.insert(output.to_owned(), value)),
                }
            }
            if is_well {
                member.results[*place] = Some(outputs);
            }
            take_windows(member, child);
        }
        if let Some(visit) = &mut member.visit {
            visit.tried(all);
            visit.partly |= some;
        }
        self.line(member, at, all);
        if task.undo == Undo::Task {
            self.kept(member, at, task, all);
        }
        if task.each.is_some() {
            let results = member
                .results
                .iter()
                .map(|result| result.clone().unwrap_or_default().into());
            let results: Vec<Value> = results.collect();
            member.put("loopResult", results.into());
            if member.results.iter().all(Option::is_some) {
                member.results.clear();
            }
        } else {
            member.results.clear();
        }
        member.pc = self.state(member, at).next;
    }

    /// A task of the machine's own undoes what sub machines did that have ended well, in their place.
    fn kept(&mut self, member: &Member, at: usize, task: &Task, status: &'static str) {
        if status != "SU" {
            return;
        }
        for child in member.visit.iter().flat_map(|visit| &visit.children) {
            let within = format!("{child}/");
            let all = std::mem::take(&mut self.found.stands);
            // Whether the task takes over is not known if its machine failed at the same moment.
            if member.maybe {
                self.found.stands = all;
                let mut stands = self.found.stands.iter_mut();
                let inside = |stands: &&mut Stands| stands.member == *child || stands.member.starts_with(&within);
                while let Some(stands) = stands.find(inside) {
                    stands.optional = true;
                    stands.instead = Some(child.clone());
                }
                continue;
            }
            let is_left = |stands: &Stands| {
                let is_inside = stands.member == *child || stands.member.starts_with(&within);
                // What is undone later is something else of the same state, which the model has not met yet.
                !is_inside || undone(self.facts, &all, stands).is_some_and(|when| when < member.now)
            };
            self.found.stands = all.iter().filter(|stands| is_left(stands)).cloned().collect();
        }
        self.stands(member, at, task, "SU");
        let newest = self.found.stands.last_mut().filter(|_| member.maybe);
        if let (Some(newest), Some(visit)) = (newest, &member.visit) {
            newest.key = visit.children.last().cloned();
        }
    }

    /// Returns whether something is undone, or the task or the sub machine that has it undone in its place.
    fn is_undone_instead(&self, stands: &Stands) -> bool {
        let (key, instead) = (&stands.key, &stands.instead);
        let mut all = self.found.stands.iter();
        match (key, instead) {
            (_, Some(_)) => all.any(|other| other.key == *instead && self.undone(other).is_some()),
            (Some(_), None) => {
                let inside: Vec<&Stands> = all.filter(|other| other.instead == *key).collect();
                !inside.is_empty() && inside.into_iter().all(|other| self.undone(other).is_some())
            }
            (None, None) => false,
        }
    }

    pub(super) fn fork(&mut self, member: &mut Member, at: usize) {
        let Kind::Fork {
            branches,
            join,
            parallel,
            timeout_ms,
        } = &self.state(member, at).kind
        else {
            return;
        };
        member.fold();
        member.last = at;
        let heads: Vec<usize> = branches.iter().copied().filter(|head| head != join).collect();
        if heads.is_empty() {
            member.pc = Some(*join);
            return;
        }
        if Self::is_window_over(member) {
            return self.rest(member, at, false, false);
        }
        member.commit();
        let mut windows = member.windows.clone();
        if *timeout_ms > 0 {
            windows.push(Window {
                length_ms: *timeout_ms,
                until: member.now.at.after(Duration::from_millis(*timeout_ms)),
            });
        }
        let mut width = Width {
            limit: *parallel,
            running: Vec::new(),
        };
        let places: Vec<usize> = (0..heads.len()).collect();
        let names = self.names(member, at, &places, *parallel);
        let mut children = Vec::new();
        for (head, name) in heads.iter().zip(names) {
            let Some(begins) = width.next(member.now) else { break };
            let part = Part::Branch { join: *join };
            let mut child = Member::new(name.path, member.machine, member.scopes.clone(), part, *head);
            child.id = name.id;
            child.context.clone_from(&member.context);
            child.windows.clone_from(&windows);
            child.now = begins;
            child.commit();
            self.run(&mut child);
            width.running.push(self.ended(&child));
            children.push(child);
        }
        let ends: Option<Vec<Moment>> = children.iter().map(|child| self.ended(child)).collect();
        match ends.filter(|ends| ends.len() == heads.len()) {
            Some(ends) => {
                member.now = ends.into_iter().max().unwrap_or(member.now);
                self.join(member, *join, &children);
            }
            None => member.phase = Phase::Waits,
        }
        self.found.members.extend(children);
    }

    /// Lays the writes of branches over the context, in the order in which the Fork declares them.
    fn join(&mut self, member: &mut Member, join: usize, children: &[Member]) {
        let next = self.state(member, join).next;
        let is_direct =
            next.is_some_and(|next| matches!(&self.state(member, next).kind, Kind::Task(task) if task.is_direct()));
        if !is_direct && !self.begins(member) {
            member.phase = Phase::Waits;
            return;
        }
        for child in children {
            member.items.extend(child.all_items());
            take_windows(member, child);
            for (name, value) in child.writes() {
                member.put(&name, value);
            }
        }
        member.noted = false;
        member.pending = is_direct;
        member.pc = next;
        member.again = is_direct;
    }
}

/// A parent takes the latest windows that its children bring, of those that it has itself.
fn take_windows(member: &mut Member, child: &Member) {
    for (window, brought) in member.windows.iter_mut().zip(&child.windows) {
        window.until = window.until.max(brought.until);
    }
}

/// Returns when something was undone, or passed over by a person. What a member did in one state is undone newest first, so
/// each end of an undo belongs to the newest that has none before it, unless a token names another one.
pub(super) fn undone(facts: &Facts, all: &[Stands], stands: &Stands) -> Option<Moment> {
    let id = stands.id?;
    let is_like = |other: &&Stands| other.id == stands.id && other.state == stands.state;
    let mut left: Vec<&Stands> = all.iter().filter(is_like).collect();
    left.sort_by_key(|other| (other.when, other.number));
    for end in ends(facts, id, &stands.state) {
        let has_token = |other: &&Stands| other.token.is_some() && other.token.as_ref() == end.token;
        // What was never called has no token. It is not known which of them is undone, either, if no compensator was called.
        let is_poison = |other: &Stands| other.when.event == usize::MAX;
        let is_older = |other: &Stands| other.when.event < end.begun || is_poison(other);
        let may_be = |other: &&Stands| is_older(other) && (other.token.is_none() || end.token.is_none());
        let own = left.iter().rposition(has_token);
        let Some(place) = own.or_else(|| left.iter().rposition(may_be)) else {
            continue;
        };
        let undone = left.remove(place);
        if (&undone.member, undone.when, undone.number) == (&stands.member, stands.when, stands.number) {
            return Some(end.when);
        }
    }
    None
}

/// An undo of a member that has come to its end.
struct UndoEnd<'a> {
    /// What its compensator was called with, if it was.
    token: Option<&'a String>,
    /// The event with which it began.
    begun: usize,
    when: Moment,
}

/// Returns the ends of the undos of a state: their compensator has succeeded, or a person has skipped them. A person passes
/// over all tries of a visit at once: "The undo of a try does nothing if a later try of the same state instance was undone before
/// it".
fn ends<'a>(facts: &'a Facts, id: ProcedureId, state: &str) -> Vec<UndoEnd<'a>> {
    let name = undo_of(state);
    let undos = facts.log.iter();
    let undos: Vec<&Called> = undos
        .filter(|called| called.undoes && called.state == name && called.member == id)
        .collect();
    let mut ends = Vec::<UndoEnd<'_>>::new();
    for undo in undos.iter().filter(|undo| !facts.is_lost(undo)) {
        let Some((event, at, Came::Back("SU"))) = undo.ended else {
            continue;
        };
        let first = undos.iter().find(|first| first.token == undo.token);
        if ends.iter().all(|end| end.token != Some(&undo.token)) {
            ends.push(UndoEnd {
                token: Some(&undo.token),
                begun: first.map_or(event, |first| first.begun.0),
                when: Moment { at, event },
            });
        }
    }
    let skipped = facts.skipped.iter();
    for skipped in skipped.filter(|skipped| skipped.state == state && skipped.member == id) {
        // It had failed before.
        let is_before = |undo: &&&Called| {
            let ended = undo.ended.is_some_and(|(_, at, _)| at <= skipped.when.at);
            ended && undo.begun.0 < skipped.when.event
        };
        let failed = undos.iter().rev().find(is_before);
        ends.push(UndoEnd {
            token: failed.map(|undo| &undo.token),
            begun: failed.map_or(skipped.when.event, |undo| undo.begun.0),
            when: skipped.when,
        });
    }
    ends.sort_by_key(|end| end.when);
    ends
}
