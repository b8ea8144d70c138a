//! Roots that operators submit, or run again after a failure: what is drawn, what the answers must be, and what must be
//! there afterwards. Each accepted request has made one root, its entry in the audit leads from the old root to the new
//! one, the key of the new one leads back, and both were submitted with one value.

use std::collections::{BTreeMap, BTreeSet};

use procession::errors::{AskError, NotNow};
use procession::operate::{Act, AuditEntry, Operated, OperatorRequest, Verb};
use procession::status::ProcedureState;
use procession::testkit::{Run, Trouble};
use procession::{Executor, ProcedureId};
use procession_actors::journal::{Space, codec, keys};
use procession_actors::testkit::format;
use procession_kernel::Row;

use super::client::{CIRCLING, KEPT, Told, kind_of, told};
use super::draw::Draw;
use super::operate::Ask;
use super::reload::scan;
use super::story::{Keyed, Story};
use super::support::Plan;

/// Of a hundred requests of operators, those that are drawn here.
const SHARE: u64 = 40;
/// More entries than the audit of any history has.
const ALL: usize = 1_000;

/// What an operator submits.
#[derive(Clone, Debug)]
pub(crate) struct Submission {
    plan: Plan,
    kind: u64,
    key: Option<String>,
}

impl Submission {
    pub(crate) async fn send(self, executor: &Executor, by: OperatorRequest) -> Result<Operated, AskError> {
        let submit = executor.submission_of(kind_of(self.kind), &self.plan);
        let mut submit = submit.map_err(|error| AskError::NotNow {
            kind: NotNow::Invalid,
            text: error.to_string(),
        })?;
        if let Some(key) = self.key {
            submit = submit.label("key", key.as_str()).label("client", "story").key(key);
        }
        executor.submit_by(submit, by).await
    }
}

/// What an operator asked for, and the answer.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) ask: Ask,
    pub(crate) by: OperatorRequest,
    pub(crate) answer: Result<Operated, AskError>,
}

/// What is known of roots that operators submitted.
#[derive(Default)]
pub(crate) struct Reruns {
    /// Roots that somebody asked to run again: without an answer nobody knows whether it was done.
    asked: BTreeSet<ProcedureId>,
    /// What runs each root again whose request was answered.
    again: BTreeMap<ProcedureId, ProcedureId>,
    /// What entries of the audit submitted, as the answers said.
    entries: BTreeMap<u64, ProcedureId>,
    /// Those that may have got another priority.
    reranked: BTreeSet<ProcedureId>,
    /// Keys of requests that another request had as well.
    borrowed: BTreeSet<String>,
}

impl Ask {
    /// Returns `true` if the model knows what the answer must be.
    pub(crate) const fn is_followed(&self) -> bool {
        matches!(self, Self::RunAgain(_) | Self::Acknowledge(_) | Self::Submit(_))
    }
}

// What is drawn.

impl Story {
    /// Draws a request of these, now and then.
    pub(crate) fn ask_apart(&mut self) -> Option<Ask> {
        let mut apart = self.apart.take()?;
        let ask = if apart.percent(SHARE) {
            self.drawn_from(&mut apart)
        } else {
            None
        };
        self.apart = Some(apart);
        ask
    }

    fn drawn_from(&mut self, apart: &mut Draw) -> Option<Ask> {
        let failed = self.failures.failed();
        let root = apart.pick(&failed).filter(|_| !apart.percent(8));
        let root = root.or_else(|| apart.pick(&self.known.ids));
        // Any member names its family.
        let member = root.map(|root| ProcedureId::new(root.family, apart.small(2)));
        match apart.below(10) {
            0..5 => member.map(Ask::RunAgain),
            5..7 => member.map(Ask::Acknowledge),
            _ => self
                .submission(apart)
                .map(|submission| Ask::Submit(Box::new(submission))),
        }
    }

