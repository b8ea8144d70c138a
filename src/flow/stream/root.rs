//! The root of a stream: a procedure that takes one node after the other from its mailbox. Each run of a node is one
//! stage, whose commit notes the node's record, consumes its signal, and takes the next one. So two nodes of a stream
//! never run at once, and a node that waits is a row on disk.

use std::time::Duration;

use procession_actors::{Accepts, CallContext, CodecError, Procedure, SignalOffer, StageContext, StageError, Step};
use procession_kernel::{Blob, HistoryDetail, Hold, LimitKey, RetryPolicy};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use super::answer::{Act, Answer};
use super::name::StreamName;
use super::node::{InHand, NODE, StoredNode, is_notify_event, notify_event};
use super::processors::{Ran, StreamEnv};
use super::record::{KEPT, OUTPUT_MAX, StoredRecord, StreamRecord, cut};
use crate::flow::attempt::{self, Attempted, Failure};
use crate::flow::context::{Called, Parents};
use crate::flow::node::OnError;
use crate::flow::state::NodeState;
use crate::flow::task::Woken;

/// Nodes that may wait for one stream.
pub(super) const WAITING_MAX: usize = 100_000;
/// Nodes that have ended and whose names are remembered, the newest.
const NAMES_KEPT: usize = 100;
/// How long a stream that has ended keeps its name and its records.
const KEEP: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// The root of a stream. [`Builder::streams`](crate::Builder::streams) registers it.
#[derive(Serialize, Deserialize)]
pub struct StreamRoot {
    #[serde(rename = "s")]
    scene: String,
    #[serde(rename = "g")]
    group: String,
    /// The newest node that has ended has failed. As long as nothing fails, asks or parks, the value does not change, and
    /// a node costs no write of it.
    #[serde(rename = "l", default, skip_serializing_if = "std::ops::Not::not")]
    lost: bool,
    #[serde(rename = "h", default, skip_serializing_if = "Option::is_none")]
    in_hand: Option<InHand>,
    /// Stages that were committed and have ended no node: questions and waits.
    #[serde(rename = "x", default, skip_serializing_if = "is_zero")]
    other_stages: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// The stages of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StreamStage {
    /// Wait for the first node.
    Open,
    /// Run the node that has arrived, or end.
    Take,
    /// Run the node again that had parked itself.
    Notified,
    /// Do what a person has decided about the node that asked.
    Decided,
}

/// Why a node runs.
struct Turn {
    hand: InHand,
    /// A person lets it run, whatever became of the node before it.
    decided: bool,
}

impl StreamRoot {
    pub(super) fn new(name: &StreamName) -> Self {
        Self {
            scene: name.scene().to_owned(),
            group: name.group().to_owned(),
            lost: false,
            in_hand: None,
            other_stages: 0,
        }
    }

    pub(super) fn name(&self) -> Option<StreamName> {
        StreamName::new(self.scene.as_str(), self.group.as_str()).ok()
    }

    pub(super) const fn in_hand(&self) -> Option<&InHand> {
        self.in_hand.as_ref()
    }

    pub(super) const fn other_stages(&self) -> u32 {
        self.other_stages
    }

    fn take_next() -> Step<Self> {
        Step::Wait {
            event: NODE.to_owned(),
            timeout: None,
            then: StreamStage::Take,
        }
    }

    /// Runs the node that has arrived.
    async fn take(&mut self, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        let Some(signal) = cx.signal() else {
            // An operator has ended the wait. Nothing has arrived.
            self.other_stages += 1;
            return Ok(Self::take_next());
        };
        if signal.last {
            return Ok(Step::Done(()));
        }
        let place = signal.number;
        let node: StoredNode = match signal.payload() {
            Ok(node) => node,
            Err(why) => return self.unreadable(cx, &why),
        };
        let hand = InHand {
            place,
            node,
            woken: None,
            question: None,
        };
        self.run(cx, Turn { hand, decided: false }).await
    }

    /// Notes a payload that is no node, and goes on: only a broadcast to all that wait passes the rule for signals.
    fn unreadable(&mut self, cx: &mut StageContext<'_, Self>, why: &CodecError) -> Result<Step<Self>, StageError> {
        cx.note(&cut(format!("no node: {why}")))?;
        self.other_stages += 1;
        Ok(Self::take_next())
    }

