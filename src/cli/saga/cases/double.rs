//! The double of all services: it does what the rules of the step say, else what Seata's `demoService` does. It survives
//! crashes, and so does its log.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use procession::procedure::Timestamp;
use procession::provider::Clock;
use procession::saga::{Call, Fault, SagasBuilder};
use procession::testkit::TestClock;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::calls::{self, Called, Try};
use super::case::{Case, Rule};
use super::notes::{At, Note, Noted, Notes};

/// The exception that Seata's own tests throw, and one below it.
const DEMO_EXCEPTION: &str = "org.apache.seata.saga.engine.mock.DemoException";
const BELOW_DEMO_EXCEPTION: &str = "x.DemoException";

/// What is outside of the engine.
#[derive(Clone, Default)]
pub struct Double(Arc<Mutex<Outside>>);

/// What survives a crash.
#[derive(Default)]
pub struct Outside {
    clock: TestClock,
    pub(super) at: At,
    /// The commits of the lives before this one.
    pub(super) commits: u64,
    rules: Vec<Rule>,
    log: Vec<Called>,
    /// When calls end that take a time: one that a crash cuts off ends when it would have.
    ends: BTreeMap<Try, Timestamp>,
    held: usize,
    /// Calls that are out, and the most at any time.
    out: usize,
    most: usize,
    /// Where all of it is noted, so that it survives the process.
    notes: Option<Notes>,
}

impl Outside {
    /// Returns the most calls that were out at once.
    pub const fn most(&self) -> usize {
        self.most
    }

    fn note_place(&mut self) {
        self.write(&Note::At(self.at));
    }

    fn write(&mut self, note: &Note) {
        if let Some(notes) = &mut self.notes {
            notes.write(note);
        }
    }

    /// Returns the calls since the last time.
    pub fn take_log(&mut self) -> Vec<Called> {
        std::mem::take(&mut self.log)
    }
}

/// A call that is held.
struct Held(Double);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.outside().held -= 1;
    }
}

/// A call that is out.
struct Out(Double);

impl Out {
    fn new(double: &Double) -> Self {
        let mut outside = double.outside();
        outside.out += 1;
        outside.most = outside.most.max(outside.out);
        Self(double.clone())
    }
}

impl Drop for Out {
    fn drop(&mut self) {
        self.0.outside().out -= 1;
    }
}

impl Double {
    /// Forgets all, for a world with this clock.
    pub fn begin_anew(&self, clock: TestClock) {
        *self.outside() = Outside {
            clock,
            ..Outside::default()
        };
    }

    /// Goes on with what an earlier process has noted of a case. From here on everything is noted. The rules are those of
    /// the step in hand from now on: an engine makes again what was out as soon as it has started.
    pub fn go_on(&self, case: &Case, clock: TestClock, notes: Notes, noted: Noted) {
        let step = case.steps.get(noted.at.step);
        *self.outside() = Outside {
            clock,
            rules: step.map_or_else(Vec::new, |step| step.double.clone()),
            at: noted.at,
            log: noted.calls,
            ends: noted.ends,
            notes: Some(notes),
            ..Outside::default()
        };
    }

    /// Returns what is outside of the engine, and nobody else's for that long.
    pub fn outside(&self) -> MutexGuard<'_, Outside> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins the step in hand, unless it has begun. Returns whether it had not.
    pub(super) fn begin(&self, now: Timestamp) -> bool {
        let mut outside = self.outside();
        let is_first = outside.at.begun.is_none();
        outside.at.begun.get_or_insert(now);
        outside.note_place();
        is_first
    }

    /// Goes on to a step.
    pub(super) fn next(&self, step: usize) {
        let mut outside = self.outside();
        outside.at = At { step, begun: None };
        outside.note_place();
    }

    /// Notes to what time the clock will be moved.
    pub(super) fn note_time(&self, now: Timestamp) {
        self.outside().write(&Note::Time(now));
    }

    /// Sets the rules of the step in hand.
    pub fn set_rules(&self, rules: &[Rule]) {
        self.outside().rules = rules.to_vec();
    }

