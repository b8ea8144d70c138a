//! The registered kinds, and how a stored value becomes running code. Types are erased here: the rest of the engine
//! does not know the users' types.

#[cfg(feature = "testkit")]
mod purity;

use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::LocalBoxFuture;
use procession_kernel::{
    Birth, Blob, EarlierStage, EventName, HistoryDetail, JoinRuling, Kind, KindRules, NextStageNeeds, SentSignal, Seq,
    StageEffects, StageEnded, StageOutcome, Timestamp, UserWrite,
};

use crate::accepts::{Accepts, SignalRules};
use crate::context::{Call, Host, PureContext, RUN_TIME, RunProgress, StageContext};
use crate::error::{CodecError, StartError, SubmitError};
use crate::fault_injection::Calling;
use crate::guard::{guarded, guarded_each, panic_cause, panic_text};
use crate::hooks::{HookCall, HookPoint, HookSet, Hooks};
use crate::journal::codec;
use crate::kind_settings::KindSettings;
use crate::procedure::Procedure;
use crate::stage_error::StageError;
use crate::step::{ChildOutcome, JoinVerdict, Step, birth_of, stage_needs};
use crate::thresholds::{KindThresholds, Measures, Thresholds};
use crate::time_limit::within;
use crate::upgrade::Old;

/// The result of an undo.
pub(crate) struct Undone {
    pub(crate) outcome: Result<(), StageError>,
    pub(crate) payload: Option<Blob>,
    /// The value that `payload` replaces, if the call asks for it.
    pub(crate) replaced: Option<Blob>,
    /// The upgraded value, if no commit holds it yet.
    pub(crate) upgraded: Option<Blob>,
    pub(crate) writes: Vec<UserWrite>,
    pub(crate) note: Option<Blob>,
}

impl Undone {
    const fn failed(error: StageError, note: Option<Blob>) -> Self {
        Self {
            outcome: Err(error),
            payload: None,
            replaced: None,
            upgraded: None,
            writes: Vec::new(),
            note,
        }
    }
}

/// A stage that has run.
pub(crate) enum Executed {
    /// Another may follow it in its run: both are pure, and it has left nothing but the value.
    Passed(EarlierStage),
    /// It is the last of its run.
    Ended(Box<StageEnded>),
    /// It was not called, because this code has no such stage; says so.
    Unknown(String),
}

/// Decodes the stage of a call. A later release may know it, as it may know a value that this one cannot read: the family
/// is quarantined until then, and nothing of it is undone.
fn stage_of<P: Procedure>(call: &Call) -> Result<P::Stage, String> {
    codec::decode_user(call.stage.stage.as_slice()).map_err(|error| format!("this code has no such stage: {error}"))
}

/// A procedure of any kind, revived on a worker.
pub(crate) trait Running {
    /// Runs the stage of a call. The call's commit is the one that started the stage; the stage begins now.
    fn execute<'a>(
        &'a mut self,
        call: &'a Call,
        going: (Seq, Timestamp),
        host: &'a Host,
    ) -> LocalBoxFuture<'a, Executed>;
    /// Goes back to the value before the run that this report was to end.
    fn go_back(&mut self, report: StageEnded);
    /// Undoes the stage of a call. Fails if this code has no such stage, and says so.
    fn rollback<'a>(&'a mut self, call: &'a Call, host: &'a Host) -> LocalBoxFuture<'a, Result<Undone, String>>;
    /// Returns what a new submission of the value would be.
    fn birth(&mut self) -> Result<Birth, CodecError>;
    fn join(&mut self, stage: &Blob, outcomes: &[ChildOutcome]) -> JoinRuling;
    fn gate(&mut self, before: &[ChildOutcome]) -> JoinRuling;
    fn clean_up<'a>(&'a mut self) -> LocalBoxFuture<'a, ()>;
    fn recover(&mut self, point: HookPoint) -> LocalBoxFuture<'_, Result<(), String>>;
}

type Revive = Box<dyn Fn(&Blob, u16) -> Result<Box<dyn Running>, String> + Send + Sync>;

type MetricHook = Box<dyn Fn(&HookCall) + Send + Sync>;

struct Registered {
    type_id: TypeId,
    type_name: &'static str,
    rules: KindRules,
    thresholds: KindThresholds,
    logs_ends: bool,
    revive: Revive,
    check_output: fn(&[u8]) -> Result<(), CodecError>,
    env: Box<dyn Any + Send + Sync>,
    hooks: HookSet,
    metric_hook: MetricHook,
    accepts: Arc<Accepts>,
}

