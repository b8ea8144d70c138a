//! Procedures as data, for seeds and for what is recovered: stage `n` does what
//! byte `n` of the script says, and the script's end is success.

use std::time::Duration;

use procession::limits::{LockNeed, LockPath};
use procession::procedure::{HistoryDetail, JoinPolicy, JoinVerdict, RetryPolicy};
use procession::{Builder, Children, Procedure, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

/// A script, and what its children do.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Script {
    /// What each stage does.
    pub(crate) acts: Vec<u8>,
    /// What each child does.
    #[serde(default)]
    pub(crate) children: Vec<Script>,
    /// A lock that all stages need.
    #[serde(default)]
    pub(crate) lock: Option<String>,
}

/// Goes on.
pub(crate) const NEXT: u8 = 0;
/// Sleeps a second.
pub(crate) const SLEEP: u8 = 1;
/// Waits for the event `go`, an hour at most.
pub(crate) const WAIT: u8 = 2;
/// Spawns the children, and waits for all.
pub(crate) const SPAWN: u8 = 3;
/// Spawns the children, one at a time, and asks the kind's own rule.
pub(crate) const SPAWN_ASKING: u8 = 4;
/// Fails for good.
pub(crate) const FAIL: u8 = 5;
/// Asks for another attempt, always.
pub(crate) const RETRY: u8 = 6;
/// Writes user data.
pub(crate) const WRITE: u8 = 7;

macro_rules! kind {
    ($(#[$doc:meta])* $name:ident, $kind:literal, undo: $undo:expr, $($more:tt)*) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Serialize, Deserialize)]
        #[serde(transparent)]
        pub(crate) struct $name(pub(crate) Script);

        impl Procedure for $name {
            const KIND: &'static str = $kind;
            type Stage = u8;
            type Env = ();
            type Output = u8;
            $($more)*

            fn first(&self) -> u8 {
                0
            }

            fn locks(&self, _: &u8) -> Vec<LockNeed> {
                self.0.lock.iter().map(|path| LockNeed::exclusive(LockPath::parse(path))).collect()
            }

            fn retry() -> RetryPolicy {
                RetryPolicy::default().attempts(3)
            }

            fn retry_undo() -> RetryPolicy {
                RetryPolicy::default().attempts(2)
            }

            fn join(&self, _: &u8, children: &[procession::procedure::ChildOutcome]) -> JoinVerdict {
                if children.iter().any(|child| child.succeeded() || child.failed()) { JoinVerdict::Met } else { JoinVerdict::Pending }
            }

            async fn execute(&mut self, stage: u8, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
                let then = stage.saturating_add(1);
                let children = || {
                    let children: Vec<Self> = self.0.children.iter().cloned().map(Self).collect();
                    Children::of(&children).map_err(StageError::fail)
                };
                Ok(match self.0.acts.get(usize::from(stage)) {
                    None => Step::Done(stage),
                    Some(&SLEEP) => Step::Sleep { until: cx.now().after(Duration::from_secs(1)), then },
                    Some(&WAIT) => {
                        let timeout = Some(Duration::from_secs(3_600));
                        Step::Wait { event: "go".to_owned(), timeout, then }
                    }
                    Some(&SPAWN) => Step::Spawn { children: children()?, then },
                    Some(&SPAWN_ASKING) => Step::Spawn { children: children()?.width(1).join(JoinPolicy::Custom), then },
                    Some(&FAIL) => return Err(StageError::fail("it is told to fail")),
                    Some(&RETRY) => return Err(StageError::retry("it is told to fail")),
                    Some(&WRITE) => {
                        cx.put("rows", "a", &stage)?;
                        Step::Next(then)
                    }
                    Some(_) => Step::Next(then),
                })
            }

            async fn rollback(&mut self, _: u8, _: &mut StageContext<'_, Self>) -> Result<(), StageError> {
                $undo
            }
        }
    };
}

kind! {
    /// One that is undone.
    Plain, "plain", undo: Ok(()),
}
kind! {
    /// One whose undo fails, with one permit for all.
    Stuck, "stuck", undo: Err(StageError::retry("the undo fails")),
    const HISTORY: HistoryDetail = HistoryDetail::Stack;

    // A cleanup that does nothing costs a commit all the same.
    fn hooks() -> procession::procedure::Hooks<Self> {
        procession::procedure::Hooks::<Self>::new().completion_cleanup(async |_, _| ())
    }
}

/// Registers all, one of them with a limit.
pub(crate) fn register(builder: Builder) -> Builder {
    builder.register::<Plain>(()).register::<Stuck>(()).limit("stuck", 1)
}
