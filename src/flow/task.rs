//! `Task`: the procedure that a node with a processor is. One stage, which calls the processor and turns what it says
//! into a step: an output, a wait, another attempt, a question to a person, a failure.

use std::cell::OnceCell;
use std::time::Duration;

use procession_actors::journal::codec;
use procession_actors::{
    Accepts, CallContext, ChildOutcome, CodecError, JoinVerdict, Procedure, StageContext, StageError, Step, guarded,
};
use procession_kernel::{Blob, Hold, LimitKey, LockNeed, RetryPolicy};
use serde::{Deserialize, Serialize};

use super::attempt::{self, Allowed, Failure};
use super::context::{Called, Parents};
use super::node::OnError;
use super::processor::{Processed, Processor};
use super::retry::StoredRetry;
use crate::executor::EngineLink;

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
    pub(super) fn of(cx: &CallContext<'_>) -> Option<Self> {
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

/// What a node needs from the host: the environment of its processor, and the way to the engine.
pub(super) struct TaskEnv<P: Processor> {
    pub(super) env: P::Env,
    pub(super) engine: EngineLink,
}

impl<P: Processor> Clone for TaskEnv<P> {
    fn clone(&self) -> Self {
        Self {
            env: self.env.clone(),
            engine: self.engine.clone(),
        }
    }
}

/// The only stage of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum TaskStage {
    /// Call the processor.
    Process,
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
        let decode = || guarded("it", || attempt::decode(self.version, &self.data)).flatten();
        self.processor.get_or_init(decode).as_ref().map_err(String::as_str)
    }

    async fn attempt(
        &self,
        cx: &mut CallContext<'_>,
        env: &TaskEnv<P>,
        woken: Option<&Woken>,
    ) -> Result<Step<Self>, Failure> {
        let processor = self.processor().map_err(|why| Failure::Final(why.to_owned()))?;
        let called = Called {
            name: &self.name,
            place: self.place,
            visit: 0,
            woken,
            engine: &env.engine,
            parents: Parents::Siblings,
            #[cfg(feature = "testkit")]
            injections: None,
        };
        let allowed = Allowed {
            policy: attempt::policy::<P>(self.retry)?,
            timeout: attempt::timeout(self.timeout, processor)?,
            bytes: cx.max_payload(),
            #[cfg(feature = "testkit")]
            injected: None,
        };
        let attempted = attempt::call(cx, processor, &env.env, called, allowed).await;
        if attempted.is_put_off {
            return Ok(Step::Yield);
        }
        Ok(match attempted.result? {
            Processed::Done(output) => Step::Done(output.value),
            Processed::Park { timeout } => Step::Wait {
                event: NOTIFY.to_owned(),
                timeout,
                then: TaskStage::Process,
            },
        })
    }

    /// Turns a failed attempt into another one, a question, or the node's failure.
    fn failed(&self, cx: &mut CallContext<'_>, failure: Failure) -> Result<Step<Self>, StageError> {
        // Without a policy the failure is final.
        let policy = attempt::policy::<P>(self.retry).unwrap_or_default();
        let text = attempt::tried_again(cx, policy, failure)?;
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
    type Env = TaskEnv<P>;
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
        let step = match attempt::doubt::<P>(cx.repeated()) {
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

    fn accepts(_: &TaskEnv<P>) -> Accepts {
        Accepts::by(|signal| match signal.name() {
            NOTIFY => Ok(()),
            _ => Err(format!("a node waits for the event \"{NOTIFY}\" alone")),
        })
    }
}
