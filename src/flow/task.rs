//! `Task`: the procedure that a node with a processor is. One stage, which calls the processor and turns what it says
//! into a step: an output, a wait, another attempt, a question to a person, a failure.

use std::cell::OnceCell;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt;
use procession_actors::journal::codec;
use procession_actors::{
    Accepts, CallContext, ChildOutcome, CodecError, JoinVerdict, Old, Procedure, StageContext, StageError, Step,
    guarded, panic_text, within,
};
use procession_kernel::{Blob, Hold, LimitKey, LockNeed, RetryPolicy};
use serde::{Deserialize, Serialize};

use super::context::NodeContext;
use super::node::OnError;
use super::processor::{Processed, Processor};
use super::retry::StoredRetry;

/// Name of the event for which a parked node waits.
pub const NOTIFY: &str = "notify";

/// What a builder says of a node besides its data.
pub(super) struct TaskOptions {
    pub(super) name: String,
    pub(super) place: u32,
    pub(super) on_error: OnError,
    pub(super) retry: Option<RetryPolicy>,
    pub(super) timeout: Option<Duration>,
}

/// What has ended the wait of a node that had parked itself.
#[derive(Clone, Serialize, Deserialize)]
pub(super) enum Woken {
    #[serde(rename = "n")]
    Notified(Blob),
    #[serde(rename = "t")]
    TimedOut,
}

impl Woken {
    fn of(cx: &CallContext<'_>) -> Option<Self> {
        let notified = cx.signal().map(|signal| Self::Notified(Blob::from(signal.bytes())));
        notified.or_else(|| cx.timed_out().then_some(Self::TimedOut))
    }
}

/// A node with a processor, as it is stored. It changes only where it asks a person after a wait.
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
pub(super) struct Task<P> {
    /// The row has the name as well. A call does not see its row.
    #[serde(rename = "n")]
    name: String,
    #[serde(rename = "i")]
    place: u32,
    #[serde(rename = "v")]
    version: u16,
    #[serde(rename = "d")]
    data: Blob,
    #[serde(rename = "f", default, skip_serializing_if = "OnError::is_pend")]
    on_error: OnError,
    #[serde(rename = "r", default, skip_serializing_if = "Option::is_none")]
    retry: Option<StoredRetry>,
    #[serde(rename = "t", default, skip_serializing_if = "Option::is_none")]
    timeout: Option<Duration>,
    /// What had ended its wait when it asked a person. The next call is told, as the one before the question was.
    #[serde(rename = "w", default, skip_serializing_if = "Option::is_none")]
    woken: Option<Woken>,
    /// The decoded data, or why there is none.
    #[serde(skip, default = "OnceCell::new")]
    processor: OnceCell<Result<P, String>>,
}

/// The only stage of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum TaskStage {
    /// Call the processor.
    Process,
}

/// Why an attempt failed.
enum Failure {
    /// Another attempt may help, after this delay or that of the policy.
    Again(String, Option<Duration>),
    /// No other attempt helps.
    Final(String),
}

impl From<StageError> for Failure {
    fn from(error: StageError) -> Self {
        match error {
            StageError::RetryAfter(delay, text) => Self::Again(text, Some(delay)),
            StageError::Fail(text) => Self::Final(text),
            // Kinds of errors that are added later are tried again, as the engine does.
            other @ (StageError::Retry(_) | StageError::TimedOut(_) | _) => Self::Again(other.text().to_owned(), None),
        }
    }
}

impl<P: Processor> Task<P> {
    pub(super) fn new(processor: P, options: TaskOptions) -> Result<Self, CodecError> {
        Ok(Self {
            name: options.name,
            place: options.place,
            version: P::VERSION,
            data: codec::encode_user(&processor)?,
            on_error: options.on_error,
            retry: options.retry.map(StoredRetry::from),
            timeout: options.timeout,
            woken: None,
            processor: OnceCell::from(Ok(processor)),
        })
    }

