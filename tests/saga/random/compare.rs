//! What the engine says of a saga, against the model.

use std::collections::{BTreeMap, BTreeSet};

use procession::ProcedureId;
use procession::saga::{SagaInstance, Standing};
use serde_json::Value;

use super::families;
use super::member::{Line, Member, Moment, Phase, Stands};
use super::model::{Facts, Found, ROOT, Resting};
use super::outside::{Called, Came};
use super::shape::undo_of;

/// What is to be compared.
pub(super) struct Both<'a> {
    pub(super) facts: &'a Facts,
    pub(super) found: &'a Found,
    pub(super) instance: &'a SagaInstance,
    /// A rollback rests.
    pub(super) is_stuck: bool,
}

/// The path of each member that rests.
pub(super) type Paths = BTreeMap<ProcedureId, String>;

impl Both<'_> {
    /// Returns where each member is that rests, or the first difference.
    pub(super) fn compare(&self) -> Result<Paths, String> {
        if let Some(wrong) = self.found.wrong.first() {
            return Err(wrong.clone());
        }
        self.compare_due()?;
        let paths = self.compare_rests()?;
        self.compare_standing()?;
        self.compare_context()?;
        self.compare_lists()?;
        self.compare_undos()?;
        self.compare_sent()?;
        Ok(paths)
    }

    fn failure(&self, scopes: &[String]) -> Option<Moment> {
        scopes
            .iter()
            .filter_map(|scope| self.found.failed.get(scope))
            .min()
            .copied()
    }

    fn has_failed(&self, scopes: &[String]) -> bool {
        self.failure(scopes).is_some()
    }

    fn root(&self) -> Result<&Member, String> {
        self.found.members.last().ok_or_else(|| "there is no root".to_owned())
    }

    /// What must be called is being called.
    fn compare_due(&self) -> Result<(), String> {
        for due in &self.found.due {
            let failure = self.failure(&due.scopes);
            let may_be_lost = failure.is_some_and(|failure| failure.at <= due.since);
            if !due.is_out && !may_be_lost {
                return Err(format!("{} should be called since {:?}", due.state, due.since));
            }
        }
        Ok(())
    }

    fn compare_rests(&self) -> Result<Paths, String> {
        let mut expected: Vec<&Resting> = self.found.rests.iter().collect();
        expected.retain(|rest| !self.has_failed(&rest.scopes));
        let mut paths = Paths::new();
        if self.found.failed.contains_key(ROOT) {
            return Ok(paths);
        }
        for rest in &self.instance.rests {
            let is_it = |expected: &&Resting| expected.id == Some(rest.id) && expected.state == rest.state;
            let Some(place) = expected.iter().position(is_it) else {
                return Err(format!("{} rests at {}: {}", rest.id, rest.state, rest.question));
            };
            let expected = expected.remove(place);
            if expected.can_skip != rest.can_skip {
                return Err(format!("{} can be skipped: {}", rest.state, rest.can_skip));
            }
            paths.insert(rest.id, expected.path.clone());
        }
        match expected.first() {
            Some(missing) => Err(format!("{} should rest at {}", missing.path, missing.state)),
            None => Ok(paths),
        }
    }

    fn compare_standing(&self) -> Result<(), String> {
        let root = self.root()?;
        let found = (
            self.instance.standing,
            self.instance.status.word(),
            self.instance.compensation.map(|status| status.word()),
        );
        let is_undone = self.is_undone();
        let any_undone = || self.found.stands.iter().any(|stands| self.undone(stands));
        let rests = self
            .found
            .rests
            .iter()
            .filter(|rest| !self.has_failed(&rest.scopes))
            .count();
        let may_be_undone = self
            .found
            .stands
            .iter()
            .any(|stands| stands.optional && !self.undone(stands));
        let undoing = match self.is_stuck {
            true => [(Standing::CompensationRests, "UN", Some("UN"))],
            false => [(Standing::Compensating, "UN", Some("RU"))],
        };
        let mut expected: Vec<(Standing, &str, Option<&str>)> = if self.found.failed.contains_key(ROOT) {
            match is_undone {
                true if any_undone() => vec![(Standing::Ended, "UN", Some("SU"))],
                // In doubt, and not for an update: nothing is undone, and it stays in doubt.
                true => vec![
                    (Standing::Ended, "FA", None),
                    (Standing::Ended, "UN", None),
                    (Standing::Ended, "UN", Some("SU")),
                ],
                false => undoing.to_vec(),
            }
        } else if matches!(root.phase, Phase::Ended { .. }) {
            vec![(Standing::Ended, "SU", None)]
        } else if rests == 0 {
            vec![(Standing::Running, "RU", None)]
        } else if root.phase == Phase::Rests && !root.is_rest_at_end {
            vec![(Standing::Rests, root.status_of_failure(), None)]
        } else {
            vec![(Standing::Rests, "UN", None)]
        };
        if self.found.failed.contains_key(ROOT) && may_be_undone {
            expected.extend(undoing);
        }
        match expected.contains(&found) {
            true => Ok(()),
            false => {
                let stands = self.found.stands.iter().filter(|stands| !self.undone(stands));
                let left: Vec<String> = stands
                    .map(|stands| format!("{} of {}", stands.state, stands.member))
                    .collect();
                Err(format!(
                    "it stands as {found:?}, and should as one of {expected:?}; {left:?} are not undone"
                ))
            }
        }
    }

    /// All of a saga that failed is undone, and nothing of it is out.
    fn is_undone(&self) -> bool {
        let is_out = self.found.due.iter().any(|due| due.is_out);
        !is_out
            && self
                .found
                .stands
                .iter()
                .all(|stands| stands.optional || self.undone(stands))
    }

    fn undone(&self, stands: &Stands) -> bool {
        self.undone_at(stands).is_some()
    }

    fn undone_at(&self, stands: &Stands) -> Option<Moment> {
        families::undone(self.facts, &self.found.stands, stands)
    }

    fn compare_context(&self) -> Result<(), String> {
        let root = self.root()?;
        if root.maybe || self.instance.context == root.shown {
            return Ok(());
        }
        let (found, expected) = (&self.instance.context, &root.shown);
        let keys: BTreeSet<&String> = found.keys().chain(expected.keys()).collect();
        let differs = keys.into_iter().find(|key| found.get(*key) != expected.get(*key));
        let key = differs.cloned().unwrap_or_default();
        Err(format!(
            "[{key}] is {:?}, and should be {:?}",
            found.get(&key),
            expected.get(&key)
        ))
    }

    fn compare_lists(&self) -> Result<(), String> {
        let mut lists: BTreeMap<ProcedureId, Vec<(&str, &str)>> = BTreeMap::new();
        for state in &self.instance.states {
            lists
                .entry(state.member)
                .or_default()
                .push((&state.state, state.status.word()));
        }
        for member in &self.found.members {
            let list = member.id.and_then(|id| lists.remove(&id)).unwrap_or_default();
            if !fits(&member.list, &list) {
                return Err(format!(
                    "{} has the states {list:?}, and should have {:?}",
                    member.path, member.list
                ));
            }
        }
        match lists.into_iter().next() {
            Some((id, list)) => Err(format!("member {id} has the states {list:?} without a reason")),
            None => Ok(()),
        }
    }

    fn compare_undos(&self) -> Result<(), String> {
        let mut earliest: BTreeMap<&str, (usize, &str)> = BTreeMap::new();
        let mut done: BTreeSet<&str> = BTreeSet::new();
        for undo in self.facts.log.iter().filter(|called| called.undoes) {
            let Some((_, _, came)) = undo.ended else { continue };
            let Some(stands) = self.undone_by(undo) else {
                // What three processes died with before they called it counts as executed, too.
                match self.facts.deaths.len() >= 3 {
                    true => continue,
                    false => return Err(format!("{} undoes what did not happen", undo.state)),
                }
            };
            let failed = self.failed_scope(stands, undo.begun.0);
            let Some((scope, failure)) = failed else {
                return Err(format!("{} is called, and its machine has not failed", undo.state));
            };
            if undo.begun.1 < failure.at {
                return Err(format!("{} began before its machine failed", undo.state));
            }
            if came != Came::Back("SU") || self.facts.is_lost(undo) {
                continue;
            }
            if !done.insert(&undo.token) {
                return Err(format!("{} succeeded twice", undo.state));
            }
            // A machine in it may have failed before, and begun this undo by itself.
            let around = self.found.failed.iter().filter(|(scope, _)| is_around(stands, scope));
            let is_own = around.filter(|(_, failure)| failure.event <= undo.begun.0).count() > 1;
            let is_unclear = is_own && undo.begun.1 == failure.at;
            if stands.optional || is_unclear {
                continue;
            }
            // What was poison is recorded when its machine begins to be undone, behind all that ended there.
            let when = match stands.when.event {
                usize::MAX => self.last_end(scope),
                event => event,
            };
            let before = earliest.entry(scope).or_insert((usize::MAX, &undo.state));
            if before.0 < when {
                return Err(format!(
                    "{} came before {}, which was done after it",
                    before.1, undo.state
                ));
            }
            *before = (*before).min((stands.until, &undo.state));
        }
        Ok(())
    }

    /// Returns what an undo undoes.
    fn undone_by(&self, undo: &Called) -> Option<&Stands> {
        let alike = self.found.stands.iter();
        let mut alike = alike.filter(|stands| undo_of(&stands.state) == undo.state);
        let done = undo.ended.filter(|(.., came)| *came == Came::Back("SU"));
        let done = done.map(|(event, at, _)| Moment { at, event });
        // What was never called has no token, so it is known by when it was undone.
        let is_own = |stands: &&Stands| match &stands.token {
            Some(token) => *token == undo.token,
            None => done.is_some() && self.undone_at(stands) == done,
        };
        let own = alike.clone().find(is_own);
        let may_be = |stands: &&Stands| stands.token.is_none() && stands.id.is_none_or(|id| id == undo.member);
        // Among states that look the same, it is one whose machine has failed.
        let has_failed = |stands: &&Stands| may_be(stands) && self.failed_scope(stands, undo.begun.0).is_some();
        let failed = own.or_else(|| alike.clone().find(has_failed));
        failed.or_else(|| alike.find(may_be))
    }

    /// Returns the last event of a machine that has failed, before it began to be undone.
    fn last_end(&self, scope: &str) -> usize {
        let inside = self.found.members.iter();
        let inside = inside.filter(|member| member.scopes.iter().any(|around| around == scope));
        inside.map(|member| member.now.event).max().unwrap_or_default()
    }

    /// Returns the outermost machine that had failed when something was undone.
    fn failed_scope(&self, stands: &Stands, event: usize) -> Option<(&str, Moment)> {
        let mut failed = self.found.failed.iter();
        let around = failed.find(|(scope, failure)| is_around(stands, scope) && failure.event <= event);
        around.map(|(scope, failure)| (scope.as_str(), *failure))
    }

    /// Once nothing is left, each call that nobody waits for has been made.
    fn compare_sent(&self) -> Result<(), String> {
        if self.instance.standing != Standing::Ended {
            return Ok(());
        }
        for (at, state) in &self.found.sent {
            let is_it = |called: &&Called| called.at == *at && called.state == *state;
            if !self.facts.log.iter().any(|called| is_it(&called)) {
                return Err(format!("{state} was sent, and is not called"));
            }
        }
        Ok(())
    }

    /// What is shown as undone was undone: its compensator has succeeded.
    pub(super) fn compare_compensated(&self) -> Result<(), String> {
        for state in &self.instance.states {
            // A sub machine is undone by a task of the machine above it, too.
            let is_undo = |called: &&Called| {
                let is_own = called.state == undo_of(&state.state) && called.member == state.member;
                let has_succeeded = matches!(called.ended, Some((_, _, Came::Back("SU"))));
                called.undoes && has_succeeded && (is_own || called.state.starts_with("UM"))
            };
            if state.is_compensated && !self.facts.log.iter().any(|called| is_undo(&called)) {
                return Err(format!("{} of {} is shown as undone", state.state, state.member));
            }
        }
        Ok(())
    }
}