/// How many kinds may be registered, the engine's own among them. Each has metrics, figures and rules of its own, and
/// they are shown together; more kinds than this are usually names that belong into values or into limits.
const MAX_KINDS: usize = 1_000;

/// All registered kinds.
#[derive(Default)]
pub struct Registry {
    kinds: BTreeMap<Kind, Registered>,
    twice: Option<Kind>,
}

impl Registry {
    /// Registers the type's own kind with the environment that its stages receive.
    pub fn register<P: Procedure>(&mut self, env: P::Env) {
        self.register_as::<P>(Kind::from(P::KIND), KindSettings::default(), env);
    }

    /// Registers a type under this kind, with settings and an environment of the kind's own. Values whose
    /// [`Procedure::kind`] returns it run as this kind.
    pub fn register_as<P: Procedure>(&mut self, kind: Kind, settings: KindSettings, env: P::Env) {
        const { assert!(P::OLDEST <= P::VERSION, "OLDEST is above VERSION") };
        const {
            assert!(
                !P::ROLLBACK || !matches!(P::HISTORY, HistoryDetail::Newest(_)),
                "HISTORY is Newest, but ROLLBACK is true: a rollback needs the whole history"
            );
        };
        let hooks = Arc::new(P::hooks());
        let which = hooks.which();
        let rules = KindRules {
            version: P::VERSION,
            oldest: P::OLDEST,
            rollback: P::ROLLBACK,
            retry: settings.retry.unwrap_or_else(P::retry),
            retry_undo: settings.retry_undo.unwrap_or_else(P::retry_undo),
            repeat_limit: P::REPEAT_LIMIT,
            cleanup: which.completion_cleanup,
            history: P::HISTORY,
            keep_values: settings.keep_values.unwrap_or(P::KEEP_VALUES),
            keep_after_end: settings.keep_after_end.or_else(P::keep_after_end),
            keep_after_acknowledgement: settings
                .keep_after_acknowledgement
                .or_else(P::keep_after_acknowledgement),
            keep_after_failure: settings.keep_after_failure.or_else(P::keep_after_failure),
            signals: P::SIGNALS,
            signal_keys: P::SIGNAL_KEYS,
        };
        let (own, revived) = (env.clone(), kind.clone());
        let accepts = P::accepts(&env);
        let (counting, counted) = (Arc::clone(&hooks), env.clone());
        let registered = Registered {
            type_id: TypeId::of::<P>(),
            type_name: std::any::type_name::<P>(),
            rules,
            thresholds: settings.thresholds.unwrap_or_else(P::thresholds),
            logs_ends: settings.logs_ends.unwrap_or(P::LOGS_ENDS),
            revive: Box::new(move |payload, version| {
                revive(&revived, payload, version, env.clone(), Arc::clone(&hooks))
            }),
            check_output: |bytes| codec::decode_user::<P::Output>(bytes).map(|_| ()),
            env: Box::new(own),
            hooks: which,
            metric_hook: Box::new(move |call| counting.count(&counted, call)),
            accepts: Arc::new(accepts),
        };
        if self.kinds.insert(kind.clone(), registered).is_some() {
            self.twice = Some(kind);
        }
    }

    /// Checks that an engine can start with these kinds; names may have `longest` bytes.
    pub(crate) fn check_kinds(&self, longest: usize) -> Result<(), StartError> {
        if let Some(kind) = &self.twice {
            return Err(StartError::KindTwice { kind: kind.clone() });
        }
        let sizes = self.kinds.keys().map(|kind| kind.as_str().len());
        if let Some(size) = sizes.into_iter().find(|size| *size == 0 || *size > longest) {
            return Err(StartError::BadKind { size, limit: longest });
        }
        if self.kinds.len() > MAX_KINDS {
            return Err(StartError::TooManyKinds {
                kinds: self.kinds.len(),
                limit: MAX_KINDS,
            });
        }
        Ok(())
    }

    pub(crate) fn rules(&self) -> BTreeMap<Kind, KindRules> {
        self.kinds
            .iter()
            .map(|(kind, registered)| (kind.clone(), registered.rules.clone()))
            .collect()
    }

