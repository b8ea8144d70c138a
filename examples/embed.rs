//! An actix-web service that embeds the engine.
//!
//! ```text
//! cargo run --example embed
//! curl -X POST -H 'content-type: application/json' -d '{"item":"tea","pieces":3}' localhost:8080/orders
//! curl localhost:8080/orders/1.0
//! curl localhost:8080/metrics
//! ```
//! `POST /orders` submits a procedure by message and answers with its id as soon
//! as the order is on disk; `GET /orders/{id}` tells where it stands, and how it
//! ended. The dashboard is at <http://localhost:8080/ops/procedures>, behind the service's own login:
//! `ann` may do everything, `bob` may look, and the password is in `EMBED_PASSWORD`, or else made up and
//! printed. Ctrl-C stops the server and drains the engine; what is left goes on at the next start.
#![expect(clippy::print_stdout, reason = "an example talks")]

use std::error::Error;
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use actix::Addr;
use actix_web::dev::ServiceRequest;
use actix_web::{App, HttpMessage, HttpRequest, HttpResponse, HttpServer, web};
use actix_web_httpauth::extractors::AuthenticationError;
use actix_web_httpauth::extractors::basic::BasicAuth;
use actix_web_httpauth::headers::www_authenticate::basic::Basic;
use actix_web_httpauth::middleware::HttpAuthentication;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use procession::dashboard::{Dashboard, Grant};
use procession::messages::{AwaitOutcome, Query, Submit};
use procession::{AskError, Executor, Procedure, ProcedureId, StageContext, StageError, Step, SubmitError, Supervisor};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Keyspace of the stock: item → pieces reserved.
const RESERVED: &str = "reserved";
/// More than this of one item is never there.
const STOCK: u32 = 100;

#[derive(Debug, Serialize, Deserialize)]
struct Order {
    item: String,
    pieces: u32,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Stage {
    Reserve,
    Ship,
}

impl Procedure for Order {
    const KIND: &'static str = "order";
    type Stage = Stage;
    type Env = ();
    type Output = String;

    fn first(&self) -> Stage {
        Stage::Reserve
    }

    async fn execute(&mut self, stage: Stage, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        match stage {
            Stage::Reserve => {
                cx.put(RESERVED, cx.id().to_string(), self)?;
                Ok(Step::Next(Stage::Ship))
            }
            Stage::Ship if self.pieces > STOCK => Err(StageError::fail("there are not so many pieces")),
            Stage::Ship => Ok(Step::Done(format!("{} x {} shipped", self.pieces, self.item))),
        }
    }

