//! What is registered, what is not, and what was registered in contradiction.

use std::time::Duration;

use futures::FutureExt;
use futures::future::LocalBoxFuture;
use serde_json::Value;

use super::super::services::Services;
use super::{OutOfFunds, OutOfStock};
use crate::saga::{Call, Fault, Service};

struct Methods(&'static [&'static str]);

impl Service for Methods {
    fn methods(&self) -> &[&str] {
        self.0
    }

    fn call(&self, method: &str, _: Vec<Value>, _: Call) -> LocalBoxFuture<'_, Result<Value, Fault>> {
        let name = method.to_owned();
        async { Ok(Value::String(name)) }.boxed_local()
    }
}

fn services() -> Services {
    let mut services = Services::default();
    services.service("stock", Methods(&["reduce", "increase"]));
    services.method("stock", "count", async |_, ()| Ok(3));
    services.method("bank", "pay", async |_, ()| Ok(()));
    services.service("idle", Methods(&[]));
    let many = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"];
    many.iter()
        .for_each(|method| services.method("many", method, async |_, ()| Ok(())));
    services.script("machine", "Script", |_| Ok(Value::Null));
    services
}

/// Text and hint of what is missing. Whatever is near is the first name of the list.
fn missing(services: &Services, service: &str, method: &str) -> Option<(String, String)> {
    let missing = services.find(service, method).err()?;
    let hint = missing.hint(|word, mut names, otherwise| {
        let near = Iterator::find(&mut names, |name| word.starts_with(name));
        near.map_or_else(|| otherwise.to_owned(), |near| format!("did you mean [{near}]?"))
    });
    Some((missing.to_string(), hint))
}

#[test]
fn what_is_missing_is_told_with_a_hint() {
    let long = "x".repeat(1_000);
    let cut = format!("service [{}…] is not registered", "x".repeat(128));
    let rows = [
        ("stock", "reduce", None),
        ("stock", "increase", None),
        ("stock", "count", None),
        ("bank", "pay", None),
        (
            "bank",
            "play",
            Some(("service [bank] has no method [play]", "it has pay")),
        ),
        (
            "stock",
            "",
            Some(("service [stock] has no method []", "it has count, increase, reduce")),
        ),
        ("idle", "x", Some(("service [idle] has no method [x]", "it has none"))),
        (
            "many",
            "x",
            Some((
                "service [many] has no method [x]",
                "it has a, b, c, d, e, f, g, h, i, j and 2 more",
            )),
        ),
        (
            "stocks",
            "reduce",
            Some(("service [stocks] is not registered", "did you mean [stock]?")),
        ),
        ("shop", "buy", Some(("service [shop] is not registered", "register it"))),
        (
            "a\nb",
            "buy",
            Some(("service [a\\nb] is not registered", "register it")),
        ),
        (&long, "buy", Some((cut.as_str(), "register it"))),
    ];
    let services = services();
    for (service, method, expected) in rows {
        let expected = expected.map(|(text, hint)| (text.to_owned(), hint.to_owned()));
        assert_eq!(missing(&services, service, method), expected, "{service}.{method}");
    }
}

#[test]
fn scripts_are_known_by_machine_and_state() {
    let services = services();
    let rows = [
        ("machine", "Script", true),
        ("machine", "Other", false),
        ("other", "Script", false),
    ];
    for (machine, state, expected) in rows {
        assert_eq!(services.has_script(machine, state), expected, "{machine}.{state}");
    }
}

#[test]
fn what_contradicts_is_told() {
    let mut services = services();
    assert_eq!(services.mistakes(), [""; 0]);
    services.method("stock", "reduce", async |_, ()| Ok(()));
    services.service("bank", Methods(&["pay", "repay"]));
    services.script("machine", "Script", |_| Ok(Value::Null));
    services.script("machine", "Other", |_| Ok(Value::Null));
    services.fault::<OutOfFunds>("x.Broke", "java.lang.Exception");
    services.fault::<OutOfStock>("x.Broke", "java.lang.Error");
    services.call_timeout("bank", Duration::from_secs(1));
    services.call_timeout("bank", Duration::from_secs(2));
    services.call_timeout("shop", Duration::from_secs(1));
    let expected = [
        "method [reduce] of service [stock] is registered twice; keep one",
        "method [pay] of service [bank] is registered twice; keep one",
        "script of state [Script] of machine [machine] is registered twice; keep one",
        "class [x.Broke] is registered below [java.lang.Error], and it is below [java.lang.Exception]; give both the \
         same parent",
        "service [shop] has a call_timeout and is not registered; register it, or leave the time-out out",
    ];
    assert_eq!(services.mistakes(), expected);
    assert!(services.knows_class("x.Broke") && services.has_script("machine", "Other"));
    assert!(services.find("bank", "repay").is_ok());
    // A service may be registered after its time-out.
    services.method("shop", "buy", async |_, ()| Ok(()));
    assert_eq!(services.mistakes(), expected[..4]);
}

#[test]
fn services_are_shared_by_threads() {
    fn is_shared<T: Send + Sync + 'static>() {}
    is_shared::<Services>();
}