    /// Returns the size of the data in bytes.
    pub(super) fn size(&self) -> usize {
        self.data.len()
    }

    /// Decodes the data, once for each time that the node is revived.
    fn processor(&self) -> Result<&P, &str> {
        let decode = || guarded("it", || self.decode()).flatten();
        self.processor.get_or_init(decode).as_ref().map_err(String::as_str)
    }

    fn decode(&self) -> Result<P, String> {
        let (version, name) = (self.version, P::NAME);
        if version == P::VERSION {
            let data = codec::decode_user(self.data.as_slice());
            return data.map_err(|error| format!("its data cannot be read: {error}"));
        }
        if version > P::VERSION {
            let known = P::VERSION;
            return Err(format!(
                "its data has version {version} of \"{name}\", and this code knows up to {known}; retry it with newer code"
            ));
        }
        if version < P::OLDEST {
            let oldest = P::OLDEST;
            return Err(format!(
                "its data has version {version} of \"{name}\", and this code reads from {oldest} on"
            ));
        }
        let upgraded = P::upgrade(version, Old::new(self.data.as_slice()));
        upgraded.map_err(|error| format!("its data of version {version} of \"{name}\": {}", error.text()))
    }

    fn policy(&self) -> RetryPolicy {
        self.retry.map_or_else(P::retry, RetryPolicy::from)
    }

    /// Returns why the processor is not called although the node is to run: an earlier call may have done its work.
    fn doubt(repeated: u32) -> Option<String> {
        let why = match repeated {
            0 => return None,
            1 if P::REPEATABLE => return None,
            1 => "the process ended while it ran, and it must not be repeated unasked".to_owned(),
            // Whatever the processor says: the call itself may be what ends the process.
            2.. => format!("{repeated} processes ended while it ran"),
        };
        Some(format!(
            "in doubt: {why}; it may have done its work, so look before you retry it"
        ))
    }

    async fn attempt(
        &self,
        cx: &mut CallContext<'_>,
        env: &P::Env,
        woken: Option<&Woken>,
    ) -> Result<Step<Self>, Failure> {
        if cx.attempt() > self.policy().attempts.max(1) {
            // The engine itself has counted an attempt: a worker was lost, or what it sent was refused.
            let newest = cx.history(None, 1).await.map_err(StageError::from)?.pop();
            let why = newest.and_then(|entry| entry.error);
            return Err(Failure::Final(
                why.unwrap_or_else(|| "its attempts are used up".to_owned()),
            ));
        }
        let processor = self.processor().map_err(|why| Failure::Final(why.to_owned()))?;
        let mut node = NodeContext::new(cx.branch(), &self.name, self.place, woken);
        let called = self.limited(cx, processor, processor.process(&mut node, env)).await;
        let done = called.and_then(|processed| self.step_of(processed, cx.max_payload()));
        match done {
            Ok(step) => {
                cx.merge(node.into_inner());
                Ok(step)
            }
            Err(failure) => {
                cx.merge_note(node.into_inner());
                Err(failure)
            }
        }
    }

    /// Awaits the processor, at most as long as an attempt may take. A panic is a failed attempt.
    async fn limited<T>(
        &self,
        cx: &CallContext<'_>,
        processor: &P,
        call: impl Future<Output = Result<T, StageError>>,
    ) -> Result<T, Failure> {
        let call = AssertUnwindSafe(call).catch_unwind();
        let ended = match self.timeout.or_else(|| processor.timeout()) {
            Some(time) => within(cx.clock(), time, call).await.map_err(StageError::from)?,
            None => call.await,
        };
        match ended {
            Ok(result) => Ok(result?),
            Err(panic) => Err(Failure::Again(format!("it panicked: {}", panic_text(&*panic)), None)),
        }
    }

