//! Submissions on their way to a decision: they are checked, and their idempotency keys looked up.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use procession_kernel::{
    Answer, Birth, Blob, Brood, Kernel, Key, KeyAsked, ProcedureId, Refusal, RequestId, Submission,
};
use serde::Serialize;
use xxhash_rust::xxh3::Xxh3;

use super::Requests;
use super::replies::{Reply, Unanswered};
use crate::error::SubmitError;
use crate::journal::{Reader, codec};
use crate::messages::Submit;

/// Accepted submissions of one message.
pub(in crate::supervisor) struct AcceptedSubmissions {
    pub(in crate::supervisor) request: RequestId,
    pub(in crate::supervisor) submissions: Vec<Submission>,
    /// Keys that the kernel does not know. Keys of earlier runs are in the store alone.
    unseen: BTreeSet<Key>,
}

impl Requests {
    /// Accepts submissions, if there is room and their keys can be stored.
    pub(in crate::supervisor) fn take(
        &mut self,
        kernel: &Kernel,
        submits: Vec<Submit>,
    ) -> Result<(AcceptedSubmissions, Reply), SubmitError> {
        self.check_room(kernel)?;
        let limit = kernel.rules().bounds.name;
        let mut keys = submits.iter().filter_map(|submit| submit.key.as_ref());
        if let Some(key) = keys.find(|key| key.as_str().is_empty() || key.as_str().len() > limit) {
            return Err(SubmitError::BadKey {
                size: key.as_str().len(),
                limit,
            });
        }
        let (request, reply) = self.replies.open();
        // A set, because a key may be in a batch several times.
        let unseen = submits
            .iter()
            .filter_map(|submit| submit.key.as_ref())
            .filter(|key| kernel.key(key).is_none())
            .cloned()
            .collect();
        let accepted = AcceptedSubmissions {
            request,
            submissions: submits.into_iter().map(submission).collect(),
            unseen,
        };
        Ok((accepted, reply))
    }
}

impl AcceptedSubmissions {
    /// Returns the longest time that any of the submissions wants its key kept.
    pub(in crate::supervisor) fn longest_key(&self) -> Option<Duration> {
        let keys = self.submissions.iter().filter_map(|submission| submission.key.as_ref());
        keys.filter_map(|key| key.keep).max()
    }

    /// Returns `true` if the keys must be looked up in the store.
    pub(in crate::supervisor) fn has_unseen_keys(&self) -> bool {
        !self.unseen.is_empty()
    }

    /// Looks up the keys that the kernel does not know. A failed read says nothing about a key, so it fails the
    /// submissions: if the key were assumed unused, it could run the same work twice.
    pub(in crate::supervisor) async fn look_up(mut self, reader: Reader) -> Result<Self, (RequestId, Unanswered)> {
        let mut known = BTreeMap::new();
        for key in std::mem::take(&mut self.unseen) {
            match reader.key_entry(key.as_str().as_bytes()).await {
                Ok(Some(entry)) => {
                    known.insert(key, entry);
                }
                Ok(None) => {}
                Err(why) => return Err((self.request, Unanswered::KeyUnread(key, why))),
            }
        }
        for submission in &mut self.submissions {
            let asked = submission.key.as_ref();
            submission.known = asked.and_then(|asked| known.get(&asked.key).cloned());
        }
        Ok(self)
    }
}

fn submission(submit: Submit) -> Submission {
    let key = submit.key.map(|key| KeyAsked {
        key,
        digest: digest(&submit.birth),
        keep: submit.key_for,
    });
    Submission {
        birth: submit.birth,
        key,
        known: None,
    }
}

/// Returns a digest of what a key stands for: kind, version and value, and the children. How the procedure is queued,
/// and its name, are left out.
fn digest(birth: &Birth) -> u128 {
    let mut digest = Xxh3::new();
    digest.update(birth.kind.as_str().as_bytes());
    digest.update(&birth.version.to_be_bytes());
    digest.update(birth.payload.as_slice());
    if let Some(brood) = &birth.brood {
        digest_brood(&mut digest, brood);
    }
    digest.digest128()
}

/// Adds a list of children. Each part is preceded by its length, so that no two lists give the same bytes.
fn digest_brood(digest: &mut Xxh3, brood: &Brood) {
    let mut part = |bytes: &[u8]| {
        digest.update(&(bytes.len() as u64).to_be_bytes());
        digest.update(bytes);
    };
    // Rows have these values in the same encoding, which never changes.
    part(encoded(&(&brood.join, brood.width, brood.output.is_some())).as_slice());
    part(brood.output.as_ref().map_or(&[][..], Blob::as_slice));
    for child in &brood.children {
        part(child.kind.as_str().as_bytes());
        part(&child.version.to_be_bytes());
        part(child.payload.as_slice());
        part(encoded(&(child.on_failure, &child.graph, child.detached)).as_slice());
    }
}

/// Encodes engine values. Plain values like these can always be encoded.
fn encoded(value: &impl Serialize) -> Blob {
    codec::encode_user(value).unwrap_or_default()
}

/// Waits until submissions are committed. Returns their ids in order.
pub(in crate::supervisor) async fn submitted(
    reply: Result<Reply, SubmitError>,
) -> Result<Vec<ProcedureId>, SubmitError> {
    match reply?.received().await {
        Ok(Answer::Submitted(ids)) => Ok(ids),
        Ok(Answer::Refused(refusal)) => Err(refused(refusal)),
        Ok(Answer::Signalled(_) | Answer::Broadcast(_) | Answer::Operated(_) | Answer::Done) => {
            Err(SubmitError::Stopped)
        }
        Err(why) => Err(why.unsubmitted()),
    }
}

fn refused(refusal: Refusal) -> SubmitError {
    match refusal {
        Refusal::UnknownKind(kind) => SubmitError::UnknownKind { kind },
        Refusal::KeyConflict(key, id) => SubmitError::KeyConflict {
            key: key.to_string(),
            id,
        },
        Refusal::BatchConflict(key, first, second) => SubmitError::BatchConflict {
            key: key.to_string(),
            first,
            second,
        },
        Refusal::BadKey(size, limit) => SubmitError::BadKey { size, limit },
        Refusal::TooLarge(size, limit) => SubmitError::TooLarge { size, limit },
        Refusal::BatchTooLarge(size, limit) => SubmitError::BatchTooLarge { size, limit },
        Refusal::BadChildren(why) => SubmitError::BadChildren { why },
        Refusal::BadName(characters, limit) => SubmitError::BadName { characters, limit },
        Refusal::BadLabels(why) => SubmitError::BadLabels(why),
        Refusal::Draining => SubmitError::Draining,
        Refusal::NumbersExhausted => SubmitError::NumbersExhausted,
        Refusal::NotLive(_)
        | Refusal::NotNow(..)
        | Refusal::Revised(..)
        | Refusal::SignalConflict(..)
        | Refusal::Closed(..) => SubmitError::Stopped,
    }
}
