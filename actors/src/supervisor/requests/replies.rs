//! Replies that callers wait for, each under its request's number.

use procession_kernel::{Answer, Key, NotNow, Operated, Refusal, RequestId};
use rustc_hash::FxHashMap;
use tokio::sync::oneshot;

use crate::error::{AskError, ReadError, SubmitError};
use crate::read::CommittedReader;
use crate::supervisor::failure::FailureCause;

/// The final answer to a request: the kernel's answer, or why there is none.
pub(in crate::supervisor) type Answered = Result<Answer, Unanswered>;

/// Why the kernel has not answered a request.
#[derive(Debug)]
pub(in crate::supervisor) enum Unanswered {
    /// The engine has failed, or its journal has moved.
    Failed(FailureCause),
    /// The idempotency key could not be looked up, so nothing was decided.
    KeyUnread(Key, ReadError),
    /// The supervisor has ended.
    Stopped,
}

impl From<FailureCause> for Unanswered {
    fn from(cause: FailureCause) -> Self {
        Self::Failed(cause)
    }
}

impl Unanswered {
    /// Returns the error that the caller of a request receives.
    fn unanswered(self) -> AskError {
        match self {
            Self::Failed(cause) => cause.unanswered(),
            Self::KeyUnread(_, why) => AskError::Read(why),
            Self::Stopped => AskError::Stopped,
        }
    }

    /// Returns the error that the submitter receives.
    pub(super) fn unsubmitted(self) -> SubmitError {
        match self {
            Self::Failed(cause) => cause.unsubmitted(),
            Self::KeyUnread(key, why) => SubmitError::KeyUnread {
                key: key.to_string(),
                why,
            },
            Self::Stopped => SubmitError::Stopped,
        }
    }
}

/// The replies that callers wait for.
#[derive(Default)]
pub(super) struct Replies {
    pending: FxHashMap<RequestId, oneshot::Sender<Answered>>,
    newest: u64,
}

impl Replies {
    pub(super) fn len(&self) -> usize {
        self.pending.len()
    }

    pub(super) fn open(&mut self) -> (RequestId, Reply) {
        let (sender, receiver) = oneshot::channel();
        self.newest += 1;
        let request = RequestId(self.newest);
        self.pending.insert(request, sender);
        (request, Reply(receiver))
    }

    pub(super) fn send(&mut self, request: RequestId, answer: Answered) {
        if let Some(sender) = self.pending.remove(&request) {
            // The caller may have gone.
            sender.send(answer).ok();
        }
    }

    pub(super) fn fail_all(&mut self, cause: &FailureCause) {
        for (_, sender) in self.pending.drain() {
            // The caller may have gone.
            sender.send(Err(cause.clone().into())).ok();
        }
    }
}

/// A reply that a caller waits for.
pub(in crate::supervisor) struct Reply(oneshot::Receiver<Answered>);

impl Reply {
    /// Waits for the answer.
    pub(in crate::supervisor) async fn received(self) -> Answered {
        self.0.await.unwrap_or(Err(Unanswered::Stopped))
    }
}

/// Waits for the answer to a request. The kernel refuses a procedure that is not live; the store then shows whether
/// it has ended or is unknown.
async fn answered(reply: Result<Reply, AskError>, committed: CommittedReader) -> Result<Answer, AskError> {
    match reply?.received().await {
        Ok(Answer::Refused(refusal)) => Err(refused(refusal, &committed).await),
        Ok(answer) => Ok(answer),
        Err(why) => Err(why.unanswered()),
    }
}

async fn refused(refusal: Refusal, committed: &CommittedReader) -> AskError {
    match refusal {
        Refusal::NotLive(id) => committed.why_not_live(id).await,
        Refusal::TooLarge(size, limit) => AskError::TooLarge { size, limit },
        Refusal::BatchTooLarge(size, limit) => AskError::BatchTooLarge { size, limit },
        Refusal::Closed(id, name) => AskError::Closed {
            id,
            name: name.to_string(),
        },
        Refusal::NotNow(kind, text) => AskError::NotNow { kind, text },
        Refusal::Revised(expected, found, state) => AskError::Revised { expected, found, state },
        Refusal::Draining => AskError::Stopped,
        Refusal::BadChildren(text) => not_now(NotNow::Invalid, text),
        Refusal::BadName(characters, limit) => {
            let text = SubmitError::BadName { characters, limit }.to_string();
            not_now(NotNow::Invalid, text)
        }
        Refusal::BadLabels(why) => not_now(NotNow::Invalid, why.to_string()),
        Refusal::NumbersExhausted => not_now(NotNow::NumbersExhausted, SubmitError::NumbersExhausted.to_string()),
        Refusal::UnknownKind(kind) => {
            let text = format!("no procedure of kind \"{kind}\" is registered");
            not_now(NotNow::Invalid, text)
        }
        Refusal::SignalConflict(key, id, number) => AskError::SignalConflict {
            key: key.to_string(),
            id,
            number,
        },
        Refusal::BadKey(size, limit) => AskError::BadKey { size, limit },
        Refusal::BatchConflict(key, first, second) => {
            let conflict = SubmitError::BatchConflict {
                key: key.to_string(),
                first,
                second,
            };
            not_now(NotNow::KeyUsed, conflict.to_string())
        }
        Refusal::KeyConflict(_, id) => not_now(NotNow::KeyUsed, format!("the key was used for {id}")),
    }
}

fn not_now(kind: NotNow, text: String) -> AskError {
    AskError::NotNow { kind, text }
}

/// Waits until an operator's verb is committed.
pub(in crate::supervisor) async fn operated(
    reply: Result<Reply, AskError>,
    committed: CommittedReader,
) -> Result<Operated, AskError> {
    let Answer::Operated(operated) = answered(reply, committed).await? else {
        return Err(AskError::Stopped);
    };
    Ok(*operated)
}

/// Waits until signals are committed. Returns their numbers in order.
pub(in crate::supervisor) async fn signalled(
    reply: Result<Reply, AskError>,
    committed: CommittedReader,
) -> Result<Vec<u32>, AskError> {
    let Answer::Signalled(numbers) = answered(reply, committed).await? else {
        return Err(AskError::Stopped);
    };
    Ok(numbers)
}

/// Waits until a broadcast is committed. Returns how many procedures it wakes.
pub(in crate::supervisor) async fn broadcast(
    reply: Result<Reply, AskError>,
    committed: CommittedReader,
) -> Result<u32, AskError> {
    let Answer::Broadcast(woken) = answered(reply, committed).await? else {
        return Err(AskError::Stopped);
    };
    Ok(woken)
}

/// Waits until a request without a value is committed.
pub(in crate::supervisor) async fn done(
    reply: Result<Reply, AskError>,
    committed: CommittedReader,
) -> Result<(), AskError> {
    answered(reply, committed).await.map(drop)
}