    /// Runs a node, unless the node before it or a doubt keeps it from running.
    async fn run(&mut self, cx: &mut StageContext<'_, Self>, turn: Turn) -> Result<Step<Self>, StageError> {
        let Turn { hand, decided } = turn;
        if self.lost && !hand.node.all_finished && !decided && hand.woken.is_none() {
            let by = blamed(cx).await?;
            return self.ask(cx, hand, format!("cannot begin: by {by}"), None);
        }
        let env = cx.env();
        let kind = hand.node.kind.as_str();
        let Some(processor) = env.processor(kind) else {
            let question = format!("processor \"{kind}\" is not registered: register it, then retry");
            return self.ask(cx, hand, question, None);
        };
        if let Some(question) = processor.doubt(cx.repeated()) {
            return self.ask(cx, hand, question, None);
        }
        let called = Called {
            name: &hand.node.name,
            place: hand.place,
            visit: hand.place,
            woken: hand.woken.as_ref(),
            engine: env.engine(),
            parents: Parents::NewestRecord,
            #[cfg(feature = "testkit")]
            injections: env.injections.as_ref(),
        };
        let attempted = processor.call(cx, &hand.node, called).await;
        let Attempted {
            result,
            note,
            is_put_off,
        } = attempted;
        if is_put_off {
            return Ok(Step::Yield);
        }
        match result {
            Ok(Ran::Done(output)) => self.succeeded(cx, &hand, output, note),
            Ok(Ran::Parked(timeout)) => self.park(cx, hand, timeout, note),
            Err(failure) => {
                let policy = processor.policy(&hand.node);
                self.failed(cx, hand, policy, failure, note)
            }
        }
    }

    fn failed(
        &mut self,
        cx: &mut StageContext<'_, Self>,
        hand: InHand,
        policy: RetryPolicy,
        failure: Failure,
        note: Option<Blob>,
    ) -> Result<Step<Self>, StageError> {
        let text = match attempt::tried_again(cx, policy, failure) {
            Ok(text) => text,
            Err(again) => {
                note_state(cx, &hand, NodeState::Ready, note)?;
                return Err(again);
            }
        };
        match hand.node.on_error {
            OnError::Pend => self.ask(cx, hand, text, note),
            OnError::Continue => {
                self.lose(cx, &hand, text, cx.attempt(), note)?;
                Ok(Self::take_next())
            }
            OnError::Stop => {
                self.lose(cx, &hand, text.clone(), cx.attempt(), note)?;
                Ok(Step::Fail(text))
            }
        }
    }

    /// Leaves the node to a person, with what ended its wait.
    fn ask(
        &mut self,
        cx: &mut StageContext<'_, Self>,
        hand: InHand,
        question: String,
        note: Option<Blob>,
    ) -> Result<Step<Self>, StageError> {
        note_state(cx, &hand, NodeState::Pending, note)?;
        self.other_stages += 1;
        self.in_hand = Some(InHand {
            question: Some(cut(question.clone())),
            ..hand
        });
        Ok(Step::Ask {
            question,
            timeout: None,
            then: StreamStage::Decided,
        })
    }

    fn park(
        &mut self,
        cx: &mut StageContext<'_, Self>,
        hand: InHand,
        timeout: Option<Duration>,
        note: Option<Blob>,
    ) -> Result<Step<Self>, StageError> {
        // Without one, a node whose commit breaks a bound of the engine would have no record.
        let noted = record_of(&hand, NodeState::Running, cx.attempt(), note);
        cx.note(&noted)?;
        self.other_stages += 1;
        let event = notify_event(hand.place);
        self.in_hand = Some(InHand {
            woken: None,
            question: None,
            ..hand
        });
        Ok(Step::Wait {
            event,
            timeout,
            then: StreamStage::Notified,
        })
    }