/// Returns whether something stands in a machine.
fn is_around(stands: &Stands, scope: &str) -> bool {
    stands.member == scope || stands.member.starts_with(&format!("{scope}/"))
}

/// Returns whether a list is the expected one, with or without what may be missing.
fn fits(expected: &[Line], list: &[(&str, &str)]) -> bool {
    match (expected.split_first(), list.split_first()) {
        (None, None) => true,
        (None, Some(_)) => false,
        (Some((line, rest)), head) => {
            let is_next = head.is_some_and(|(head, _)| *head == (line.state.as_str(), line.status));
            (is_next && fits(rest, &list[1..])) || (line.optional && fits(rest, list))
        }
    }
}

/// Says what can be seen of a saga, for a comparison of before and after a restart.
pub(super) fn shown(instance: &SagaInstance) -> String {
    let rests: Vec<String> = instance
        .rests
        .iter()
        .map(|rest| format!("{} {} {}", rest.id, rest.state, rest.question))
        .collect();
    let states: Vec<String> = instance.states.iter().map(|state| format!("{state:?}")).collect();
    format!(
        "{:?} {} {:?} {:?} {} {states:?} {rests:?} {:?}",
        instance.standing,
        instance.status,
        instance.compensation,
        instance.error,
        Value::from(instance.context.clone()),
        instance.at,
    )
}