    /// Draws one that is new, or was submitted before; rarely another with the key of one.
    fn submission(&mut self, apart: &mut Draw) -> Option<Submission> {
        if apart.percent(30) {
            let Keyed { key, plan, kind } = apart.pick(&self.keyed)?;
            // Where the key may still be free, another plan would take it from the client.
            let is_given = self.keeps() && self.known.keys.contains_key(&key);
            let other = (is_given && apart.percent(25)).then(|| self.shapes.root(apart));
            let (plan, key) = (other.unwrap_or(plan), Some(key));
            return Some(Submission { plan, kind, key });
        }
        if self.has_enough() {
            return None;
        }
        let plan = self.shapes.root(apart);
        let kind = match apart.below(12) {
            // Its plans are drawn otherwise.
            CIRCLING => 9,
            11 => KEPT,
            kind => kind,
        };
        let key = apart.percent(60).then(|| format!("key {}", self.keyed.len()));
        if let Some(key) = key.clone() {
            let plan = plan.clone();
            self.keyed.push(Keyed { key, plan, kind });
        }
        Some(Submission { plan, kind, key })
    }

    /// Now and then another submission has the key of a request: it must not be taken for that request.
    pub(crate) fn borrow_key(&mut self, ask: Ask, by: &OperatorRequest) -> Ask {
        let (Ask::Submit(submission), Some(apart)) = (&ask, &mut self.apart) else {
            return ask;
        };
        if !apart.percent(60) {
            return ask;
        }
        self.reruns.borrowed.extend(by.key.as_ref().map(ToString::to_string));
        Ask::Submit(Box::new(Submission {
            plan: self.shapes.root(apart),
            kind: submission.kind,
            key: None,
        }))
    }

    /// Takes note of what a request may do before anybody is told.
    pub(crate) fn may_take_effect(&mut self, ask: &Ask, by: &OperatorRequest) {
        if by.dry_run {
            return;
        }
        match ask {
            Ask::RunAgain(id) => {
                self.reruns.asked.insert(ProcedureId::root(id.family));
                self.failures.may_go(id.family);
            }
            Ask::Acknowledge(id) => self.failures.may_go(id.family),
            Ask::Priority(id, _) => {
                self.reruns.reranked.insert(*id);
            }
            _ => {}
        }
    }
}

// What the answers must be.

impl Story {
    /// Compares an answer with what it must be, and takes note of it.
    pub(crate) fn answered(&mut self, what: &str, asked: Asked) -> Result<(), Trouble> {
        let Asked { ask, by, answer } = asked;
        let operated = match answer {
            Ok(operated) => operated,
            Err(error) => return self.refused(what, &ask, &by, error),
        };
        if by.dry_run {
            return match operated.number {
                Some(number) => Err(format!("{what} is number {number} of the audit").into()),
                None => Ok(()),
            };
        }
        let submitted = operated.submitted;
        if let (Some(number), Some(id)) = (operated.number, submitted)
            && let Some(before) = self.reruns.entries.insert(number, id)
            && before != id
        {
            return Err(format!("{what} submitted {id}, and before that {before}").into());
        }
        match (&ask, submitted) {
            (Ask::RunAgain(id), Some(new)) => self.runs_again(ProcedureId::root(id.family), new)?,
            (Ask::Submit(submission), Some(id)) => self.submitted_by(what, submission, &by, id)?,
            (Ask::Acknowledge(id), None) => self.acknowledged(id.family),
            _ => return Err(format!("{what} is answered {operated:?}").into()),
        }
        match (by.key, operated.number) {
            (Some(key), Some(number)) => self.numbered(what, key.to_string(), number),
            _ => Ok(()),
        }
    }

    fn runs_again(&mut self, old: ProcedureId, new: ProcedureId) -> Result<(), Trouble> {
        if self.failures.has_failed(old.family) == Some(false) {
            return Err(format!("{old} has succeeded, and runs again as {new}").into());
        }
        match self.reruns.again.insert(old, new) {
            Some(before) if before == new => self.cover("RunAgainRepeated"),
            // One that was damaged may have been discharged, and its key is free then.
            Some(before) if !self.spoilt.contains(&before.family) => {
                return Err(format!("{old} runs again as {before}, and as {new}").into());
            }
            Some(_) | None => self.cover("RunAgain"),
        }
        self.failures.acknowledge(old.family);
        self.note(Some(format!("again {old}")), new)
    }