    /// Returns the verdict thresholds of all kinds, for an engine with these thresholds.
    pub(crate) fn measures(&self, engine: Thresholds) -> Measures {
        let kinds = self.kinds.iter();
        Measures::new(
            engine,
            kinds.map(|(kind, registered)| (kind.clone(), registered.thresholds)),
        )
    }

    pub(crate) fn kinds(&self) -> impl Iterator<Item = &Kind> {
        self.kinds.keys()
    }

    /// Returns what kinds say of signals before they are kept.
    pub(crate) fn signal_rules(&self) -> SignalRules {
        let kinds = self.kinds.iter();
        SignalRules::new(kinds.map(|(kind, registered)| (kind, &registered.accepts)))
    }

    /// Returns which hooks a kind has; an unregistered kind has none.
    pub(crate) fn hooks(&self, kind: &Kind) -> HookSet {
        self.kinds.get(kind).map(|kind| kind.hooks).unwrap_or_default()
    }

    /// Returns `true` if each end of this kind is logged, not only failures.
    pub(crate) fn logs_ends(&self, kind: &Kind) -> bool {
        self.kinds.get(kind).is_some_and(|kind| kind.logs_ends)
    }

    pub(crate) fn has_recovery_hooks(&self, point: HookPoint) -> bool {
        self.kinds.values().any(|kind| kind.hooks.recovers(point))
    }

    /// Calls a metric hook; a panic in it is logged.
    pub(crate) fn call_hook(&self, call: &HookCall) {
        let kind = call.kind();
        if let Some(registered) = self.kinds.get(kind)
            && let Err(why) = guarded("a metric hook", || (registered.metric_hook)(call))
        {
            tracing::warn!(%kind, why, "a metric hook failed; its count is off by one");
        }
    }

    pub(crate) fn revive(&self, kind: &Kind, payload: &Blob, version: u16) -> Result<Box<dyn Running>, String> {
        match self.kinds.get(kind) {
            Some(registered) => {
                registered.rules.check_version(kind, version)?;
                (registered.revive)(payload, version)
            }
            None => Err(format!("no procedure of kind \"{kind}\" is registered")),
        }
    }

    /// Returns what a submission of these bytes would be, as a value of the kind's current version.
    pub(crate) fn birth(&self, kind: &Kind, value: &Blob) -> Result<Birth, SubmitError> {
        let Some(registered) = self.kinds.get(kind) else {
            return Err(SubmitError::UnknownKind { kind: kind.clone() });
        };
        let revived = (registered.revive)(value, registered.rules.version);
        let mut running = revived.map_err(|why| SubmitError::Unsupported { why })?;
        let birth = running.birth()?;
        // One type may run many kinds, and its value then names the one.
        if birth.kind != *kind {
            return Err(SubmitError::Unsupported {
                why: format!("it is a value of the kind \"{}\", not of \"{kind}\"", birth.kind),
            });
        }
        Ok(birth)
    }

    /// Checks that these bytes are an output of the kind. Outputs of unregistered kinds cannot be checked.
    pub(crate) fn check_output(&self, kind: &Kind, output: &Blob) -> Result<(), CodecError> {
        let registered = self.kinds.get(kind);
        registered.map_or(Ok(()), |registered| (registered.check_output)(output.as_slice()))
    }

    /// Returns the environment of a kind, if this type runs it.
    pub(crate) fn env<P: Procedure>(&self, kind: &Kind) -> Option<&P::Env> {
        let registered = self.kinds.get(kind)?;
        registered.env.downcast_ref()
    }

    /// Asks a value whether it can run here. Unregistered kinds are refused elsewhere.
    pub(crate) fn check<P: Procedure>(&self, procedure: &P) -> Result<(), String> {
        let kind = guarded("kind", || procedure.kind())?;
        let Some(registered) = self.kinds.get(&kind) else {
            return Ok(());
        };
        if registered.type_id != TypeId::of::<P>() {
            return Err(format!(
                "the kind \"{kind}\" is registered with the type {}, and this value is of the type {}",
                registered.type_name,
                std::any::type_name::<P>()
            ));
        }
        match registered.env.downcast_ref::<P::Env>() {
            Some(env) => guarded("check", || procedure.check(env)).flatten(),
            None => Ok(()),
        }
    }
}

