//! A small journal: one engine on one thread, whose clock stands still, so that every
//! run leaves the same.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use procession::flow::{Node, NodeContext, OnError, Processed, Processor, Set, When};
use procession::limits::{LockNeed, LockPath};
use procession::messages::SendSignal;
use procession::procedure::{Child, RetryPolicy, Timestamp};
use procession::status::Status;
use procession::{Children, Executor, Procedure, ProcedureId, StageContext, StageError, Step};
use procession_actors::testkit::TestClock;
use serde::{Deserialize, Serialize};

use crate::Outcome;

/// Some day of the year 2026.
pub(crate) const BEGIN: Timestamp = Timestamp(1_790_000_000_000_000);
const HOUR: Duration = Duration::from_secs(3_600);

/// What a job does in its second stage. Its first one takes its lock.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Does {
    Ends,
    Fails(String),
    Retries(String),
    Sleeps,
    Waits(String),
    Asks(String),
    Locks(String),
    Spawns(Vec<Does>),
    /// Has these children, each after the one before it.
    SpawnsInTurn(Vec<Does>),
}

/// A job, with the lock that it holds all its life.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Job {
    pub(crate) lock: Option<String>,
    pub(crate) does: Does,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Stage {
    Begin,
    Work,
    End,
}

impl Procedure for Job {
    const KIND: &'static str = "job";
    const HOLD_LOCKS: bool = true;
    type Stage = Stage;
    type Env = ();
    type Output = String;

    fn first(&self) -> Stage {
        Stage::Begin
    }

    fn retry() -> RetryPolicy {
        RetryPolicy::default().attempts(3)
    }

    fn locks(&self, stage: &Stage) -> Vec<LockNeed> {
        let mut locks: Vec<LockNeed> = self
            .lock
            .iter()
            .map(|path| LockNeed::exclusive(LockPath::parse(path)))
            .collect();
        if let (Stage::End, Does::Locks(path)) = (stage, &self.does) {
            locks.push(LockNeed::exclusive(LockPath::parse(path)));
        }
        locks
    }

    async fn execute(&mut self, stage: Stage, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        match (stage, self.does.clone()) {
            (Stage::Begin, _) => Ok(Step::Next(Stage::Work)),
            (Stage::End, _) | (Stage::Work, Does::Ends) => Ok(Step::Done("done".to_owned())),
            (Stage::Work, Does::Fails(why)) => Err(StageError::fail(why)),
            (Stage::Work, Does::Retries(why)) => Err(StageError::retry(why)),
            (Stage::Work, Does::Sleeps) => Ok(Step::Sleep {
                until: cx.now().after(HOUR),
                then: Stage::End,
            }),
            (Stage::Work, Does::Waits(event)) => Ok(Step::Wait {
                event,
                timeout: None,
                then: Stage::End,
            }),
            (Stage::Work, Does::Asks(question)) => Ok(Step::Ask {
                question,
                timeout: None,
                then: Stage::End,
            }),
            // By way of an event, so that both of a pair hold theirs before they want the other's.
            (Stage::Work, Does::Locks(_)) => Ok(Step::Wait {
                event: "go".to_owned(),
                timeout: None,
                then: Stage::End,
            }),
            (Stage::Work, Does::SpawnsInTurn(below)) => {
                let mut children = Children::new();
                for (place, does) in (0..).zip(below) {
                    let child = Child::new(&Self { lock: None, does })?;
                    let before = (place > 0).then(|| place - 1);
                    children = children.child(if before.is_some() { child.after(before) } else { child });
                }
                Ok(Step::Spawn {
                    children,
                    then: Stage::End,
                })
            }
            (Stage::Work, Does::Spawns(below)) => {
                let jobs: Vec<Self> = below.into_iter().map(|does| Self { lock: None, does }).collect();
                Ok(Step::Spawn {
                    children: Children::of(&jobs).map_err(StageError::fail)?,
                    then: Stage::End,
                })
            }
        }
    }
}

/// A node of a set, which fails with these words if it has some.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Draw(Option<String>);

impl Processor for Draw {
    const NAME: &'static str = "draw";
    type Env = ();
    type Output = u32;

    async fn process(&self, _: &mut NodeContext<'_>, (): &()) -> Result<Processed<u32>, StageError> {
        match &self.0 {
            Some(why) => Err(StageError::fail(why)),
            None => Ok(Processed::Done(1)),
        }
    }
}

/// An engine that may be asked, and left.
pub(crate) struct Running {
    pub(crate) executor: Executor,
}

/// An export once read 1,000 rows of a list together.
const MEMBERS: usize = 1_000;

impl Running {
    pub(crate) async fn start(place: &Path) -> Outcome<Self> {
        let clock = TestClock::new();
        clock.advance_to(BEGIN);
        Self::start_on(place, clock).await
    }

    pub(crate) async fn start_on(place: &Path, clock: TestClock) -> Outcome<Self> {
        let builder = Executor::builder(place).inline().seed(7).clock(Arc::new(clock));
        let executor = builder
            .limit("job", 4)
            .register::<Job>(())
            .processor::<Draw>(())
            .streams()
            .start()
            .await?;
        Ok(Self { executor })
    }

    /// Submits a job, and waits until it rests or has ended.
    pub(crate) async fn submit(&self, lock: Option<&str>, does: Does, key: &str) -> Outcome<ProcedureId> {
        let lock = lock.map(str::to_owned);
        let handle = self.executor.submit(Job { lock, does }).key(key).await?;
        rest(&self.executor, handle.id()).await?;
        Ok(handle.id())
    }

