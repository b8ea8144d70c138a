//! `Check::stream`: the same properties of a stream. Whatever then asks is decided about.

use std::cell::RefCell;
use std::collections::BTreeMap;

use procession_kernel::{OperatorRequest, ProcedureId};

use super::{Check, rest};
use crate::executor::Builder;
use crate::flow::{AppendError, Node, NodeState, ResolveError, Stream, StreamRecord, StreamState};
use crate::testkit::world::{Run, Trouble};

/// How often a node is retried before it is let fail: more often than the kit makes it fail, and loses what was decided.
const RETRIES: u32 = 4;
/// Nodes, and records, that are read at once.
const PAGE: usize = 1_000;

/// What a stream has left: the records of its nodes, and the nodes that did not run.
#[derive(Debug, Default)]
pub struct StreamLeft {
    lines: RefCell<Vec<String>>,
    /// How often each node was retried, by its place. It outlives crashes: a node that always fails must come to its end.
    retried: RefCell<BTreeMap<u32, u32>>,
}

impl Check<StreamLeft> {
    /// Checks a stream that needs nothing of the host: how its processors are registered, and which nodes are appended, in
    /// one call. They need names, so that a client that did not hear of its append can repeat it. Then the stream is told to
    /// finish.
    ///
    /// [`everything`](Self::everything) crashes it at every commit, runs every node twice, and fails the call of each in
    /// turn. A node that then asks is retried, and let fail if it goes on to fail; so the stream comes to its end. After
    /// each run the records must be those of the nodes, in their order and each once, with nothing left behind them unless
    /// the stream was stopped. After a crash states, outputs and causes must be as without one.
    ///
    /// ```
    /// use procession::StageError;
    /// use procession::flow::{Node, NodeContext, Processed, Processor};
    /// use procession::testkit::Check;
    /// # use serde::{Deserialize, Serialize};
    /// # #[derive(Serialize, Deserialize)]
    /// # struct Count;
    /// # impl Processor for Count {
    /// #     const NAME: &'static str = "count";
    /// #     type Env = ();
    /// #     type Output = u32;
    /// #     async fn process(&self, cx: &mut NodeContext<'_>, (): &()) -> Result<Processed<u32>, StageError> {
    /// #         let count = cx.get::<u32>("counts", "all").await?.unwrap_or_default() + 1;
    /// #         cx.put("counts", "all", &count)?;
    /// #         Ok(Processed::Done(count))
    /// #     }
    /// # }
    /// # fn main() -> Result<(), procession::testkit::Finding> {
    /// let check = Check::stream(
    ///     |builder| builder.processor::<Count>(()),
    ///     || vec![Node::new("first", Count), Node::new("second", Count)],
    /// );
    /// check.everything()?;
    /// # Ok(()) }
    /// ```
    pub fn stream(
        register: impl Fn(Builder) -> Builder + 'static,
        nodes: impl Fn() -> Vec<Node> + Clone + 'static,
    ) -> Self {
        let appended = nodes.clone();
        let start = async move |_: &StreamLeft, run: &Run| -> Result<ProcedureId, Trouble> {
            let stream = tested(run)?;
            let nodes = appended();
            if let Some(node) = nodes.iter().find(|node| node.name().is_empty()) {
                return Err(format!("{node:?} has no name, so its append cannot be repeated").into());
            }
            let id = stream.open().await?;
            match stream.append_all(nodes).await {
                // An earlier life has come as far as this, and the stream has ended.
                Ok(_) | Err(AppendError::Finished { .. }) => {}
                Err(error) => return Err(error.into()),
            }
            stream.finish().await?;
            Ok(id)
        };
        let register = move |_: &StreamLeft, builder: Builder| register(builder).streams();
        let check = Self::submitting(|| Ok(StreamLeft::default()), register, start);
        let check = Self { undoes: false, ..check };
        check
            .client(async |left, run, id| decide_all(left, &tested(run)?, run, id).await)
            .afterwards(async move |left, run, outcome| {
                let names = nodes().iter().map(|node| node.name().to_owned()).collect();
                let found = compare(&tested(run)?, names, outcome.cause.is_some()).await?;
                *left.lines.borrow_mut() = found;
                Ok(())
            })
            .picture(|left| Ok(left.lines.borrow().clone()))
    }
}

fn tested(run: &Run) -> Result<Stream, Trouble> {
    Ok(run.executor.stream("test kit", "the stream under test")?)
}

/// Decides about every node that asks, until the stream has ended.
async fn decide_all(left: &StreamLeft, stream: &Stream, run: &Run, id: ProcedureId) -> Result<(), Trouble> {
    let mut seen = None;
    loop {
        rest::after_a_commit(run, &mut seen).await;
        if run.executor.status(id).await?.ended.is_some() {
            return Ok(());
        }
        let in_hand = stream.status().await?.in_hand;
        let Some(asks) = in_hand.filter(|node| node.state == NodeState::Pending) else {
            continue;
        };
        let by = OperatorRequest::new("the test kit", "it waits for a decision");
        // Counted before it is sent: a crash may come before the answer.
        let retries = {
            let mut retried = left.retried.borrow_mut();
            let retries = retried.entry(asks.place).or_default();
            *retries += 1;
            *retries
        };
        let decided = if retries > RETRIES {
            stream.fail(by).await
        } else {
            stream.retry(by).await
        };
        match decided {
            Ok(_) | Err(ResolveError::AsksNothing { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Checks a stream that has ended, and returns what it has left: a line for each node.
async fn compare(stream: &Stream, names: Vec<String>, is_stopped: bool) -> Result<Vec<String>, Trouble> {
    let status = stream.status().await?;
    let mut records = stream.records(None, PAGE).await?.items;
    records.reverse();
    let left_over = stream.waiting(0, PAGE).await?.items;
    if status.state != StreamState::Finish || status.ended as usize != records.len() {
        return Err(format!("the stream reads {status:?}, and has {} records", records.len()).into());
    }
    if !left_over.is_empty() && !is_stopped {
        return Err(format!(
            "{} nodes were left behind, and nothing stopped the stream",
            left_over.len()
        )
        .into());
    }
    let found = records.iter().map(|record| &record.name);
    let found: Vec<&String> = found.chain(left_over.iter().map(|node| &node.name)).collect();
    if found != names.iter().collect::<Vec<_>>() {
        return Err(format!("{names:?} were appended, and there are {found:?}").into());
    }
    if let Some(node) = left_over.iter().find(|node| node.state != NodeState::Cancelled) {
        return Err(format!("the stream has ended, and node \"{}\" is {}", node.name, node.state).into());
    }
    let lines = records.iter().map(StreamRecord::line);
    let rest = left_over.iter().map(|node| format!("{} {}", node.name, node.state));
    Ok(lines.chain(rest).collect())
}
