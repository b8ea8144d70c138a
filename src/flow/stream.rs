//! `Stream`: an endless queue under a name. Its nodes run one at a time, in the order in which they were appended.

mod answer;
mod error;
mod name;
mod node;
mod processors;
mod reader;
mod record;
mod root;

pub use error::AppendError;
pub use name::{StreamName, StreamNameError};
pub(super) use node::notify_event;
pub(crate) use processors::SetUp;
pub use processors::StreamEnv;
pub use reader::{StreamReader, StreamState, StreamStatus};
pub use record::{RecordPage, StreamRecord};
pub use root::{StreamRoot, StreamStage};

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use procession_actors::journal::codec;
use procession_actors::messages::{Operate, SendSignal, SendSignals, Submit};
use procession_actors::{AskError, CallContext, Procedure, SubmitError};
use procession_kernel::{Kind, NotNow, Operated, OperatorRequest, ProcedureId, WaitReason};
use serde::Serialize;

use self::answer::{Act, Answer};
use self::node::{APPEND_MAX, NODE, StoredNode};
use self::record::OUTPUT_MAX;
use self::root::WAITING_MAX;
use super::error::ResolveError;
use super::node::Node;
use super::processor::Processor;
use super::reading::{NodePage, NodeStatus};
use super::state::NodeState;
use crate::executor::{EngineLink, Executor};

