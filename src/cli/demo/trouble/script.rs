//! A procedure that does what it is told: its stages in a row, each with its name. The library has one type serve many
//! kinds, and so all kinds of this shop are scripts.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::demo::{console, pace};
use procession::limits::{LockNeed, LockPath};
use procession::procedure::Kind;
use procession::{Children, Procedure, StageContext, StageError, Step};

/// What a life of the shop says when it has begun what it will not survive.
pub(super) const BEGUN: &str = "the label is being printed";
/// How long a stage is expected to take.
const EXPECTED: Duration = Duration::from_secs(2);
/// How often a stage that asks for news asks at short intervals before it asks once a minute.
pub(super) const QUICK_LOOKS: u32 = 6;

/// What a stage does.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Act {
    /// Works for so many milliseconds.
    Work(u64),
    /// Takes this lock, which it keeps to the end.
    Lock(String),
    /// Waits for an event.
    Wait(String),
    /// Asks a person.
    Ask(String),
    /// Sleeps for so many seconds.
    Sleep(u64),
    /// Looks for news again and again; so often it has looked.
    Look(u32),
    /// Fails, and is tried again.
    Retry(String),
    /// Fails for good: all stages are undone.
    Fail(String),
    /// Works, and cannot be undone, for this reason.
    Stick(String),
    /// Never comes back.
    Hang,
    /// Kills the process, as far as an earlier life of the shop is concerned.
    Crash,
    /// Carries a long text along.
    Carry(String),
    /// Has children, four at a time, and waits for them.
    Have(Vec<Script>),
}

/// Which life of the shop runs a stage: what kills the earlier ones does not harm the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Life {
    /// One that is killed.
    Earlier,
    /// The one that is watched.
    Now,
}

/// A procedure of this kind, with these stages.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Script {
    kind: String,
    stages: Vec<(String, Act)>,
}

impl Script {
    pub(super) fn of(kind: &str) -> Self {
        Self {
            kind: kind.to_owned(),
            stages: Vec::new(),
        }
    }

    /// Adds a stage.
    pub(super) fn then(mut self, name: &str, act: Act) -> Self {
        self.stages.push((name.to_owned(), act));
        self
    }

    fn place(&self, name: &str) -> usize {
        let mut stages = self.stages.iter();
        stages.position(|(stage, _)| stage == name).unwrap_or(self.stages.len())
    }

    /// Returns the name of a stage; behind the last there is one more.
    fn name(&self, place: usize) -> String {
        let found = self.stages.get(place);
        found.map_or_else(|| "End".to_owned(), |(name, _)| name.clone())
    }

    /// Looks for news that never comes: the value counts how often, so that it does not hurry for ever.
    fn look(&mut self, name: String, looked: u32, cx: &StageContext<'_, Self>) -> Step<Self> {
        let place = self.place(&name);
        if let Some((_, act)) = self.stages.get_mut(place) {
            *act = Act::Look(looked.saturating_add(1));
        }
        let pause = if looked < QUICK_LOOKS {
            Duration::from_millis(50)
        } else {
            Duration::from_secs(60)
        };
        Step::Sleep {
            until: cx.now().after(pause),
            then: name,
        }
    }
}

impl Procedure for Script {
    const KIND: &'static str = "script";
    const HOLD_LOCKS: bool = true;
    /// The stage's name: the engine shows it.
    type Stage = String;
    type Env = Life;
    type Output = String;

    fn kind(&self) -> Kind {
        Kind::from(self.kind.clone())
    }

    fn first(&self) -> String {
        self.name(0)
    }

    /// All locks up to this stage, since it keeps them.
    fn locks(&self, name: &String) -> Vec<LockNeed> {
        let begun = self.stages.iter().take(self.place(name) + 1);
        let paths = begun.filter_map(|(_, act)| if let Act::Lock(path) = act { Some(path) } else { None });
        paths.map(|path| LockNeed::exclusive(LockPath::parse(path))).collect()
    }

    fn expected(&self, name: &String) -> Option<Duration> {
        let (_, act) = self.stages.get(self.place(name))?;
        matches!(act, Act::Hang).then_some(EXPECTED)
    }

    async fn execute(&mut self, name: String, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        let place = self.place(&name);
        let then = self.name(place + 1);
        let Some((_, act)) = self.stages.get(place) else {
            return Ok(Step::Done(format!("{place} stages")));
        };
        let timeout = None;
        Ok(match act.clone() {
            Act::Work(time) => {
                pace::pause(Duration::from_millis(time)).await;
                Step::Next(then)
            }
            Act::Lock(_) | Act::Stick(_) | Act::Carry(_) => Step::Next(then),
            Act::Wait(event) => Step::Wait { event, timeout, then },
            Act::Ask(question) => Step::Ask {
                question,
                timeout,
                then,
            },
            Act::Sleep(time) => Step::Sleep {
                until: cx.now().after(Duration::from_secs(time)),
                then,
            },
            Act::Look(looked) => self.look(name, looked, cx),
            Act::Retry(why) => return Err(StageError::retry(why)),
            Act::Fail(why) => return Err(StageError::fail(why)),
            Act::Crash if *cx.env() == Life::Now => Step::Next(then),
            Act::Crash => {
                console::result(BEGUN);
                std::future::pending().await
            }
            Act::Hang => std::future::pending().await,
            Act::Have(scripts) => Step::Spawn {
                children: Children::of(&scripts)?.width(4),
                then,
            },
        })
    }

    async fn rollback(&mut self, name: String, _: &mut StageContext<'_, Self>) -> Result<(), StageError> {
        match self.stages.get(self.place(&name)) {
            Some((_, Act::Stick(why))) => Err(StageError::retry(why)),
            Some(_) | None => Ok(()),
        }
    }
}
