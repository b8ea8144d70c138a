//! Which kinds there are, and how a stored value becomes running code. Types
//! are erased here: beyond this file nobody knows the user's.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;

use futures::FutureExt;
use futures::future::LocalBoxFuture;
use procession_kernel::{Birth, Blob, EventName, JoinRuling, Kind, KindRules, StageOutcome, UserWrite};

use crate::context::{CallFacts, Host, StageContext};
use crate::error::CodecError;
use crate::journal::codec;
use crate::procedure::Procedure;
use crate::step::{ChildOutcome, JoinVerdict, StageError, Step};

/// What one call of user code did.
pub(crate) struct Did<T> {
    pub(crate) outcome: T,
    pub(crate) payload: Option<Blob>,
    pub(crate) writes: Vec<UserWrite>,
    pub(crate) submitted: Vec<Birth>,
}

impl<T> Did<T> {
    const fn nothing(outcome: T) -> Self {
        Self {
            outcome,
            payload: None,
            writes: Vec::new(),
            submitted: Vec::new(),
        }
    }
}

/// A procedure of any kind, revived on a worker.
pub(crate) trait Running {
    fn execute<'a>(
        &'a mut self,
        stage: &'a Blob,
        facts: &'a CallFacts,
        host: &'a Host,
    ) -> LocalBoxFuture<'a, Did<StageOutcome>>;
    fn rollback<'a>(
        &'a mut self,
        stage: &'a Blob,
        facts: &'a CallFacts,
        host: &'a Host,
    ) -> LocalBoxFuture<'a, Did<Result<(), String>>>;
    fn join(&mut self, stage: &Blob, outcomes: &[ChildOutcome]) -> JoinRuling;
}

type Revive = Box<dyn Fn(&Blob, u16) -> Result<Box<dyn Running>, String> + Send + Sync>;

struct Registered {
    rules: KindRules,
    revive: Revive,
}

/// All registered kinds.
#[derive(Default)]
pub struct Registry {
    kinds: BTreeMap<Kind, Registered>,
    twice: Option<Kind>,
}

impl Registry {
    /// Registers a kind with the environment that its stages get.
    pub fn register<P: Procedure>(&mut self, env: P::Env) {
        let kind = Kind::from(P::KIND);
        let rules = KindRules {
            version: P::VERSION,
            rollback: P::ROLLBACK,
            retry: P::retry(),
            retry_undo: P::retry_undo(),
        };
        let revive: Revive = Box::new(move |payload, version| revive::<P>(payload, version, env.clone()));
        if self.kinds.insert(kind.clone(), Registered { rules, revive }).is_some() {
            self.twice = Some(kind);
        }
    }

    pub(crate) fn twice(&self) -> Option<&Kind> {
        self.twice.as_ref()
    }

    pub(crate) fn rules(&self) -> BTreeMap<Kind, KindRules> {
        self.kinds
            .iter()
            .map(|(kind, registered)| (kind.clone(), registered.rules.clone()))
            .collect()
    }

    pub(crate) fn revive(&self, kind: &Kind, payload: &Blob, version: u16) -> Result<Box<dyn Running>, String> {
        match self.kinds.get(kind) {
            Some(registered) => (registered.revive)(payload, version),
            None => Err(format!("no procedure of kind \"{kind}\" is registered")),
        }
    }
}

fn revive<P: Procedure>(payload: &Blob, version: u16, env: P::Env) -> Result<Box<dyn Running>, String> {
    if version != P::VERSION {
        return Err(format!(
            "its payload has version {version}, and the code of \"{}\" reads {}",
            P::KIND,
            P::VERSION
        ));
    }
    let mut typed = Typed::<P> {
        value: None,
        committed: payload.clone(),
        env,
    };
    typed.value_mut().map_err(|error| error.to_string())?;
    Ok(Box::new(typed))
}

struct Typed<P: Procedure> {
    /// None after a call that left no commit: the next one reads `committed` again.
    value: Option<P>,
    committed: Blob,
    env: P::Env,
}

impl<P: Procedure> Typed<P> {
    fn value_mut(&mut self) -> Result<&mut P, CodecError> {
        let value = match self.value.take() {
            Some(value) => value,
            None => guarded("Deserialize", || codec::decode_user(self.committed.as_slice())).unwrap_or_else(|why| {
                Err(CodecError {
                    what: "the stored value cannot be read",
                    why,
                })
            })?,
        };
        Ok(self.value.insert(value))
    }

    /// Encodes the value as the stage left it; none if it is as it was.
    fn changed(&mut self) -> Result<Option<Blob>, String> {
        let Some(value) = &self.value else { return Ok(None) };
        let bytes = guarded("Serialize", || codec::encode_user(value))?.map_err(|error| error.to_string())?;
        if bytes == self.committed {
            return Ok(None);
        }
        self.committed = bytes.clone();
        Ok(Some(bytes))
    }

