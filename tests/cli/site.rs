//! A dashboard over an engine of this process, which the binary speaks to: on a thread of its own,
//! since a test waits while the binary runs.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::thread::JoinHandle;
use std::time::Duration;

use actix_web::dev::ServerHandle;
use actix_web::{App, HttpRequest, HttpServer, web};
use procession::dashboard::{Dashboard, Grant};
use procession::schedule::{Jobs, Schedule};
use procession::{Builder, Executor, ProcedureId};
use procession_actors::testkit::TestClock;
use tokio::sync::mpsc as commands;

use crate::Outcome;
use crate::journal::{BEGIN, Does, Draw, Job, rest};
use crate::run::{Said, procession};

/// Who may do what.
pub(crate) type May = fn(&HttpRequest) -> Grant;

/// What else an engine is given.
pub(crate) type SetUp = fn(Builder) -> Outcome<Builder>;

/// Whoever asks may do everything.
pub(crate) fn all(_: &HttpRequest) -> Grant {
    Grant::All { who: "ann".to_owned() }
}

/// Whoever asks may look.
pub(crate) fn look(_: &HttpRequest) -> Grant {
    Grant::ReadOnly { who: "bob".to_owned() }
}

/// Who knows the word may do everything.
pub(crate) fn who_knows(request: &HttpRequest) -> Grant {
    match request.headers().get("authorization") {
        Some(word) if word == "Bearer sesame" => all(request),
        Some(_) | None => Grant::Deny,
    }
}

/// Whose time the engine goes by.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Time {
    /// It stands still.
    Still,
    /// The machine's.
    Real,
}

/// What the server is told.
enum Command {
    /// Cut all connections, and listen no more.
    Cut,
    /// Listen again where it did.
    Serve,
    /// End the streams in order.
    Close,
}

/// One dashboard, and its engine.
pub(crate) struct Site {
    url: String,
    executor: Executor,
    tell: Option<commands::Sender<(Command, mpsc::Sender<()>)>>,
    thread: Option<JoinHandle<()>>,
}

impl Site {
    pub(crate) fn open(journal: &Path, time: Time, may: May) -> Outcome<Self> {
        Self::open_with(journal, time, may, Ok)
    }

    /// Opens one whose engine is set up further.
    pub(crate) fn open_with(journal: &Path, time: Time, may: May, set_up: SetUp) -> Outcome<Self> {
        let (tell, told) = commands::channel(1);
        let (ready, begun) = mpsc::channel();
        let journal = journal.to_owned();
        let thread = std::thread::spawn(move || {
            let served = actix_rt::System::new().block_on(serve(&journal, (time, may, set_up), &ready, told));
            if let Err(why) = served {
                ready.send(Err(why.to_string())).ok();
            }
        });
        let (address, executor) = received(&begun)??;
        Ok(Self {
            url: format!("http://{address}/ops"),
            executor,
            tell: Some(tell),
            thread: Some(thread),
        })
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Runs a verb on it; its arguments are separated by blanks.
    pub(crate) fn run(&self, arguments: &str) -> Outcome<Said> {
        procession(arguments.split_whitespace().chain(["--url", self.url()]))
    }

    /// Submits a job, and waits until it rests or has ended.
    pub(crate) fn submit(&self, does: Does, key: &str) -> Outcome<ProcedureId> {
        futures::executor::block_on(async {
            let handle = self.executor.submit(Job { lock: None, does }).key(key).await?;
            rest(&self.executor, handle.id()).await?;
            Ok(handle.id())
        })
    }

    pub(crate) const fn executor(&self) -> &Executor {
        &self.executor
    }

    /// Sets up a schedule that is due each hour.
    pub(crate) fn schedule(&self) -> Outcome<ProcedureId> {
        futures::executor::block_on(async {
            let hourly = Schedule::every("nightly", Duration::from_secs(3_600))?;
            let id = self.executor.submit(hourly).key("nightly").await?.id();
            rest(&self.executor, id).await?;
            Ok(id)
        })
    }

    /// Tells whether somebody listens to it.
    pub(crate) fn is_listened_to(&self) -> Outcome<bool> {
        let said = self.run("doctor --json")?;
        let document: serde_json::Value = serde_json::from_str(&said.out)?;
        let streams = document.pointer("/engine/streams").and_then(serde_json::Value::as_u64);
        Ok(streams.ok_or("the engine does not say how many streams there are")? > 0)
    }

    pub(crate) fn cut(&self) -> Outcome {
        self.command(Command::Cut)
    }

    pub(crate) fn serve_again(&self) -> Outcome {
        self.command(Command::Serve)
    }

    pub(crate) fn close(&self) -> Outcome {
        self.command(Command::Close)
    }

    fn command(&self, command: Command) -> Outcome {
        let (done, is_done) = mpsc::channel();
        let tell = self.tell.as_ref().ok_or("the server has ended")?;
        tell.blocking_send((command, done))
            .map_err(|_| "the server has ended")?;
        received(&is_done)
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        drop(self.tell.take());
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

fn received<T>(from: &Receiver<T>) -> Outcome<T> {
    Ok(from.recv_timeout(Duration::from_secs(60))?)
}

type Ready = mpsc::Sender<Result<(SocketAddr, Executor), String>>;

async fn serve(
    journal: &Path,
    (time, may, set_up): (Time, May, SetUp),
    ready: &Ready,
    mut told: commands::Receiver<(Command, mpsc::Sender<()>)>,
) -> Outcome {
    let mut builder = Executor::builder(journal).inline().seed(7);
    if time == Time::Still {
        let clock = TestClock::new();
        clock.advance_to(BEGIN);
        builder = builder.clock(Arc::new(clock));
    }
    let does = || Job {
        lock: None,
        does: Does::Waits("go".to_owned()),
    };
    let jobs = Jobs::new().job("nightly", move |_| Ok(does()));
    let builder = builder
        .limit("job", 4)
        .register::<Job>(())
        .processor::<Draw>(())
        .streams()
        .register::<Schedule>(jobs);
    let executor = set_up(builder)?.start().await?;
    let dashboard = Dashboard::builder(&executor).access(may).start().await?;
    dashboard.reached(executor.snapshot().await?.durable).await;
    let (address, mut server) = listen(&dashboard, ([127, 0, 0, 1], 0).into())?;
    ready.send(Ok((address, executor.clone())))?;
    while let Some((command, done)) = told.recv().await {
        match command {
            Command::Cut => server.stop(false).await,
            Command::Serve => (_, server) = listen(&dashboard, address)?,
            Command::Close => dashboard.close(),
        }
        done.send(())?;
    }
    dashboard.close();
    server.stop(false).await;
    executor.drain(Duration::ZERO).await?;
    Ok(())
}

fn listen(dashboard: &Dashboard, on: SocketAddr) -> Outcome<(SocketAddr, ServerHandle)> {
    let dashboard = dashboard.clone();
    let server = HttpServer::new(move || App::new().service(web::scope("/ops").configure(dashboard.routes())));
    let server = server.workers(1).disable_signals().bind(on)?;
    let address = server.addrs().first().copied().ok_or("no address")?;
    let server = server.run();
    let handle = server.handle();
    actix_rt::spawn(server);
    Ok((address, handle))
}
