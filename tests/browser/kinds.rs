//! Kinds of procedures for every situation that a page shows.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use procession::flow::{BuildError, Node, NodeContext, Processed, Processor, Set};
use procession::limits::{LockNeed, LockPath};
use procession::procedure::{Accepts, Child, RetryPolicy};
use procession::schedule::{Jobs, Schedule};
use procession::{Builder, Children, Procedure, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

/// The job of the schedule.
pub(crate) const NIGHTLY: &str = "nightly";

/// What undos of [`Act::Stuck`] trip over was repaired, and what [`Act::Pay`] needs.
static REPAIRED: AtomicBool = AtomicBool::new(false);

/// Says whether undos of [`Act::Stuck`], and [`Act::Pay`], succeed from now on.
pub(crate) fn repair(is_repaired: bool) {
    REPAIRED.store(is_repaired, Ordering::SeqCst);
}

/// Returns whether it was repaired.
pub(crate) fn is_repaired() -> bool {
    REPAIRED.load(Ordering::SeqCst)
}

/// What a procedure of the journeys does.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Act {
    /// Ends well, with these words.
    End(String),
    /// Waits for this event, then ends.
    Wait(String),
    /// Sleeps so many milliseconds, then ends.
    Sleep(u64),
    /// Fails with these words, and is rolled back.
    Fail(String),
    /// Fails with these words, and is rolled back, until what it needs was repaired.
    Pay(String),
    /// Fails with these words, and tries again and again.
    Retry(String),
    /// Fails with these words once it has done something whose undo fails, and says so of them, until
    /// that was repaired.
    Stuck(String),
    /// Has so many children, each of which waits for the event `go`.
    Children(u32),
    /// Has so many children, at most two in progress at once; each waits for the event `go`.
    Narrow(u32),
    /// Has children `fetch`, `build` and `check` after it, and `publish` after both. Each waits for the event `go`.
    Graph,
    /// Asks this, and ends with the answer as JSON.
    Ask(String),
    /// The same children, of which `fetch` asks this.
    GraphAsks(String),
    /// Holds this lock, and waits for the event `release`.
    Hold(String),
    /// Holds the first lock, and after the event `go` wants the second, too.
    Both(String, String),
    /// Fills a list and logs that, looks for more and fails once, and waits for the event `go`.
    Fill(Vec<String>),
    /// Runs one stage again and again, beyond its point of no return, until it is parked.
    Circle(String),
}

/// A procedure of the kind `job`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Job(pub(crate) Act);

/// The same, of the kind `limited`: two run at once.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Limited(pub(crate) Act);

/// What the event `approved` carries.
#[derive(Debug, Deserialize)]
#[expect(dead_code, reason = "that it can be read is all that is asked of it")]
struct Approval {
    by: String,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) enum Stage {
    Prepare,
    Work,
    Finish,
}