    async fn rollback(&mut self, stage: Stage, cx: &mut StageContext<'_, Self>) -> Result<(), StageError> {
        match stage {
            Stage::Reserve => cx.delete(RESERVED, cx.id().to_string()),
            Stage::Ship => {}
        }
        Ok(())
    }
}

/// Where an order stands.
#[derive(Serialize)]
struct Answer {
    id: String,
    state: String,
    stage: String,
    outcome: Option<String>,
    cause: Option<String>,
}

type Engine = web::Data<Addr<Supervisor>>;

async fn submit(engine: Engine, order: web::Json<Order>) -> HttpResponse {
    let request = match Submit::new(&order.into_inner()) {
        Ok(request) => request,
        Err(error) => return refuse_submission(&error.into()),
    };
    match engine.send(request).await {
        Ok(Ok(id)) => HttpResponse::Accepted().json(json!({ "id": id.to_string() })),
        Ok(Err(error)) => refuse_submission(&error),
        Err(_) => refuse_submission(&SubmitError::Stopped),
    }
}

async fn show(engine: Engine, id: web::Path<String>) -> HttpResponse {
    let Ok(id) = id.parse::<ProcedureId>() else {
        return HttpResponse::BadRequest().json(json!({ "error": "an order's id reads like 1.0" }));
    };
    match ask(&engine, id).await {
        Ok(answer) => HttpResponse::Ok().json(answer),
        Err(error) => refuse_question(&error),
    }
}

async fn ask(engine: &Addr<Supervisor>, id: ProcedureId) -> Result<Answer, AskError> {
    let stopped = |_| AskError::Stopped;
    let status = engine.send(Query(id)).await.map_err(stopped)??;
    let (outcome, cause) = match status.ended {
        None => (None, None),
        Some(_) => {
            let ended = engine.send(AwaitOutcome(id)).await.map_err(stopped)??;
            (ended.output()?, ended.cause.map(|cause| cause.text))
        }
    };
    let (state, stage) = (status.state.to_string(), status.stage);
    Ok(Answer {
        id: id.to_string(),
        state,
        stage,
        outcome,
        cause,
    })
}

fn refuse_submission(error: &SubmitError) -> HttpResponse {
    let body = json!({ "error": error.to_string() });
    if matches!(error, SubmitError::TooLarge { .. }) {
        return HttpResponse::PayloadTooLarge().json(body);
    }
    HttpResponse::ServiceUnavailable().json(body)
}

fn refuse_question(error: &AskError) -> HttpResponse {
    let body = json!({ "error": error.to_string() });
    if matches!(error, AskError::Unknown(_)) {
        return HttpResponse::NotFound().json(body);
    }
    HttpResponse::ServiceUnavailable().json(body)
}

/// Who the service's login found behind a request.
#[derive(Clone)]
struct User(String);

/// The password of this service's two users. A real one asks its own store of users here.
#[derive(Clone)]
struct Password(String);

impl Password {
    fn of_service() -> Self {
        Self(std::env::var("EMBED_PASSWORD").unwrap_or_else(|_| {
            let made_up = RandomState::new().hash_one(std::process::id());
            format!("{made_up:x}")
        }))
    }
}

/// The login: names the user in the request, for whatever is behind it.
async fn login(request: ServiceRequest, sent: BasicAuth) -> Result<ServiceRequest, (actix_web::Error, ServiceRequest)> {
    let is_known = matches!(sent.user_id(), "ann" | "bob");
    let password = request.app_data::<Password>().map(|password| password.0.as_str());
    if is_known && sent.password().is_some() && sent.password() == password {
        request.extensions_mut().insert(User(sent.user_id().to_owned()));
        return Ok(request);
    }
    let challenge = AuthenticationError::new(Basic::with_realm("procedures"));
    Err((challenge.into(), request))
}

/// What each user may do with procedures.
fn rights(request: &HttpRequest) -> Grant {
    match request.extensions().get::<User>() {
        Some(User(who)) if who == "ann" => Grant::All { who: who.clone() },
        Some(User(who)) => Grant::ReadOnly { who: who.clone() },
        None => Grant::Deny,
    }
}

async fn metrics(recorder: web::Data<PrometheusHandle>) -> String {
    recorder.render()
}

#[actix_web::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // Before the engine: it asks for its series once, when it starts.
    let recorder = web::Data::new(PrometheusBuilder::new().install_recorder()?);
    let executor = Executor::builder("data/embed").register::<Order>(()).start().await?;
    let engine = web::Data::new(executor.supervisor().clone());
    // It is reached as localhost; one with a name of its own says so by `.hosts(["ops.example"])?`.
    let dashboard = Dashboard::builder(&executor).access(rights).start().await?;
    let streams = dashboard.clone();
    let (password, upkeep) = (Password::of_service(), recorder.clone());
    println!(
        "the dashboard: http://localhost:8080/ops/procedures, ann or bob, password {}",
        password.0
    );
    let server = HttpServer::new(move || {
        App::new()
            .app_data(engine.clone())
            .app_data(recorder.clone())
            .app_data(password.clone())
            .service(
                web::scope("/ops/procedures")
                    .wrap(HttpAuthentication::basic(login))
                    .configure(dashboard.routes()),
            )
            .route("/metrics", web::get().to(metrics))
            .route("/orders", web::post().to(submit))
            .route("/orders/{id}", web::get().to(show))
    });
    // On a signal the server would stop the whole actix system, and the engine
    // with it, before it could drain. So the signal is ours, and the order too.
    let server = server.disable_signals().bind(("127.0.0.1", 8080))?.workers(1).run();
    let stop = server.handle();
    actix_rt::spawn(async move {
        match actix_rt::signal::ctrl_c().await {
            Ok(()) => {
                // The server waits for whatever is open, and a stream is open for ever.
                streams.close();
                stop.stop(true).await;
            }
            Err(error) => println!("Ctrl-C will not be noticed: {error}"),
        }
    });
    println!("orders are taken at http://localhost:8080/orders; Ctrl-C stops");
    actix_rt::spawn(async move {
        let mut turn = actix_rt::time::interval(Duration::from_secs(5));
        loop {
            turn.tick().await;
            upkeep.run_upkeep(); // or samples gather until somebody reads them
        }
    });
    server.await?;
    let report = executor.drain(Duration::from_secs(10)).await?;
    println!(
        "drained: {} stages finished, {} were cut off; {} orders go on at the next start",
        report.finished_calls, report.cut_off_calls, report.unfinished_families
    );
    Ok(())
}