    fn succeeded(
        &mut self,
        cx: &mut StageContext<'_, Self>,
        hand: &InHand,
        output: Blob,
        note: Option<Blob>,
    ) -> Result<Step<Self>, StageError> {
        let record = record_of(hand, NodeState::Success, cx.attempt(), note);
        self.end_with(
            cx,
            StoredRecord {
                output: Some(output),
                ..record
            },
        )?;
        Ok(Self::take_next())
    }

    /// Ends the node as ERROR.
    fn lose(
        &mut self,
        cx: &mut StageContext<'_, Self>,
        hand: &InHand,
        cause: String,
        attempts: u32,
        note: Option<Blob>,
    ) -> Result<(), StageError> {
        let record = record_of(hand, NodeState::Error, attempts, note);
        self.end_with(
            cx,
            StoredRecord {
                cause: Some(cut(cause)),
                ..record
            },
        )
    }

    fn end_with(&mut self, cx: &mut StageContext<'_, Self>, record: StoredRecord) -> Result<(), StageError> {
        cx.note(&record)?;
        self.lost = record.state != NodeState::Success;
        self.in_hand = None;
        Ok(())
    }

    /// Does what a person has decided about the node that asks.
    async fn decide(&mut self, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        let Some(hand) = self.in_hand.clone() else {
            self.other_stages += 1;
            return Ok(Self::take_next());
        };
        let question = hand.question.clone().unwrap_or_default();
        let answer = match self.answer(cx, &hand) {
            Ok(answer) => answer,
            Err(why) => return self.ask_again(cx, hand, &why, question),
        };
        match answer {
            // It was meant for a node before this one.
            Answer { place: Some(place), .. } if place != hand.place => {
                let why = format!("the answer was for place {place}");
                self.ask_again(cx, hand, &why, question)
            }
            Answer { act: Act::Retry, .. } => self.run(cx, Turn { hand, decided: true }).await,
            Answer { act: Act::Fail, .. } => {
                self.lose(cx, &hand, question.clone(), 0, None)?;
                Ok(match hand.node.on_error {
                    OnError::Stop => Step::Fail(question),
                    OnError::Pend | OnError::Continue => Self::take_next(),
                })
            }
            Answer {
                act: Act::Succeed(output),
                ..
            } => {
                let record = record_of(&hand, NodeState::Success, 0, None);
                let record = StoredRecord {
                    output: Some(output),
                    ..record
                };
                self.end_with(cx, record)?;
                Ok(Self::take_next())
            }
        }
    }

    fn ask_again(
        &mut self,
        cx: &mut StageContext<'_, Self>,
        hand: InHand,
        why: &str,
        question: String,
    ) -> Result<Step<Self>, StageError> {
        let asked = format!("{why}; {question}");
        let step = self.ask(cx, hand, asked, None)?;
        // What is asked stays what it was.
        if let Some(hand) = &mut self.in_hand {
            hand.question = Some(question);
        }
        Ok(step)
    }

    /// Reads the answer. One that an operator has let go on without any is retried.
    fn answer(&self, cx: &StageContext<'_, Self>, hand: &InHand) -> Result<Answer<Blob>, String> {
        let retry = Answer {
            place: None,
            act: Act::Retry,
        };
        let kind = hand.node.kind.as_str();
        let answer = match cx.env().processor(kind) {
            Some(processor) => processor.answer(cx)?,
            None => untyped(cx, kind)?,
        };
        let answer = answer.unwrap_or(retry);
        let limit = OUTPUT_MAX.min(cx.max_payload());
        if let Act::Succeed(output) = &answer.act
            && output.len() > limit
        {
            let size = output.len();
            return Err(format!("the output given has {size} bytes, over the limit of {limit}"));
        }
        Ok(answer)
    }
}

/// Reads the answer about a node whose processor is not registered: its output cannot be checked.
fn untyped(cx: &CallContext<'_>, kind: &str) -> Result<Option<Answer<Blob>>, String> {
    let answer = cx.answer::<Answer<IgnoredAny>>().map_err(|why| why.to_string())?;
    let Some(answer) = answer else { return Ok(None) };
    let act = match answer.act {
        Act::Retry => Act::Retry,
        Act::Fail => Act::Fail,
        Act::Succeed(_) => {
            return Err(format!(
                "an output of \"{kind}\" cannot be checked: register the processor"
            ));
        }
    };
    Ok(Some(Answer {
        place: answer.place,
        act,
    }))
}