fn revive<P: Procedure>(
    kind: &Kind,
    payload: &Blob,
    version: u16,
    env: P::Env,
    hooks: Arc<Hooks<P>>,
) -> Result<Box<dyn Running>, String> {
    let mut typed = Typed::<P> {
        kind: kind.clone(),
        value: None,
        committed: payload.clone(),
        unwritten: None,
        env,
        hooks,
    };
    if version < P::VERSION {
        typed.upgrade(version)?;
    }
    typed.value_mut().map_err(|error| error.to_string())?;
    if let Some(value) = &typed.value {
        guarded("check", || value.check(&typed.env)).flatten()?;
    }
    Ok(Box::new(typed))
}

struct Typed<P: Procedure> {
    kind: Kind,
    /// `None` after a call that left no commit: the next call decodes `committed` again.
    value: Option<P>,
    committed: Blob,
    /// The upgraded value, until a report carries it to its commit.
    unwritten: Option<Blob>,
    env: P::Env,
    hooks: Arc<Hooks<P>>,
}

/// Returns the value, which is decoded from the committed one if there is none. It borrows these alone, so that the
/// environment can be lent to the same call: a clone of it would be one more change of a count that all workers share.
fn at_hand<'v, P: Procedure>(value: &'v mut Option<P>, committed: &Blob) -> Result<&'v mut P, CodecError> {
    match value {
        Some(value) => Ok(value),
        none => {
            let value = guarded("Deserialize", || codec::decode_user(committed.as_slice()));
            let value = value.unwrap_or_else(|why| {
                Err(CodecError {
                    what: "the stored value cannot be read",
                    why,
                })
            })?;
            Ok(none.insert(value))
        }
    }
}

impl<P: Procedure> Typed<P> {
    fn value_mut(&mut self) -> Result<&mut P, CodecError> {
        at_hand(&mut self.value, &self.committed)
    }

    /// Upgrades the committed value to this version, once: after a call without a commit, the upgraded value is read
    /// again.
    fn upgrade(&mut self, version: u16) -> Result<(), String> {
        let old = Old::new(self.committed.as_slice());
        let value = guarded("upgrade", || P::upgrade(version, old))?;
        let value = value.map_err(|error| format!("version {version} of \"{}\": {}", self.kind, error.text()))?;
        let bytes = guarded("Serialize", || codec::encode_user(&value))?.map_err(|error| error.to_string())?;
        (self.value, self.committed, self.unwritten) = (Some(value), bytes.clone(), Some(bytes));
        Ok(())
    }

    /// Encodes the value as the stage left it. Returns it, and the one that it replaces if that is asked for; nothing if
    /// it is unchanged.
    ///
    /// `run` is the run that ends with the stage. What `is_as_before` says is about one stage, so it is not asked after a
    /// longer run; and that one must not end with more bytes than a value may have, since the kernel would have to give it
    /// up.
    fn changed(
        &mut self,
        is_asked: bool,
        run: RunProgress,
        host: &Host,
    ) -> Result<(Option<Blob>, Option<Blob>), String> {
        let Some(value) = &self.value else {
            return Ok((None, None));
        };
        if !run.has_passed_any() && guarded("is_as_before", || value.is_as_before())? {
            return Ok((None, None));
        }
        let bytes = guarded("Serialize", || codec::encode_user(value))?.map_err(|error| error.to_string())?;
        if run.has_passed_any() && bytes.len() > host.max_payload {
            return Err(format!("a value of {} bytes is over the limit", bytes.len()));
        }
        if bytes == self.committed {
            return Ok((None, None));
        }
        let replaced = std::mem::replace(&mut self.committed, bytes.clone());
        // What nobody needs is dropped here, where it was made.
        Ok((Some(bytes), is_asked.then_some(replaced)))
    }