    fn submitted_by(
        &mut self,
        what: &str,
        submission: &Submission,
        by: &OperatorRequest,
        id: ProcedureId,
    ) -> Result<(), Trouble> {
        let key = submission.key.clone();
        let first = self.keyed.iter().find(|keyed| Some(&keyed.key) == key.as_ref());
        let is_other = first.is_some_and(|first| first.plan.name != submission.plan.name);
        let is_given = key.as_ref().is_some_and(|key| self.known.keys.contains_key(key));
        if is_other && is_given && self.keeps() {
            return Err(format!("{what} has the key of {first:?}").into());
        }
        self.cover("SubmitBy");
        // A repeat of the request finds what it submitted.
        let is_repeated = by
            .key
            .as_ref()
            .is_some_and(|key| self.numbers.contains_key(key.as_str()));
        if key.is_none() && is_repeated {
            return Ok(());
        }
        self.note(key, id)
    }

    fn note(&mut self, key: Option<String>, id: ProcedureId) -> Result<(), Trouble> {
        let (keeps, spoilt) = (self.settings.keeps(), &self.spoilt);
        Ok(self.known.note(key, id, |id| keeps && !spoilt.contains(&id.family))?)
    }

    /// What must be done is not refused.
    fn refused(&mut self, what: &str, ask: &Ask, by: &OperatorRequest, error: AskError) -> Result<(), Trouble> {
        let must_be_done = match ask {
            Ask::RunAgain(id) => self.failures.has_failed(id.family) == Some(true) && self.is_kept(id.family),
            Ask::Acknowledge(id) => self.failures.has_failed(id.family).is_some() && self.is_kept(id.family),
            Ask::Submit(submission) => !self.may_conflict(submission, by),
            _ => false,
        };
        match told(Err::<(), _>(error)) {
            Told::Unreadable(why) if matches!(ask, Ask::Submit(_)) => Err(format!("{what}: {why}").into()),
            Told::Said(why) if must_be_done && by.expected.is_none() && !self.drained => {
                Err(format!("{what} must be done, and is refused: {why}").into())
            }
            told => self.hear(what, told),
        }
    }

    fn is_kept(&self, family: u64) -> bool {
        self.settings.keeps() && !self.spoilt.contains(&family)
    }

    /// Returns `true` if a key of a submission may stand for another: its own, or that of the request.
    fn may_conflict(&self, submission: &Submission, by: &OperatorRequest) -> bool {
        let mut keyed = self
            .keyed
            .iter()
            .filter(|keyed| Some(&keyed.key) == submission.key.as_ref());
        keyed.any(|keyed| keyed.plan.name != submission.plan.name)
            || by
                .key
                .as_ref()
                .is_some_and(|key| self.reruns.borrowed.contains(key.as_str()))
    }
}

// What must be there.

/// What the audit says that operators submitted.
#[derive(Default)]
struct Audited {
    /// Roots that ran again, each with what runs it: with several if some were discharged.
    again: BTreeSet<(ProcedureId, ProcedureId)>,
    /// New roots of operators, and their kinds.
    new: BTreeMap<ProcedureId, String>,
}

impl Audited {
    fn of(audit: &[AuditEntry], spoilt: &BTreeSet<u64>) -> Result<Self, String> {
        let mut audited = Self::default();
        let mut standing = BTreeMap::new();
        for entry in audit {
            let Some(Act::Operate(verb)) = &entry.act else { continue };
            let is_twice = match (verb, entry.target, entry.submitted) {
                // Each repeat acknowledges once more, and has an entry.
                (Verb::RunAgain(id), Some(old), Some(new)) if old.is_root() && id.family == old.family => {
                    audited.again.insert((old, new));
                    let stands = !spoilt.contains(&new.family);
                    stands && standing.insert(old, new).is_some_and(|before| before != new)
                }
                (Verb::Submit(kind), None, Some(new)) => audited.new.insert(new, kind.to_string()).is_some(),
                (Verb::RunAgain(_) | Verb::Submit(_), ..) => true,
                _ => false,
            };
            if is_twice {
                return Err(format!("{entry:?} does not agree with itself, or with one before it"));
            }
        }
        Ok(audited)
    }
}

