//! Submissions: a batch is accepted as a whole or not at all.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::draft::Draft;
use crate::effect::{Answer, Refusal};
use crate::event::{Birth, KeyAsked, Submission};
use crate::id::{Key, ProcedureId, RequestId};
use crate::record::{KeyEntry, Record};

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
                None => ids.push(self.submit(submission, &mut own)),
            }
        }
        self.reply(request, Answer::Submitted(ids));
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
        if self.kernel.kind(&birth.kind).is_none() {
            return Err(Refusal::UnknownKind(birth.kind.clone()));
        }
        let limit = self.kernel.rules.bounds.payload;
        if birth.payload.len() > limit {
            return Err(Refusal::TooLarge(birth.payload.len(), limit));
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

    fn submit(&mut self, submission: Submission, own: &mut BTreeMap<Key, KeyEntry>) -> ProcedureId {
        let key = submission.key.as_ref().map(|asked| asked.key.clone());
        let id = self.begin_family(&submission.birth, key);
        if let Some(KeyAsked { key, digest, keep }) = submission.key {
            let until = keep.map(|keep| self.now.after(keep));
            let entry = KeyEntry { id, digest, until };
            own.insert(key.clone(), entry.clone());
            self.record(Record::Key(key, entry));
        }
        id
    }

    /// Begins a family with its root.
    pub(super) fn begin_family(&mut self, birth: &Birth, key: Option<Key>) -> ProcedureId {
        let id = ProcedureId::root(self.next_family());
        self.record(Record::FamilyBegan(id.family));
        self.record(Record::Payload(id, birth.payload.clone()));
        let mut row = self.born(id, birth);
        row.key = key;
        if row.wait.is_none() {
            self.set_going(&mut row, Some(birth.payload.clone()));
        }
        if row.deadline.is_some() {
            self.effect(crate::effect::LifecycleEffect::ArmTimer);
        }
        self.put(row);
        id
    }
}
