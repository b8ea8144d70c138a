//! Trips as sagas from a file: a flight, a hotel and a car are booked at once, each by an HTTP service of its own.
//!
//! ```text
//! cargo run --example travel --features dashboard,saga-http
//! curl -X POST -H 'content-type: application/json' -d '{"to":"Oslo","nights":2}' localhost:8080/trips
//! curl localhost:8080/trips/1.0
//! ```
//! The services are in the same process, at `/services`, so that they can be broken. Try this:
//!
//! - `curl -X POST localhost:8080/faults/cars/down`, then another trip: flight and hotel are booked, and the trip rests at
//!   `Car`. The dashboard at <http://localhost:8080/ops/procedures> shows where, and why.
//! - Mend it with `…/faults/cars/up`, and let the trip go on: `curl -X POST localhost:8080/trips/ID/forward`. What was
//!   booked is not booked again.
//! - Or undo it: `curl -X POST localhost:8080/trips/ID/compensate`.
//! - `…/faults/hotels/sold_out`, then another trip: `travel.json` catches that, and all is undone by itself.
//! - Kill the process in the middle of a trip, and start it again.
#![expect(clippy::print_stdout, reason = "an example talks")]

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use actix_web::http::StatusCode;
use actix_web::{App, HttpRequest, HttpResponse, HttpServer, web};
use procession::dashboard::Dashboard;
use procession::errors::AskError;
use procession::operate::OperatorRequest;
use procession::saga::{DefinitionErrors, Endpoint, Sagas};
use procession::{Executor, ProcedureId};
use serde_json::{Value, json};

const DEFINITION: &str = include_str!("travel.json");

/// Registers the definition and its services, which are reached at this address.
fn sagas(address: &str) -> Result<Sagas, DefinitionErrors> {
    let endpoint = |service: &str| {
        Endpoint::new(format!("http://{address}/services/{service}/{{method}}"))
            .timeout(Duration::from_secs(2))
            .fault("http.410", "travel.SoldOut")
    };
    Sagas::builder()
        .json("travel.json", DEFINITION)
        .http("flights", endpoint("flights"))
        .http("hotels", endpoint("hotels"))
        .http("cars", endpoint("cars"))
        .build()
}

/// What the services remember: how each is broken, and what was booked, by the key of the call.
#[derive(Default)]
struct Outside {
    faults: BTreeMap<String, String>,
    booked: BTreeMap<String, String>,
}

type Shared = web::Data<Mutex<Outside>>;

/// A call of a service. It is made at least once, so its key says whether it was made before.
async fn serve(
    outside: Shared,
    path: web::Path<(String, String)>,
    arguments: web::Json<Vec<Value>>,
    request: HttpRequest,
) -> HttpResponse {
    let (service, method) = path.into_inner();
    let key = request
        .headers()
        .get("idempotency-key")
        .and_then(|key| key.to_str().ok())
        .unwrap_or_default();
    let mut outside = outside.lock().unwrap_or_else(PoisonError::into_inner);
    match outside.faults.get(&service).map(String::as_str) {
        Some("sold_out") if method == "book" => return HttpResponse::Gone().body("sold out"),
        Some("down") => return HttpResponse::ServiceUnavailable().body("out of order"),
        _ => {}
    }
    if method == "book" {
        let booking = format!("{service} {} for {key}", arguments.first().unwrap_or(&Value::Null));
        let booking = outside.booked.entry(key.to_owned()).or_insert(booking);
        return HttpResponse::Ok().json(booking);
    }
    // The key of a compensator is that of the state which it undoes, with a mark.
    outside.booked.remove(key.trim_end_matches("-c"));
    HttpResponse::NoContent().finish()
}

async fn set_fault(outside: Shared, path: web::Path<(String, String)>) -> HttpResponse {
    let (service, fault) = path.into_inner();
    let mut outside = outside.lock().unwrap_or_else(PoisonError::into_inner);
    outside.faults.insert(service, fault);
    HttpResponse::NoContent().finish()
}

struct Host {
    executor: Executor,
    sagas: Sagas,
}

type Trips = web::Data<Host>;

/// Starts a trip, and answers once it is on disk.
async fn submit(host: Trips, params: web::Json<Value>) -> HttpResponse {
    let trip = host.sagas.machine("travel").map_err(|error| error.to_string());
    let trip = trip.and_then(|trip| trip.params(&*params).map_err(|error| error.to_string()));
    let trip = match trip {
        Ok(trip) => trip,
        Err(error) => return HttpResponse::BadRequest().json(json!({ "error": error })),
    };
    match host.executor.submit(trip).await {
        Ok(handle) => HttpResponse::Accepted().json(json!({ "id": handle.id().to_string() })),
        Err(error) => HttpResponse::ServiceUnavailable().json(json!({ "error": error.to_string() })),
    }
}

async fn show(host: Trips, id: web::Path<String>) -> HttpResponse {
    let Ok(id) = id.parse::<ProcedureId>() else {
        return HttpResponse::BadRequest().json(json!({ "error": "a trip's id reads like 1.0" }));
    };
    match host.executor.saga(id).instance().await {
        Ok(instance) => HttpResponse::Ok().json(json!({
            "status": instance.status.to_string(),
            "compensation": instance.compensation.map(|status| status.to_string()),
            "sentence": instance.sentence(),
            "context": instance.context,
        })),
        Err(error) => refuse(&error),
    }
}

