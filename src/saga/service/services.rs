//! All services and scripts of a host, by name: registered once, then called by every saga.

use std::collections::{BTreeMap, HashMap};
use std::error::Error;
use std::fmt::{self, Display};
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use procession_actors::CallContext;
use serde::Serialize;
use serde_json::{Map, Value};

use super::arguments::BAD_ARGUMENTS;
use super::classes::Classes;
use super::method::{Closure, Method, MethodName, Several, no_json};
use super::missing::Missing;
use super::record::{BAD_RESULT, FaultRecord};
use super::{Arguments, Call, Fault, Service, json};

/// The class of a call of what is not registered. What runs machines looks before, so none is made.
const MISSING: &str = "procession.Missing";

/// What states call. It does not change once sagas run.
#[derive(Default)]
pub(in crate::saga) struct Services {
    services: BTreeMap<String, Registered>,
    timeouts: BTreeMap<String, Duration>,
    /// By machine, then by state.
    scripts: HashMap<String, HashMap<String, Box<Script>>>,
    classes: Classes,
    mistakes: Vec<String>,
}

/// What is registered under the name of a service.
#[derive(Default)]
struct Registered {
    methods: BTreeMap<String, Box<dyn Method>>,
    /// They may have methods beside those that they list.
    services: Vec<Several>,
}

type Script = dyn Fn(&Map<String, Value>) -> Result<Value, Fault> + Send + Sync;

/// Registering. If a name is given twice, the first stays, and `mistakes` reports the second.
impl Services {
    pub(in crate::saga) fn method<A, R, F>(&mut self, service: &str, method: &str, run: F)
    where
        A: Arguments + 'static,
        R: Serialize + 'static,
        F: AsyncFn(Call, A) -> Result<R, Fault> + Send + Sync + 'static,
    {
        let types = PhantomData;
        self.add(service, method, Box::new(Closure { run, types }));
    }

    /// Adds a service with all its methods. Other methods of the same name may come from elsewhere.
    pub(in crate::saga) fn service(&mut self, name: &str, service: impl Service) {
        let service: Arc<dyn Service> = Arc::new(service);
        for method in service.methods() {
            self.add(name, method, Box::new(Several(Arc::clone(&service))));
        }
        let registered = self.services.entry(name.to_owned()).or_default();
        registered.services.push(Several(service));
    }

    fn add(&mut self, service: &str, name: &str, method: Box<dyn Method>) {
        let registered = self.services.entry(service.to_owned()).or_default();
        if registered.methods.contains_key(name) {
            let twice = MethodName { service, method: name };
            self.mistakes.push(format!("{twice} is registered twice; keep one"));
            return;
        }
        registered.methods.insert(name.to_owned(), method);
    }

    #[cfg(feature = "saga-http")]
    pub(in crate::saga) fn http(&mut self, name: &str, endpoint: super::Endpoint) {
        let (service, mistake) = endpoint.into_service();
        let mistake = mistake.map(|why| format!("service [{name}] cannot be reached: {why}"));
        self.mistakes.extend(mistake);
        self.service(name, service);
    }

    pub(in crate::saga) fn script<F>(&mut self, machine: &str, state: &str, run: F)
    where
        F: Fn(&Map<String, Value>) -> Result<Value, Fault> + Send + Sync + 'static,
    {
        let scripts = self.scripts.entry(machine.to_owned()).or_default();
        if scripts.contains_key(state) {
            let twice = ScriptName { machine, state };
            self.mistakes.push(format!("{twice} is registered twice; keep one"));
            return;
        }
        scripts.insert(state.to_owned(), Box::new(run));
    }

    /// Registers a class for errors of a type.
    pub(in crate::saga) fn fault<E: Error + 'static>(&mut self, class: &str, parent: &str) {
        if let Err(mistake) = self.classes.register::<E>(class, parent) {
            self.mistakes.push(mistake);
        }
    }

    /// Limits each call of a service. The last limit counts.
    pub(in crate::saga) fn call_timeout(&mut self, service: &str, time: Duration) {
        self.timeouts.insert(service.to_owned(), time);
    }

    /// Returns what was registered twice or contradicts something else, a sentence each.
    pub(in crate::saga) fn mistakes(&self) -> Vec<String> {
        let unknown = self.timeouts.keys().filter(|name| !self.services.contains_key(*name));
        let unknown = unknown.map(|name| {
            format!("service [{name}] has a call_timeout and is not registered; register it, or leave the time-out out")
        });
        self.mistakes.iter().cloned().chain(unknown).collect()
    }
}

