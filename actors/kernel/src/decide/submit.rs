//! Submissions: a batch is accepted as a whole or not at all.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::draft::Draft;
use super::spawn::{among_attached, check_join};
use crate::effect::{Answer, Refusal};
use crate::event::{Birth, Brood, KeyAsked, Submission};
use crate::id::{Key, ProcedureId, RequestId};
use crate::label::Labels;
use crate::latch::{Join, Latch};
use crate::lifecycle::ProcedureState;
use crate::record::{KeyEntry, Record};
use crate::row::{CHILD_NAME_MAX, Round};
use crate::wait::{END_SIGNAL_MAX, WaitReason};

/// Number of the first child that a root is born with.
const FIRST_CHILD: u32 = 1;

/// Returns the list of children that a root is born with, as its row has it.
fn round_of(brood: &Brood) -> Round {
    let attached = brood.children.iter().filter(|child| !child.detached).count();
    Round {
        first: FIRST_CHILD,
        count: u32::try_from(attached).unwrap_or(u32::MAX),
        join: among_attached(brood.join.clone(), &brood.children),
        width: brood.width,
        keep_places: brood.keep_places,
    }
}

/// Checks what a submission says of its root besides the root itself: a name, and no place among siblings.
fn check_name(birth: &Birth) -> Result<(), Refusal> {
    let Some(node) = &birth.graph else { return Ok(()) };
    if let Some(characters) = node.name_over_limit() {
        return Err(Refusal::BadName(characters, CHILD_NAME_MAX));
    }
    if !node.is_only_a_name() {
        let text = "a root waits for no sibling, and fails no parent; only children are listed with gates";
        return Err(Refusal::BadChildren(text.to_owned()));
    }
    Ok(())
}

/// Returns the size of the signal at the end, if it is over its bound.
pub(super) fn oversized_end_signal(birth: &Birth) -> Option<usize> {
    let size = birth.end_signal.as_ref().map(|signal| signal.size());
    size.filter(|size| *size > END_SIGNAL_MAX)
}

