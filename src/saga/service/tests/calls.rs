//! What a call comes to, made from a stage of an engine: values, faults, panics, time-outs.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::{self, LocalBoxFuture};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::super::call::{Call, CallParts, Element};
use super::super::record::FaultRecord;
use super::super::services::Services;
use super::OutOfFunds;
use crate::saga::{Fault, Network, Service};
use crate::testkit::{FaultPlan, Trouble, World};
use crate::{Procedure, StageContext, StageError, Step};

/// Makes the calls of its list in one stage, one after another.
#[derive(Clone, Serialize, Deserialize)]
struct Caller {
    calls: Vec<(String, String, Vec<Value>)>,
    element: Option<(usize, Value)>,
    compensates: bool,
}

impl Caller {
    fn call(&self, cx: &StageContext<'_, Self>, state: &str) -> Call {
        let element = self.element.clone();
        Call::new(CallParts {
            saga: cx.id(),
            member: cx.id(),
            machine: Arc::from("order"),
            state: Arc::from(state),
            attempt: cx.attempt(),
            element: element.map(|(index, value)| Element { index, value }),
            compensates: self.compensates,
            fence: cx.fence(),
            token: cx.token(),
            trace: "00-000000000000000000000000000000a1-00000000000000b7-01".parse().ok(),
        })
    }
}

impl Procedure for Caller {
    const KIND: &'static str = "caller";
    type Stage = ();
    type Env = Arc<Services>;
    type Output = Vec<Result<Value, FaultRecord>>;

    fn first(&self) {}

    async fn execute(&mut self, (): (), cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        let mut results = Vec::new();
        for (service, method, arguments) in self.calls.clone() {
            let call = self.call(cx, &method);
            results.push(cx.env().call(cx, &service, &method, arguments, call).await);
        }
        Ok(Step::Done(results))
    }
}

/// The results of a caller, and the time that its calls took.
fn called(services: Services, caller: Caller) -> Result<(Vec<Result<Value, FaultRecord>>, Duration), Trouble> {
    let services = Arc::new(services);
    World::new()
        .run(
            FaultPlan::none(),
            |builder| builder.register::<Caller>(services),
            async |run| {
                let begun = run.now();
                let handle = run.wait(run.executor.submit(caller)).await??;
                let results = run.wait(handle).await??;
                Ok((results, run.now().since(begun)))
            },
        )?
        .done()
}

/// The results of calls of the service "s", by method.
fn results(services: Services, calls: &[(&str, Value)]) -> Result<Vec<String>, Trouble> {
    let calls = calls.iter().map(|(method, arguments)| {
        let arguments = arguments.as_array().cloned().unwrap_or_default();
        ("s".to_owned(), (*method).to_owned(), arguments)
    });
    let caller = Caller {
        calls: calls.collect(),
        element: None,
        compensates: false,
    };
    let (results, _) = called(services, caller)?;
    Ok(results.into_iter().map(shown).collect())
}

fn shown(result: Result<Value, FaultRecord>) -> String {
    match result {
        Ok(value) => value.to_string(),
        Err(fault) => match fault.network {
            Some(network) => format!("{}: {} ({network:?})", fault.class, fault.message),
            None => format!("{}: {}", fault.class, fault.message),
        },
    }
}

/// Panics before there is a future.
struct Hasty;

impl Service for Hasty {
    fn methods(&self) -> &[&str] {
        &["hasty", "deep"]
    }

    fn call(&self, method: &str, _: Vec<Value>, _: Call) -> LocalBoxFuture<'_, Result<Value, Fault>> {
        assert_ne!(method, "hasty", "no future");
        Box::pin(future::ready(Ok((0..200).fold(Value::Null, |inner, _| json!([inner])))))
    }
}

fn panicking() -> Value {
    panic!("no paper")
}