impl Story {
    /// Each accepted request has made one root, which is linked with what it runs again in both directions.
    pub(crate) async fn operators_submitted(&mut self, run: &Run, rows: &[Row]) -> Result<(), Trouble> {
        let audit = run.executor.audit(None, ALL).await?;
        let audited = Audited::of(&audit, &self.spoilt)?;
        for (number, id) in &self.reruns.entries {
            let entry = audit.iter().find(|entry| entry.number == *number);
            if entry.and_then(|entry| entry.submitted) != Some(*id) {
                return Err(format!("number {number} submitted {id}, and the audit has {entry:?}").into());
            }
        }
        let mut told = self.reruns.again.iter().map(|(old, new)| (*old, *new));
        if let Some((old, new)) = told.find(|pair| !audited.again.contains(pair)) {
            return Err(format!("{old} runs again as {new}, and the audit does not say so").into());
        }
        if let Some((old, _)) = audited.again.iter().find(|(old, _)| !self.reruns.asked.contains(old)) {
            return Err(format!("{old} runs again, and nobody asked for it").into());
        }
        let roots: BTreeMap<ProcedureId, &Row> = rows
            .iter()
            .filter(|row| row.id.is_root())
            .map(|row| (row.id, row))
            .collect();
        let first = first_values(run, &roots).await?;
        self.are_there(&audited, &roots)?;
        self.first_as_submitted(&first)?;
        for (old, new) in &audited.again {
            if let (Some(old), Some(new)) = (roots.get(old), roots.get(new)) {
                self.alike(old, new, &first)?;
            }
        }
        keys_lead_there(run, &roots).await
    }

    /// What the audit says was submitted is there, and has the key that leads back; nothing else has such a key.
    fn are_there(&self, audited: &Audited, roots: &BTreeMap<ProcedureId, &Row>) -> Result<(), Trouble> {
        for (new, kind) in &audited.new {
            match roots.get(new) {
                Some(row) if row.kind.as_str() != kind => return Err(format!("{row:?} was submitted as {kind}").into()),
                None if self.is_kept(new.family) => return Err(format!("{new} was submitted, and is not there").into()),
                Some(_) | None => {}
            }
        }
        let mut again: BTreeMap<ProcedureId, String> = BTreeMap::new();
        for (old, new) in &audited.again {
            again.insert(*new, format!("again {old}"));
            if self.is_kept(new.family) && !roots.contains_key(new) {
                return Err(format!("{new} runs {old} again, and is not there").into());
            }
        }
        for row in roots.values() {
            let key = row
                .key
                .as_ref()
                .map(|key| key.as_str())
                .filter(|key| key.starts_with("again "));
            let by_audit = again.get(&row.id).map(String::as_str);
            if key != by_audit {
                return Err(format!("{} has the key {key:?}, and the audit has {by_audit:?}", row.id).into());
            }
        }
        Ok(())
    }

