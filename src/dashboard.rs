//! The dashboard: what an operator sees of an engine, as a scope of the host's actix-web
//! application: a page for browsers, the API that it reads, a stream of changes, and the verbs
//! of operators.
//!
//! It answers two questions first: is something stuck, and why does it not move. It keeps a
//! model of its own, folded from the feed of committed changes on a thread of its own, so
//! viewers enter nobody's mailbox, and see nothing that is not on disk.
//!
//! The host says who may do what, by an [`Access`]; or that this machine alone may look, by
//! [`local_only`](DashboardBuilder::local_only). Whoever is asked, a request must name the dashboard's host by
//! a name that it is reached under: those of this machine, or those of [`hosts`](DashboardBuilder::hosts).
//! `docs/reference/dashboard.md` lists the paths.
//!
//! ```
//! use actix_web::{App, HttpServer, web};
//! use procession::dashboard::Dashboard;
//! use procession::procedure::Noop;
//! use procession::Executor;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path().join("journal");
//! actix_rt::System::new().block_on(async {
//!     let executor = Executor::builder(path).register::<Noop>(()).start().await?;
//!     let dashboard = Dashboard::builder(&executor).local_only().start().await?;
//!     let server = HttpServer::new(move || {
//!         App::new().service(web::scope("/ops/procedures").configure(dashboard.routes()))
//!     });
//!     let server = server.workers(1).disable_signals().bind(("127.0.0.1", 0))?.run();
//!     let stop = server.handle();
//!     actix_rt::spawn(async move { stop.stop(true).await }); // a service would wait for a signal
//!     server.await?;
//!     Ok(())
//! })
//! # }
//! ```
//!
//! Behind a proxy that logs people in and passes their names on:
//!
//! ```
//! use actix_web::{App, HttpRequest, HttpServer, web};
//! use procession::dashboard::{Dashboard, Grant};
//! use procession::procedure::Noop;
//! use procession::Executor;
//!
//! fn by_proxy(request: &HttpRequest) -> Grant {
//!     match request.headers().get("x-remote-user").and_then(|who| who.to_str().ok()) {
//!         Some(who) if !who.is_empty() => Grant::ReadOnly { who: who.to_owned() },
//!         Some(_) | None => Grant::Deny,
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # actix_rt::System::new().block_on(async {
//! # let executor = Executor::builder(directory.path().join("journal")).register::<Noop>(()).start().await?;
//! let dashboard = Dashboard::builder(&executor).hosts(["ops.example"])?.access(by_proxy).start().await?;
//! let server = HttpServer::new(move || {
//!     App::new().service(web::scope("/ops/procedures").configure(dashboard.routes()))
//! });
//! # drop(server);
//! # Ok(())
//! # })
//! # }
//! ```

mod access;
mod act;
mod audit;
mod beyond;
mod charts;
mod engines;
mod events;
mod failures;
mod feed;
mod find;
mod flows;
mod gate;
mod hosts;
mod list;
mod live;
mod logs;
mod me;
mod model;
mod openapi;
mod page;
mod params;
mod pauses;
mod prints;
mod problem;
mod procedure;
mod redact;
mod routes;
#[cfg(feature = "saga")]
mod saga;
mod show;
mod stages;
mod state;
mod streams;
mod timeline;
mod trace;
mod turns;
mod values;
mod whole;

pub use access::{Access, Grant, LoopbackReadOnly, Right, Rights};
pub use engines::EngineListError;
pub use hosts::HostNameError;
pub use logs::StageLogs;
pub use redact::{Part, Redact, ShowAll, SizesOnly};
pub use trace::TraceUrlError;

use std::sync::Arc;

use actix::prelude::*;
use actix_web::web::{Data, ServiceConfig};
use procession_actors::AskError;
use procession_kernel::Seq;
use tokio::sync::watch;

use crate::executor::Executor;
use feed::{Folder, Shared};
use hosts::Hosts;
use live::Live;
use state::State;
use turns::Turns;

/// A dashboard that runs; cheap to clone, and usable from any thread.
///
/// Its thread ends when the last clone is gone, and no scope has it any more.
#[derive(Clone)]
pub struct Dashboard {
    state: Data<State>,
}

/// Settings of a dashboard that is not started yet.
///
/// It starts once its code has said who may look: by [`access`](Self::access), or by
/// [`local_only`](Self::local_only). Before, it is of [`NoAccess`], and there is nothing to start:
///
/// ```compile_fail,E0599
/// # async fn serve(executor: &procession::Executor) {
/// let dashboard = procession::dashboard::Dashboard::builder(executor).start().await;
/// # }
/// ```
pub struct DashboardBuilder<A = Box<dyn Access>> {
    executor: Executor,
    hosts: Hosts,
    access: A,
    redact: Box<dyn Redact>,
    logs: Option<StageLogs>,
    trace_url: Option<String>,
    engines: Vec<engines::Listed>,
}

/// In place of an [`Access`]: nobody has said yet who may look.
#[derive(Clone, Copy, Debug)]
pub struct NoAccess(());

impl<A> DashboardBuilder<A> {
    /// Asks this what the sender of each request may do.
    #[must_use]
    pub fn access(self, access: impl Access) -> DashboardBuilder {
        DashboardBuilder {
            access: Box::new(access),
            executor: self.executor,
            hosts: self.hosts,
            redact: self.redact,
            logs: self.logs,
            trace_url: self.trace_url,
            engines: self.engines,
        }
    }

    /// Lets whoever is on this machine look, and nobody do anything: [`LoopbackReadOnly`].
    ///
    /// To be said only where nothing forwards requests to the server: a proxy on this machine, an SSH tunnel
    /// or a published port of a container can look like somebody on this machine, and then the world reads.
    #[must_use]
    pub fn local_only(self) -> DashboardBuilder {
        self.access(LoopbackReadOnly)
    }