#[test]
fn each_call_comes_to_a_value_or_a_fault() -> Result<(), Trouble> {
    let mut services = Services::default();
    services.method("s", "join", async |_, (a, b): (String, u32)| Ok(format!("{a}{b}")));
    services.method("s", "raw", async |_, list: Vec<Value>| Ok(list.len()));
    services.method("s", "unit", async |_, ()| Ok(()));
    services.method("s", "none", async |_, ()| Ok(None::<u8>));
    services.method("s", "nan", async |_, ()| Ok(json_of(f64::NAN)));
    services.method("s", "boom", async |_, ()| {
        Err::<(), _>(Fault::new("x.Boom", "boom").network(Network::Refused))
    });
    services.method("s", "funds", async |_, ()| Err::<(), _>(OutOfFunds.into()));
    services.method("s", "panic", async |_, ()| {
        tokio::task::yield_now().await;
        Ok(panicking())
    });
    services.method("s", "odd", async |_, ()| -> Result<(), Fault> {
        std::panic::panic_any(7)
    });
    services.service("s", Hasty);
    services.fault::<OutOfFunds>("com.acme.OutOfFunds", "java.lang.Exception");
    let rows = [
        ("join", json!(["a", 7]), "\"a7\""),
        ("raw", json!([null, 1, [2]]), "3"),
        ("unit", json!([]), "null"),
        ("none", json!([1]), "null"),
        (
            "join",
            json!(["a", "b"]),
            "procession.BadArguments: method [join] of service [s]: argument 2: invalid type: string \"b\", expected u32",
        ),
        (
            "nan",
            json!([]),
            "procession.BadResult: method [nan] of service [s]: its result is no JSON: it is NaN at /x, which JSON \
             lacks; return null or a text instead",
        ),
        ("boom", json!([]), "x.Boom: boom (Refused)"),
        ("funds", json!([]), "com.acme.OutOfFunds: out of funds"),
        (
            "panic",
            json!([]),
            "procession.Panic: method [panic] of service [s] panicked: no paper",
        ),
        (
            "odd",
            json!([]),
            "procession.Panic: method [odd] of service [s] panicked: without a text",
        ),
        (
            "deep",
            json!([]),
            "procession.BadResult: method [deep] of service [s]: its result is no JSON: it is nested more than 100 deep",
        ),
        (
            "lost",
            json!([]),
            "procession.Missing: method [lost] of service [s] is not registered",
        ),
        // The worker lives on.
        ("unit", json!([]), "null"),
    ];
    let calls = rows.clone().map(|(method, arguments, _)| (method, arguments));
    assert_eq!(
        results(services, &calls)?,
        rows.map(|(_, _, expected)| expected.to_owned())
    );
    Ok(())
}

#[derive(Serialize)]
struct Measured {
    x: f64,
}

fn json_of(x: f64) -> Measured {
    Measured { x }
}

#[test]
fn a_panic_before_the_future_is_a_fault() -> Result<(), Trouble> {
    let mut services = Services::default();
    services.service("s", Hasty);
    let found = results(services, &[("hasty", json!([]))])?;
    let [fault] = found.as_slice() else {
        return Err("there is one call".into());
    };
    let begin = "procession.Panic: method [hasty] of service [s] panicked: assertion `left != right` failed: no future";
    assert!(fault.starts_with(begin), "{fault}");
    Ok(())
}

/// By the engine's clock, here a simulated one.
#[test]
fn a_call_over_its_time_is_a_read_time_out() -> Result<(), Trouble> {
    let mut services = Services::default();
    services.method("slow", "wait", async |_, ()| {
        future::pending::<Result<(), Fault>>().await
    });
    services.method("slow", "at_once", async |_, ()| Ok("here"));
    services.call_timeout("slow", Duration::from_millis(1_500));
    let call = |method: &str| ("slow".to_owned(), method.to_owned(), Vec::new());
    let caller = Caller {
        calls: vec![call("wait"), call("at_once"), call("wait")],
        element: None,
        compensates: false,
    };
    let (results, took) = called(services, caller)?;
    let late = "procession.Timeout: method [wait] of service [slow] timed out after 1.5 s (ReadTimeout)";
    let results: Vec<String> = results.into_iter().map(shown).collect();
    assert_eq!(results, [late, "\"here\"", late]);
    assert_eq!(took, Duration::from_secs(3));
    Ok(())
}

