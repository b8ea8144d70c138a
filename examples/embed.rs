//! An actix-web service that embeds the engine.
//!
//! ```text
//! cargo run --example embed
//! curl -X POST -H 'content-type: application/json' -d '{"item":"tea","pieces":3}' localhost:8080/orders
//! curl localhost:8080/orders/1.0
//! curl localhost:8080/metrics
//! ```
//! `POST /orders` submits a procedure and answers with its id once the order is on disk; `GET /orders/{id}` says where it
//! stands, and how it ended. The dashboard at <http://localhost:8080/ops/procedures> lets this machine look, and nobody act:
//! `examples/login.rs` puts one behind a login.
//!
//! SIGTERM and Ctrl-C stop the server, then drain the engine. What has not ended goes on at the next start.
#![expect(clippy::print_stdout, reason = "an example talks")]

use std::error::Error;
use std::time::Duration;

use actix_rt::signal::unix::{SignalKind, signal};
use actix_web::{App, HttpResponse, HttpServer, web};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use procession::dashboard::{Dashboard, StageLogs};
use procession::errors::{AskError, SubmitError};
use procession::{Executor, Procedure, ProcedureId, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tracing_subscriber::layer::SubscriberExt;

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
                tracing::info!(item = self.item, pieces = self.pieces, "reserved");
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

type Engine = web::Data<Executor>;

async fn submit(engine: Engine, order: web::Json<Order>) -> HttpResponse {
    match engine.submit(order.into_inner()).await {
        Ok(handle) => HttpResponse::Accepted().json(json!({ "id": handle.id().to_string() })),
        Err(error) => refuse_submission(&error),
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

async fn ask(engine: &Executor, id: ProcedureId) -> Result<Answer, AskError> {
    let status = engine.status(id).await?;
    let (outcome, cause) = match status.ended {
        None => (None, None),
        Some(_) => {
            let ended = engine.outcome(id).await?;
            (ended.output()?, ended.cause.map(|cause| cause.text))
        }
    };
    Ok(Answer {
        id: id.to_string(),
        state: status.state.to_string(),
        stage: status.stage,
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

async fn metrics(recorder: web::Data<PrometheusHandle>) -> String {
    recorder.render()
}

#[actix_web::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // What stages log is kept for the dashboard. A layer that writes to a file or a collector would stand beside it. The
    // page shows levels and times; texts once a `redact` of the dashboard lets them through.
    let logs = StageLogs::new();
    tracing::subscriber::set_global_default(tracing_subscriber::registry().with(logs.clone()))?;
    // Before the engine: it asks for its series once, when it starts.
    let recorder = web::Data::new(PrometheusBuilder::new().install_recorder()?);
    let executor = Executor::builder("data/embed").register::<Order>(()).start().await?;
    let dashboard = Dashboard::builder(&executor).logs(&logs).local_only().start().await?;

    let (engine, shown, upkeep) = (web::Data::new(executor.clone()), dashboard.clone(), recorder.clone());
    let server = HttpServer::new(move || {
        App::new()
            .app_data(engine.clone())
            .app_data(recorder.clone())
            .service(web::scope("/ops/procedures").configure(shown.routes()))
            .route("/metrics", web::get().to(metrics))
            .route("/orders", web::post().to(submit))
            .route("/orders/{id}", web::get().to(show))
    });
    // By itself the server would stop the whole actix system on a signal, and the engine with it, before it could drain.
    let server = server.disable_signals().bind(("127.0.0.1", 8080))?.workers(1).run();
    let stop = server.handle();
    let mut terminate = signal(SignalKind::terminate())?;
    actix_rt::spawn(async move {
        let pressed = actix_rt::signal::ctrl_c();
        futures::future::select(Box::pin(terminate.recv()), Box::pin(pressed)).await;
        // The server waits for whatever is open, and a stream is open for ever.
        dashboard.close();
        stop.stop(true).await;
    });
    actix_rt::spawn(async move {
        let mut turn = actix_rt::time::interval(Duration::from_secs(5));
        loop {
            turn.tick().await;
            upkeep.run_upkeep(); // or samples gather until somebody reads them
        }
    });
    println!("orders: http://localhost:8080/orders");
    println!("dashboard: http://localhost:8080/ops/procedures");
    server.await?;

    let report = executor.drain(Duration::from_secs(10)).await?;
    println!(
        "drained: {} stages finished, {} were cut off; {} orders go on at the next start",
        report.finished_calls, report.cut_off_calls, report.unfinished_families
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use procession::testkit::{Check, Finding};

    use super::Order;

    #[test]
    fn an_order_survives_everything() -> Result<(), Finding> {
        let (item, pieces) = ("tea".to_owned(), 3);
        let tea = move || Order {
            item: item.clone(),
            pieces,
        };
        Check::new(|builder| builder.register::<Order>(()), tea)
            .everything()
            .map(drop)
    }
}
