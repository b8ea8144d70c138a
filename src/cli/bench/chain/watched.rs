//! Viewers beside the chains: who looks at the dashboard must not slow the engine.
//!
//! Each has a stream open and reads its screen again when the stream tells it to, no more often than the
//! page does: of three, one looks at the list of all that live, one at what needs attention, one at the
//! limits. They run in this process, so what they cost themselves counts, too.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use actix_web::dev::ServerHandle;
use actix_web::{App, HttpRequest, HttpServer, web};
use procession::Executor;
use procession::dashboard::{Dashboard, Grant};

use super::super::BenchError;
use super::super::taken::now;

/// How long a viewer waits for its stream before it looks whether it is to end.
const PATIENCE: Duration = Duration::from_millis(200);

/// What a viewer looks at: its screen, the filter of its stream, the events after which it reads the
/// screen again, and the shortest time between two readings. As the page has them.
const SCREENS: [(&str, &str, &[&str], Duration); 3] = [
    ("procedures?limit=100", "", &["resync"], Duration::from_secs(2)),
    (
        "attention",
        "root:0",
        &["verdict", "gauges"],
        Duration::from_millis(1_500),
    ),
    ("limits", "root:0", &["limits"], Duration::from_millis(500)),
];

/// A dashboard, and its server.
pub(super) struct Site {
    dashboard: Dashboard,
    server: ServerHandle,
    address: SocketAddr,
}

impl Site {
    /// Serves the dashboard of this engine on a port that is free.
    pub(super) async fn open(executor: &Executor) -> Result<Self, BenchError> {
        let by_name = |request: &HttpRequest| Grant::ReadOnly {
            who: request
                .headers()
                .get("x-viewer")
                .map(|name| format!("{name:?}"))
                .unwrap_or_default(),
        };
        let dashboard = Dashboard::builder(executor).access(by_name).start().await?;
        let mounted = dashboard.clone();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(BenchError::Server)?;
        let address = listener.local_addr().map_err(BenchError::Server)?;
        let server = HttpServer::new(move || App::new().service(web::scope("").configure(mounted.routes())));
        let server = server
            .workers(1)
            .disable_signals()
            .listen(listener)
            .map_err(BenchError::Server)?;
        let server = server.run();
        let handle = server.handle();
        actix_rt::spawn(server);
        Ok(Self {
            dashboard,
            server: handle,
            address,
        })
    }

    /// Returns where it listens.
    pub(super) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Lets so many look; gives when each has read its screen and has its stream.
    pub(super) fn viewers(&self, number: u32) -> Viewers {
        let is_over = Arc::new(AtomicBool::new(false));
        let threads = (0..number).map(|number| {
            let (address, is_over) = (self.address, Arc::clone(&is_over));
            thread::spawn(move || Viewer { address, number }.look(&is_over))
        });
        Viewers {
            threads: threads.collect(),
            is_over,
        }
    }

    pub(super) async fn close(self) {
        self.dashboard.close();
        self.server.stop(true).await;
    }
}

/// Those who look, until they are told to end.
pub(super) struct Viewers {
    threads: Vec<JoinHandle<std::io::Result<u64>>>,
    is_over: Arc<AtomicBool>,
}

impl Viewers {
    /// Ends them; gives how many events they were told in all.
    pub(super) fn end(self) -> Result<u64, BenchError> {
        self.is_over.store(true, Ordering::Relaxed);
        let told = self.threads.into_iter().map(|thread| match thread.join() {
            Ok(told) => told.map_err(BenchError::Server),
            Err(_) => Err(BenchError::Server(std::io::Error::other("a viewer panicked"))),
        });
        told.sum()
    }
}

struct Viewer {
    address: SocketAddr,
    number: u32,
}

impl Viewer {
    fn look(&self, is_over: &AtomicBool) -> std::io::Result<u64> {
        let place = usize::try_from(self.number).unwrap_or_default() % SCREENS.len();
        let (screen, filter, events, pause) = SCREENS.get(place).copied().unwrap_or_default();
        let mut read = self.read(screen)?;
        let mut stream = BufReader::new(self.ask(&format!("events?filter={filter}&name=viewer"))?);
        stream.get_ref().set_read_timeout(Some(PATIENCE))?;
        let (mut told, mut is_due, mut line) = (0, false, String::new());
        while !is_over.load(Ordering::Relaxed) {
            match stream.read_line(&mut line) {
                Ok(0) => return Err(std::io::Error::other("the stream has ended")),
                Ok(_) => {
                    if let Some(event) = line.trim_end().strip_prefix("event: ") {
                        told += 1;
                        is_due |= events.contains(&event);
                    }
                    line.clear();
                }
                Err(error)
                    if matches!(
                        error.kind(),
                        std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
                    ) => {}
                Err(error) => return Err(error),
            }
            if is_due && read.elapsed() >= pause {
                is_due = false;
                read = self.read(screen)?;
            }
        }
        Ok(told)
    }

    /// Reads a screen, whole.
    fn read(&self, screen: &str) -> std::io::Result<Instant> {
        let mut reply = String::new();
        self.ask(screen)?.read_to_string(&mut reply)?;
        let status = reply.lines().next().unwrap_or_default();
        if !status.contains(" 200 ") {
            return Err(std::io::Error::other(format!("{screen}: {status}")));
        }
        Ok(now())
    }

    fn ask(&self, path: &str) -> std::io::Result<TcpStream> {
        let mut stream = TcpStream::connect(self.address)?;
        let (host, number) = (self.address, self.number);
        write!(
            stream,
            "GET /api/v1/{path} HTTP/1.0\r\nhost: {host}\r\nx-viewer: {number}\r\n\r\n"
        )?;
        Ok(stream)
    }
}