impl Act {
    fn run<P>(&self, stage: Stage, cx: &StageContext<'_, P>, child: impl Fn(Self) -> P) -> Result<Step<P>, StageError>
    where
        P: Procedure<Stage = Stage, Output = String>,
    {
        let wait = |event: &str, then| Step::Wait {
            event: event.to_owned(),
            timeout: None,
            then,
        };
        match (stage, self) {
            (Stage::Prepare, Self::Both(..)) => Ok(wait("go", Stage::Work)),
            (Stage::Prepare, _) => Ok(Step::Next(Stage::Work)),
            (Stage::Work, Self::End(text)) => Ok(Step::Done(text.clone())),
            (Stage::Work, Self::Wait(event)) => Ok(wait(event, Stage::Finish)),
            (Stage::Work, Self::Hold(_)) => Ok(wait("release", Stage::Finish)),
            (Stage::Work, Self::Sleep(time)) => Ok(Step::Sleep {
                until: cx.now().after(Duration::from_millis(*time)),
                then: Stage::Finish,
            }),
            (Stage::Work, Self::Fail(why) | Self::Stuck(why)) => Err(StageError::fail(why)),
            (Stage::Work, Self::Pay(_)) if is_repaired() => Ok(Step::Done("paid".to_owned())),
            (Stage::Work, Self::Pay(why)) => Err(StageError::fail(why)),
            (Stage::Work, Self::Retry(why)) => Err(StageError::retry(why)),
            (Stage::Work, Self::Children(count)) => {
                let each: Vec<P> = (0..*count).map(|_| child(Self::Wait("go".to_owned()))).collect();
                Ok(Step::Spawn {
                    children: Children::of(&each)?,
                    then: Stage::Finish,
                })
            }
            (Stage::Work, Self::Narrow(count)) => {
                let each: Vec<P> = (0..*count).map(|_| child(Self::Wait("go".to_owned()))).collect();
                Ok(Step::Spawn {
                    children: Children::of(&each)?.width(2),
                    then: Stage::Finish,
                })
            }
            (Stage::Work, Self::Graph) => Ok(Step::Spawn {
                children: graph(&child(Self::Wait("go".to_owned())), &child(Self::Wait("go".to_owned())))?,
                then: Stage::Finish,
            }),
            (Stage::Work, Self::GraphAsks(question)) => Ok(Step::Spawn {
                children: graph(&child(Self::Ask(question.clone())), &child(Self::Wait("go".to_owned())))?,
                then: Stage::Finish,
            }),
            (Stage::Work, Self::Ask(question)) => Ok(Step::Ask {
                question: question.clone(),
                timeout: None,
                then: Stage::Finish,
            }),
            (Stage::Finish, Self::Ask(_)) => {
                let answer = cx.answer::<serde_json::Value>()?;
                Ok(Step::Done(
                    answer.map_or_else(|| "no answer".to_owned(), |answer| answer.to_string()),
                ))
            }
            (Stage::Work, Self::Fill(_)) if cx.attempt() == 1 => Err(StageError::retry("the shelf is empty")),
            (Stage::Work, Self::Fill(_)) => Ok(wait("go", Stage::Finish)),
            (Stage::Work, Self::Circle(_)) => Ok(Step::Next(Stage::Work)),
            (Stage::Work, Self::Both(..)) | (Stage::Finish, _) => Ok(Step::Done("done".to_owned())),
        }
    }

    /// Puts one more thing into a list, and says so.
    fn fill(&mut self, stage: Stage) {
        let Self::Fill(items) = self else { return };
        let item = if matches!(stage, Stage::Prepare) { "tea" } else { "salt" };
        tracing::info!(item, "put in");
        if !matches!(stage, Stage::Prepare) {
            tracing::warn!(shelf = 7, "looked for more on {}", "a shelf far away ".repeat(8));
        }
        items.push(item.to_owned());
    }

    fn undo(&self, stage: Stage) -> Result<(), StageError> {
        match (stage, self) {
            (Stage::Prepare, Self::Stuck(why)) if !REPAIRED.load(Ordering::SeqCst) => {
                Err(StageError::fail(format!("nothing to take back: {why}")))
            }
            _ => Ok(()),
        }
    }

    fn locks(&self, stage: Stage) -> Vec<LockNeed> {
        match (stage, self) {
            (_, Self::Hold(path)) => vec![LockNeed::exclusive(LockPath::parse(path))],
            (Stage::Prepare, Self::Both(first, _)) => vec![LockNeed::exclusive(LockPath::parse(first))],
            (_, Self::Both(first, second)) => [first, second]
                .map(|path| LockNeed::exclusive(LockPath::parse(path)))
                .into(),
            _ => Vec::new(),
        }
    }
}

fn graph<P: Procedure>(first: &P, each: &P) -> Result<Children, StageError> {
    Ok(Children::new()
        .child(Child::new(first)?.named("fetch"))
        .child(Child::new(each)?.named("build").after([0]))
        .child(Child::new(each)?.named("check").after([0]))
        .child(Child::new(each)?.named("publish").after([1, 2])))
}

macro_rules! kind {
    ($name:ident, $kind:literal) => {
        impl Procedure for $name {
            const KIND: &'static str = $kind;
            const HOLD_LOCKS: bool = true;
            const REPEAT_LIMIT: Option<u32> = Some(5);
            const KEEP_VALUES: usize = 1_000;
            type Stage = Stage;
            type Env = ();
            type Output = String;

            fn first(&self) -> Stage {
                Stage::Prepare
            }

            async fn execute(
                &mut self,
                stage: Stage,
                cx: &mut StageContext<'_, Self>,
            ) -> Result<Step<Self>, StageError> {
                self.0.fill(stage);
                self.0.run(stage, cx, $name)
            }

            async fn rollback(&mut self, stage: Stage, _: &mut StageContext<'_, Self>) -> Result<(), StageError> {
                self.0.undo(stage)
            }

            fn rollback_supported(&self, stage: &Stage) -> bool {
                !matches!((stage, &self.0), (Stage::Work, Act::Circle(_)))
            }

            fn locks(&self, stage: &Stage) -> Vec<LockNeed> {
                self.0.locks(*stage)
            }

            fn accepts((): &()) -> Accepts {
                Accepts::anything().event::<Approval>("approved")
            }

            fn retry() -> RetryPolicy {
                RetryPolicy::default().attempts(1_000)
            }

            fn retry_undo() -> RetryPolicy {
                RetryPolicy::default().attempts(2)
            }
        }
    };
}

kind!(Job, "job");
kind!(Limited, "limited");

/// A node of an album. The one called `large` finds no room on the disk until that was repaired.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Draw;

impl Processor for Draw {
    const NAME: &'static str = "draw";
    type Env = ();
    type Output = u32;

    async fn process(&self, cx: &mut NodeContext<'_>, (): &()) -> Result<Processed<u32>, StageError> {
        if cx.name() == "large" && !REPAIRED.load(Ordering::SeqCst) {
            return Err(StageError::fail("the disk is full"));
        }
        if cx.name().starts_with("inv") {
            cx.note(&"sent")?;
        }
        Ok(Processed::Done(1))
    }
}

/// An album of two sizes, `fetch` before both and `publish` behind them; with more of them, so many others behind
/// `large`.
pub(crate) fn album(more: u32) -> Result<Set, BuildError> {
    let mut set = Set::builder("album 7");
    let fetch = set.add(Node::new("fetch", Draw));
    let small = set.add(Node::new("small", Draw).after([fetch]));
    let large = set.add(Node::new("large", Draw).after([fetch]));
    set.add(Node::new("publish", Draw).after([small, large]));
    for number in 0..more {
        set.add(Node::new(format!("more {number}"), Draw).after([large]));
    }
    set.build()
}

/// Nodes of a stream: one that ends, one that fails until the disk has room, and so many more.
pub(crate) fn invoices(more: u32) -> impl Iterator<Item = Node> {
    let first = [Node::new("first", Draw), Node::new("large", Draw)];
    first
        .into_iter()
        .chain((0..more).map(|number| Node::new(format!("inv {number}"), Draw)))
}

/// Registers the kinds.
pub(crate) fn register(builder: Builder) -> Builder {
    builder
        .register::<Job>(())
        .register::<Limited>(())
        .processor::<Draw>(())
        .streams()
        .limit("limited", 2)
        .register::<Schedule>(Jobs::new().job(NIGHTLY, |_| Ok(Job(Act::Wait("go".to_owned())))))
        .seed(1)
}
