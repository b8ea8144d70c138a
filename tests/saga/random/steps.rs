//! The steps of a member in the model: tasks, what they come to, ends, rests.

use procession::ProcedureId;
use procession::saga::Network;
use serde_json::{Value, json};

use super::deaths::Fate;
use super::member::{Line, Member, Moment, Part, Phase, Stands, Visit};
use super::model::{Decision, Due, Model, Resting};
use super::outside::{Came, SCRIPT_FAULT, value_of};
use super::shape::{Condition, Kind, Task, Undo, Work};

impl Model<'_> {
    pub(super) fn step(&mut self, member: &mut Member) {
        let Some(at) = member.pc else {
            return self.end(member, false);
        };
        let state = self.state(member, at);
        match &state.kind {
            Kind::Task(task) if task.is_direct() || matches!(member.part, Part::Element { .. }) => {
                self.task(member, at, task)
            }
            Kind::Task(task) => self.open(member, at, task),
            Kind::Fork { .. } => self.fork(member, at),
            Kind::Choice(condition, to) => match (holds(member, condition), state.next) {
                (true, _) => member.pc = Some(*to),
                (false, Some(next)) => member.pc = Some(next),
                (false, None) => self.rest(member, at, false, false),
            },
            Kind::Join if member.part == (Part::Branch { join: at }) => self.end(member, false),
            Kind::Join => member.pc = state.next,
            Kind::Succeed => self.end(member, false),
            Kind::Fail => self.end(member, true),
            Kind::Trigger => {
                if state.next.is_some() {
                    put_error(member);
                }
                self.fail(member);
            }
        }
    }

    fn fail(&mut self, member: &mut Member) {
        member.commit();
        member.phase = Phase::Failed;
        if let Some(scope) = member.scopes.last().cloned() {
            self.fails(&scope, member.now, Some(&member.path));
        }
    }

    fn done(member: &mut Member, status: &'static str, next: Option<usize>) {
        member.commit();
        member.phase = Phase::Ended { status, next };
    }

    fn end(&mut self, member: &mut Member, is_fail: bool) {
        if is_fail {
            put_error(member);
        }
        let status = if is_fail {
            member.status_of_failure()
        } else {
            member.status()
        };
        match (status, &member.part) {
            ("SU", _) => Self::done(member, "SU", None),
            ("FA", Part::Root) => self.fail(member),
            ("FA", Part::Branch { .. }) if is_fail => self.fail(member),
            ("FA", _) => Self::done(member, "FA", None),
            _ => {
                let last = member.last;
                self.rest(member, last, true, true);
            }
        }
    }

    /// Goes on behind a task that has come to its end.
    fn after(&mut self, member: &mut Member, at: usize) {
        member.leave();
        if matches!(member.part, Part::Element { .. }) {
            return self.end(member, false);
        }
        member.pc = self.state(member, at).next;
    }

    fn begin_try(&mut self, member: &mut Member, at: usize, task: &Task) {
        member.last = at;
        if task.has_status() {
            member.visit.get_or_insert_with(|| Visit::of(task)).tries += 1;
        }
    }

    /// Returns whether a window is over, behind which no state of its Fork begins.
    pub(super) fn is_window_over(member: &Member) -> bool {
        member.windows.iter().any(|window| window.until <= member.now.at)
    }

    fn task(&mut self, member: &mut Member, at: usize, task: &Task) {
        if !std::mem::take(&mut member.again) {
            member.fold();
        }
        if !member.pending {
            member.commit();
        }
        if Self::is_window_over(member) {
            return match self.begins(member) {
                true => self.rest(member, at, false, true),
                false => member.phase = Phase::Out,
            };
        }
        match task.work {
            Work::Script { .. } | Work::Counter => self.script(member, at, task),
            Work::Async => self.send(member, at, task),
            Work::Service | Work::Machine(_) => self.service(member, at, task),
        }
    }

    fn script(&mut self, member: &mut Member, at: usize, task: &Task) {
        if !self.begins(member) {
            member.phase = Phase::Out;
            return;
        }
        self.begin_try(member, at, task);
        member.noted = false;
        member.pending = false;
        let name = self.state(member, at).name.clone();
        match task.work {
            Work::Script { fails } if fails && member.variable("heal").is_null() => {
                self.faulted(member, at, task, SCRIPT_FAULT);
            }
            Work::Counter => {
                let counter = format!("n{name}");
                let rounds = member.variable(&counter).as_u64().unwrap_or_default();
                let place = format!("{}/{name}", member.at());
                member.put("at", place.into());
                member.put(&counter, (rounds + 1).into());
                self.after(member, at);
            }
            Work::Script { .. } | Work::Service | Work::Async | Work::Machine(_) => {
                if let Some(output) = task.output {
                    member.put(output, name.into());
                }
                self.after(member, at);
            }
        }
    }

    /// A call that nobody waits for. It counts as a success.
    fn send(&mut self, member: &mut Member, at: usize, task: &Task) {
        if !self.begins(member) {
            member.phase = Phase::Out;
            return;
        }
        self.begin_try(member, at, task);
        member.pending = false;
        let name = self.state(member, at).name.clone();
        if !member.maybe {
            self.found.sent.push((member.at(), name));
        }
        if let Some(visit) = &mut member.visit {
            visit.tried("SU");
        }
        self.line(member, at, "SU");
        self.stands(member, at, task, "SU");
        self.after(member, at);
    }

    fn service(&mut self, member: &mut Member, at: usize, task: &Task) {
        let name = self.state(member, at).name.clone();
        self.begin_try(member, at, task);
        let (known, attempt) = match &member.visit {
            Some(visit) => (visit.token.clone(), visit.tries),
            None => (None, 1),
        };
        let token = known.or_else(|| self.token(member, &name));
        let called = token.as_ref().and_then(|token| self.call(token, attempt));
        let Some(called) = called else {
            self.out(member, &name, false);
            return;
        };
        self.check_caller(member, called.member, &name);
        if let Some(visit) = &mut member.visit {
            visit.token = token;
        }
        let first = self.first_call(called);
        self.check_begun(member, first.at, &name);
        self.is_behind(member, first);
        if !matches!(member.part, Part::Element { .. }) {
            for variable in ["x", "y", "p"] {
                let (seen, is) = (called.seen.get(variable), member.context.get(variable));
                if seen != is {
                    let text = format!("{name} saw {variable} = {seen:?}, and it is {is:?} for {}", member.path);
                    self.found.wrong.push(text);
                }
            }
        }
        let fate = self.facts.fate(called, member.now.event);
        let is_out = called.life == self.facts.life;
        if is_out && fate == Fate::Wrong {
            let text = format!(
                "{name} of {} is called, and three processes have died with it",
                member.path
            );
            self.found.wrong.push(text);
        }
        let is_poison = fate == Fate::Poison && self.failure(&member.scopes).is_some();
        let Some((event, ended, came)) = called.ended else {
            if is_poison {
                self.stands_as_poison(member, at, task);
                self.poison_line(member, at);
                member.phase = Phase::Out;
            } else {
                self.out(member, &name, is_out);
            }
            return;
        };
        member.now = Moment { at: ended, event };
        member.pending = false;
        if is_poison && self.facts.may_be_lost(event) {
            return self.came_or_lost(member, at, task, came);
        }
        self.came(member, at, task, came);
    }

    /// A crash may have lost what a call came to, and then it was poison. It is undone either way, unless it had no effect.
    fn came_or_lost(&mut self, member: &mut Member, at: usize, task: &Task, came: Came) {
        let was_maybe = std::mem::replace(&mut member.maybe, true);
        let token = member.visit.as_ref().and_then(|visit| visit.token.clone());
        self.came(member, at, task, came);
        let mut stands = self.found.stands.iter_mut();
        match stands.find(|stands| token.is_some() && stands.token == token) {
            Some(stands) => (stands.optional, stands.until) = (was_maybe, usize::MAX),
            None => {
                let mut cut = member.clone();
                cut.visit = Some(Visit {
                    token,
                    ..Visit::of(task)
                });
                self.stands_as_poison(&cut, at, task);
            }
        }
        self.poison_line(member, at);
    }

    /// A try that process after process was killed with counts as executed once its machine is rolled back: it is the newest
    /// of all.
    fn stands_as_poison(&mut self, member: &Member, at: usize, task: &Task) {
        let mut newest = member.clone();
        newest.now = Moment {
            at: self.facts.now,
            event: usize::MAX,
        };
        self.stands(&newest, at, task, "UN");
    }

    /// It is listed once its machine has begun to be undone.
    fn poison_line(&self, member: &mut Member, at: usize) {
        member.list.push(Line {
            state: self.state(member, at).name.clone(),
            status: "UN",
            optional: true,
        });
    }

    /// A call says which member made it.
    fn check_caller(&mut self, member: &Member, id: ProcedureId, state: &str) {
        if member.id != Some(id) {
            let text = format!("{id} called {state}, and {:?} is {}", member.id, member.path);
            self.found.wrong.push(text);
        }
    }

    /// A call is out, or should be.
    fn out(&mut self, member: &mut Member, state: &str, is_out: bool) {
        member.phase = Phase::Out;
        self.found.due.push(Due {
            scopes: member.scopes.clone(),
            since: member.now.at,
            state: state.to_owned(),
            is_out,
        });
    }

    fn check_begun(&mut self, member: &Member, begun: procession_kernel::Timestamp, state: &str) {
        if self.failure(&member.scopes).is_some_and(|failure| failure.at < begun) {
            let text = format!("{state} of {} began after its saga had failed", member.path);
            self.found.wrong.push(text);
        }
        if begun < member.now.at {
            let text = format!("{state} of {} began too early, at {begun:?}", member.path);
            self.found.wrong.push(text);
        }
    }

    fn came(&mut self, member: &mut Member, at: usize, task: &Task, came: Came) {
        let in_doubt = if task.is_for_update() { "UN" } else { "FA" };
        let (status, matches) = match (came, task.on_fault) {
            (Came::Fault(..), Some(status)) => (status, true),
            (Came::Back(status @ ("SU" | "FA" | "UN")), Some(_)) => (status, true),
            (Came::Back(_), Some(_)) => (in_doubt, false),
            (Came::Fault(_, Some(Network::Refused)), None) => ("FA", true),
            (Came::Fault(..), None) => (in_doubt, true),
            (Came::Back(_), None) => ("SU", true),
        };
        let (so_far, attempt) = match &mut member.visit {
            Some(visit) => (visit.tried(status), visit.tries),
            None => (status, 1),
        };
        self.line(member, at, so_far);
        self.stands(member, at, task, so_far);
        let class = match came {
            Came::Fault(class, network) => Some((class, network)),
            Came::Back(_) => None,
        };
        if let (Some((class, network)), Some(retry)) = (class, task.retry) {
            let is_for = match retry.class {
                Some(of) => is_of(class, of),
                None => network.is_some(),
            };
            if is_for && member.retried < retry.most {
                member.retried += 1;
                return self.sleep(member, retry.interval_ms);
            }
        }
        match class.filter(|_| status != "SU") {
            _ if !matches => self.rest(member, at, false, true),
            Some((class, _)) => self.faulted(member, at, task, class),
            None => {
                if let Some(output) = task.output.filter(|_| class.is_none()) {
                    let name = self.state(member, at).name.clone();
                    member.put(output, value_of(&name, attempt).into());
                }
                self.after(member, at);
            }
        }
    }

    fn sleep(&mut self, member: &mut Member, ms: u64) {
        member.commit();
        let wake = member.now.at.after(std::time::Duration::from_millis(ms));
        let over = member.windows.iter().map(|window| window.until).min();
        let wake = over.map_or(wake, |over| wake.min(over));
        member.again = true;
        // Nor does it wake if its machine fails before: "running calls end and are recorded, parked ones stop".
        let is_stopped = self.failure(&member.scopes).is_some_and(|failure| failure.at < wake);
        if wake > self.facts.now || is_stopped {
            member.phase = Phase::Out;
            return;
        }
        member.now.at = wake.max(member.now.at);
    }

    fn faulted(&mut self, member: &mut Member, at: usize, task: &Task, class: &str) {
        let Some((_, to)) = task.catch.filter(|(of, _)| is_of(class, of)) else {
            return self.rest(member, at, false, true);
        };
        member.leave();
        if !matches!(member.part, Part::Element { .. }) {
            member.pc = Some(to);
            return;
        }
        // An element leaves by its machine's states, unless they undo all.
        match self.state(member, to).kind {
            Kind::Trigger => member.pc = Some(to),
            _ => {
                let status = member.status();
                Self::done(member, status, Some(to));
            }
        }
    }

    /// Notes that a try must be undone.
    pub(super) fn stands(&mut self, member: &Member, at: usize, task: &Task, status: &str) {
        if !task.is_for_update() || !matches!(status, "SU" | "UN" | "SK") {
            return;
        }
        let visit = member.visit.as_ref();
        let state = self.state(member, at).name.clone();
        let token = visit.and_then(|visit| visit.token.clone());
        // A call is recorded as it ends. A decision or the end of a sub machine lets a stage run, which is recorded later.
        let until = match (status, task.work) {
            ("SK", _) | (_, Work::Machine(_)) => self.facts.quiet_after(member.now.event),
            _ => member.now.event,
        };
        let is_same = |stands: &&mut Stands| stands.member == member.path && stands.token == token && token.is_some();
        if let Some(known) = self.found.stands.iter_mut().find(is_same) {
            (known.when, known.until) = (member.now, until);
            known.optional &= member.maybe;
            return;
        }
        self.stood += 1;
        self.found.stands.push(Stands {
            member: member.path.clone(),
            id: member.id,
            state,
            token,
            number: self.stood,
            when: member.now,
            until,
            optional: member.maybe,
            key: None,
            instead: None,
        });
    }

    pub(super) fn rest(&mut self, member: &mut Member, at: usize, is_at_end: bool, can_skip: bool) {
        member.commit();
        let state = self.state(member, at);
        let Some(decided) = self.decision(member) else {
            member.phase = Phase::Rests;
            member.is_rest_at_end = is_at_end;
            self.found.rests.push(Resting {
                path: member.path.clone(),
                id: member.id,
                state: state.name.clone(),
                can_skip,
                scopes: member.scopes.clone(),
            });
            return;
        };
        member.rested += 1;
        member.now = decided.when;
        member.noted = false;
        match &decided.decision {
            Decision::Forward(params) => self.forward(member, at, is_at_end, params),
            Decision::Skip(results) => {
                for (name, value) in results {
                    member.put(name, value.clone());
                }
                match &state.kind {
                    _ if is_at_end => {
                        member.skip_doubts();
                        self.end(member, false);
                    }
                    Kind::Task(task) => self.skip(member, at, task),
                    _ => {}
                }
            }
        }
    }

    fn forward(&mut self, member: &mut Member, at: usize, is_at_end: bool, params: &serde_json::Map<String, Value>) {
        if !matches!(member.part, Part::Element { .. }) {
            for (name, value) in params {
                super::member::set(&mut member.context, name, value.clone());
            }
        }
        member.retried = 0;
        for window in &mut member.windows {
            window.until = member.now.at.after(std::time::Duration::from_millis(window.length_ms));
        }
        let is_done = member
            .visit
            .as_ref()
            .is_none_or(|visit| matches!(visit.status, "SU" | "SK"));
        match &self.state(member, at).kind {
            Kind::Fork { join, .. } if is_at_end => member.pc = Some(*join),
            Kind::Task(_) if is_at_end && is_done => self.after(member, at),
            Kind::Task(_) => {
                member.pc = Some(at);
                (member.again, member.pending) = (true, true);
            }
            _ => member.pc = Some(at),
        }
    }

    fn skip(&mut self, member: &mut Member, at: usize, task: &Task) {
        self.begin_try(member, at, task);
        if task.has_status() {
            if let Some(visit) = &mut member.visit {
                visit.status = "SK";
            }
            self.line(member, at, "SK");
            // What a sub machine did is its own states', unless a task undoes it as a whole.
            let is_own = !matches!((task.work, task.undo), (Work::Machine(_), Undo::None));
            if is_own {
                self.stands(member, at, task, "SK");
            }
        }
        self.after(member, at);
    }
}

fn put_error(member: &mut Member) {
    member.put("_statemachine_error_code_", json!("E"));
    member.put("_statemachine_error_message_", json!("failed"));
}

fn holds(member: &Member, condition: &Condition) -> bool {
    match condition {
        Condition::Param(value) => member.variable("p").as_u64() == Some(*value),
        Condition::IsNull(name) => member.variable(name).is_null(),
        Condition::FirstRound(of) => member.variable(&format!("n{of}")).as_u64() < Some(2),
    }
}

/// Returns whether a class is the other one, or below it.
fn is_of(class: &str, of: &str) -> bool {
    class == of || of == "java.lang.Throwable"
}