    /// Says under which names the dashboard is reached: what stands between `://` and the path in the browser's
    /// address, with the port only where the address shows one, and it must be that one. A request to any other
    /// name is refused with 421 before the access is asked. Default: `localhost` and the loopback addresses, with
    /// any port; names given here take their place.
    ///
    /// # Errors
    ///
    /// [`HostNameError`] if a text is no name of a host, or there is none.
    pub fn hosts<N: AsRef<str>>(mut self, names: impl IntoIterator<Item = N>) -> Result<Self, HostNameError> {
        self.hosts = Hosts::named(names)?;
        Ok(self)
    }

    /// Asks this what of users' data is shown. Default [`SizesOnly`]; [`ShowAll`] hides nothing.
    #[must_use]
    pub fn redact(mut self, redact: impl Redact) -> Self {
        self.redact = Box::new(redact);
        self
    }

    /// Has the page show what stages and undos log: what this layer of the host's subscriber keeps. As far as
    /// [`Redact`] lets [`Part::Log`] through. Default: none, and the page says how to get logs.
    #[must_use]
    pub fn logs(mut self, logs: &StageLogs) -> Self {
        self.logs = Some(logs.clone());
        self
    }

    /// Has the page lead to traces: an address in which the trace's id takes the place of `{trace_id}`, and that of
    /// the submitter's span the place of `{span_id}`, for instance `https://tracing.example/trace/{trace_id}`.
    /// Whoever may look is told it. Default: none, and the page shows ids alone.
    ///
    /// # Errors
    ///
    /// [`TraceUrlError`] if it is not `http` or `https`, or has no place for the trace's id behind its host.
    pub fn trace_url(mut self, template: &str) -> Result<Self, TraceUrlError> {
        self.trace_url = Some(trace::checked(template)?);
        Ok(self)
    }

    /// Has the page lead to other engines: a name for each, and where its dashboard is mounted, as an address
    /// (`https://north.example/ops/procedures`) or a path of this host. The page shows them as a menu, in which the
    /// one with its own address is marked; each leads to the same screen there. Every viewer sees all of
    /// them. Default: none, and there is no menu.
    ///
    /// # Errors
    ///
    /// [`EngineListError`] if there are more than 64, a name is empty, too long or there twice, or an address is
    /// neither `http`, `https` nor a path.
    pub fn engines<N: AsRef<str>, U: AsRef<str>>(
        mut self,
        engines: impl IntoIterator<Item = (N, U)>,
    ) -> Result<Self, EngineListError> {
        self.engines = engines::checked(engines)?;
        Ok(self)
    }
}

impl DashboardBuilder {
    /// Starts the thread of the read model, and follows the engine's changes. Must be called
    /// inside an actix system. Until the model is filled, requests are answered with 503.
    ///
    /// # Errors
    ///
    /// [`AskError`] if the engine has stopped, its journal has failed, or it has as many
    /// subscribers as may be.
    pub async fn start(self) -> Result<Dashboard, AskError> {
        let shared = Shared::new();
        let arbiter = Arbiter::new();
        let (published, engine) = (shared.clone(), self.executor.engine().clone());
        let folder = Folder::start_in_arbiter(&arbiter.handle(), move |_| Folder::new(published, engine));
        if let Err(refused) = self.executor.subscribe_latest(folder.recipient()).await {
            arbiter.stop();
            return Err(refused);
        }
        let clock = Arc::clone(self.executor.engine().clock());
        if let Some(logs) = &self.logs {
            logs.on_clock(Arc::clone(&clock));
        }
        let state = State {
            live: Live::new(self.executor.clone(), shared.clone()),
            executor: self.executor,
            pauses: pauses::Pauses::default(),
            prints: prints::Prints::default(),
            plans: act::bulk::Plans::default(),
            shared,
            streams: Arc::default(),
            turns: Turns::new(clock),
            hosts: self.hosts,
            access: self.access,
            redact: self.redact,
            logs: self.logs,
            trace_url: self.trace_url,
            engines: self.engines,
            closed: watch::Sender::new(false),
            arbiter,
        };
        Ok(Dashboard {
            state: Data::new(state),
        })
    }
}

impl Dashboard {
    /// Begins to set up a dashboard of an engine. Who may look is to be said next.
    #[must_use]
    pub fn builder(executor: &Executor) -> DashboardBuilder<NoAccess> {
        DashboardBuilder {
            executor: executor.clone(),
            hosts: Hosts::Loopback,
            access: NoAccess(()),
            redact: Box::new(SizesOnly),
            logs: None,
            trace_url: None,
            engines: Vec::new(),
        }
    }

    /// Returns the configuration that puts the dashboard into a scope of the host's, under any path:
    /// `web::scope("/ops/procedures").configure(dashboard.routes())`.
    pub fn routes(&self) -> impl FnOnce(&mut ServiceConfig) + use<> {
        let state = self.state.clone();
        move |config| routes::configure(config, &state)
    }

    /// Waits until the model shows this commit, or a newer one. The model is a moment behind
    /// the engine: who has just been told of a commit can wait here before looking.
    pub async fn reached(&self, seq: Seq) {
        // The sender is as old as the state, which is here.
        self.state
            .shared
            .follow()
            .wait_for(|moment| moment.seq >= seq)
            .await
            .ok();
    }

    /// Ends all streams with a last event, and lets no more begin. Call it before the server is
    /// stopped in order, which waits for whatever is open.
    pub fn close(&self) {
        self.state.closed.send_replace(true);
    }
}
