//! Is this machine what its packages say? A `dpkg --verify` that may be killed at any moment and goes on where it was,
//! with trust that follows dependencies.
//!
//! ```text
//! cargo run --release --example audit -- --data DIR [--root /] [--width 8] [--hold] [--json]
//! ```
//! Each package is a node of a set, behind the nodes of what it depends on. It compares its files with what dpkg knows of
//! them. It is *trusted* if it is intact, and so is all that it depends on. In its own commit it appends its line to the
//! stream of its section, which writes one line behind the other. So `DIR/report` has a file for each section, with each
//! line once, and `files-that-differ`, which equals what `dpkg --verify` prints, sorted.
//!
//! With `--hold` a package that was changed waits for a person, and with it all that depends on it. On the page, whose
//! address is printed, *Retry now* looks again once the package is reinstalled, and *Override result* with the output
//! `true` accepts it as it is. A file that cannot be read is tried again, and then waits for a person too. Without `--hold` such
//! a package is tried once more at the end, and at each start, and the audit ends without it.
//!
//! Ctrl-C stops it, and so does anything worse. Start it again with the same `--data`, and it goes on.
//!
//! `plan.rs` makes the set, `nodes.rs` has the processors, and `dpkg.rs` has nothing of the engine in it.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example talks")]

mod dpkg;
#[cfg(test)]
mod ground;
mod nodes;
mod plan;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::error::Error;
use std::fmt;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use actix_rt::signal::unix::{SignalKind, signal};
use actix_web::{App, HttpRequest, HttpServer, web};
use procession::Executor;
use procession::dashboard::{Dashboard, Grant};
use procession::flow::{NodeState, NodeStatus, ResolveError, SetHandle, SetState, SetStatus, Stream, StreamState};
use procession::operate::OperatorRequest;
use procession::provider::{Clock, SystemClock, Timestamp};
use procession::status::KeyedProcedure;
use serde::Serialize;

use dpkg::{Installed, Root};
use nodes::{AUDIT, CHECKED, Checked, PACKAGES, ReportDirectory, SCENE, SECTIONS};

/// Stands for the set: a directory has one audit.
const KEY: &str = "audit";
/// Results are kept this long, and with them what a finished audit says when it is started again.
const KEPT: Duration = Duration::from_hours(30 * 24);
/// How often the set and its streams are looked at.
const LOOK: Duration = Duration::from_millis(if cfg!(test) { 1 } else { 100 });

/// Nodes that a status names at most, and nodes read at once.
const NAMED: usize = 100;
const NODES: usize = 1_000;

/// What the command line says.
#[derive(Debug)]
struct Options {
    data: PathBuf,
    root: PathBuf,
    width: u32,
    is_held: bool,
    is_json: bool,
}

impl Options {
    fn parse(words: impl Iterator<Item = String>) -> Result<Self, String> {
        let (mut data, mut root, mut width) = (None, PathBuf::from("/"), 8);
        let (mut is_held, mut is_json) = (false, false);
        let mut words = words;
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or(format!("{word} needs a value"));
            match word.as_str() {
                "--data" => data = Some(value()?.into()),
                "--root" => root = value()?.into(),
                "--width" => {
                    let text = value()?;
                    width = text.parse().map_err(|_| format!("--width {text} is no number"))?;
                }
                "--hold" => is_held = true,
                "--json" => is_json = true,
                other => {
                    return Err(format!(
                        "{other} is unknown: there are --data, --root, --width, --hold, --json"
                    ));
                }
            }
        }
        let data = data.ok_or("--data DIR is missing: the audit keeps its journal and its report there")?;
        Ok(Self {
            data,
            root,
            width,
            is_held,
            is_json,
        })
    }

    /// The title of the set says what it looks at: a directory goes on with nothing else.
    fn title(&self) -> String {
        let held = if self.is_held { ", held where it differs" } else { "" };
        format!("audit of {}{held}", self.root.display())
    }
}

/// An audit under way.
struct Audit {
    options: Options,
    executor: Executor,
    set: SetHandle,
    /// Packages that an earlier process has looked at.
    resumed: usize,
    begun: Timestamp,
}

/// The last line.
#[derive(Debug, Serialize)]
struct Closing {
    packages: usize,
    files: u64,
    changed: u64,
    missing: u64,
    untrusted: usize,
    pending: u32,
    lines: usize,
    resumed: usize,
    commits: u64,
    seconds: f64,
}

