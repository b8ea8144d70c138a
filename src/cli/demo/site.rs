//! The demo's web server: the dashboard of its engine, and `/metrics` for Prometheus, for this
//! machine alone.

mod figures;

pub use figures::Figures;

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::OnceLock;

use actix_web::dev::ServerHandle;
use actix_web::{App, HttpRequest, HttpResponse, HttpServer, web};

use super::console;
use super::error::DemoError;
use procession::Executor;
use procession::dashboard::{
    Access, Dashboard, Grant, LoopbackReadOnly, Part, Redact, Right, Rights, SizesOnly, StageLogs,
};
use serde_json::Value;
use tracing_subscriber::layer::SubscriberExt;

/// Where the dashboard is, unless that is taken: the same at each start, so that an open page finds it again.
const PORT: u16 = 8077;
/// How long requests that are under way may take when the demo ends, in seconds.
const STOP_MAX: u64 = 1;

/// Shows what stages log beside what is shown by default: the demo's stages log no secrets.
struct LogsToo;

impl Redact for LogsToo {
    fn redact(&self, kind: &str, part: Part, value: &mut Value, grant: &Grant) {
        if part != Part::Log {
            SizesOnly.redact(kind, part, value, grant);
        }
    }
}

/// Returns what stages of this process log, from the first call on.
fn stage_logs() -> &'static StageLogs {
    static LOGS: OnceLock<StageLogs> = OnceLock::new();
    LOGS.get_or_init(|| {
        let logs = StageLogs::new();
        // Whoever runs the demo as a library may have a subscriber of their own: then no logs are kept.
        tracing::subscriber::set_global_default(tracing_subscriber::registry().with(logs.clone())).ok();
        logs
    })
}

/// A port that is held, before anything else begins: one that is taken shall cost nothing.
pub struct Door {
    listener: TcpListener,
    address: SocketAddr,
}

/// A server that runs.
pub struct Site {
    dashboard: Dashboard,
    server: ServerHandle,
    address: SocketAddr,
}

impl Door {
    /// Listens on a loopback address; without a port, on the usual one or, where that is taken, on any
    /// that is free.
    ///
    /// # Errors
    ///
    /// [`DemoError::Port`] if the port cannot be had.
    pub fn open(port: Option<u16>) -> Result<Self, DemoError> {
        let on = |port| TcpListener::bind((Ipv4Addr::LOCALHOST, port));
        let listener = match port {
            Some(port) => on(port),
            None => on(PORT).or_else(|_| on(0)),
        };
        let of_port = |why| refused(port.unwrap_or(PORT), &why);
        let listener = listener.map_err(of_port)?;
        let address = listener.local_addr().map_err(of_port)?;
        Ok(Self { listener, address })
    }
}

impl Site {
    /// Serves the dashboard of this engine. Callers on this machine have these rights; all others are refused.
    ///
    /// # Errors
    ///
    /// [`DemoError::Port`] if nothing can be served there, [`DemoError::Ask`] if the engine does not
    /// answer.
    pub async fn open(
        executor: &Executor,
        door: Door,
        figures: Figures,
        rights: &'static [Right],
    ) -> Result<Self, DemoError> {
        let Door { listener, address } = door;
        let access = move |request: &HttpRequest| who_watches(request, rights);
        let dashboard = Dashboard::builder(executor)
            .access(access)
            .redact(LogsToo)
            .logs(stage_logs())
            .start()
            .await?;
        let (mounted, figures) = (dashboard.clone(), web::Data::new(figures));
        let server = HttpServer::new(move || {
            App::new()
                .app_data(figures.clone())
                .route("/metrics", web::get().to(metrics))
                .service(web::scope("").configure(mounted.routes()))
        });
        let server = server
            .workers(1)
            .disable_signals()
            .shutdown_timeout(STOP_MAX)
            .listen(listener)
            .map_err(|why| refused(address.port(), &why))?
            .run();
        let handle = server.handle();
        actix_rt::spawn(server);
        console::notice(&format!(
            "watch it: http://{address}/ (and http://{address}/metrics for Prometheus)"
        ));
        Ok(Self {
            dashboard,
            server: handle,
            address,
        })
    }

    /// Returns where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Tells those who watch that it ends, and stops.
    pub async fn close(self) {
        self.dashboard.close();
        self.server.stop(true).await;
    }
}

fn refused(port: u16, why: &io::Error) -> DemoError {
    DemoError::Port {
        port,
        why: why.to_string(),
    }
}

/// Serves the figures to those who may see the dashboard.
async fn metrics(request: HttpRequest, figures: web::Data<Figures>) -> HttpResponse {
    if LoopbackReadOnly.resolve(&request).who().is_none() {
        return HttpResponse::Forbidden().body("only for this machine: ask on its loopback address\n");
    }
    figures.serve()
}

fn who_watches(request: &HttpRequest, rights: &[Right]) -> Grant {
    let Some(who) = LoopbackReadOnly.resolve(request).who().map(str::to_owned) else {
        return Grant::Deny;
    };
    let rights = rights.iter().copied().fold(Rights::none(), Rights::with);
    Grant::Only { who, rights }
}
