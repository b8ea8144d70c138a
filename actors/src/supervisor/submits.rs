//! Submissions, on their way to a decision: keys looked up, permits asked for.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use actix::prelude::*;
use procession_kernel::{
    Answer, Birth, Event, Key, KeyAsked, KeyEntry, Kind, ProcedureId, Refusal, Submission, Ticket,
};
use tokio::sync::oneshot;
use xxhash_rust::xxh3::Xxh3;

use super::admission::{Demand, admit_births};
use super::failure::FailureCause;
use super::{Answered, Supervisor};
use crate::error::{CodecError, StoreError, SubmitBound, SubmitError};
use crate::journal::{Reader, Space, codec};
use crate::messages::{Submit, SubmitBatch};

/// When a request that met a full queue may be repeated: a few commits later.
pub(super) const RETRY_AFTER: Duration = Duration::from_millis(20);
/// When a submission may be repeated that met too many procedures awake. It takes some of them to end: a second,
/// so that those who are refused cost less than those who are served.
const RETRY_AWAKE: Duration = Duration::from_secs(1);

impl Handler<Submit> for Supervisor {
    type Result = ResponseFuture<Result<ProcedureId, SubmitError>>;

    fn handle(&mut self, submit: Submit, ctx: &mut Self::Context) -> Self::Result {
        let (refused, kind) = (Arc::clone(&self.metrics.telemetry().refused), submit.birth.kind.clone());
        let answer = self.submit(vec![submit], ctx);
        Box::pin(async move {
            let id = submitted(answer)
                .await
                .and_then(|ids| ids.first().copied().ok_or(SubmitError::Stopped));
            id.inspect_err(|why| refused.count(&kind, why))
        })
    }
}

impl Handler<SubmitBatch> for Supervisor {
    type Result = ResponseFuture<Result<Vec<ProcedureId>, SubmitError>>;

    fn handle(&mut self, SubmitBatch(submits): SubmitBatch, ctx: &mut Self::Context) -> Self::Result {
        let refused = Arc::clone(&self.metrics.telemetry().refused);
        let kinds: Vec<Kind> = submits.iter().map(|submit| submit.birth.kind.clone()).collect();
        let answer = self.submit(submits, ctx);
        Box::pin(async move {
            let ids = submitted(answer).await;
            ids.inspect_err(|why| kinds.iter().for_each(|kind| refused.count(kind, why)))
        })
    }
}

async fn submitted(answer: Result<oneshot::Receiver<Answered>, SubmitError>) -> Result<Vec<ProcedureId>, SubmitError> {
    match answer?.await {
        Ok(Ok(Answer::Submitted(ids))) => Ok(ids),
        Ok(Ok(Answer::Refused(refusal))) => Err(refused(refusal)),
        Ok(Ok(Answer::Signalled(_) | Answer::Broadcast(_) | Answer::Operated(_) | Answer::Done)) | Err(_) => {
            Err(SubmitError::Stopped)
        }
        Ok(Err(cause)) => Err(cause.unsubmitted()),
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
        Refusal::Draining => SubmitError::Draining,
        Refusal::NumbersExhausted => SubmitError::NumbersExhausted,
        Refusal::NotLive(_) | Refusal::NotNow(_) | Refusal::Revised(..) | Refusal::SignalConflict(..) => {
            SubmitError::Stopped
        }
    }
}

/// What a key stands for: kind, version and value. Not how it is to be queued.
fn digest(birth: &Birth) -> u128 {
    let mut digest = Xxh3::new();
    digest.update(birth.kind.as_str().as_bytes());
    digest.update(&birth.version.to_be_bytes());
    digest.update(birth.payload.as_slice());
    digest.digest128()
}