    /// A restart is part of the case, so calls that it cuts off take their whole time again.
    pub fn forget_times(&self) {
        self.outside().ends.clear();
    }

    /// Returns the calls since the case began.
    pub fn log(&self) -> Vec<Called> {
        self.outside().log.clone()
    }

    pub(super) fn holds(&self) -> bool {
        self.outside().held > 0
    }

    /// Registers it for all methods that these definitions call, and the scripts and classes of Seata's.
    pub fn register(&self, mut builder: SagasBuilder, texts: &[Vec<u8>]) -> SagasBuilder {
        let methods: BTreeSet<(String, String)> = texts.iter().flat_map(|text| called(text)).collect();
        for (service, method) in &methods {
            let (double, name) = (self.clone(), method.clone());
            builder = match (service.as_str(), method.as_str()) {
                ("demoService", "complexParameterMethod") => {
                    builder.method(service, method, async move |call: Call, arguments: Complex| {
                        double.complex(call, arguments).await
                    })
                }
                ("demoService" | "DemoService" | "svc", _) => {
                    let plain = match service.as_str() {
                        "svc" => letter,
                        _ => demo,
                    };
                    builder.method(service, method, async move |call: Call, arguments: Vec<Value>| {
                        double.call(&call, &name, arguments, plain).await
                    })
                }
                _ => builder,
            };
        }
        for (machine, state) in texts.iter().flat_map(|text| scripts(text)) {
            builder = builder.script(&machine, &state, said);
        }
        builder.fault::<BelowDemo>(BELOW_DEMO_EXCEPTION, DEMO_EXCEPTION)
    }

    /// Makes a call of a method that does this if no rule says otherwise.
    async fn call(
        &self,
        call: &Call,
        method: &str,
        arguments: Vec<Value>,
        plain: fn(&str, Vec<Value>) -> Result<Value, Fault>,
    ) -> Result<Value, Fault> {
        let takes = arguments
            .first()
            .and_then(|argument| argument.get("sleepTime")?.as_u64());
        self.note(call, &arguments);
        self.wait(call, method, Duration::from_millis(takes.unwrap_or_default()))
            .await;
        let rule = self.rule(call, method).unwrap_or_default();
        match (rule.fault(call.attempt()), rule.answer) {
            (Some(fault), _) => Err(fault),
            (None, Some(answer)) => Ok(answer),
            (None, None) if rule.healed => plain(method, without_flags(arguments)),
            (None, None) => plain(method, arguments),
        }
    }

    fn note(&self, call: &Call, arguments: &[Value]) {
        let mut outside = self.outside();
        let called = Called {
            step: outside.at.step,
            ..Called::new(call, arguments, outside.clock.now())
        };
        // A process that was killed in the middle of a call has noted it.
        if outside.notes.is_none() || !outside.log.iter().any(|known| known.is_repeated_by(&called)) {
            outside.write(&Note::Call(called.clone()));
            outside.log.push(called);
        }
    }

    fn rule(&self, call: &Call, method: &str) -> Option<Rule> {
        let outside = self.outside();
        let mut rules = outside.rules.iter();
        rules
            .find(|rule| rule.fits(call.state(), method, call.index()))
            .cloned()
    }

    /// Takes the time that the rule or the caller says, and is held as long as a rule says.
    async fn wait(&self, call: &Call, method: &str, asked: Duration) {
        let _out = Out::new(self);
        let rule = self.rule(call, method).unwrap_or_default();
        let takes = asked.max(Duration::from_millis(rule.takes_ms));
        if !takes.is_zero() {
            let end = {
                let mut outside = self.outside();
                let (clock, end) = (outside.clock.clone(), outside.clock.now().after(takes));
                let tried = calls::try_of(call);
                if !outside.ends.contains_key(&tried) {
                    outside.write(&Note::End(tried.clone(), end));
                }
                clock.sleep_until(*outside.ends.entry(tried).or_insert(end))
            };
            end.await;
        }
        let is_held = || self.rule(call, method).is_some_and(|rule| rule.held);
        if is_held() {
            self.outside().held += 1;
            let _held = Held(self.clone());
            while is_held() {
                tokio::task::yield_now().await;
            }
        }
    }

