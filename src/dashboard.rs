//! The dashboard: what an operator sees of an engine, as a scope of the host's actix-web
//! application: a page for browsers, the API that it reads, a stream of changes, and the verbs
//! of operators.
//!
//! It answers two questions first: is something stuck, and why does it not move. It keeps a
//! model of its own, folded from the feed of committed changes on a thread of its own, so
//! viewers enter nobody's mailbox, and see nothing that is not on disk.
//!
//! Without a resolver it is read-only, and for this machine alone: [`Access`] says otherwise.
//! `docs/dashboard.md` lists the paths.
//!
//! ```
//! use actix_web::{App, HttpServer, web};
//! use procession::dashboard::Dashboard;
//! use procession::{Executor, Noop};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path().join("journal");
//! actix_rt::System::new().block_on(async {
//!     let executor = Executor::builder(path).register::<Noop>(()).start().await?;
//!     let dashboard = Dashboard::builder(&executor).start().await?;
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

mod access;
mod act;
mod audit;
mod beyond;
mod events;
mod feed;
mod gate;
mod list;
mod live;
mod me;
mod model;
mod openapi;
mod page;
mod params;
mod pauses;
mod problem;
mod procedure;
mod redact;
mod routes;
mod show;
mod state;
mod streams;
mod timeline;
mod trace;
mod whole;

pub use access::{Access, Grant, LoopbackReadOnly, Right, Rights};
pub use redact::{Part, Redact, SizesOnly};
pub use trace::TraceUrlError;

use std::sync::Arc;

use actix::prelude::*;
use actix_web::web::{Data, ServiceConfig};
use procession_actors::AskError;
use procession_kernel::Seq;
use tokio::sync::watch;

use crate::executor::Executor;
use feed::{Folder, Shared};
use live::Live;
use state::State;

/// A dashboard that runs; cheap to clone, and usable from any thread.
///
/// Its thread ends when the last clone is gone, and no scope has it any more.
#[derive(Clone)]
pub struct Dashboard {
    state: Data<State>,
}

/// Settings of a dashboard that is not started yet.
pub struct DashboardBuilder {
    executor: Executor,
    access: Box<dyn Access>,
    redact: Box<dyn Redact>,
    trace_url: Option<String>,
}

impl DashboardBuilder {
    /// Asks this what the sender of each request may do. Default [`LoopbackReadOnly`].
    #[must_use]
    pub fn access(mut self, access: impl Access) -> Self {
        self.access = Box::new(access);
        self
    }

    /// Asks this what of users' data is shown. Default [`SizesOnly`].
    #[must_use]
    pub fn redact(mut self, redact: impl Redact) -> Self {
        self.redact = Box::new(redact);
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
        if let Err(refused) = self.executor.follow_newest(folder.recipient()).await {
            arbiter.stop();
            return Err(refused);
        }
        let state = State {
            live: Live::new(self.executor.clone(), shared.clone()),
            executor: self.executor,
            pauses: pauses::Pauses::default(),
            shared,
            streams: Arc::default(),
            access: self.access,
            redact: self.redact,
            trace_url: self.trace_url,
            closed: watch::Sender::new(false),
            arbiter,
        };
        Ok(Dashboard {
            state: Data::new(state),
        })
    }
}

impl Dashboard {
    /// Begins to set up a dashboard of an engine.
    #[must_use]
    pub fn builder(executor: &Executor) -> DashboardBuilder {
        DashboardBuilder {
            executor: executor.clone(),
            access: Box::new(LoopbackReadOnly),
            redact: Box::new(SizesOnly),
            trace_url: None,
        }
    }

    /// Gives what puts the dashboard into a scope of the host's, under any path:
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