    /// What runs again is what failed, with its first value.
    fn alike(&self, old: &Row, new: &Row, first: &BTreeMap<ProcedureId, Vec<u8>>) -> Result<(), Trouble> {
        let same = |row: &Row| {
            (
                row.kind.clone(),
                row.version,
                row.labels.clone(),
                row.rare().graph.clone(),
                row.rare().end_signal.clone(),
            )
        };
        let is_reranked = self.reruns.reranked.contains(&new.id);
        if !old.is_ended() || !old.state.is_failure() {
            return Err(format!("{} runs {} again, which is {}", new.id, old.id, old.state).into());
        }
        if same(old) != same(new) || (old.priority != new.priority && !is_reranked) {
            return Err(format!("{new:?} runs {old:?} again").into());
        }
        match (first.get(&old.id), first.get(&new.id)) {
            (Some(of_old), Some(of_new)) if of_old == of_new => Ok(()),
            // Nobody runs a success again, so its first value may have gone with its last stage.
            (Some(_), None) if new.state == ProcedureState::Success => Ok(()),
            (of_old, of_new) => Err(format!(
                "{} was submitted with {of_old:?}, and runs again as {} with {of_new:?}",
                old.id, new.id
            )
            .into()),
        }
    }

    /// The first value of a root is what a client, an operator or a stage submitted.
    fn first_as_submitted(&self, first: &BTreeMap<ProcedureId, Vec<u8>>) -> Result<(), Trouble> {
        for (id, value) in first {
            let plan: Plan = codec::decode_user(value)?;
            if !plan.value.is_empty() {
                return Err(format!("the first value of {id} is that after {:?}", plan.value).into());
            }
        }
        for keyed in &self.keyed {
            let id = self.known.keys.get(&keyed.key).filter(|id| self.is_kept(id.family));
            let Some(found) = id.and_then(|id| first.get(id)) else {
                continue;
            };
            let expected = codec::encode_user(&keyed.plan)?;
            if found.as_slice() != expected.as_slice() {
                return Err(format!("{id:?} was not submitted with {:?}", keyed.plan).into());
            }
        }
        Ok(())
    }
}

/// Reads the values that roots were submitted with: of all that have not succeeded, and of others if they are kept.
async fn first_values(
    run: &Run,
    roots: &BTreeMap<ProcedureId, &Row>,
) -> Result<BTreeMap<ProcedureId, Vec<u8>>, Trouble> {
    let mut first = BTreeMap::new();
    for (key, value) in scan(run, Space::Payloads).await? {
        let root = keys::parse_procedure(&key).and_then(|id| roots.get(&id));
        let Some(root) = root else { continue };
        match key.last() {
            Some(&keys::PAYLOAD) if root.as_submitted => drop(first.insert(root.id, value)),
            // Its version comes first.
            Some(&keys::SUBMITTED) if !root.as_submitted => {
                first.insert(root.id, value.get(2..).unwrap_or_default().to_vec());
            }
            Some(&keys::SUBMITTED) => return Err(format!("the value of {} is kept twice", root.id).into()),
            Some(_) | None => {}
        }
    }
    for (key, value) in scan(run, Space::History).await? {
        let id = keys::parse_procedure(&key).ok_or("a key of the history names no entry")?;
        let entry = format::history(id.family, id.member, &value)?;
        let Some(submitted) = entry.submitted else { continue };
        let id = ProcedureId::new(id.family, entry.member);
        // A family that was damaged may have no row.
        let Some(root) = roots.get(&id) else { continue };
        if root.as_submitted || first.insert(id, submitted.value.as_slice().to_vec()).is_some() {
            return Err(format!("the value of {id} is kept twice").into());
        }
    }
    let missing = roots
        .values()
        .find(|root| root.state.is_failure() && !first.contains_key(&root.id));
    match missing {
        Some(root) => Err(format!("{} is {}, and its first value is not kept", root.id, root.state).into()),
        None => Ok(first),
    }
}

/// Whoever looks for a root by its key finds it.
async fn keys_lead_there(run: &Run, roots: &BTreeMap<ProcedureId, &Row>) -> Result<(), Trouble> {
    let mut found = BTreeMap::new();
    for (key, value) in scan(run, Space::Keys).await? {
        found.insert(String::from_utf8(key)?, format::key_entry(&value)?.id);
    }
    for root in roots.values() {
        let Some(key) = &root.key else { continue };
        if found.get(key.as_str()) != Some(&root.id) {
            return Err(format!("the key {key} of {} leads to {:?}", root.id, found.get(key.as_str())).into());
        }
    }
    Ok(())
}
