//! A server of HTTP for tests: it answers each request as a closure says, on a connection of its own.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

/// What was asked.
#[derive(Clone, Debug, Default)]
pub(crate) struct Request {
    pub(crate) path: String,
    /// By their names in small letters. Several values of a name are parted by commas, as in one header.
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: String,
}

/// What is answered: a status with a body, all of an answer byte by byte before the connection is closed, or nothing, ever.
pub(crate) enum Answer {
    Status(u16, String),
    Raw(Vec<u8>),
    Never,
}

/// Starts a server, which lives as long as the process. Each connection has a thread, so an answer may take its time.
pub(crate) fn serve(answer: impl Fn(&Request) -> Answer + Send + Sync + 'static) -> std::io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let answer = Arc::new(answer);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answer = Arc::clone(&answer);
            thread::spawn(move || {
                // Whoever asked may have gone.
                speak(stream, &*answer).ok();
            });
        }
    });
    Ok(address)
}

fn speak(mut stream: TcpStream, answer: &dyn Fn(&Request) -> Answer) -> std::io::Result<()> {
    let request = read(&stream)?;
    match answer(&request) {
        Answer::Never => loop {
            thread::park();
        },
        Answer::Raw(bytes) => stream.write_all(&bytes),
        Answer::Status(status, body) => {
            let length = body.len();
            write!(
                stream,
                "HTTP/1.1 {status} x\r\ncontent-length: {length}\r\nlocation: /elsewhere\r\n\r\n{body}"
            )
        }
    }
}

fn read(stream: &TcpStream) -> std::io::Result<Request> {
    let (mut reader, mut request, mut line) = (BufReader::new(stream), Request::default(), String::new());
    reader.read_line(&mut line)?;
    request.path = line.split(' ').nth(1).unwrap_or_default().to_owned();
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        let (values, value) = (request.headers.entry(name.to_ascii_lowercase()), value.trim());
        values
            .and_modify(|values| values.push_str(&format!(", {value}")))
            .or_insert_with(|| value.to_owned());
    }
    let length = request
        .headers
        .get("content-length")
        .and_then(|length| length.parse().ok());
    let mut body = vec![0; length.unwrap_or_default()];
    reader.read_exact(&mut body)?;
    request.body = String::from_utf8_lossy(&body).into_owned();
    Ok(request)
}