    /// Runs a stage, and fills in its report in place: a report is large, and each stage would move it. Returns `true` if
    /// another stage may follow in its run. The value is not in the report then.
    async fn run_stage(&mut self, stage: P::Stage, call: &Call, host: &Host, report: &mut StageEnded) -> bool {
        let mut cx = StageContext::<P>::new(call, host, &self.env);
        let value = match at_hand(&mut self.value, &self.committed) {
            Ok(value) => value,
            Err(error) => {
                report.outcome = StageOutcome::Panicked(error.to_string());
                return false;
            }
        };
        let calling = Calling::new(host, call, &stage, false);
        let mut is_pure = false;
        let body = AssertUnwindSafe(async {
            if value.is_pure(&stage) {
                is_pure = true;
                #[cfg(feature = "testkit")]
                purity::examine(host, call, &*value, &cx);
                return computed(value, stage, &mut cx);
            }
            if call.is_speculative {
                // What `is_pure` said has changed.
                return Ok(Step::Yield);
            }
            match value.stage_timeout(&stage) {
                Some(time) => limited(host, time, "stage", value.execute(stage, &mut cx)).await,
                None => value.execute(stage, &mut cx).await,
            }
        });
        let result = calling.make(pin!(body.catch_unwind())).await;
        report.note = cx.note.take();
        if let Ok(Ok(step)) = &result {
            report.keep_places = matches!(step, Step::Spawn { children, .. } if children.keep_places);
            cx.leave_in(report);
        }
        drop(cx);
        let result = match &mut report.effects {
            None => result,
            Some(effects) => match allowed(host, effects).await {
                Ok(()) => result,
                // The receiver's code may be another after the next start, so this counts as a failed attempt.
                Err(why) => Ok(Err(StageError::Retry(why))),
            },
        };
        report.outcome = match result {
            Ok(Ok(step)) => self.step_taken(step, &mut report.next_needs),
            Ok(Err(error)) => failure(error),
            Err(panic) => StageOutcome::Panicked(panic_cause(&*panic)),
        };
        if is_pure && call.stage.ahead > 0 && lets_another_follow(report) {
            report.ended = host.clock.now();
            if call.run.has_time_left(report.ended) {
                return true;
            }
        }
        if report.outcome.leaves_effects() {
            match self.changed(call.stage.as_submitted, call.run, host) {
                Ok((payload, replaced)) => {
                    (report.payload, report.replaced) = (payload, replaced);
                    return false;
                }
                // It need not be this stage whose value is to blame.
                Err(why) if call.run.has_passed_any() => report.outcome = StageOutcome::Refused(why),
                Err(why) => report.outcome = StageOutcome::Panicked(why),
            }
        }
        self.value = None;
        leave_nothing(report);
        false
    }

    /// Asks user code for everything that the kernel must know about the next stage.
    fn step_taken(&self, step: Step<P>, next_needs: &mut NextStageNeeds) -> StageOutcome {
        if let (Some(next), Some(value)) = (step.next_stage(), &self.value) {
            match guarded_each(|asked| stage_needs(value, next, asked)) {
                Ok(Ok(known)) => *next_needs = known,
                Ok(Err(why)) => return StageOutcome::Fail(why),
                Err(why) => return StageOutcome::Panicked(why),
            }
        }
        step_outcome(step).unwrap_or_else(|error| StageOutcome::Fail(error.to_string()))
    }

    async fn run_cleanup(&mut self) {
        let Ok(value) = at_hand(&mut self.value, &self.committed) else {
            return;
        };
        let done = AssertUnwindSafe(self.hooks.clean_up(value, &self.env))
            .catch_unwind()
            .await;
        if let Err(panic) = done {
            tracing::error!(kind = %self.kind, why = panic_text(&*panic), "the cleanup panicked");
        }
    }

    async fn run_undo(&mut self, stage: P::Stage, call: &Call, host: &Host) -> Undone {
        let mut cx = StageContext::<P>::new(call, host, &self.env);
        let value = match at_hand(&mut self.value, &self.committed) {
            Ok(value) => value,
            Err(error) => return Undone::failed(error.into(), None),
        };
        let calling = Calling::new(host, call, &stage, true);
        let body = AssertUnwindSafe(async {
            match value.undo_timeout(&stage) {
                Some(time) => limited(host, time, "undo", value.rollback(stage, &mut cx)).await,
                None => value.rollback(stage, &mut cx).await,
            }
        });
        let result = calling.make(pin!(body.catch_unwind())).await;
        let (writes, note) = (cx.take_writes(), cx.note.take());
        drop(cx);
        let (failed, note) = match result {
            Ok(Ok(())) => match self.changed(call.stage.as_submitted, RunProgress::default(), host) {
                Ok((payload, replaced)) => {
                    return Undone {
                        outcome: Ok(()),
                        payload,
                        replaced,
                        upgraded: None,
                        writes,
                        note,
                    };
                }
                Err(why) => (StageError::Retry(why), None),
            },
            Ok(Err(error)) => (error, note),
            Err(panic) => (StageError::Retry(panic_cause(&*panic)), None),
        };
        self.value = None;
        Undone::failed(failed, note)
    }
}