/// What a service is told, as text.
fn told(call: &Call) -> Value {
    json!({
        "same": call.saga() == call.member(),
        "machine": call.machine(),
        "state": call.state(),
        "attempt": call.attempt(),
        "index": call.index(),
        "element": call.element(),
        "compensates": call.compensates(),
        "trace": call.trace_parent().map(|trace| trace.to_string()),
    })
}

#[test]
fn a_call_tells_who_makes_it() -> Result<(), Trouble> {
    let trace = "00-000000000000000000000000000000a1-00000000000000b7-01";
    let rows = [
        (
            None,
            false,
            json!({ "index": null, "element": null, "compensates": false }),
        ),
        (
            Some((3, json!("e"))),
            true,
            json!({ "index": 3, "element": "e", "compensates": true }),
        ),
    ];
    for (element, compensates, own) in rows {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&seen);
        let mut services = Services::default();
        services.method("s", "tell", async move |call, ()| {
            kept.lock().unwrap_or_else(PoisonError::into_inner).push(call.clone());
            Ok(told(&call))
        });
        let call = ("s".to_owned(), "tell".to_owned(), Vec::new());
        let caller = Caller {
            calls: vec![call.clone(), call],
            element,
            compensates,
        };
        let (results, _) = called(services, caller)?;
        let mut expected = json!({ "same": true, "machine": "order", "state": "tell", "attempt": 1, "trace": trace });
        for (key, value) in own.as_object().into_iter().flatten() {
            expected[key] = value.clone();
        }
        assert_eq!(results, [Ok(expected.clone()), Ok(expected)]);
        let seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        let [first, second] = seen.as_slice() else {
            return Err("there are two calls".into());
        };
        assert_eq!((first.token(), first.fence()), (second.token(), second.fence()));
        let token = first.token().to_string();
        let (stage, is_marked) = match token.strip_suffix("-c") {
            Some(stage) => (stage, true),
            None => (token.as_str(), false),
        };
        assert_eq!(is_marked, compensates);
        // Store, procedure, visit.
        let visit = stage.rsplit('-').next();
        assert_eq!(
            (visit, stage.contains(&first.saga().to_string())),
            (Some("0"), true),
            "{token}"
        );
    }
    Ok(())
}

#[test]
fn scripts_are_called_with_the_same_care() {
    let mut services = Services::default();
    services.fault::<OutOfFunds>("com.acme.OutOfFunds", "java.lang.Exception");
    services.script("m", "hello", |v| Ok(json!(format!("hello {}", v["a"]))));
    services.script("m", "funds", |_| Err(OutOfFunds.into()));
    services.script("m", "boom", |_| {
        Err(Fault::new("x.Boom", "boom").network(Network::ReadTimeout))
    });
    services.script("m", "panic", |_| Ok(panicking()));
    services.script("m", "deep", |_| {
        Ok((0..200).fold(Value::Null, |inner, _| json!([inner])))
    });
    let variables: Map<String, Value> = Map::from_iter([("a".to_owned(), json!(1))]);
    let rows = [
        ("hello", "\"hello 1\""),
        ("funds", "com.acme.OutOfFunds: out of funds"),
        ("boom", "x.Boom: boom (ReadTimeout)"),
        (
            "panic",
            "procession.Panic: script of state [panic] of machine [m] panicked: no paper",
        ),
        (
            "deep",
            "procession.BadResult: script of state [deep] of machine [m]: its result is no JSON: it is nested more than \
             100 deep",
        ),
        (
            "lost",
            "procession.Missing: script of state [lost] of machine [m] is not registered",
        ),
    ];
    for (state, expected) in rows {
        assert_eq!(shown(services.run_script("m", state, &variables)), expected);
    }
}
