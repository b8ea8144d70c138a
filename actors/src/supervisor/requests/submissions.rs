//! Submissions on their way to a decision: they are checked, and their idempotency keys looked up.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use procession_kernel::{Answer, Kernel, Key, ProcedureId, Refusal, RequestId, Submission};

use super::Requests;
use super::replies::{Reply, Unanswered};
use crate::error::SubmitError;
use crate::journal::Reader;
use crate::messages::Submit;
use crate::submission_key::{longest_key, submission_of};

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
            submissions: submits.into_iter().map(submission_of).collect(),
            unseen,
        };
        Ok((accepted, reply))
    }
}

impl AcceptedSubmissions {
    /// Returns the longest time that any of the submissions wants its key kept.
    pub(in crate::supervisor) fn longest_key(&self) -> Option<Duration> {
        longest_key(&self.submissions)
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