impl Draft<'_> {
    pub(super) fn submitted(&mut self, request: RequestId, submissions: Vec<Submission>) {
        if let Err(refusal) = self.check_all(&submissions) {
            // The shell returns permits that were granted ahead of the decision, because it knows the requests that it
            // took them with.
            self.refuse(request, refusal);
            return;
        }
        let mut own = BTreeMap::new();
        let mut ids = Vec::with_capacity(submissions.len());
        for submission in submissions {
            match self.known(&submission, &own) {
                Some(entry) => ids.push(entry.id),
                None => ids.push(self.submit(submission, &Labels::default(), &mut own)),
            }
        }
        self.reply(request, Answer::Submitted(ids));
    }

    /// Submits what runs a root again, unless that was done before. Returns the new root.
    pub(super) fn submit_again(&mut self, submission: Submission) -> Result<ProcedureId, Refusal> {
        if let Some(entry) = self.known(&submission, &BTreeMap::new()) {
            return Ok(entry.id);
        }
        self.check(&submission.birth)?;
        check_name(&submission.birth)?;
        Ok(self.submit(submission, &Labels::default(), &mut BTreeMap::new()))
    }

    /// Submits a root, unless that was done before. Returns its id.
    pub(super) fn submit_one(&mut self, submission: Submission) -> Result<ProcedureId, Refusal> {
        self.check_all(std::slice::from_ref(&submission))?;
        Ok(match self.known(&submission, &BTreeMap::new()) {
            Some(entry) => entry.id,
            None => self.submit(submission, &Labels::default(), &mut BTreeMap::new()),
        })
    }

    fn check_all(&self, submissions: &[Submission]) -> Result<(), Refusal> {
        let limit = self.kernel.rules.bounds.batch;
        if submissions.len() > limit {
            return Err(Refusal::BatchTooLarge(submissions.len(), limit));
        }
        // A repeated key is answered even while the engine drains, because it starts nothing.
        let mut own: BTreeMap<&Key, (usize, u128)> = BTreeMap::new();
        for (place, submission) in submissions.iter().enumerate() {
            if let Some(asked) = &submission.key {
                let (key, digest) = (&asked.key, asked.digest);
                if let Some(entry) = self.known(submission, &BTreeMap::new()) {
                    if entry.digest != digest {
                        return Err(Refusal::KeyConflict(key.clone(), entry.id));
                    }
                    continue;
                }
                match own.entry(key) {
                    // The first submission has no id to report, because nothing of the batch is stored.
                    Entry::Occupied(first) if first.get().1 != digest => {
                        return Err(Refusal::BatchConflict(key.clone(), first.get().0, place));
                    }
                    Entry::Occupied(_) => {}
                    Entry::Vacant(free) => drop(free.insert((place, digest))),
                }
            }
            self.check(&submission.birth)?;
            check_name(&submission.birth)?;
        }
        Ok(())
    }

    pub(super) fn check(&self, birth: &Birth) -> Result<(), Refusal> {
        if self.kernel.draining {
            return Err(Refusal::Draining);
        }
        if self.kernel.has_exhausted_numbers() {
            return Err(Refusal::NumbersExhausted);
        }
        if self.rules_of(&birth.kind).is_none() {
            return Err(Refusal::UnknownKind(birth.kind.clone()));
        }
        let limit = self.kernel.rules.bounds.payload;
        if birth.payload.len() > limit {
            return Err(Refusal::TooLarge(birth.payload.len(), limit));
        }
        birth.labels.check().map_err(Refusal::BadLabels)?;
        if let Some(size) = oversized_end_signal(birth) {
            return Err(Refusal::TooLarge(size, END_SIGNAL_MAX));
        }
        let Some(brood) = &birth.brood else { return Ok(()) };
        for child in &brood.children {
            self.check(child)?;
            child.labels_below(&birth.labels).check().map_err(Refusal::BadLabels)?;
        }
        if let Some(output) = brood.output.as_ref().filter(|output| output.len() > limit) {
            return Err(Refusal::TooLarge(output.len(), limit));
        }
        self.check_brood(brood).map_err(Refusal::BadChildren)
    }

    /// Checks the list of children that a root is born with.
    pub(super) fn check_brood(&self, brood: &Brood) -> Result<(), String> {
        let bounds = &self.kernel.rules.bounds;
        let attached = brood.children.iter().filter(|child| !child.detached).count();
        if brood.children.len() > bounds.children {
            let (born, limit) = (brood.children.len(), bounds.children);
            return Err(format!("{born} children are over the limit of {limit}"));
        }
        if attached >= bounds.members || bounds.depth < 2 {
            let (members, depth) = (bounds.members, bounds.depth);
            return Err(format!(
                "{attached} children are over the limits of {members} members and {depth} levels"
            ));
        }
        if brood.children.iter().any(|child| child.brood.is_some()) {
            return Err("a child cannot be born with children of its own; let it spawn them".to_owned());
        }
        check_join(&brood.join, &brood.children, &[])?;
        self.check_graph(&brood.children, &[])?;
        // Nothing would ever tell such a root to go on.
        let round = round_of(brood);
        if attached == 0 || Latch::new(&round).join(&round.join) == Join::Met {
            let text = "nothing is waited for: no child is attached, or the join policy is met at once; \
                        submit the procedure without them";
            return Err(text.to_owned());
        }
        Ok(())
    }

    fn known(&self, submission: &Submission, own: &BTreeMap<Key, KeyEntry>) -> Option<KeyEntry> {
        let key = &submission.key.as_ref()?.key;
        own.get(key)
            .or_else(|| self.kernel.keys.get(key))
            .or(submission.known.as_ref())
            .cloned()
    }

    fn submit(&mut self, submission: Submission, creator: &Labels, own: &mut BTreeMap<Key, KeyEntry>) -> ProcedureId {
        let key = submission.key.as_ref().map(|asked| asked.key.clone());
        let id = self.begin_family(&submission.birth, key, creator);
        if let Some(KeyAsked { key, digest, keep }) = submission.key {
            let until = keep.map(|keep| self.now.after(keep));
            let entry = KeyEntry { id, digest, until };
            own.insert(key.clone(), entry.clone());
            self.record(Record::Key(key, entry));
        }
        id
    }

    // Submissions of stages.

    /// Checks what a submission of a stage asks for. What is wrong here stays wrong, so the stage fails for good.
    pub(super) fn check_submission_of_stage(&self, submission: &Submission, creator: &Labels) -> Result<(), String> {
        let birth = &submission.birth;
        self.check_birth(birth, creator)?;
        let limit = self.kernel.rules.bounds.name;
        let size = submission.key.as_ref().map(|asked| asked.key.as_str().len());
        if let Some(size) = size.filter(|size| *size == 0 || *size > limit) {
            return Err(format!("a key has 1 to {limit} bytes, and this one has {size}"));
        }
        if let Some(characters) = birth.graph.as_ref().and_then(|node| node.name_over_limit()) {
            return Err(format!(
                "a name of {characters} characters is over the limit of {CHILD_NAME_MAX}"
            ));
        }
        let Some(brood) = &birth.brood else { return Ok(()) };
        let labels = birth.labels_below(creator);
        let mut children = brood.children.iter();
        children.try_for_each(|child| self.check_birth(child, &labels))?;
        self.check_brood(brood)
    }

    /// Checks that each key of a stage's submissions is new, or stands for the same.
    pub(super) fn check_keys(&self, submissions: &[Submission]) -> Result<(), String> {
        let mut own: BTreeMap<&Key, u128> = BTreeMap::new();
        for submission in submissions {
            let Some(KeyAsked { key, digest, .. }) = &submission.key else {
                continue;
            };
            if let Some(entry) = self.known(submission, &BTreeMap::new())
                && entry.digest != *digest
            {
                return Err(format!(
                    "the key \"{key}\" was used for another submission, {}",
                    entry.id
                ));
            }
            if own.insert(key, *digest).is_some_and(|before| before != *digest) {
                return Err(format!("the key \"{key}\" was used for two different submissions"));
            }
        }
        Ok(())
    }

    /// Begins the families that a stage submits, except those whose key is known.
    pub(super) fn submit_of_stage(&mut self, submissions: Vec<Submission>, creator: &Labels) {
        let mut own = BTreeMap::new();
        for submission in submissions {
            if self.known(&submission, &own).is_none() {
                self.submit(submission, creator, &mut own);
            }
        }
    }

    /// Begins a family with its root. A root that a stage creates may inherit labels of that procedure.
    pub(super) fn begin_family(&mut self, birth: &Birth, key: Option<Key>, creator: &Labels) -> ProcedureId {
        let id = ProcedureId::root(self.next_family());
        self.record(Record::FamilyBegan(id.family));
        self.record(Record::Payload(id, birth.payload.clone()));
        let mut row = self.born(id, birth);
        row.key = key;
        // Without its children a root would be another procedure, so one that is born with some is not run again.
        row.as_submitted = birth.brood.is_none();
        if let Some(node) = &birth.graph {
            row.rare_mut().graph = Some(node.clone());
        }
        row.labels = self.store_labels(id, birth.labels_below(creator));
        self.labelled(id.family, &row.labels);
        if let Some(brood) = &birth.brood {
            row.state = ProcedureState::Waiting;
            row.wait = Some(WaitReason::Children);
            if let Some(output) = &brood.output {
                row.rare_mut().output = Some(output.clone());
            }
            row.rounds.push(round_of(brood));
        } else if row.wait.is_none() {
            self.set_going(&mut row, Some(birth.payload.clone()));
        }
        if row.deadline.is_some() {
            self.effect(crate::effect::LifecycleEffect::ArmTimer);
        }
        self.put(row);
        if let Some(brood) = &birth.brood {
            let children: Vec<Birth> = brood.children.iter().filter(|child| !child.detached).cloned().collect();
            self.expect_records(2 * children.len());
            let labels = birth.labels_below(creator);
            self.begin_children(id, FIRST_CHILD, &children, brood.width);
            self.detach(&brood.children, &labels);
        }
        id
    }
}