impl Supervisor {
    fn submit(
        &mut self,
        submits: Vec<Submit>,
        ctx: &mut Context<Self>,
    ) -> Result<oneshot::Receiver<Answered>, SubmitError> {
        if self.status.is_stopped() {
            return Err(SubmitError::Stopped);
        }
        if let Some(why) = self.status.cause() {
            return Err(why.unsubmitted());
        }
        self.check_room()?;
        let limit = self.kernel.rules().bounds.name;
        let mut keys = submits.iter().filter_map(|submit| submit.key.as_ref());
        if let Some(key) = keys.find(|key| key.as_str().is_empty() || key.as_str().len() > limit) {
            return Err(SubmitError::BadKey {
                size: key.as_str().len(),
                limit,
            });
        }
        if let Some(longest) = submits.iter().filter_map(|submit| submit.key_for).max() {
            self.wall.note_key(longest);
        }
        let (ticket, answer) = self.ticket();
        // Each key once, however often it is in the batch.
        let unseen: BTreeSet<Key> = submits
            .iter()
            .filter_map(|submit| submit.key.as_ref())
            .filter(|key| self.kernel.key(key).is_none())
            .cloned()
            .collect();
        let submissions = submits.into_iter().map(submission).collect();
        if unseen.is_empty() {
            self.admit(ticket, submissions, ctx);
        } else {
            self.look_up(ticket, submissions, unseen, ctx);
        }
        Ok(answer)
    }

    /// Refuses what the engine has no room for. One batch may go over what is awake, or a batch as large as the
    /// bound would never be taken.
    fn check_room(&self) -> Result<(), SubmitError> {
        let families = self.kernel.families();
        let (bound, retry_after) = if self.tickets.len() >= self.queued {
            (SubmitBound::Queued(self.queued), RETRY_AFTER)
        } else if families.len() - families.frozen() >= self.awake {
            (SubmitBound::Awake(self.awake), RETRY_AWAKE)
        } else {
            return Ok(());
        };
        Err(SubmitError::Busy { bound, retry_after })
    }

    /// Keys of earlier runs are in the store alone.
    fn look_up(
        &mut self,
        ticket: Ticket,
        mut submissions: Vec<Submission>,
        unseen: BTreeSet<Key>,
        ctx: &mut Context<Self>,
    ) {
        let reader = self.reader.clone();
        let work = async move {
            let mut known = BTreeMap::new();
            for key in unseen {
                if let Some(entry) = key_entry(&reader, &key).await? {
                    known.insert(key, entry);
                }
            }
            Ok::<_, LookUpError>(known)
        };
        ctx.spawn(work.into_actor(self).map(move |known, supervisor, ctx| match known {
            Ok(known) => {
                for submission in &mut submissions {
                    let asked = submission.key.as_ref();
                    submission.known = asked.and_then(|asked| known.get(&asked.key).cloned());
                }
                supervisor.admit(ticket, submissions, ctx);
            }
            Err(LookUpError(why)) => supervisor.answer(ticket, Err(FailureCause::Failed(why))),
        }));
    }

    fn admit(&mut self, ticket: Ticket, mut submissions: Vec<Submission>, ctx: &mut Context<Self>) {
        let mut demand = Demand::default();
        if !self.kernel.is_draining() {
            for submission in &mut submissions {
                let key = submission.key.as_ref();
                let repeat =
                    submission.known.is_some() || key.is_some_and(|asked| self.kernel.key(&asked.key).is_some());
                if !repeat {
                    self.admission
                        .demand(&self.kernel, &mut submission.birth, None, true, &mut demand);
                }
            }
        }
        if demand.is_empty() {
            self.decide(Event::Submitted(ticket, submissions), ctx);
            return;
        }
        let (pending, work) = self.admission.ask(demand, None);
        self.await_limiter(work, ctx, move |supervisor, acquired, ctx| {
            admit_births(
                submissions.iter_mut().map(|submission| &mut submission.birth),
                acquired.answers,
            );
            let decision = supervisor
                .kernel
                .decide(supervisor.clock.now(), Event::Submitted(ticket, submissions));
            supervisor.commit_admitted(decision, pending, acquired.served, ctx);
        });
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

struct LookUpError(String);

impl From<StoreError> for LookUpError {
    fn from(error: StoreError) -> Self {
        Self(error.to_string())
    }
}

impl From<CodecError> for LookUpError {
    fn from(error: CodecError) -> Self {
        Self(error.to_string())
    }
}

async fn key_entry(reader: &Reader, key: &Key) -> Result<Option<KeyEntry>, LookUpError> {
    let bytes = reader.get(Space::Keys, key.as_str().as_bytes().to_vec()).await?;
    Ok(bytes.map(|bytes| codec::decode(&bytes)).transpose()?)
}
