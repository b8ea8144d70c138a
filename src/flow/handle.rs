//! `SetHandle`: how a set stands, and what a person decides about its nodes.

use procession_actors::messages::Operate;
use procession_actors::view::Status;
use procession_actors::{AskError, CodecError, Procedure};
use procession_kernel::{
    BypassAs, BypassScope, Mark, Operated, OperatorRequest, PauseScope, ProcedureId, ProcedureState, Seq,
};
use serde::Serialize;

use super::error::{ResolveError, SetError};
use super::processor::Processor;
use super::reading::{Counts, NodeFacts, NodePage, NodeRead, NodeStatus, Reading, SetStatus};
use super::root::SetRoot;
use super::state::NodeState;
use super::task::NOTIFY;
use crate::executor::Executor;

/// Members of a family that are read at once.
const PAGE: usize = 1_000;

/// A revision that no row has: a request that expects it is refused, unless it repeats an earlier one by its key.
const NO_REVISION: Seq = Seq(u64::MAX);

/// Watches one set, and decides about its nodes. Dropping it cancels nothing.
///
/// How nodes stand is read off what is stored, a thousand rows at a time. A set that moves meanwhile may be shown with
/// nodes of different moments; one at rest is shown as it is. A reading of one node reads the nodes before it as well.
///
/// Each decision is one commit with an entry in the audit. It takes an [`OperatorRequest`], so it can be a dry run, have a
/// key, and expect a revision. To cancel the set, [abort](Executor::abort) its [id](Self::id).
#[derive(Clone, Debug)]
pub struct SetHandle {
    executor: Executor,
    id: ProcedureId,
}

impl SetHandle {
    pub(super) fn new(executor: Executor, id: ProcedureId) -> Self {
        Self { executor, id }
    }

    /// Returns the id of the set: of the root of its family.
    #[must_use]
    pub fn id(&self) -> ProcedureId {
        self.id
    }

    /// Returns how the set stands.
    ///
    /// # Errors
    ///
    /// [`AskError::Unknown`] within [`SetError::Ask`] if its result has gone.
    pub async fn status(&self) -> Result<SetStatus, SetError> {
        let mut reading = None;
        self.read(&mut reading, |_, _, _| false).await?;
        let reading = reading.ok_or(AskError::Unknown(self.id))?;
        Ok(reading.status())
    }

    /// Returns how its nodes stand, by place: from this place on, at most `limit`, and 1,000.
    ///
    /// # Errors
    ///
    /// [`AskError::Unknown`] within [`SetError::Ask`] if its result has gone.
    pub async fn nodes(&self, from: u32, limit: usize) -> Result<NodePage, SetError> {
        let limit = limit.clamp(1, PAGE);
        let (mut items, mut next) = (Vec::new(), None);
        self.read(&mut None, |reading, status, read| {
            if items.len() == limit {
                next = Some(read.place);
            } else if read.place >= from {
                items.push(reading.describe(status, &read));
            }
            next.is_some()
        })
        .await?;
        Ok(NodePage { items, next })
    }

    /// Returns how one node stands.
    ///
    /// # Errors
    ///
    /// [`SetError::UnknownNode`] if the set has no node of this name.
    pub async fn node(&self, name: &str) -> Result<NodeStatus, SetError> {
        let node = self.find(name).await?;
        node.ok_or_else(|| SetError::UnknownNode { name: name.to_owned() })
    }

    async fn find(&self, name: &str) -> Result<Option<NodeStatus>, AskError> {
        let mut found = None;
        self.read(&mut None, |reading, status, read| {
            if status.name.as_deref() == Some(name) {
                found = Some(reading.describe(status, &read));
            }
            found.is_some()
        })
        .await?;
        Ok(found)
    }

    /// Reads the nodes in their order, until one is enough.
    async fn read(
        &self,
        reading: &mut Option<Reading>,
        mut is_enough: impl FnMut(&Reading, Status, NodeRead) -> bool,
    ) -> Result<(), AskError> {
        let mut from = 0;
        loop {
            let page = self.executor.members(self.id, from, PAGE).await?;
            let mut members = page.items.into_iter();
            let reading = match reading {
                Some(reading) => reading,
                None => {
                    let is_set = |root: &Status| root.kind.as_str() == SetRoot::KIND;
                    let root: Status = members.next().filter(is_set).ok_or(AskError::Unknown(self.id))?;
                    reading.insert(Reading::new(&root))
                }
            };
            for member in members {
                // The nodes are the first members. Behind them stand the children of procedures.
                if !reading.is_node(&member) {
                    return Ok(());
                }
                let read = reading.add(&NodeFacts::from(&member));
                if is_enough(reading, member, read) {
                    return Ok(());
                }
            }
            match page.next {
                Some(next) => from = next,
                None => return Ok(()),
            }
        }
    }

    /// Waits for the end of one node, whatever others do, and returns its output.
    ///
    /// # Errors
    ///
    /// [`SetError::NoOutput`] if it ends without one; [`SetError::OtherProcessor`] if it is not one of this processor.
    pub async fn output<P: Processor>(&self, name: &str) -> Result<P::Output, SetError> {
        let node = self.node(name).await?;
        if node.kind.as_str() != P::NAME {
            return Err(SetError::OtherProcessor {
                name: node.name,
                expected: P::NAME.to_owned(),
                found: node.kind.to_string(),
            });
        }
        let outcome = self.executor.outcome(node.id).await?;
        let output = outcome.output::<P::Output>()?;
        output.ok_or_else(|| SetError::NoOutput {
            name: node.name,
            state: match (outcome.state, &outcome.cause) {
                (ProcedureState::Success, _) => NodeState::Success,
                (_, Some(_)) => NodeState::Error,
                (_, None) => NodeState::Cancelled,
            },
            cause: outcome.cause.map(|cause| cause.text),
        })
    }