    /// Returns its third argument.
    async fn complex(&self, call: Call, arguments: Complex) -> Result<Option<People>, Fault> {
        let (name, age, people, array, list, map) = arguments;
        let seen = vec![
            json!(name),
            json!(age),
            json!(people),
            json!(array),
            json!(list),
            json!(map),
        ];
        self.note(&call, &seen);
        self.wait(&call, "complexParameterMethod", Duration::ZERO).await;
        let rule = self.rule(&call, "complexParameterMethod");
        match rule.and_then(|rule| rule.fault(call.attempt())) {
            Some(fault) => Err(fault),
            None => Ok(people),
        }
    }
}

/// Arguments of `complexParameterMethod`.
type Complex = (
    Option<String>,
    Option<u32>,
    Option<People>,
    Vec<People>,
    Vec<People>,
    BTreeMap<String, People>,
);

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct People {
    name: String,
    age: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    children_array: Vec<Self>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    children_list: Vec<Self>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    children_map: BTreeMap<String, Self>,
}

/// An error of a class below the one that Seata's files catch.
#[derive(Debug, thiserror::Error)]
#[error("below")]
struct BelowDemo;

/// Turns off what lets `demoService` fail.
fn without_flags(mut arguments: Vec<Value>) -> Vec<Value> {
    if let Some(Value::Object(flags)) = arguments.first_mut() {
        flags.remove("throwException");
    }
    arguments
}

/// What `demoService` does, as `MANIFEST.md` beside the definitions says.
fn demo(method: &str, arguments: Vec<Value>) -> Result<Value, Fault> {
    let argument = arguments.into_iter().next().unwrap_or_default();
    let is_thrown = argument.get("throwException").and_then(Value::as_str) == Some("true");
    match method {
        "interfaceParameterMethod" => Ok(argument),
        "randomExceptionMethod" => Err(Fault::new(DEMO_EXCEPTION, "random exception")),
        _ if is_thrown => Err(Fault::new(DEMO_EXCEPTION, format!("{method} execute failed"))),
        _ => Ok(argument),
    }
}

/// What the services of letters do.
fn letter(_: &str, _: Vec<Value>) -> Result<Value, Fault> {
    Ok(Value::Bool(true))
}

/// What the scripts of Seata's definitions say.
fn said(variables: &Map<String, Value>) -> Result<Value, Fault> {
    match variables.get("throwException") {
        Some(Value::Bool(true)) => Err(Fault::new("java.lang.RuntimeException", "test")),
        _ => Ok(json!(format!(
            "hello {}",
            variables.get("inputA").unwrap_or(&Value::Null)
        ))),
    }
}

/// Returns the scripts of a definition: the machine, and the state.
fn scripts(text: &[u8]) -> Vec<(String, String)> {
    let machine: Value = serde_json::from_slice(text).unwrap_or_default();
    let name = machine.get("Name").and_then(Value::as_str).unwrap_or_default();
    let states = machine.get("States").and_then(Value::as_object);
    let is_script = |state: &Value| state.get("Type").and_then(Value::as_str) == Some("ScriptTask");
    let scripts = states.into_iter().flatten().filter(|(_, state)| is_script(state));
    scripts.map(|(state, _)| (name.to_owned(), state.clone())).collect()
}

/// Returns the services and methods that a definition names, in either form of the files.
fn called(text: &[u8]) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut pending: Vec<Value> = vec![serde_json::from_slice(text).unwrap_or_default()];
    while let Some(value) = pending.pop() {
        let name = |key| value.get(key).and_then(Value::as_str).map(str::to_owned);
        found.extend(name("ServiceName").zip(name("ServiceMethod")));
        match value {
            Value::Object(members) => pending.extend(members.into_iter().map(|(_, member)| member)),
            Value::Array(items) => pending.extend(items),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    found
}
