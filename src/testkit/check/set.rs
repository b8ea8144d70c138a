//! `Check::set`: the same properties of a set. Whatever then asks is decided about.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::IntoFuture;

use procession_kernel::{OperatorRequest, ProcedureId, ProcedureState};

use super::{Check, KEY, rest};
use crate::executor::Builder;
use crate::flow::{NodeState, ResolveError, Set, SetHandle, SetState};
use crate::testkit::world::{Run, Trouble};

/// How often a node is retried before it is let fail: more often than the kit makes it fail, and loses what was decided.
const RETRIES: u32 = 4;
/// Nodes that are read at once.
const PAGE: usize = 1_000;

/// What is remembered of a set over crashes.
#[derive(Debug, Default)]
pub struct SetLeft {
    /// How often each node was retried. A node that always fails must come to its end.
    retried: RefCell<BTreeMap<String, u32>>,
}

impl Check<SetLeft> {
    /// Checks a set that needs nothing of the host: how its processors are registered, and which set is started.
    ///
    /// [`everything`](Self::everything) crashes it at every commit, runs every node twice, and fails each in turn. A node
    /// that then reads PENDING is retried, and let fail if it goes on to fail; so the set comes to its end. After each
    /// run all its nodes must be final, each must read as its own outcome says, the counts must be their number, and none
    /// may be CANCELLED unless the set was stopped.
    ///
    /// Nodes have no undo, so what they did may stay when the set is stopped.
    ///
    /// ```
    /// use procession::StageError;
    /// use procession::flow::{Node, NodeContext, Processed, Processor, Set};
    /// use procession::testkit::Check;
    /// # use serde::{Deserialize, Serialize};
    /// # #[derive(Serialize, Deserialize)]
    /// # struct Count;
    /// # impl Processor for Count {
    /// #     const NAME: &'static str = "count";
    /// #     type Env = ();
    /// #     type Output = u32;
    /// #     async fn process(&self, cx: &mut NodeContext<'_>, (): &()) -> Result<Processed<u32>, StageError> {
    /// #         let name = cx.name().to_owned();
    /// #         cx.put("counts", name, &1_u32)?;
    /// #         Ok(Processed::Done(1))
    /// #     }
    /// # }
    /// # fn main() -> Result<(), procession::testkit::Finding> {
    /// let check = Check::set(|builder| builder.processor::<Count>(()), || {
    ///     let mut set = Set::builder("counts");
    ///     let first = set.add(Node::new("first", Count));
    ///     set.add(Node::new("second", Count).after([first]));
    ///     Ok(set.build()?)
    /// });
    /// check.everything()?;
    /// # Ok(()) }
    /// ```
    pub fn set(
        register: impl Fn(Builder) -> Builder + 'static,
        set: impl Fn() -> Result<Set, Trouble> + 'static,
    ) -> Self {
        let start = async move |_: &SetLeft, run: &Run| -> Result<ProcedureId, Trouble> {
            let handle = run.executor.start_set(set()?).key(KEY).into_future().await?;
            Ok(handle.id())
        };
        let check = Self::submitting(|| Ok(SetLeft::default()), move |_, builder| register(builder), start);
        let check = Self { undoes: false, ..check };
        check
            .client(async |left, run, id| decide_all(left, &run.executor.set_handle(id), run).await)
            .afterwards(async |_, run, outcome| {
                all_are_final(&run.executor.set_handle(outcome.id), run, outcome.cause.is_some()).await
            })
    }
}

/// Decides about every node that waits for it, until the set has ended.
async fn decide_all(left: &SetLeft, set: &SetHandle, run: &Run) -> Result<(), Trouble> {
    let mut seen = None;
    loop {
        rest::after_a_commit(run, &mut seen).await;
        if run.executor.status(set.id()).await?.ended.is_some() {
            return Ok(());
        }
        let status = set.status().await?;
        let rests = matches!(status.state, SetState::Pending | SetState::Finish) && status.counts.pending > 0;
        if !rests {
            continue;
        }
        for name in status.pending {
            let by = OperatorRequest::new("the test kit", "it waits for a decision");
            // Counted before it is sent: a crash may come before the answer.
            let retries = {
                let mut retried = left.retried.borrow_mut();
                let retries = retried.entry(name.clone()).or_default();
                *retries += 1;
                *retries
            };
            let decided = if retries > RETRIES {
                set.fail(&name, by).await
            } else {
                set.retry(&name, by).await
            };
            match decided {
                // It may have moved meanwhile, because another was decided about.
                Ok(_) | Err(ResolveError::NotPending { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Checks a set that has ended: all nodes are final and read as their outcomes say, and the counts are their number. If it
/// was not stopped, none is CANCELLED.
async fn all_are_final(set: &SetHandle, run: &Run, is_stopped: bool) -> Result<(), Trouble> {
    let status = set.status().await?;
    let (mut from, mut nodes) = (Some(0), Vec::new());
    while let Some(place) = from {
        let page = set.nodes(place, PAGE).await?;
        nodes.extend(page.items);
        from = page.next;
    }
    if let Some(node) = nodes.iter().find(|node| !node.state.is_final()) {
        return Err(format!("the set has ended, and node \"{}\" is {}", node.name, node.state).into());
    }
    for node in &nodes {
        let outcome = run.executor.outcome(node.id).await?;
        let ended = match (outcome.state, outcome.cause) {
            (ProcedureState::Success, _) => NodeState::Success,
            (_, Some(_)) => NodeState::Error,
            (_, None) => NodeState::Cancelled,
        };
        if node.state != ended {
            return Err(format!(
                "node \"{}\" reads {}, and its outcome is {ended}",
                node.name, node.state
            )
            .into());
        }
        if ended == NodeState::Cancelled && !is_stopped {
            return Err(format!("node \"{}\" is CANCELLED, and nothing stopped its set", node.name).into());
        }
    }
    let counted = |state: NodeState| nodes.iter().filter(|node| node.state == state).count();
    let counts = status.counts;
    let sums = (
        counts.success as usize,
        counts.error as usize,
        counts.cancelled as usize,
    );
    let found = (
        counted(NodeState::Success),
        counted(NodeState::Error),
        counted(NodeState::Cancelled),
    );
    if status.state != SetState::Finish || sums != found {
        return Err(format!(
            "the set reads {} with {counts:?}, and its nodes are {found:?}",
            status.state
        )
        .into());
    }
    Ok(())
}