    fn step_of(&self, processed: Processed<P::Output>, limit: usize) -> Result<Step<Self>, Failure> {
        match processed {
            Processed::Done(output) => {
                // An output over the bound is the node's own failure. The engine would end the node whatever its strategy.
                let size = codec::encode_user(&output)
                    .map_err(|error| Failure::Final(error.to_string()))?
                    .len();
                if size > limit {
                    return Err(Failure::Final(format!(
                        "its output of {size} bytes is over the limit of {limit}; store it elsewhere, and return its name"
                    )));
                }
                Ok(Step::Done(output))
            }
            Processed::Park { timeout } => Ok(Step::Wait {
                event: NOTIFY.to_owned(),
                timeout,
                then: TaskStage::Process,
            }),
        }
    }

    /// Turns a failed attempt into another one, a question, or the node's failure.
    fn failed(&self, cx: &mut CallContext<'_>, failure: Failure) -> Result<Step<Self>, StageError> {
        let (attempt, policy) = (cx.attempt(), self.policy());
        let text = match failure {
            Failure::Again(text, chosen) if policy.allows_another(attempt) => {
                let token = cx.token();
                let drawn = token.store ^ (token.procedure.family << 20) ^ u64::from(token.procedure.member);
                let drawn = drawn ^ (u64::from(attempt) << 56);
                let delay = chosen.unwrap_or_else(|| policy.jittered(attempt, drawn));
                return Err(StageError::RetryAfter(delay, text));
            }
            Failure::Again(text, _) | Failure::Final(text) => text,
        };
        let failed = attempt.min(policy.attempts.max(1));
        let text = match failed {
            0 | 1 => text,
            2.. => format!("{text} (failed {failed} times)"),
        };
        match self.on_error {
            OnError::Pend => Ok(ask(cx, text)),
            OnError::Continue | OnError::Stop => {
                cx.nothing_to_undo();
                Ok(Step::Fail(text))
            }
        }
    }
}

/// Leaves the node to a person. It has left nothing that a rollback would have to undo.
fn ask<P: Processor>(cx: &mut CallContext<'_>, question: String) -> Step<Task<P>> {
    cx.nothing_to_undo();
    Step::Ask {
        question,
        timeout: None,
        then: TaskStage::Process,
    }
}

impl<P: Processor> Procedure for Task<P> {
    const KIND: &'static str = P::NAME;
    const ROLLBACK: bool = false;
    const HOLD: Hold = Hold::WhileActive;
    type Stage = TaskStage;
    type Env = P::Env;
    type Output = P::Output;

    fn first(&self) -> TaskStage {
        TaskStage::Process
    }

    async fn execute(
        &mut self,
        TaskStage::Process: TaskStage,
        cx: &mut StageContext<'_, Self>,
    ) -> Result<Step<Self>, StageError> {
        let (env, woken) = (cx.env(), Woken::of(cx).or_else(|| self.woken.clone()));
        let step = match Self::doubt(cx.repeated()) {
            Some(question) => ask(cx, question),
            None => match self.attempt(cx, env, woken.as_ref()).await {
                Ok(step) => step,
                Err(failure) => self.failed(cx, failure)?,
            },
        };
        self.woken = woken.filter(|_| matches!(step, Step::Ask { .. }));
        Ok(step)
    }

    fn gate(&self, before: &[ChildOutcome]) -> JoinVerdict {
        match self.processor() {
            Ok(processor) => processor.judge(before),
            // Nobody can be asked. The node begins, fails as its strategy says, and its cause says why.
            Err(_) => JoinVerdict::Met,
        }
    }

    fn locks(&self, _: &TaskStage) -> Vec<LockNeed> {
        self.processor().map(Processor::locks).unwrap_or_default()
    }

    fn limit(&self) -> Option<LimitKey> {
        self.processor().ok()?.limit()
    }

    /// The stage counts the attempts itself, to ask a person after the last one.
    fn retry() -> RetryPolicy {
        P::retry().attempts(u32::MAX)
    }

    fn accepts(_: &P::Env) -> Accepts {
        Accepts::by(|signal| match signal.name() {
            NOTIFY => Ok(()),
            _ => Err(format!("a node waits for the event \"{NOTIFY}\" alone")),
        })
    }
}