    async fn run_stage(&mut self, stage: &Blob, facts: &CallFacts, host: &Host) -> Did<StageOutcome> {
        let stage: P::Stage = match codec::decode_user(stage.as_slice()) {
            Ok(stage) => stage,
            Err(error) => {
                return Did::nothing(StageOutcome::Fail(format!(
                    "the stage is not one of this code: {error}"
                )));
            }
        };
        let env = self.env.clone();
        let mut cx = StageContext::<P>::new(facts, host, &env);
        let value = match self.value_mut() {
            Ok(value) => value,
            Err(error) => return Did::nothing(StageOutcome::Panicked(error.to_string())),
        };
        let result = AssertUnwindSafe(async { value.execute(stage, &mut cx).await })
            .catch_unwind()
            .await;
        let (writes, submitted) = (std::mem::take(&mut cx.writes), std::mem::take(&mut cx.births));
        drop(cx);
        let outcome = match result {
            Ok(Ok(step)) => step_outcome(step).unwrap_or_else(|error| StageOutcome::Fail(error.to_string())),
            Ok(Err(StageError::Retry(text))) => StageOutcome::Retry(text),
            Ok(Err(StageError::Fail(text))) => StageOutcome::Fail(text),
            Err(panic) => StageOutcome::Panicked(panic_text(&*panic)),
        };
        let leaves_value = !matches!(
            outcome,
            StageOutcome::Yield | StageOutcome::Retry(_) | StageOutcome::Fail(_) | StageOutcome::Panicked(_)
        );
        if !leaves_value {
            self.value = None;
            return Did::nothing(outcome);
        }
        match self.changed() {
            Ok(payload) => Did {
                outcome,
                payload,
                writes,
                submitted,
            },
            Err(why) => {
                self.value = None;
                Did::nothing(StageOutcome::Panicked(why))
            }
        }
    }

    async fn run_undo(&mut self, stage: &Blob, facts: &CallFacts, host: &Host) -> Did<Result<(), String>> {
        let stage: P::Stage = match codec::decode_user(stage.as_slice()) {
            Ok(stage) => stage,
            Err(error) => return Did::nothing(Err(format!("the stage is not one of this code: {error}"))),
        };
        let env = self.env.clone();
        let mut cx = StageContext::<P>::new(facts, host, &env);
        let value = match self.value_mut() {
            Ok(value) => value,
            Err(error) => return Did::nothing(Err(error.to_string())),
        };
        let result = AssertUnwindSafe(async { value.rollback(stage, &mut cx).await })
            .catch_unwind()
            .await;
        let writes = std::mem::take(&mut cx.writes);
        drop(cx);
        let failed = match result {
            Ok(Ok(())) => match self.changed() {
                Ok(payload) => {
                    return Did {
                        outcome: Ok(()),
                        payload,
                        writes,
                        submitted: Vec::new(),
                    };
                }
                Err(why) => why,
            },
            Ok(Err(error)) => error.text().to_owned(),
            Err(panic) => panic_text(&*panic),
        };
        self.value = None;
        Did::nothing(Err(failed))
    }
}

impl<P: Procedure> Running for Typed<P> {
    fn execute<'a>(
        &'a mut self,
        stage: &'a Blob,
        facts: &'a CallFacts,
        host: &'a Host,
    ) -> LocalBoxFuture<'a, Did<StageOutcome>> {
        Box::pin(self.run_stage(stage, facts, host))
    }

    fn rollback<'a>(
        &'a mut self,
        stage: &'a Blob,
        facts: &'a CallFacts,
        host: &'a Host,
    ) -> LocalBoxFuture<'a, Did<Result<(), String>>> {
        Box::pin(self.run_undo(stage, facts, host))
    }

    fn join(&mut self, stage: &Blob, outcomes: &[ChildOutcome]) -> JoinRuling {
        let ruled = codec::decode_user::<P::Stage>(stage.as_slice()).and_then(|stage| {
            let value = self.value_mut()?;
            Ok(guarded("join", || value.join(&stage, outcomes)))
        });
        match ruled {
            Ok(Ok(JoinVerdict::Met)) => JoinRuling::Met,
            Ok(Ok(JoinVerdict::Pending)) => JoinRuling::Pending,
            Ok(Ok(JoinVerdict::Unmeetable)) => {
                JoinRuling::Unmeetable("the join rule says that it can no longer be met".to_owned())
            }
            Ok(Err(panic)) => JoinRuling::Unmeetable(panic),
            Err(error) => JoinRuling::Unmeetable(error.to_string()),
        }
    }
}

fn step_outcome<P: Procedure>(step: Step<P>) -> Result<StageOutcome, CodecError> {
    Ok(match step {
        Step::Next(stage) => StageOutcome::Next(codec::encode_user(&stage)?),
        Step::Done(output) => StageOutcome::Done(codec::encode_user(&output)?),
        Step::Spawn { children, then } => StageOutcome::Spawn {
            births: children.births,
            admissions: Vec::new(),
            join: children.join,
            width: children.width,
            then: codec::encode_user(&then)?,
        },
        Step::Sleep { until, then } => StageOutcome::Sleep(until, codec::encode_user(&then)?),
        Step::Wait { event, timeout, then } => {
            StageOutcome::Wait(EventName::from(event), timeout, codec::encode_user(&then)?)
        }
        Step::Yield => StageOutcome::Yield,
    })
}

/// Runs a piece of user code that may panic.
fn guarded<T>(what: &str, code: impl FnOnce() -> T) -> Result<T, String> {
    std::panic::catch_unwind(AssertUnwindSafe(code))
        .map_err(|panic| format!("{what} panicked: {}", panic_text(&*panic)))
}

pub(crate) fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "panicked without a text".to_owned())
}