impl fmt::Display for Closing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "packages {}, files {}, changed {}, missing {}, untrusted {}, pending {}, lines {}, resumed {}, commits {}, \
             seconds {:.1}",
            self.packages,
            self.files,
            self.changed,
            self.missing,
            self.untrusted,
            self.pending,
            self.lines,
            self.resumed,
            self.commits,
            self.seconds
        )
    }
}

impl Audit {
    /// Begins an audit, or goes on with the one in the directory.
    async fn begin(options: Options) -> Result<Self, Box<dyn Error>> {
        let begun = SystemClock.now();
        let builder = Executor::builder(options.data.join("journal"));
        let (root, report) = (Root(options.root.clone()), ReportDirectory(options.data.join("report")));
        let executor = nodes::register(builder, root, report)
            .retention(KEPT, KEPT)
            .max_write_bytes(256 << 20)
            .start()
            .await?;
        let set = match executor.find(KEY).await? {
            Some(KeyedProcedure::Live(status) | KeyedProcedure::Ended(status)) => {
                let (title, wanted) = (status.name.unwrap_or_default(), options.title());
                if title != wanted {
                    let data = options.data.display();
                    return Err(format!("{data} has the {title}, not the {wanted}: give another --data").into());
                }
                executor.set_handle(status.id)
            }
            Some(_) | None => {
                let installed = Installed::read(&options.root)?;
                let set = plan::plan(options.title(), &installed, options.is_held)?;
                executor.start_set(set).key(KEY).width(options.width).await?
            }
        };
        let resumed = executor.scan::<Checked>(CHECKED, "").await?.len();
        Ok(Self {
            options,
            executor,
            set,
            resumed,
            begun,
        })
    }

    /// Waits until the report is written. Returns before if all that is left waits for a person, and is not held for one.
    async fn watch(&self) -> Result<(), Box<dyn Error>> {
        // Those that were tried once more, or announced.
        let mut seen = BTreeSet::new();
        loop {
            let status = self.set.status().await?;
            match status.state {
                SetState::Finish => {
                    self.set.outcome().await?;
                    for stream in self.streams().await? {
                        stream.finish().await?;
                    }
                    return self.watch_lines().await;
                }
                SetState::Pending => {
                    let moves = self.settle_new(status, &mut seen).await?;
                    if !moves && !self.options.is_held {
                        return self.watch_lines().await;
                    }
                }
                // One that rests as poison keeps its slot: with a width of one, nothing runs beside it.
                SetState::Running => {
                    self.settle_new(status, &mut seen).await?;
                }
                SetState::Init => {}
            }
            SystemClock.sleep_until(SystemClock.now().after(LOOK)).await;
        }
    }

    /// Settles the nodes that ask and were not seen before. Returns `true` if one of them is tried.
    async fn settle_new(&self, status: SetStatus, seen: &mut BTreeSet<String>) -> Result<bool, Box<dyn Error>> {
        let mut moves = false;
        for name in self.asking(status).await? {
            if seen.insert(name.clone()) {
                moves |= self.settle(&name).await?;
            }
        }
        Ok(moves)
    }

    /// Returns the nodes that ask. A status names no more than the first of them.
    async fn asking(&self, status: SetStatus) -> Result<Vec<String>, Box<dyn Error>> {
        if status.pending.len() < NAMED {
            return Ok(status.pending);
        }
        let (mut asking, mut from) = (Vec::new(), Some(0));
        while let Some(place) = from {
            let page = self.set.nodes(place, NODES).await?;
            let asks = |node: &NodeStatus| node.state == NodeState::Pending && node.cause.is_some();
            asking.extend(page.items.into_iter().filter(asks).map(|node| node.name));
            from = page.next;
        }
        Ok(asking)
    }

    /// Waits until the lines of all packages that were looked at are written.
    async fn watch_lines(&self) -> Result<(), Box<dyn Error>> {
        for stream in self.streams().await? {
            let mut is_seen = false;
            loop {
                let status = stream.status().await?;
                let is_done = status.state == StreamState::Finish || status.since.is_none() || status.is_idle();
                let is_pending = status.state == StreamState::Pending;
                if is_done || (is_pending && is_seen && !self.options.is_held) {
                    break;
                }
                if is_pending && !is_seen {
                    is_seen = true;
                    if self.options.is_held {
                        let cause = status.in_hand.and_then(|line| line.cause).unwrap_or_default();
                        eprintln!("stream {} waits for you: {cause}", stream.name());
                    } else {
                        match stream.retry(by_itself()).await {
                            // A person was faster, on the page.
                            Ok(_) | Err(ResolveError::AsksNothing { .. }) => {}
                            Err(error) => return Err(error.into()),
                        }
                    }
                }
                SystemClock.sleep_until(SystemClock.now().after(LOOK)).await;
            }
        }
        Ok(())
    }