async fn decide(host: Trips, path: web::Path<(String, String)>) -> HttpResponse {
    let (id, decision) = path.into_inner();
    let Ok(id) = id.parse::<ProcedureId>() else {
        return HttpResponse::BadRequest().json(json!({ "error": "a trip's id reads like 1.0" }));
    };
    let (saga, by) = (host.executor.saga(id), OperatorRequest::new("curl", "decided by hand"));
    let decided = match decision.as_str() {
        "forward" => saga
            .forward(&json!({}), by)
            .await
            .map(drop)
            .map_err(|error| error.to_string()),
        "compensate" => saga.compensate(by).await.map(drop).map_err(|error| error.to_string()),
        _ => Err("forward or compensate it".to_owned()),
    };
    match decided {
        Ok(()) => HttpResponse::NoContent().finish(),
        Err(error) => HttpResponse::Conflict().json(json!({ "error": error })),
    }
}

fn refuse(error: &AskError) -> HttpResponse {
    let status = match matches!(error, AskError::Unknown(_)) {
        true => StatusCode::NOT_FOUND,
        false => StatusCode::SERVICE_UNAVAILABLE,
    };
    HttpResponse::build(status).json(json!({ "error": error.to_string() }))
}

/// The services, and what the host makes of them.
fn routes(config: &mut web::ServiceConfig) {
    config
        .route("/services/{service}/{method}", web::post().to(serve))
        .route("/faults/{service}/{fault}", web::post().to(set_fault))
        .route("/trips", web::post().to(submit))
        .route("/trips/{id}", web::get().to(show))
        .route("/trips/{id}/{decision}", web::post().to(decide));
}

#[actix_web::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let sagas = sagas("127.0.0.1:8080")?;
    let executor = Executor::builder("data/travel").sagas(sagas.clone()).start().await?;
    let dashboard = Dashboard::builder(&executor).local_only().start().await?;
    let host = web::Data::new(Host {
        executor: executor.clone(),
        sagas,
    });
    let (outside, shown) = (Shared::default(), dashboard.clone());
    let server = HttpServer::new(move || {
        App::new()
            .app_data(host.clone())
            .app_data(outside.clone())
            .configure(routes)
            .service(web::scope("/ops/procedures").configure(shown.routes()))
    });
    let server = server.disable_signals().bind(("127.0.0.1", 8080))?.workers(1).run();
    let stop = server.handle();
    actix_rt::spawn(async move {
        actix_rt::signal::ctrl_c().await.ok();
        dashboard.close();
        stop.stop(true).await;
    });
    println!("trips: http://localhost:8080/trips");
    println!("dashboard: http://localhost:8080/ops/procedures");
    server.await?;
    executor.drain(Duration::from_secs(10)).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use procession::saga::{SagaStatus, Settled};

    use super::*;

    type Tested = Result<(), Box<dyn Error>>;

    /// A car that is out of order leaves the trip at rest; it goes on once the car is mended. Another trip is undone.
    #[test]
    fn a_trip_rests_goes_on_and_is_undone() -> Tested {
        let directory = tempfile::tempdir()?;
        actix_rt::System::new().block_on(async {
            let outside = Shared::default();
            let seen = outside.clone();
            let server = HttpServer::new(move || App::new().app_data(seen.clone()).configure(routes)).workers(1);
            let server = server.bind(("127.0.0.1", 0))?;
            let address = server.addrs().first().ok_or("it has an address")?.to_string();
            let server = server.run();
            let stop = server.handle();
            actix_rt::spawn(server);
            let sagas = sagas(&address)?;
            let executor = Executor::builder(directory.path()).sagas(sagas.clone()).start().await?;
            let begin = async || {
                let trip = sagas.machine("travel")?.params(&json!({ "to": "Oslo", "nights": 2 }))?;
                Ok::<_, Box<dyn Error>>(executor.saga(executor.submit(trip).await?.id()))
            };
            let set = |service: &str, fault: &str| {
                let mut outside = outside.lock().unwrap_or_else(PoisonError::into_inner);
                outside.faults.insert(service.to_owned(), fault.to_owned());
            };
            let booked = || outside.lock().unwrap_or_else(PoisonError::into_inner).booked.len();

            set("cars", "down");
            let trip = begin().await?;
            let Settled::Rests(rests) = trip.settled().await? else {
                return Err("it rests".into());
            };
            assert_eq!((rests[0].state.as_str(), booked()), ("Car", 2));
            set("cars", "up");
            trip.forward(&json!({}), OperatorRequest::new("ann", "a car is there"))
                .await?;
            assert_eq!((trip.outcome().await?.status, booked()), (SagaStatus::Success, 3));

            set("hotels", "sold_out");
            let outcome = begin().await?.outcome().await?;
            let code = outcome.error.and_then(|error| error.code);
            assert_eq!(
                (outcome.compensation, code.as_deref()),
                (Some(SagaStatus::Success), Some("SOLD_OUT"))
            );
            assert_eq!(booked(), 3, "nothing of the second trip is left");
            executor.drain(Duration::from_secs(10)).await?;
            stop.stop(false).await;
            Ok(())
        })
    }
}
