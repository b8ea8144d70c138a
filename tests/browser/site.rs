//! The world behind the page, and the server in front of it: the same dashboard mounted for one who may
//! do everything (`/all`), the same with users' data shown (`/shown`), for one who may look (`/reader`), deep below (`/a/b/c`), and for this
//! machine alone (`/default`).
//!
//! The engine runs on the simulated clock, on a thread of its own; the server's workers only ask it.
//! A restart keeps the listening socket, so whoever connects meanwhile waits, as with a real service.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::thread;
use std::time::Duration;

use actix_web::{App, HttpRequest, HttpResponse, HttpServer, web};
use procession::dashboard::{Access, Dashboard, Grant, ShowAll, StageLogs};
use procession::provider::{DiskRoom, SyncTimes};
use procession::testkit::{FaultPlan, Run, Trouble, World};
use serde_json::json;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::oneshot;
use tracing_subscriber::layer::SubscriberExt;

use crate::audit;
use crate::control::{Order, Ordered, carry_out};
use crate::kinds;
use crate::sagas;

/// When the simulated time begins, in seconds since 1970: 2026-03-01 10:00:00.
const BEGIN: u64 = 1_772_359_200;

/// Starts the server; gives where it listens. It ends with the process.
pub(crate) fn start() -> Result<SocketAddr, Trouble> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    let logs = StageLogs::new();
    tracing::subscriber::set_global_default(tracing_subscriber::registry().with(logs.clone()))?;
    thread::Builder::new().name("world".to_owned()).spawn(move || {
        if let Err(trouble) = worlds(&listener, &logs) {
            // The journeys that wait for an answer fail by themselves; this says why.
            eprintln!("the world ended: {trouble}");
        }
    })?;
    Ok(address)
}

/// One engine's life after the other, each on a new world or on the last one.
fn worlds(listener: &TcpListener, logs: &StageLogs) -> Result<(), Trouble> {
    let (orders, mut ordered) = channel(64);
    let (mut world, mut life) = (new_world()?, 0);
    let mut folder = tempfile::tempdir()?;
    loop {
        life += 1;
        let audit = audit::registration()?;
        let sagas = sagas::sagas()?;
        let charts = folder.path().join("charts");
        let set_up = |builder| audit(kinds::register(builder).sagas(sagas)).charts_file(charts);
        let next = world
            .run(FaultPlan::none(), set_up, async |run: &Run| {
                let listener = listener.try_clone()?;
                live(run, (listener, logs), orders.clone(), &mut ordered, life).await
            })?
            .done()?;
        if matches!(next, Order::Fresh) {
            world = new_world()?;
            folder = tempfile::tempdir()?;
            kinds::repair(false);
        }
    }
}

fn new_world() -> Result<World, Trouble> {
    let world = World::new();
    world.clock.advance(Duration::from_secs(BEGIN));
    audit::new_root()?;
    Ok(world)
}

/// Serves one engine until it is to end; gives the order that ended it.
async fn live(
    run: &Run,
    (listener, logs): (TcpListener, &StageLogs),
    orders: Sender<Ordered>,
    ordered: &mut Receiver<Ordered>,
    life: u64,
) -> Result<Order, Trouble> {
    let (free, whole) = (7 << 30, 100 << 30);
    run.store.set_disk_room(DiskRoom { free, whole });
    run.store.set_sync_times(SyncTimes {
        p50: Duration::from_micros(412),
        p99: Duration::from_micros(31_300),
    });
    let everybody = |_: &HttpRequest| Grant::All { who: "ann".to_owned() };
    let all = Dashboard::builder(&run.executor)
        .access(everybody)
        .trace_url("http://tracing.example/trace/{trace_id}?uiFind={span_id}")?
        .engines([
            ("north", "/all"),
            ("south", "/a/b/c"),
            ("far", "https://far.example/ops"),
        ])?;
    let all = all.logs(logs).start().await?;
    let shown = Dashboard::builder(&run.executor).access(everybody);
    let shown = shown.redact(ShowAll).logs(logs).start().await?;
    let reader = dashboard(run, |_: &HttpRequest| Grant::ReadOnly { who: "bob".to_owned() }).await?;
    let default = Dashboard::builder(&run.executor).local_only().start().await?;
    let every = [all.clone(), shown.clone(), reader.clone(), default.clone()];
    let server = HttpServer::new(move || {
        App::new()
            .app_data(web::Data::new((orders.clone(), life)))
            .route("/control", web::post().to(control))
            .service(web::scope("/all").configure(all.routes()))
            .service(web::scope("/shown").configure(shown.routes()))
            .service(web::scope("/reader").configure(reader.routes()))
            .service(web::scope("/default").configure(default.routes()))
            .service(web::scope("/a/b/c").configure(all.routes()))
    });
    let server = server.workers(2).disable_signals().listen(listener)?.run();
    let handle = server.handle();
    actix_rt::spawn(server);
    while let Some(Ordered { order, answer }) = ordered.recv().await {
        if matches!(order, Order::Fresh | Order::Restart) {
            answer.send(Ok(json!(life + 1))).ok();
            handle.stop(false).await;
            return Ok(order);
        }
        let done = carry_out(run, order).await.map_err(|trouble| trouble.to_string());
        let durable = run.executor.snapshot().await?.durable;
        for dashboard in &every {
            dashboard.reached(durable).await;
        }
        answer.send(done).ok(); // whoever asked may have gone
    }
    Err("nobody gives orders any more".into())
}

async fn dashboard(run: &Run, access: impl Access) -> Result<Dashboard, Trouble> {
    Ok(Dashboard::builder(&run.executor).access(access).start().await?)
}

/// Hands an order on, and answers with what came of it and which life of the engine it is.
async fn control(world: web::Data<(Sender<Ordered>, u64)>, order: web::Json<Order>) -> HttpResponse {
    let (answer, answered) = oneshot::channel();
    let ordered = Ordered {
        order: order.into_inner(),
        answer,
    };
    if world.0.send(ordered).await.is_err() {
        return HttpResponse::ServiceUnavailable().finish();
    }
    match answered.await {
        Ok(Ok(value)) => HttpResponse::Ok().json(json!({ "life": world.1, "value": value })),
        Ok(Err(why)) => HttpResponse::BadRequest().json(json!({ "error": why })),
        Err(_) => HttpResponse::ServiceUnavailable().finish(),
    }
}