    /// Returns the streams of the report, once the snapshot has named them.
    async fn streams(&self) -> Result<Vec<Stream>, Box<dyn Error>> {
        let sections: Option<Vec<String>> = self.executor.get(AUDIT, SECTIONS).await?;
        let streams = sections.unwrap_or_default().into_iter();
        Ok(streams
            .map(|section| self.executor.stream(SCENE, section))
            .collect::<Result<_, _>>()?)
    }

    /// Tries a node once more that asks, or leaves it to a person. Returns `true` if it is tried.
    async fn settle(&self, name: &str) -> Result<bool, Box<dyn Error>> {
        if self.options.is_held {
            let node = self.set.node(name).await?;
            eprintln!(
                "{name} waits for you: {}",
                node.cause.or(node.reason).unwrap_or_default()
            );
            return Ok(false);
        }
        self.set.retry(name, by_itself()).await?;
        Ok(true)
    }

    /// Counts what was found until now.
    async fn closing(&self) -> Result<Closing, Box<dyn Error>> {
        let mut pending = self.set.status().await?.counts.pending;
        for stream in self.streams().await? {
            pending += u32::from(stream.status().await?.state == StreamState::Pending);
        }
        let checked = self.executor.scan::<Checked>(CHECKED, "").await?;
        let checked = || checked.iter().map(|(_, one)| one);
        Ok(Closing {
            packages: self.executor.get(AUDIT, PACKAGES).await?.unwrap_or_default(),
            files: checked().map(|one| one.files).sum(),
            changed: checked().map(|one| one.changed).sum(),
            missing: checked().map(|one| one.missing).sum(),
            untrusted: checked().filter(|one| !one.is_trusted).count(),
            pending,
            lines: self.lines()?,
            resumed: self.resumed,
            commits: self.executor.snapshot().await?.durable.0,
            seconds: SystemClock.now().since(self.begun).as_secs_f64(),
        })
    }

    /// Counts the lines of the report.
    fn lines(&self) -> std::io::Result<usize> {
        let report = self.options.data.join("report");
        if !report.is_dir() {
            return Ok(0);
        }
        let mut lines = 0;
        for file in fs::read_dir(report)? {
            let path = file?.path();
            if path.extension().is_some_and(|extension| extension == "txt") {
                lines += fs::read_to_string(path)?.lines().count();
            }
        }
        Ok(lines)
    }
}

/// Says who tries once more what asks, and why.
fn by_itself() -> OperatorRequest {
    OperatorRequest::new("audit", "nothing else moves")
}

/// Serves the dashboard on this machine, where a person settles what waits.
async fn serve_page(executor: &Executor) -> Result<(), Box<dyn Error>> {
    let may_do_all = |_: &HttpRequest| Grant::All { who: "you".to_owned() };
    let dashboard = Dashboard::builder(executor).access(may_do_all).start().await?;
    let server = HttpServer::new(move || App::new().service(web::scope("/audit").configure(dashboard.routes())));
    let server = server.disable_signals().workers(1).bind(("127.0.0.1", 0))?;
    for address in server.addrs() {
        eprintln!("dashboard: http://{address}/audit/");
    }
    actix_rt::spawn(server.run());
    Ok(())
}

/// Sees an audit through, or to a signal.
async fn run(audit: Audit) -> Result<Closing, Box<dyn Error>> {
    serve_page(&audit.executor).await?;
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let signalled = futures::future::select(Box::pin(terminate.recv()), Box::pin(interrupt.recv()));
    let ended = tokio::select! {
        ended = audit.watch() => ended,
        _ = signalled => {
            eprintln!("stopped; start it again to go on");
            Ok(())
        }
    };
    let closing = match ended {
        Ok(()) => audit.closing().await,
        Err(error) => Err(error),
    };
    // Packages that are being compared end in this time, or are compared again at the next start.
    audit.executor.drain(Duration::from_secs(1)).await?;
    closing
}

/// Returns the last line.
async fn tell() -> Result<String, Box<dyn Error>> {
    let options = Options::parse(std::env::args().skip(1))?;
    let is_json = options.is_json;
    let closing = run(Audit::begin(options).await?).await?;
    Ok(if is_json {
        serde_json::to_string(&closing)?
    } else {
        closing.to_string()
    })
}

#[actix_rt::main]
async fn main() -> ExitCode {
    match tell().await {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("audit: {error}");
            ExitCode::FAILURE
        }
    }
}
