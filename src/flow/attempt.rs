//! One attempt at a node: its processor is called for as long as it may take, and what it did counts only if it
//! succeeds. Nodes of sets and of streams are called alike.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt;
use procession_actors::journal::codec;
use procession_actors::{CallContext, Old, StageError, guarded, panic_text, within};
use procession_kernel::{Blob, RetryPolicy};

use super::context::{Called, Left, NodeContext};
use super::processor::{Processed, Processor};
use super::retry::StoredRetry;

/// Why an attempt failed.
pub(super) enum Failure {
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

/// An output, and its bytes.
pub(super) struct Encoded<T> {
    pub(super) value: T,
    pub(super) bytes: Blob,
}

/// Returns the policy of a node: its own, or that of its processor.
pub(super) fn policy<P: Processor>(own: Option<StoredRetry>) -> Result<RetryPolicy, Failure> {
    match own {
        Some(own) => Ok(RetryPolicy::from(own)),
        // Without a policy nothing says how often it may be tried.
        None => guarded("its `retry`", P::retry).map_err(Failure::Final),
    }
}

/// Returns how long an attempt at a node may take: as it says itself, or its processor.
pub(super) fn timeout<P: Processor>(own: Option<Duration>, processor: &P) -> Result<Option<Duration>, Failure> {
    match own {
        Some(own) => Ok(Some(own)),
        None => guarded("its `timeout`", || processor.timeout()).map_err(|why| Failure::Again(why, None)),
    }
}

/// What an attempt may take.
pub(super) struct Allowed {
    pub(super) policy: RetryPolicy,
    pub(super) timeout: Option<Duration>,
    /// Bytes of its output, and of its note if that is kept beside the output.
    pub(super) bytes: usize,
    #[cfg(feature = "testkit")]
    pub(super) injected: Option<super::injected::Injected>,
}

/// What an attempt came to.
pub(super) struct Attempted<T> {
    pub(super) result: Result<T, Failure>,
    /// The node's note, if it is not the engine's to keep.
    pub(super) note: Option<Blob>,
    /// It has failed because the engine drains: it does not count, and the node runs again after the next start.
    pub(super) is_put_off: bool,
}

impl<T> Attempted<T> {
    /// An attempt that has failed before the call.
    pub(super) const fn failed(failure: Failure) -> Self {
        Self {
            result: Err(failure),
            note: None,
            is_put_off: false,
        }
    }
}

/// Decodes the data of a node, which is of this version of its processor.
pub(super) fn decode<P: Processor>(version: u16, data: &Blob) -> Result<P, String> {
    let name = P::NAME;
    if version == P::VERSION {
        let data = codec::decode_user(data.as_slice());
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
    let upgraded = P::upgrade(version, Old::new(data.as_slice()));
    upgraded.map_err(|error| format!("its data of version {version} of \"{name}\": {}", error.text()))
}

/// Returns why the processor is not called although the node is to run: an earlier call may have done its work.
pub(super) fn doubt<P: Processor>(repeated: u32) -> Option<String> {
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

/// Calls the processor of a node once. Of a failed attempt nothing is left but its note.
pub(super) async fn call<P: Processor>(
    cx: &mut CallContext<'_>,
    processor: &P,
    env: &P::Env,
    called: Called<'_>,
    allowed: Allowed,
) -> Attempted<Processed<Encoded<P::Output>>> {
    if cx.attempt() > allowed.policy.attempts.max(1) {
        return Attempted::failed(used_up(cx).await);
    }
    let mut node = NodeContext::new(cx.branch(), called);
    // Code that panics before there is a future must do so in the call.
    let call = limited(cx, allowed.timeout, async { processor.process(&mut node, env).await });
    #[cfg(feature = "testkit")]
    let call = super::injected::Injected::make(allowed.injected, call);
    let result = call.await;
    let Left { call, note, met_drain } = node.into_parts();
    let result = result.and_then(|processed| within_bounds(processed, note.as_ref(), allowed.bytes));
    match &result {
        Ok(_) => cx.merge(call),
        Err(_) => cx.merge_note(call),
    }
    let is_put_off = met_drain && result.is_err();
    Attempted {
        result,
        note,
        is_put_off,
    }
}

/// The engine itself has counted an attempt: a worker was lost, or what it sent was refused.
async fn used_up(cx: &CallContext<'_>) -> Failure {
    let newest = match cx.history(None, 1).await {
        Ok(mut newest) => newest.pop(),
        Err(error) => return StageError::from(error).into(),
    };
    let why = newest.and_then(|entry| entry.error);
    Failure::Final(why.unwrap_or_else(|| "its attempts are used up".to_owned()))
}

/// Awaits the processor, at most as long as an attempt may take. A panic is a failed attempt.
async fn limited<T>(
    cx: &CallContext<'_>,
    timeout: Option<Duration>,
    call: impl Future<Output = Result<T, StageError>>,
) -> Result<T, Failure> {
    let call = AssertUnwindSafe(call).catch_unwind();
    let ended = match timeout {
        Some(time) => within(cx.clock(), time, call).await.map_err(StageError::from)?,
        None => call.await,
    };
    match ended {
        Ok(result) => Ok(result?),
        Err(panic) => Err(Failure::Again(format!("it panicked: {}", panic_text(&*panic)), None)),
    }
}

/// An output over the bound is the node's own failure. The engine would end the procedure whatever the node's strategy.
fn within_bounds<T: serde::Serialize>(
    processed: Processed<T>,
    note: Option<&Blob>,
    limit: usize,
) -> Result<Processed<Encoded<T>>, Failure> {
    let (processed, output) = match processed {
        Processed::Done(value) => {
            let bytes = guarded("its output", || codec::encode_user(&value));
            let bytes = bytes.map_err(|why| Failure::Again(why, None))?;
            let bytes = bytes.map_err(|error| Failure::Final(error.to_string()))?;
            let size = bytes.len();
            (Processed::Done(Encoded { value, bytes }), size)
        }
        Processed::Park { timeout } => (Processed::Park { timeout }, 0),
    };
    let noted = note.map_or(0, Blob::len);
    if output > limit {
        return Err(Failure::Final(format!(
            "its output of {output} bytes is over the limit of {limit}; store it elsewhere, and return its name"
        )));
    }
    if output + noted > limit {
        return Err(Failure::Final(format!(
            "its output of {output} bytes and its note of {noted} are over the limit of {limit}; note less"
        )));
    }
    Ok(processed)
}

/// Turns a failed attempt into another one, or returns why the node has failed.
pub(super) fn tried_again(cx: &CallContext<'_>, policy: RetryPolicy, failure: Failure) -> Result<String, StageError> {
    let attempt = cx.attempt();
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
    Ok(match attempt.min(policy.attempts.max(1)) {
        0 | 1 => text,
        failed => format!("{text} (failed {failed} times)"),
    })
}