impl<P: Procedure> Running for Typed<P> {
    fn execute<'a>(
        &'a mut self,
        call: &'a Call,
        (run, begun): (Seq, Timestamp),
        host: &'a Host,
    ) -> LocalBoxFuture<'a, Executed> {
        // Made where it is to be: with the user's code in it, it has thousands of bytes, and is made for each call.
        let place = Box::new_uninit();
        let future = Box::write(place, async move {
            let stage = match stage_of::<P>(call) {
                Ok(stage) => stage,
                Err(unknown) => return Executed::Unknown(unknown),
            };
            let mut report = Box::new(StageEnded::new(
                call.stage.id,
                run,
                call.fence.epoch,
                begun,
                StageOutcome::Yield,
            ));
            if self.run_stage(stage, call, host, &mut report).await
                && let StageOutcome::Next(next) = report.outcome
            {
                return Executed::Passed(EarlierStage {
                    begun,
                    ended: report.ended,
                    next,
                    nothing_to_undo: report.nothing_to_undo,
                });
            }
            report.ended = host.clock.now();
            // A yield leaves no commit, so `committed` stays valid.
            if report.outcome != StageOutcome::Yield {
                report.upgraded = self.unwritten.take();
            }
            Executed::Ended(report)
        });
        Box::into_pin(future)
    }

    fn go_back(&mut self, report: StageEnded) {
        self.value = None;
        self.unwritten = self.unwritten.take().or(report.upgraded);
    }

    fn rollback<'a>(&'a mut self, call: &'a Call, host: &'a Host) -> LocalBoxFuture<'a, Result<Undone, String>> {
        Box::pin(async move {
            let stage = stage_of::<P>(call)?;
            let mut undone = self.run_undo(stage, call, host).await;
            undone.upgraded = self.unwritten.take();
            Ok(undone)
        })
    }

    fn clean_up<'a>(&'a mut self) -> LocalBoxFuture<'a, ()> {
        Box::pin(self.run_cleanup())
    }

    fn birth(&mut self) -> Result<Birth, CodecError> {
        birth_of(&*self.value_mut()?)
    }

    fn join(&mut self, stage: &Blob, outcomes: &[ChildOutcome]) -> JoinRuling {
        let ruled = codec::decode_user::<P::Stage>(stage.as_slice()).and_then(|stage| {
            let value = self.value_mut()?;
            Ok(guarded("join", || value.join(&stage, outcomes)))
        });
        ruling(ruled, "the join rule says that it can no longer be met")
    }

    fn gate(&mut self, before: &[ChildOutcome]) -> JoinRuling {
        let ruled = self.value_mut().map(|value| guarded("gate", || value.gate(before)));
        ruling(ruled, "its own rule says so")
    }

    fn recover(&mut self, point: HookPoint) -> LocalBoxFuture<'_, Result<(), String>> {
        Box::pin(self.run_hook(point))
    }
}

impl<P: Procedure> Typed<P> {
    async fn run_hook(&mut self, point: HookPoint) -> Result<(), String> {
        let (env, hooks) = (self.env.clone(), Arc::clone(&self.hooks));
        let value = &*self.value_mut().map_err(|error| error.to_string())?;
        let called = AssertUnwindSafe(hooks.recover(point, value, &env));
        match called.catch_unwind().await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(error.text().to_owned()),
            Err(panic) => Err(panic_cause(&*panic)),
        }
    }
}

/// Runs a pure stage. If the store is to be asked about what it does, and the disk may be behind, the stage yields: it runs
/// again once the disk has caught up.
fn computed<P: Procedure>(value: &mut P, stage: P::Stage, cx: &mut StageContext<'_, P>) -> Result<Step<P>, StageError> {
    let mut pure = PureContext::of(cx);
    let step = value.compute(stage, &mut pure);
    if cx.call.is_speculative && pure.asks_the_store() {
        return Ok(Step::Yield);
    }
    cx.merge(pure.into_done());
    step
}

/// Returns `true` if a pure stage has left nothing but the value, and the next stage is pure, needs neither locks nor permits,
/// and can be undone.
fn lets_another_follow(report: &StageEnded) -> bool {
    let needs = &report.next_needs;
    let has_left_more = report.note.is_some() || report.effects.is_some();
    // A stage that may take long has a call of its own, so that it is seen where it is.
    let is_short = needs.expected.is_none_or(|time| time < RUN_TIME);
    let is_plain = needs.is_pure && needs.is_empty() && needs.next_is_no_return.is_none() && is_short;
    matches!(report.outcome, StageOutcome::Next(_)) && is_plain && !has_left_more
}

