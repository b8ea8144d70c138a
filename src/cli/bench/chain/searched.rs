//! Searchers beside the chains: whoever asks the dashboard expensive questions must not slow the engine.
//!
//! Each is a caller of its own, and asks without pause, whatever it is told: as a script does that nobody has
//! thought about. Half of them ask for lists that look at every row and show none; the others mix these with
//! all that the page reads. They run in this process, so what they cost themselves counts, too.

use std::io::{Error, Read, Result, Write};
use std::net::{SocketAddr, TcpStream};
use std::ops::AddAssign;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use super::super::BenchError;

/// Lists that look at all there is.
const LISTS: [&str; 2] = [
    "procedures?filter=state:ended%20err:zzzz",
    "procedures?filter=state:live,ended%20zzzz",
];
/// What the others ask, one after the other.
const MIXED: [&str; 8] = [
    "procedures?filter=state:ended%20err:zzzz",
    "attention",
    "procedures?filter=err:zzzz",
    "locks",
    "procedures?filter=state:ended%20age:%3E10d",
    "kinds",
    "audit?filter=zzzz",
    "procedures?filter=state:ended&limit=500",
];

/// What searchers were told.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Searches {
    pub(super) answered: u64,
    /// For a while: too much was asked for.
    pub(super) refused: u64,
}

impl AddAssign for Searches {
    fn add_assign(&mut self, other: Self) {
        self.answered += other.answered;
        self.refused += other.refused;
    }
}

/// Those who search, until they are told to end.
pub(super) struct Searchers {
    threads: Vec<JoinHandle<Result<Searches>>>,
    is_over: Arc<AtomicBool>,
}

impl Searchers {
    /// Lets so many ask the dashboard at this address.
    pub(super) fn begin(address: SocketAddr, number: u32) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let threads = (0..number).map(|number| {
            let is_over = Arc::clone(&is_over);
            thread::spawn(move || search(address, number, &is_over))
        });
        Self {
            threads: threads.collect(),
            is_over,
        }
    }

    /// Ends them; gives what they were told.
    pub(super) fn end(self) -> std::result::Result<Searches, BenchError> {
        self.is_over.store(true, Ordering::Relaxed);
        let mut all = Searches::default();
        for thread in self.threads {
            let told = thread.join().map_err(|_| Error::other("a searcher panicked"));
            all += told.and_then(|told| told).map_err(BenchError::Server)?;
        }
        Ok(all)
    }
}

fn search(address: SocketAddr, number: u32, is_over: &AtomicBool) -> Result<Searches> {
    let questions: &[&str] = if number.is_multiple_of(2) { &LISTS } else { &MIXED };
    let mut told = Searches::default();
    for question in questions.iter().cycle() {
        if is_over.load(Ordering::Relaxed) {
            break;
        }
        match ask(address, number, question)? {
            200 => told.answered += 1,
            429 => told.refused += 1,
            status => return Err(Error::other(format!("{question}: {status}"))),
        }
    }
    Ok(told)
}

/// Asks, and reads the whole answer; gives its status.
fn ask(address: SocketAddr, number: u32, question: &str) -> Result<u16> {
    let mut stream = TcpStream::connect(address)?;
    write!(
        stream,
        "GET /api/v1/{question} HTTP/1.0\r\nhost: {address}\r\nx-viewer: searcher {number}\r\n\r\n"
    )?;
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply)?;
    let status = reply.get(9..12).and_then(|status| std::str::from_utf8(status).ok());
    status
        .and_then(|status| status.parse().ok())
        .ok_or_else(|| Error::other(format!("{question}: no answer of HTTP")))
}