/// Names the node that has failed before this one.
async fn blamed(cx: &CallContext<'_>) -> Result<String, StageError> {
    let record = StreamRecord::newest(cx).await?;
    Ok(match record {
        Some(record) if !record.name.is_empty() => record.name,
        Some(record) => format!("the node at place {}", record.place),
        None => "the node before it".to_owned(),
    })
}

/// Returns what is noted of an attempt. Of one that has failed, a note that has no room is not kept: a record over the
/// engine's bound would end the stream.
fn record_of(hand: &InHand, state: NodeState, attempts: u32, note: Option<Blob>) -> StoredRecord {
    StoredRecord {
        place: hand.place,
        name: hand.node.name.clone(),
        kind: hand.node.kind.clone(),
        state,
        attempts,
        output: None,
        cause: None,
        note: note.filter(|note| note.len() <= OUTPUT_MAX),
    }
}

/// Keeps what the code of a node has noted that has not ended.
fn note_state(cx: &mut CallContext<'_>, hand: &InHand, state: NodeState, note: Option<Blob>) -> Result<(), StageError> {
    let noted = record_of(hand, state, cx.attempt(), note);
    if noted.note.is_some() {
        cx.note(&noted)?;
    }
    Ok(())
}

impl Procedure for StreamRoot {
    const KIND: &'static str = "procession.stream";
    const ROLLBACK: bool = false;
    const HOLD: Hold = Hold::WhileActive;
    const SIGNALS: Option<usize> = Some(WAITING_MAX);
    const SIGNAL_KEYS: usize = NAMES_KEPT;
    const HISTORY: HistoryDetail = HistoryDetail::Newest(KEPT);
    type Stage = StreamStage;
    type Env = StreamEnv;
    type Output = ();

    fn first(&self) -> StreamStage {
        StreamStage::Open
    }

    async fn execute(&mut self, stage: StreamStage, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        match stage {
            StreamStage::Open => Ok(Self::take_next()),
            StreamStage::Take => self.take(cx).await,
            StreamStage::Notified => {
                let Some(mut hand) = self.in_hand.clone() else {
                    return Ok(Self::take_next());
                };
                hand.woken = Woken::of(cx);
                self.run(cx, Turn { hand, decided: true }).await
            }
            StreamStage::Decided => self.decide(cx).await,
        }
    }

    fn limit(&self) -> Option<LimitKey> {
        Some(LimitKey::from(format!("stream/{}", self.scene)))
    }

    /// The stage counts the attempts itself, to ask a person after the last one.
    fn retry() -> RetryPolicy {
        RetryPolicy::default().attempts(u32::MAX)
    }

    fn keep_after_end() -> Option<Duration> {
        Some(KEEP)
    }

    fn accepts(env: &StreamEnv) -> Accepts {
        let env = env.clone();
        Accepts::by(move |signal| accept(&env, signal))
    }
}

/// Says of a signal what the stage could not: it must run whatever has arrived.
fn accept(env: &StreamEnv, signal: &SignalOffer<'_>) -> Result<(), String> {
    let name = signal.name();
    if is_notify_event(name) {
        let (size, limit) = (signal.size(), env.notification_max());
        return match size <= limit {
            true => Ok(()),
            false => Err(format!("a notification of {size} bytes, at most {limit}")),
        };
    }
    if name != NODE {
        return Err(format!(
            "a stream takes nodes, and notifications such as \"{}\"",
            notify_event(1)
        ));
    }
    if signal.is_last() {
        return Ok(());
    }
    let node: StoredNode = signal.payload().map_err(|error| error.to_string())?;
    let kind = node.kind.as_str();
    if env.processor(kind).is_none() {
        return Err(format!(
            "no processor \"{kind}\" is registered; register it with the builder"
        ));
    }
    let (bytes, limit) = (signal.size(), env.data_max());
    if bytes > limit {
        let node = &node.name;
        return Err(format!("node \"{node}\": its data is {bytes} bytes, at most {limit}"));
    }
    Ok(())
}