/// A stream of this engine: to append to it, to see how it stands, and to decide about the node that asks.
///
/// It exists once it has been appended to; until then it reads INIT. Dropping this cancels nothing. To cancel the stream,
/// [abort](Executor::abort) its [id](Self::open): the node that runs keeps its result, and nothing else runs.
///
/// See the [module](super#streams) for an example.
#[derive(Clone)]
pub struct Stream {
    executor: Executor,
    name: StreamName,
    /// The root, once it is known.
    id: Arc<Mutex<Option<ProcedureId>>>,
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Stream {
    pub(super) fn new(executor: Executor, name: StreamName) -> Self {
        Self {
            executor,
            name,
            id: Arc::default(),
        }
    }

    /// Returns its name.
    #[must_use]
    pub const fn name(&self) -> &StreamName {
        &self.name
    }

    /// Opens the stream if it is not there, and returns its id. Appending does that as well.
    ///
    /// # Errors
    ///
    /// [`AppendError::NoStreams`] if the engine takes no streams; [`AppendError::Open`] if it takes no submissions.
    pub async fn open(&self) -> Result<ProcedureId, AppendError> {
        if let Some(id) = self.known() {
            return Ok(id);
        }
        let engine = self.executor.engine();
        let submitted = engine.ask(opening(&self.name)?).await;
        let id = opened(submitted.unwrap_or_else(|_| Err(engine.unsubmitted())))?;
        self.know(Some(id));
        Ok(id)
    }

    fn known(&self) -> Option<ProcedureId> {
        *self.id.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn know(&self, id: Option<ProcedureId>) {
        *self.id.lock().unwrap_or_else(PoisonError::into_inner) = id;
    }

    /// Returns the id if the stream is there, without opening it.
    async fn find(&self) -> Result<Option<ProcedureId>, AskError> {
        if let Some(id) = self.known() {
            return Ok(Some(id));
        }
        let found = self.executor.find(&self.name.key()).await?.map(|found| found.id());
        self.know(found);
        Ok(found)
    }

    /// Appends a node, and returns its place once it is durable. Appending a node with the same name and content again has
    /// no effect, and returns the same place, as long as it waits or is among the newest 100 with a name that have ended.
    ///
    /// # Errors
    ///
    /// [`AppendError`] says why it was refused. Nothing is stored then.
    pub async fn append(&self, node: Node) -> Result<u32, AppendError> {
        let places = self.append_all([node]).await?;
        places.first().copied().ok_or(AppendError::Ask(AskError::NotYet))
    }

    /// Appends at most 100 nodes in one commit: all of them or none. They are neighbours. Otherwise like
    /// [`append`](Self::append).
    ///
    /// # Errors
    ///
    /// [`AppendError`] says why they were refused. Nothing is stored then.
    pub async fn append_all(&self, nodes: impl IntoIterator<Item = Node>) -> Result<Vec<u32>, AppendError> {
        let stored = stored(nodes)?;
        self.send(&stored).await
    }

    /// Appends any number of nodes, in batches of 100, so that others come in between. Returns their places. Otherwise
    /// like [`append_all`](Self::append_all).
    ///
    /// # Errors
    ///
    /// [`AppendError`] for the first batch that is refused. Those before it are stored; a caller that has named its nodes
    /// can repeat all of them.
    pub async fn extend(&self, nodes: impl IntoIterator<Item = Node>) -> Result<Vec<u32>, AppendError> {
        let mut nodes = nodes.into_iter();
        let mut places = Vec::new();
        loop {
            let batch = stored(nodes.by_ref().take(APPEND_MAX))?;
            if batch.is_empty() {
                return Ok(places);
            }
            places.extend(self.send(&batch).await?);
        }
    }

    async fn send(&self, nodes: &[StoredNode]) -> Result<Vec<u32>, AppendError> {
        if nodes.is_empty() {
            return Ok(Vec::new());
        }
        let signals = |id| nodes.iter().map(|node| node.signal(id)).collect();
        self.deliver(signals).await
    }

    /// Sends signals to the stream, which is opened if it is not there.
    async fn deliver(
        &self,
        signals: impl Fn(ProcedureId) -> Result<Vec<SendSignal>, AppendError> + Sync,
    ) -> Result<Vec<u32>, AppendError> {
        let was_known = self.known().is_some();
        match self.deliver_once(&signals).await {
            // What was known has ended, and its result has gone: the name begins anew.
            Err(AppendError::Ask(AskError::Unknown(_))) if was_known => {
                self.know(None);
                self.deliver_once(&signals).await
            }
            delivered => delivered,
        }
    }

    async fn deliver_once(
        &self,
        signals: &(impl Fn(ProcedureId) -> Result<Vec<SendSignal>, AppendError> + Sync),
    ) -> Result<Vec<u32>, AppendError> {
        let signals = signals(self.open().await?)?;
        // The kind is known, so the row of the stream need not be read for each append.
        let admitted = self
            .executor
            .engine()
            .admit_signals_of(&Kind::from(StreamRoot::KIND), &signals);
        let sent = match admitted {
            Ok(()) => self.executor.ask(SendSignals(signals)).await,
            Err(error) => Err(error),
        };
        sent.map_err(|error| refused(&self.name, error))
    }

    /// Appends a node in the commit of a stage: exactly once, however often the stage runs. A stream that is not there yet
    /// is opened first, in commits of its own. In a node, use [`NodeContext::append`](super::NodeContext::append).
    ///
    /// The attempt fails if the stream refuses the node at the commit: it has finished, is full, or has another node of
    /// this name.
    ///
    /// ```
    /// # use procession::flow::{Node, NodeContext, Processed, Processor, Stream};
    /// # use procession::{Procedure, StageContext, StageError, Step};
    /// # use serde::{Deserialize, Serialize};
    /// # #[derive(Serialize, Deserialize)]
    /// # struct Mail { order: u32 }
    /// # impl Processor for Mail {
    /// #     const NAME: &'static str = "mail";
    /// #     type Env = ();
    /// #     type Output = ();
    /// #     async fn process(&self, _: &mut NodeContext<'_>, (): &()) -> Result<Processed<()>, StageError> {
    /// #         Ok(Processed::Done(()))
    /// #     }
    /// # }
    /// # #[derive(Serialize, Deserialize)]
    /// # struct Order { number: u32 }
    /// # impl Procedure for Order {
    /// #     const KIND: &'static str = "order";
    /// #     type Stage = ();
    /// #     type Env = Stream;
    /// #     type Output = ();
    /// #     fn first(&self) {}
    /// async fn execute(&mut self, (): (), cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
    ///     let mails: Stream = cx.env().clone();
    ///     mails.append_in(cx, Node::of(Mail { order: self.number })).await?;
    ///     Ok(Step::Done(()))
    /// }
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`AppendError`] if the stream cannot be opened, or cannot take such a node.
    pub async fn append_in(&self, cx: &mut CallContext<'_>, node: Node) -> Result<(), AppendError> {
        let open = async {
            // Whatever was known has gone.
            self.know(None);
            self.open().await
        };
        let signal = signal_in_stage(cx, &self.name, node, open).await?;
        cx.send(signal);
        Ok(())
    }

    /// Ends the stream once what was appended has run: from here on nothing can be appended. Its records and its name are
    /// kept for 30 days; then the name begins anew. Finishing again has no effect.
    ///
    /// # Errors
    ///
    /// [`AppendError`] if the stream cannot be opened, is full, or the engine did not answer.
    pub async fn finish(&self) -> Result<(), AppendError> {
        let last = |id| {
            let last = SendSignal::new(id, NODE, &()).map_err(AskError::from)?.last();
            Ok(vec![last])
        };
        match self.deliver(last).await {
            Ok(_) | Err(AppendError::Finished { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Returns how the stream stands.
    ///
    /// # Errors
    ///
    /// [`AskError`] if it cannot be read; [`AskError::NotYet`] if the engine does not answer within 2 s.
    pub async fn status(&self) -> Result<StreamStatus, AskError> {
        match self.reader().await? {
            Some(reader) => reader.status().await,
            None => Ok(StreamStatus::absent()),
        }
    }

    /// Returns the nodes that wait, from this place on, at most `limit`, and 1,000. Of a stream that was stopped or
    /// cancelled these are the nodes that did not run: they read CANCELLED.
    ///
    /// # Errors
    ///
    /// [`AskError`] if they cannot be read.
    pub async fn waiting(&self, from: u32, limit: usize) -> Result<NodePage, AskError> {
        match self.reader().await? {
            Some(reader) => reader.waiting(from, limit).await,
            None => Ok(NodePage {
                items: Vec::new(),
                next: None,
            }),
        }
    }

    /// Returns the records of nodes that have ended, newest first, at most `limit`, and 1,000. Pass the page's `next` as
    /// `before` for the one after it; `None` begins with the newest. Those among the newest 1,000 entries of the history
    /// are kept, and failed attempts are entries as well.
    ///
    /// # Errors
    ///
    /// [`AskError`] if they cannot be read.
    pub async fn records(&self, before: Option<u32>, limit: usize) -> Result<RecordPage, AskError> {
        match self.reader().await? {
            Some(reader) => reader.records(before, limit).await,
            None => Ok(RecordPage {
                items: Vec::new(),
                next: None,
            }),
        }
    }

    async fn reader(&self) -> Result<Option<StreamReader>, AskError> {
        let Some(id) = self.find().await? else { return Ok(None) };
        match StreamReader::live(&self.executor, id).await {
            Err(AskError::Unknown(_)) => {
                self.know(None);
                let found = self.find().await?;
                match found {
                    Some(id) => StreamReader::live(&self.executor, id).await.map(Some),
                    None => Ok(None),
                }
            }
            read => read.map(Some),
        }
    }

    /// Lets the node run that asks, with fresh attempts; one that cannot begin because of the node before it runs all the
    /// same, and so does one that is paused as poison. What follows goes on behind it.
    ///
    /// # Errors
    ///
    /// [`ResolveError::AsksNothing`] if no node asks.
    pub async fn retry(&self, by: OperatorRequest) -> Result<Operated, ResolveError> {
        match self.poison().await? {
            Some(id) => match self.executor.retry_now(id, by).await {
                Err(AskError::NotNow { .. }) => Err(self.asks_nothing()),
                retried => Ok(retried?),
            },
            None => self.decide::<()>(self.asking(&by).await?, Act::Retry, by).await,
        }
    }

    /// Returns the stream's procedure if the process died so often while its stage ran that it does not even ask. It need
    /// not have a node in hand then: the stage may be its first.
    async fn poison(&self) -> Result<Option<ProcedureId>, ResolveError> {
        let Some(reader) = self.reader().await? else {
            return Ok(None);
        };
        let status = self.executor.status(reader.id()).await?;
        Ok((status.wait == Some(WaitReason::Poison)).then(|| reader.id()))
    }

    /// Ends the node that asks as SUCCESS, with this output, without a call. The node behind it sees the output.
    ///
    /// # Errors
    ///
    /// [`ResolveError::AsksNothing`] if no node asks, also if it is paused as poison: [retry](Self::retry) it first; [`ResolveError::WrongOutput`] if the node is one of another processor,
    /// or the output has more than 60,000 bytes or the engine's `max_payload`.
    pub async fn succeed<P: Processor>(
        &self,
        output: &P::Output,
        by: OperatorRequest,
    ) -> Result<Operated, ResolveError> {
        let wrong = |processor: &str, why| ResolveError::WrongOutput {
            processor: processor.to_owned(),
            why,
        };
        let asking = self.asking(&by).await?;
        if let (_, Some(node)) = &asking
            && node.kind.as_str() != P::NAME
        {
            let why = format!("it is one of \"{}\"", P::NAME);
            return Err(wrong(node.kind.as_str(), why));
        }
        let size = codec::encode_user(output).map_err(AskError::from)?.len();
        let limit = OUTPUT_MAX.min(self.executor.engine().max_payload());
        if size > limit {
            return Err(wrong(P::NAME, format!("it has {size} bytes, at most {limit}")));
        }
        self.decide(asking, Act::Succeed(output), by).await
    }

    /// Ends the node that asks as ERROR, without a call. With [`OnError::Stop`](super::OnError::Stop) it ends the stream.
    ///
    /// # Errors
    ///
    /// [`ResolveError::AsksNothing`] if no node asks, also if it is paused as poison: [retry](Self::retry) it first.
    pub async fn fail(&self, by: OperatorRequest) -> Result<Operated, ResolveError> {
        let asking = self.asking(&by).await?;
        self.decide::<()>(asking, Act::Fail, by).await
    }

    /// Notifies the node at a place: one that has [parked](super::Processed::Park) itself, or will. A notification is kept
    /// until the node parks.
    ///
    /// # Errors
    ///
    /// [`ResolveError::Passed`] if the node has ended.
    pub async fn notify<T: Serialize>(
        &self,
        place: u32,
        payload: &T,
        by: OperatorRequest,
    ) -> Result<Operated, ResolveError> {
        let passed = || ResolveError::Passed {
            stream: self.name.clone(),
            place,
        };
        let Some(reader) = self.reader().await? else {
            return Err(passed());
        };
        let is_to_come = reader.is_to_come(place).await?;
        if !is_to_come && by.key.is_none() {
            return Err(passed());
        }
        let by = if is_to_come { by } else { by.dry_run() };
        let request = Operate::signal(reader.id(), notify_event(place), payload, by).map_err(AskError::from)?;
        match self.executor.operate(request).await {
            // A request with a key may repeat one that was carried out: then it has that one's number, dry run or not.
            Ok(operated) if !is_to_come && operated.number.is_none() => Err(passed()),
            Err(AskError::Finished { .. }) => Err(passed()),
            operated => Ok(operated?),
        }
    }

    /// Returns the node that asks. A request with a key may repeat one that was carried out, so there may be none.
    async fn asking(&self, by: &OperatorRequest) -> Result<(ProcedureId, Option<NodeStatus>), ResolveError> {
        let Some(reader) = self.reader().await? else {
            return Err(self.asks_nothing());
        };
        let in_hand = reader.status().await?.in_hand;
        let asks = in_hand.filter(|node| node.state == NodeState::Pending);
        if asks.is_none() && by.key.is_none() {
            return Err(self.asks_nothing());
        }
        Ok((reader.id(), asks))
    }

    fn asks_nothing(&self) -> ResolveError {
        ResolveError::AsksNothing {
            stream: self.name.clone(),
        }
    }

    /// Answers the question of the node at this place. Appends change the revision of a stream all the time, so an answer
    /// names its node instead. One with a key says the same whenever it is repeated, so it cannot.
    async fn decide<T: Serialize>(
        &self,
        (id, node): (ProcedureId, Option<NodeStatus>),
        act: Act<T>,
        by: OperatorRequest,
    ) -> Result<Operated, ResolveError> {
        let place = node.map(|node| node.place).filter(|_| by.key.is_none());
        let answer = Answer { place, act };
        match self.executor.decide(id, &answer, by).await {
            Err(AskError::NotNow {
                kind: NotNow::NoQuestion,
                ..
            }) => Err(self.asks_nothing()),
            decided => Ok(decided?),
        }
    }
}

/// Checks and encodes the nodes of one append.
fn stored(nodes: impl IntoIterator<Item = Node>) -> Result<Vec<StoredNode>, AppendError> {
    let mut nodes = nodes.into_iter();
    let first: Vec<Node> = nodes.by_ref().take(APPEND_MAX + 1).collect();
    if first.len() > APPEND_MAX {
        // The others are not read: there may be no end of them.
        let others = match nodes.size_hint() {
            (least, Some(most)) if least == most => most,
            _ => 0,
        };
        return Err(AppendError::TooMany {
            nodes: first.len().saturating_add(others),
            limit: APPEND_MAX,
        });
    }
    first.into_iter().map(StoredNode::new).collect()
}

/// Returns the stream that a submission has opened, or that was there: another release may have made it.
fn opened(submitted: Result<ProcedureId, SubmitError>) -> Result<ProcedureId, AppendError> {
    match submitted {
        Ok(id) | Err(SubmitError::KeyConflict { id, .. }) => Ok(id),
        Err(SubmitError::UnknownKind { kind }) if kind.as_str() == StreamRoot::KIND => Err(AppendError::NoStreams),
        Err(error) => Err(AppendError::Open(error)),
    }
}

/// Words what the engine says of a signal as what a stream says of a node.
fn refused(stream: &StreamName, error: AskError) -> AppendError {
    let stream = stream.clone();
    match error {
        AskError::Finished { .. } | AskError::Closed { .. } => AppendError::Finished { stream },
        AskError::NotAccepted { why, .. } => AppendError::Refused { why },
        AskError::SignalConflict { key, number, .. } => AppendError::Conflict {
            node: key,
            stream,
            place: number,
        },
        AskError::NotNow { kind: NotNow::Full, .. } => AppendError::Full {
            stream,
            waiting: WAITING_MAX,
        },
        error @ (AskError::Unknown(_)
        | AskError::TooLarge { .. }
        | AskError::BatchTooLarge { .. }
        | AskError::BadKey { .. }
        | AskError::NotNow { .. }
        | AskError::Revised { .. }
        | AskError::Busy { .. }
        | AskError::NotYet
        | AskError::Read(_)
        | AskError::JournalFailed(_)
        | AskError::Moved { .. }
        | AskError::Stopped
        | _) => AppendError::Ask(error),
    }
}

/// Returns the signal that appends a node, for a node of a set or a stream: it has no executor, and the way to its engine.
pub(super) async fn append_in_stage(
    cx: &CallContext<'_>,
    engine: &EngineLink,
    stream: &StreamName,
    node: Node,
) -> Result<SendSignal, AppendError> {
    let open = async {
        let submit = opening(stream)?;
        let supervisor = engine.supervisor().await?;
        opened(supervisor.send(submit).await.map_err(|_| AskError::Stopped)?)
    };
    signal_in_stage(cx, stream, node, open).await
}

async fn signal_in_stage(
    cx: &CallContext<'_>,
    stream: &StreamName,
    node: Node,
    open: impl Future<Output = Result<ProcedureId, AppendError>>,
) -> Result<SendSignal, AppendError> {
    let node = StoredNode::new(node)?;
    let there = cx.submitted(stream.key()).await.map_err(AskError::from)?;
    let id = match there {
        Some(id) => id,
        None => open.await?,
    };
    node.signal(id)
}

fn opening(stream: &StreamName) -> Result<Submit, AppendError> {
    let submit = Submit::new(&StreamRoot::new(stream)).map_err(|error| AppendError::Open(error.into()))?;
    Ok(submit.key(stream.key()).named(stream.to_string()))
}