    /// Waits until all nodes have ended, and counts how. A side branch that is PENDING keeps its set.
    ///
    /// # Errors
    ///
    /// [`SetError::Stopped`] if a node has [stopped](super::OnError::Stop) the set, or it was aborted.
    pub async fn outcome(&self) -> Result<Counts, SetError> {
        let outcome = self.executor.outcome(self.id).await?;
        match outcome.cause {
            Some(cause) if outcome.mark != Some(Mark::Bypassed) => Err(SetError::Stopped { cause }),
            Some(_) | None => Ok(self.status().await?.counts),
        }
    }

    /// Lets a node run that is PENDING: one that asks runs with fresh attempts, one whose parents do not let it begin runs
    /// all the same. A procedure whose undo has failed tries that undo again; one at its repeat limit is resumed. Nodes
    /// that are PENDING because of it read WAIT again from that commit on.
    ///
    /// # Errors
    ///
    /// [`ResolveError::NotPending`] with its state if it is not PENDING.
    pub async fn retry(&self, name: &str, by: OperatorRequest) -> Result<Operated, ResolveError> {
        let node = self.decided(name).await?;
        let is_resumed = node.is_at_repeat_limit;
        let verb = |id, by| {
            Ok(match is_resumed {
                true => Operate::resume(PauseScope::One(id), by),
                false => Operate::retry_now(id, by),
            })
        };
        self.resolve(node, by, verb).await
    }

    /// Ends a node that is PENDING as SUCCESS, with this output, without a call. Its children see the output.
    ///
    /// # Errors
    ///
    /// [`ResolveError::NotPending`] with its state if it is not PENDING; [`ResolveError::WrongOutput`] if the node is one of
    /// another processor.
    pub async fn succeed<P: Processor>(
        &self,
        name: &str,
        output: &P::Output,
        by: OperatorRequest,
    ) -> Result<Operated, ResolveError> {
        let node = self.decided(name).await?;
        if node.kind.as_str() != P::NAME {
            return Err(ResolveError::WrongOutput {
                processor: node.kind.to_string(),
                why: format!("it is one of \"{}\"", P::NAME),
            });
        }
        let verb = |id, by| Operate::bypass_with_output(id, BypassScope::Alone, output, by);
        self.resolve(node, by, verb).await
    }

    /// Ends a node that is PENDING as ERROR, without a call. With [`OnError::Stop`](super::OnError::Stop) it stops the set.
    ///
    /// # Errors
    ///
    /// [`ResolveError::NotPending`] with its state if it is not PENDING.
    pub async fn fail(&self, name: &str, by: OperatorRequest) -> Result<Operated, ResolveError> {
        let node = self.decided(name).await?;
        let verb = |id, by| Ok(Operate::bypass(id, BypassScope::Alone, BypassAs::Failed, by));
        self.resolve(node, by, verb).await
    }

    /// Notifies a node that has [parked](super::Processed::Park) itself, or will. A notification is kept until the node
    /// parks; it is [`NOTIFY`] as a signal, for those who send one.
    ///
    /// # Errors
    ///
    /// [`ResolveError::Ask`] with [`AskError::Finished`] if the node has ended.
    pub async fn notify<T: Serialize>(
        &self,
        name: &str,
        payload: &T,
        by: OperatorRequest,
    ) -> Result<Operated, ResolveError> {
        let node = self.decided(name).await?;
        let request = Operate::signal(node.id, NOTIFY, payload, by).map_err(AskError::from)?;
        Ok(self.executor.operate(request).await?)
    }

    /// Reads the node that a decision is about.
    async fn decided(&self, name: &str) -> Result<NodeStatus, ResolveError> {
        let node = self.find(name).await?;
        node.ok_or_else(|| ResolveError::UnknownNode { name: name.to_owned() })
    }

    /// Sends a decision about a node as it was seen: it is refused if the node's row has changed meanwhile.
    async fn resolve(
        &self,
        node: NodeStatus,
        by: OperatorRequest,
        verb: impl FnOnce(ProcedureId, OperatorRequest) -> Result<Operate, CodecError>,
    ) -> Result<Operated, ResolveError> {
        let not_pending = |name: String, state| ResolveError::NotPending { name, state };
        let is_pending = node.state == NodeState::Pending;
        let expected = match (is_pending, &by.key) {
            (true, _) => by.expected.unwrap_or(node.revision),
            // A repeat is answered as the first was, whatever became of the node.
            (false, Some(_)) => NO_REVISION,
            (false, None) => return Err(not_pending(node.name, node.state)),
        };
        let request = verb(node.id, by.expecting(expected)).map_err(AskError::from)?;
        match self.executor.operate(request).await {
            Ok(operated) => Ok(operated),
            Err(AskError::Revised { .. } | AskError::Finished { .. }) if !is_pending => {
                Err(not_pending(node.name, node.state))
            }
            Err(error @ (AskError::Revised { .. } | AskError::Finished { .. })) => {
                let now = self.decided(&node.name).await?;
                if now.state == NodeState::Pending {
                    return Err(error.into());
                }
                Err(not_pending(now.name, now.state))
            }
            Err(error) => Err(error.into()),
        }
    }
}