impl Services {
    /// Checks that a method is there.
    ///
    /// # Errors
    ///
    /// [`Missing`] says what is not.
    pub(in crate::saga) fn find<'a>(&'a self, service: &'a str, method: &'a str) -> Result<(), Missing<'a>> {
        match self.get(service, method) {
            Some(_) => Ok(()),
            None => Err(Missing::new(self, service, method)),
        }
    }

    pub(in crate::saga) fn has_script(&self, machine: &str, state: &str) -> bool {
        self.get_script(machine, state).is_some()
    }

    pub(in crate::saga) const fn classes(&self) -> &Classes {
        &self.classes
    }

    /// Returns whether anything says what a class is, so that a definition may name it with effect.
    pub(in crate::saga) fn knows_class(&self, class: &str) -> bool {
        self.classes.knows(class)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.services.keys().map(String::as_str)
    }

    pub(super) fn methods_of(&self, service: &str) -> Option<impl Iterator<Item = &str>> {
        let registered = self.services.get(service)?;
        Some(registered.methods.keys().map(String::as_str))
    }

    fn get(&self, service: &str, method: &str) -> Option<&dyn Method> {
        let registered = self.services.get(service)?;
        if let Some(method) = registered.methods.get(method) {
            return Some(&**method);
        }
        let mut services = registered.services.iter();
        let service = services.find(|service| service.0.has_method(method))?;
        Some(service)
    }

    fn get_script(&self, machine: &str, state: &str) -> Option<&Script> {
        let script = self.scripts.get(machine)?.get(state)?;
        Some(&**script)
    }
}

/// Calling. Whatever users' code does comes back as a fault.
impl Services {
    /// Calls a method once, for as long as its service may take by the engine's clock.
    ///
    /// # Errors
    ///
    /// The fault of the call. A panic, a time-out, arguments of other types and a result that is no JSON are faults too.
    pub(in crate::saga) async fn call(
        &self,
        cx: &CallContext<'_>,
        service: &str,
        method: &str,
        arguments: Vec<Value>,
        call: Call,
    ) -> Result<Value, FaultRecord> {
        let name = MethodName { service, method };
        let Some(found) = self.get(service, method) else {
            return Err(FaultRecord::new(
                MISSING,
                format_args!("{name} is not registered"),
                None,
            ));
        };
        // The method is called inside the future, so that a panic before there is another one is caught as well.
        let called = AssertUnwindSafe(async { found.call(method, arguments, call).await }).catch_unwind();
        let ended = match self.timeouts.get(service) {
            Some(time) => cx.within(*time, called).await,
            None => Ok(called.await),
        };
        match ended {
            Ok(Ok(result)) => result.map_err(|fault| self.record(name, fault)),
            Ok(Err(panic)) => Err(FaultRecord::panicked(name, &*panic)),
            Err(elapsed) => Err(FaultRecord::timed_out(name, elapsed)),
        }
    }

    /// Runs a script on the thread of the caller.
    ///
    /// # Errors
    ///
    /// As [`Services::call`], without a time limit.
    pub(in crate::saga) fn run_script(
        &self,
        machine: &str,
        state: &str,
        variables: &Map<String, Value>,
    ) -> Result<Value, FaultRecord> {
        let name = ScriptName { machine, state };
        let Some(script) = self.get_script(machine, state) else {
            return Err(FaultRecord::new(
                MISSING,
                format_args!("{name} is not registered"),
                None,
            ));
        };
        let ended = catch_unwind(AssertUnwindSafe(|| {
            let result = script(variables)?;
            json::check(&result).map_err(no_json)?;
            Ok(result)
        }));
        match ended {
            Ok(result) => result.map_err(|fault| self.record(name, fault)),
            Err(panic) => Err(FaultRecord::panicked(name, &*panic)),
        }
    }

    /// Records a fault. One that this module has made does not know yet which call it is about.
    fn record(&self, name: impl Display, fault: Fault) -> FaultRecord {
        match fault.class() {
            BAD_ARGUMENTS | BAD_RESULT => self.classes.record(fault.within(name)),
            _ => self.classes.record(fault),
        }
    }
}

/// Which script, for a sentence.
#[derive(Clone, Copy)]
struct ScriptName<'a> {
    machine: &'a str,
    state: &'a str,
}

impl Display for ScriptName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "script of state [{}] of machine [{}]", self.state, self.machine)
    }
}