    /// Leaves the journal as it is.
    pub(crate) async fn leave(self) -> Outcome {
        self.executor.drain(Duration::ZERO).await?;
        Ok(())
    }
}

/// Waits until nothing of a family moves by itself.
pub(crate) async fn rest(executor: &Executor, id: ProcedureId) -> Outcome {
    let moves = |status: &Status| status.ended.is_none() && (status.wait.is_none() || status.going);
    while executor.tree(id).await?.iter().any(moves) {
        tokio::task::yield_now().await;
    }
    Ok(())
}

/// One of each: ended, rolled back, asleep with a lock, behind that lock, with children,
/// at an event, backing off, and behind the kind's limit.
pub(crate) fn of_each(place: &Path) -> Outcome {
    actix_rt::System::new().block_on(async {
        let running = Running::start(place).await?;
        running.submit(None, Does::Ends, "req-1").await?;
        running
            .submit(None, Does::Fails("rpc timeout rs-17".into()), "req-2")
            .await?;
        running.submit(Some("default/users"), Does::Sleeps, "req-3").await?;
        running.submit(Some("default/users"), Does::Ends, "req-4").await?;
        let below = vec![
            Does::Ends,
            Does::Waits("approval".into()),
            Does::Spawns(vec![Does::Sleeps]),
        ];
        running.submit(None, Does::Spawns(below), "req-5").await?;
        running
            .submit(None, Does::Retries("no\u{1b}[2J route".into()), "req-6")
            .await?;
        running.submit(None, Does::Ends, "req-7").await?;
        running.leave().await
    })
}

/// Three families behind one that has more members than an export reads together.
pub(crate) fn of_two_pages(place: &Path) -> Outcome {
    actix_rt::System::new().block_on(async {
        let running = Running::start(place).await?;
        for key in ["req-1", "req-2", "req-3"] {
            running.submit(None, Does::Ends, key).await?;
        }
        let below = vec![Does::Ends; MEMBERS];
        running.submit(None, Does::Spawns(below), "req-4").await?;
        running.leave().await
    })
}

/// A family whose first child asks, with two more behind it at gates; and a procedure that takes no further
/// signals of a name.
pub(crate) fn that_asks(place: &Path) -> Outcome {
    actix_rt::System::new().block_on(async {
        let running = Running::start(place).await?;
        let below = vec![Does::Asks("drop t?".into()), Does::Ends, Does::Ends];
        running.submit(None, Does::SpawnsInTurn(below), "req-1").await?;
        let waits = running.submit(None, Does::Waits("approval".into()), "req-2").await?;
        let notes = [("note", 1), ("other", 2), ("note", 3)];
        for (name, payload) in notes {
            let signal = SendSignal::new(waits, name, &payload)?;
            let signal = if payload == 3 { signal.last() } else { signal };
            running.executor.signal_all(vec![signal]).await?;
        }
        running.leave().await
    })
}

/// An album whose large picture finds no room, a stream that waits for a person, an album that has ended with a failure that its nodes go on without, and a
/// family whose children run after one another.
pub(crate) fn of_sets(place: &Path) -> Outcome {
    actix_rt::System::new().block_on(async {
        let running = Running::start(place).await?;
        let mut set = Set::builder("album \"7\"");
        let fetch = set.add(Node::new("fetch", Draw(None)));
        let small = set.add(Node::new("small", Draw(None)).after([fetch]));
        let large = set.add(Node::new("large", Draw(Some("the disk is full".into()))).after([fetch]));
        set.add(Node::new("publish \"now\"", Draw(None)).after([small, large]));
        set.add(
            Node::new("thumb", Draw(None))
                .after([small, large])
                .when(When::AtLeast(1)),
        );
        let album = running.executor.start_set(set.build()?).key("album-7").await?;
        rest(&running.executor, album.id()).await?;
        let mut set = Set::builder("album 8");
        let fetch = set.add(Node::new("fetch", Draw(Some("no route".into()))).on_error(OnError::Continue));
        set.add(Node::new("report", Draw(None)).after([fetch]).when(When::AllFinished));
        let other = running.executor.start_set(set.build()?).await?;
        rest(&running.executor, other.id()).await?;
        let below = vec![Does::Asks("drop t?".into()), Does::Ends, Does::Ends];
        running.submit(None, Does::SpawnsInTurn(below), "req-1").await?;
        let stream = running.executor.stream("invoices", "customer-17")?;
        let nodes = [
            Node::new("inv 1", Draw(None)),
            Node::new("inv \"2\"", Draw(Some("no route".into()))),
            Node::of(Draw(None)),
        ];
        stream.append_all(nodes).await?;
        rest(&running.executor, stream.open().await?).await?;
        running.leave().await
    })
}

/// A set of more nodes than are drawn one by one.
pub(crate) fn of_many(place: &Path) -> Outcome {
    actix_rt::System::new().block_on(async {
        let running = Running::start(place).await?;
        let mut set = Set::builder("many");
        for number in 0..301 {
            set.add(Node::new(format!("n{number}"), Draw(None)));
        }
        let many = running.executor.start_set(set.build()?).await?;
        rest(&running.executor, many.id()).await?;
        running.leave().await
    })
}

/// Two that hold a lock each and want the other's.
pub(crate) fn in_a_circle(place: &Path) -> Outcome {
    actix_rt::System::new().block_on(async {
        let running = Running::start(place).await?;
        let one = running.submit(Some("a"), Does::Locks("b".into()), "one").await?;
        let other = running.submit(Some("b"), Does::Locks("a".into()), "other").await?;
        for id in [one, other] {
            running.executor.signal(id, "go", &()).await?;
            rest(&running.executor, id).await?;
        }
        running.leave().await
    })
}