/// Converts the answer of a rule. What cannot be asked can never be met.
fn ruling(ruled: Result<Result<JoinVerdict, String>, CodecError>, unmeetable: &str) -> JoinRuling {
    match ruled {
        Ok(Ok(JoinVerdict::Met)) => JoinRuling::Met,
        Ok(Ok(JoinVerdict::Pending)) => JoinRuling::Pending,
        Ok(Ok(JoinVerdict::Unmeetable)) => JoinRuling::Unmeetable(unmeetable.to_owned()),
        Ok(Err(panic)) => JoinRuling::Unmeetable(panic),
        Err(error) => JoinRuling::Unmeetable(error.to_string()),
    }
}

/// Takes the effects out of the report of a stage that leaves none. A failure that the stage returned leaves its note; a
/// yield and a panic leave nothing.
fn leave_nothing(report: &mut StageEnded) {
    let noted = !matches!(report.outcome, StageOutcome::Yield | StageOutcome::Panicked(_));
    let outcome = std::mem::replace(&mut report.outcome, StageOutcome::Yield);
    *report = StageEnded {
        note: report.note.take().filter(|_| noted),
        ..StageEnded::new(report.id, report.run, report.epoch, report.begun, outcome)
    };
}

/// Asks the receivers' kinds whether they take the signals of a stage, and looks up the keys of its submissions.
async fn allowed(host: &Host, effects: &mut StageEffects) -> Result<(), String> {
    if !effects.signals.is_empty() {
        let sent: Vec<&SentSignal> = effects.signals.iter().collect();
        let admitted = host.signal_rules.admit(&host.reader, &sent).await;
        admitted.map_err(|why| why.to_string())?;
    }
    for submission in &mut effects.submitted {
        if let Some(asked) = &submission.key {
            let known = host.reader.key_entry(asked.key.as_str().as_bytes()).await;
            // A key that could not be read may stand for a procedure, which must not run twice.
            submission.known = known.map_err(|why| format!("the key \"{}\" could not be read: {why}", asked.key))?;
        }
    }
    Ok(())
}

/// Runs a call for as long as its code allows; then it fails, and may be tried again.
async fn limited<T>(
    host: &Host,
    time: Duration,
    what: &'static str,
    call: impl Future<Output = Result<T, StageError>>,
) -> Result<T, StageError> {
    let ended = within(Arc::clone(&host.clock), time, call).await;
    ended.unwrap_or_else(|elapsed| {
        Err(StageError::TimedOut(format!(
            "{elapsed}, the limit of this {what} (`{what}_timeout`); raise it if the {what} needs longer"
        )))
    })
}

fn failure(error: StageError) -> StageOutcome {
    match error {
        StageError::Retry(text) => StageOutcome::Retry(text),
        StageError::RetryAfter(delay, text) => StageOutcome::RetryAfter(delay, text),
        StageError::TimedOut(text) => StageOutcome::TimedOut(text),
        StageError::Fail(text) => StageOutcome::Fail(text),
    }
}

fn step_outcome<P: Procedure>(step: Step<P>) -> Result<StageOutcome, CodecError> {
    Ok(match step {
        Step::Next(stage) => StageOutcome::Next(codec::encode_user(&stage)?),
        Step::Done(output) => StageOutcome::Done(codec::encode_user(&output)?),
        Step::Spawn { children, then } => {
            let (join, width) = (children.join.clone(), children.width);
            StageOutcome::Spawn {
                births: children.into_births(),
                join,
                width,
                then: codec::encode_user(&then)?,
            }
        }
        Step::Sleep { until, then } => StageOutcome::Sleep(until, codec::encode_user(&then)?),
        Step::Wait { event, timeout, then } => {
            StageOutcome::Wait(EventName::from(event), timeout, codec::encode_user(&then)?)
        }
        Step::Ask {
            question,
            timeout,
            then,
        } => StageOutcome::Ask(question, timeout, codec::encode_user(&then)?),
        Step::Fail(cause) => StageOutcome::GiveUp(cause),
        Step::Yield => StageOutcome::Yield,
    })
}
