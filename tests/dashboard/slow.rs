//! Bodies that come slowly, over a socket as they do: one is waited for a while, and then no longer.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use actix_web::dev::ServerHandle;
use actix_web::{App, HttpServer, web};
use procession::testkit::Trouble;
use serde_json::Value;

use crate::kit::{Site, Tested, site};

/// How long something may take that is to come, on a machine that has much else to do.
const PATIENCE: Duration = Duration::from_secs(60);
const BODY: &str = r#"{ "reason": "slow" }"#;

fn serve(site: &Site<'_>) -> Result<(SocketAddr, ServerHandle), Trouble> {
    let dashboard = site.dashboard.clone();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    let server = HttpServer::new(move || App::new().service(web::scope("").configure(dashboard.routes())));
    let server = server.workers(1).disable_signals().listen(listener)?.run();
    let handle = server.handle();
    actix_rt::spawn(server);
    Ok((address, handle))
}

/// Begins to pause the engine: all but the body.
fn begin(address: SocketAddr) -> Result<TcpStream, Trouble> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let length = BODY.len();
    let head = format!(
        "POST /api/v1/engine/pause HTTP/1.1\r\nhost: {address}\r\nx-procession: 1\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n"
    );
    stream.write_all(head.as_bytes())?;
    Ok(stream)
}

/// Reads beside the engine, whose time goes on meanwhile by so much at once.
async fn read<T: Send + 'static>(
    site: &Site<'_>,
    step: Duration,
    read: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> Result<T, Trouble> {
    let reader = std::thread::spawn(read);
    while !reader.is_finished() {
        site.run.pass(step).await;
        actix_rt::task::yield_now().await;
    }
    Ok(reader.join().map_err(|_| "the reader panicked")??)
}

#[test]
fn a_body_that_does_not_come_whole_is_not_held() -> Tested {
    site(async |site| {
        let (address, server) = serve(site)?;
        let mut stream = begin(address)?;
        stream.write_all(b"{")?;
        let whole = move || {
            let mut said = String::new();
            stream.read_to_string(&mut said)?;
            Ok(said)
        };
        let said = read(site, Duration::from_secs(1), whole).await?;
        let (head, body) = said.split_once("\r\n\r\n").ok_or("no answer")?;
        assert!(head.starts_with("HTTP/1.1 408 "), "{said}");
        assert!(head.to_lowercase().contains("connection: close"), "{said}");
        let body: Value = serde_json::from_str(body)?;
        assert_eq!(body["kind"], "slow");
        assert_eq!(site.run.executor.snapshot().await?.paused, []);
        server.stop(false).await;
        Ok(())
    })
}

#[test]
fn a_body_that_comes_in_pieces_is_taken() -> Tested {
    site(async |site| {
        let (address, server) = serve(site)?;
        let mut stream = begin(address)?;
        let pieces = move || {
            for byte in BODY.bytes() {
                stream.write_all(&[byte])?;
            }
            let mut said = [0; 12];
            stream.read_exact(&mut said)?;
            Ok(said)
        };
        // The engine's time stands still: however long this machine takes, the body is not late.
        let said = read(site, Duration::ZERO, pieces).await?;
        assert_eq!(&said, b"HTTP/1.1 200");
        assert_eq!(site.run.executor.snapshot().await?.paused.len(), 1);
        server.stop(false).await;
        Ok(())
    })
}
