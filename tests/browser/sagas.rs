//! Sagas of the journeys, and the services that they call.

use std::future::IntoFuture;

use procession::saga::{Call, Fault, Sagas};
use procession::testkit::{Run, Trouble};
use serde_json::Value;

use crate::kinds;

/// Services that fail with the class that they are told, until they are repaired.
pub(crate) fn sagas() -> Result<Sagas, Trouble> {
    let mut sagas = Sagas::builder()
        .json("order.json", include_str!("../dashboard/machines/order.json"))
        .json("tour.json", include_str!("../dashboard/machines/tour.json"))
        .json("drawn.json", include_str!("drawn.json"));
    for method in [
        "reserve", "release", "pay", "refund", "wrap", "plan", "flight", "room", "cancel", "mail",
    ] {
        sagas = sagas.method("shop", method, async |_: Call, (how,): (Option<String>,)| {
            match how.as_deref() {
                None | Some("ok") => Ok("done"),
                Some(_) if kinds::is_repaired() => Ok("done at last"),
                Some(class) => Err(Fault::new(class, "the shop said no")),
            }
        });
    }
    Ok(sagas.build()?)
}

/// Starts a saga; returns its id once it rests or has ended.
pub(crate) async fn start(run: &Run, machine: &str, params: &Value) -> Result<Value, Trouble> {
    let saga = sagas()?.machine(machine)?.params(params)?;
    let started = run.executor.submit(saga).into_future();
    let handle = run.wait(started).await??;
    run.settle().await;
    Ok(Value::from(handle.id().to_string()))
}
