//! The processors that a stream may meet, by name and without their types.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::LocalBoxFuture;
use procession_actors::journal::codec;
use procession_actors::{CallContext, CodecError, Registry, guarded};
use procession_kernel::{Blob, RetryPolicy};

use super::answer::{Act, Answer};
use super::node::StoredNode;
use super::record::OUTPUT_MAX;
use super::root::StreamRoot;
use crate::executor::{AtStart, EngineLink};
use crate::flow::attempt::{self, Allowed, Attempted, Failure};
use crate::flow::context::Called;
#[cfg(feature = "testkit")]
use crate::flow::injected::Injections;
use crate::flow::processor::{Processed, Processor};

/// Bytes of a stream's value beside the node and what had notified it: at most 2,048 of a question, 520 of the stream's
/// name, and the names of the fields.
const VALUE_REST: usize = 3_072;

/// A registered processor without its type.
pub(super) trait AnyProcessor: Send + Sync {
    /// Returns why it is not called although the node is to run.
    fn doubt(&self, repeated: u32) -> Option<String>;

    /// Returns the policy of a node; the default if its code does not say, as such a node has failed for good.
    fn policy(&self, node: &StoredNode) -> RetryPolicy;

    /// Calls it once.
    fn call<'a>(
        &'a self,
        cx: &'a mut CallContext<'_>,
        node: &'a StoredNode,
        called: Called<'a>,
    ) -> LocalBoxFuture<'a, Attempted<Ran>>;

    /// Reads a person's answer, whose output has the type of the processor's, or says why it is none.
    fn answer(&self, cx: &CallContext<'_>) -> Result<Option<Answer<Blob>>, String>;
}

/// What a call that has not failed came to.
pub(super) enum Ran {
    /// The node has succeeded with this output.
    Done(Blob),
    /// It waits to be notified, at most this long.
    Parked(Option<Duration>),
}

/// A registered processor with its environment.
pub(crate) struct Registered<P: Processor> {
    env: P::Env,
}

impl<P: Processor> Registered<P> {
    pub(crate) const fn new(env: P::Env) -> Self {
        Self { env }
    }

    /// Asks the processor's code for everything that its call needs.
    fn prepared(node: &StoredNode) -> Result<(P, RetryPolicy, Option<Duration>), Failure> {
        let decoded = guarded("it", || attempt::decode::<P>(node.version, &node.data)).flatten();
        let processor = decoded.map_err(Failure::Final)?;
        let timeout = attempt::timeout(node.timeout, &processor)?;
        Ok((processor, attempt::policy::<P>(node.retry)?, timeout))
    }

    fn read_answer(cx: &CallContext<'_>) -> Result<Option<Answer<Blob>>, CodecError> {
        let Some(answer) = cx.answer::<Answer<P::Output>>()? else {
            return Ok(None);
        };
        let act = match answer.act {
            Act::Retry => Act::Retry,
            Act::Fail => Act::Fail,
            Act::Succeed(output) => Act::Succeed(codec::encode_user(&output)?),
        };
        Ok(Some(Answer {
            place: answer.place,
            act,
        }))
    }
}

impl<P: Processor> AnyProcessor for Registered<P> {
    fn doubt(&self, repeated: u32) -> Option<String> {
        attempt::doubt::<P>(repeated)
    }

    fn policy(&self, node: &StoredNode) -> RetryPolicy {
        attempt::policy::<P>(node.retry).unwrap_or_default()
    }

    fn call<'a>(
        &'a self,
        cx: &'a mut CallContext<'_>,
        node: &'a StoredNode,
        called: Called<'a>,
    ) -> LocalBoxFuture<'a, Attempted<Ran>> {
        async move {
            let (processor, policy, timeout) = match Self::prepared(node) {
                Ok(prepared) => prepared,
                Err(failure) => {
                    return Attempted::failed(failure);
                }
            };
            let allowed = Allowed {
                policy,
                timeout,
                bytes: cx.max_payload().min(OUTPUT_MAX),
                #[cfg(feature = "testkit")]
                injected: called.injections.and_then(|injections| injections.take(cx.id())),
            };
            let attempted = attempt::call(cx, &processor, &self.env, called, allowed).await;
            let result = attempted.result.map(|processed| match processed {
                Processed::Done(output) => Ran::Done(output.bytes),
                Processed::Park { timeout } => Ran::Parked(timeout),
            });
            Attempted {
                result,
                note: attempted.note,
                is_put_off: attempted.is_put_off,
            }
        }
        .boxed_local()
    }

    fn answer(&self, cx: &CallContext<'_>) -> Result<Option<Answer<Blob>>, String> {
        let read = guarded("the output given", || Self::read_answer(cx))?;
        read.map_err(|why| why.to_string())
    }
}

/// What streams need from the host.
#[derive(Clone)]
pub struct StreamEnv {
    processors: Arc<Processors>,
    engine: EngineLink,
    /// The engine's bound of values, in bytes.
    max_payload: usize,
    #[cfg(feature = "testkit")]
    pub(super) injections: Option<Injections>,
}

type Processors = BTreeMap<&'static str, Arc<dyn AnyProcessor>>;

impl StreamEnv {
    pub(super) fn processor(&self, kind: &str) -> Option<&Arc<dyn AnyProcessor>> {
        self.processors.get(kind)
    }

    pub(super) const fn engine(&self) -> &EngineLink {
        &self.engine
    }

    /// Returns the most bytes of a node's data. The stream's value holds a whole node while it asks or is parked, and
    /// with it what had notified the node, and what has a fixed bound.
    pub(super) fn data_max(&self) -> usize {
        let room = self.max_payload.saturating_sub(self.notification_max() + VALUE_REST);
        room.min(self.max_payload / 4 * 3)
    }

    /// Returns the most bytes of a notification.
    pub(super) const fn notification_max(&self) -> usize {
        self.max_payload / 8
    }
}

/// What a builder knows of sets and streams.
#[derive(Default)]
pub(crate) struct SetUp {
    /// The root of sets is registered.
    pub(crate) takes_sets: bool,
    pub(crate) takes_streams: bool,
    processors: Processors,
    /// What a test has fail.
    #[cfg(feature = "testkit")]
    pub(crate) injections: Option<Injections>,
}

impl SetUp {
    pub(crate) fn add<P: Processor>(&mut self, env: P::Env) {
        self.processors.insert(P::NAME, Arc::new(Registered::<P>::new(env)));
    }
}

impl AtStart for SetUp {
    fn register(&mut self, registry: &mut Registry, engine: EngineLink, max_payload: usize) {
        if self.takes_streams {
            registry.register::<StreamRoot>(StreamEnv {
                processors: Arc::new(std::mem::take(&mut self.processors)),
                engine,
                max_payload,
                #[cfg(feature = "testkit")]
                injections: self.injections.take(),
            });
        }
    }
}
