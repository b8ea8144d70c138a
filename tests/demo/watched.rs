//! The demo's dashboard and metrics, as somebody at the next terminal sees them.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::Value;

use crate::Outcome;
use crate::command::{Running, demo, must_be_whole, run, said};

const SIZES: &str = "--tables 3 --operations 40 --seed 3";

/// Asks a server of this machine; gives the status and the body. A dashboard that still reads its journal is asked again.
pub(crate) fn ask(address: &str, request: &str, headers: &str, body: &str) -> Outcome<(u16, String)> {
    loop {
        let (status, answer) = ask_once(address, request, headers, body)?;
        if status != 503 || !answer.contains(r#""kind":"recovering""#) {
            return Ok((status, answer));
        }
        std::thread::yield_now();
    }
}

fn ask_once(address: &str, request: &str, headers: &str, body: &str) -> Outcome<(u16, String)> {
    let mut stream = TcpStream::connect(address)?;
    let length = body.len();
    write!(
        stream,
        "{request} HTTP/1.0\r\n{headers}content-length: {length}\r\n\r\n{body}"
    )?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    let (head, body) = text.split_once("\r\n\r\n").ok_or("no end of the headers")?;
    let status = head.split(' ').nth(1).ok_or("no status")?;
    Ok((status.parse()?, body.to_owned()))
}

/// Waits until a run says where to look, and returns host and port.
pub(crate) fn address_of(running: &mut Running) -> Outcome<String> {
    let line = running.until("watch it")?.ok_or("it did not say where to look")?;
    let rest = line.split("http://").nth(1).and_then(|rest| rest.split('/').next());
    Ok(rest.ok_or("no address")?.to_owned())
}

#[test]
fn a_run_serves_its_dashboard_and_keeps_it_when_told_to() -> Outcome {
    let directory = tempfile::tempdir()?;
    let mut running = Running::start(demo(directory.path(), &format!("{SIZES} --serve --port 0")))?;
    let address = &address_of(&mut running)?;
    let own = format!("host: {address}\r\n");
    running.until("the dashboard stays")?.ok_or("it did not stay")?;

    let (status, body) = ask(address, "GET /api/v1/attention", &own, "")?;
    let attention: Value = serde_json::from_str(&body)?;
    // Nothing is stuck; faults that the demo injects have failed some.
    let verdicts = attention["verdicts"].as_array().ok_or("no verdicts")?;
    let stuck: Vec<&Value> = verdicts
        .iter()
        .filter(|one| one["rule"] != "unacknowledged_failures")
        .collect();
    assert_eq!((status, stuck), (200, Vec::new()));
    let (status, text) = ask(address, "GET /metrics", &own, "")?;
    let commits = text
        .lines()
        .find_map(|line| line.strip_prefix("procession_journal_commits_total "));
    assert_eq!(status, 200);
    assert!(commits.ok_or("no commits")?.parse::<u64>()? > 40);
    assert!(text.contains("procession_stage_seconds_bucket{"), "{text}");

    let marked = format!("{own}x-procession: 1\r\ncontent-type: application/json\r\n");
    let limit = ask(
        address,
        "POST /api/v1/limits/inspect_table",
        &marked,
        r#"{"limit":2,"reason":"look"}"#,
    )?;
    assert_eq!(limit.0, 200, "{}", limit.1);
    let (status, body) = ask(
        address,
        "POST /api/v1/procedures/1.0/abort",
        &marked,
        r#"{"reason":"x"}"#,
    )?;
    assert_eq!((status, body.contains("\"abort\"")), (403, true), "{body}");
    let (status, _) = ask(address, "GET /api/v1/attention", "host: example.org\r\n", "")?;
    assert_eq!(status, 421);

    let taken = address.rsplit(':').next().ok_or("no port")?;
    let other = tempfile::tempdir()?;
    let refused = demo(other.path(), &format!("{SIZES} --port {taken}")).output()?;
    assert_eq!(refused.status.code(), Some(1));
    assert!(said(&refused).contains("--port"), "{}", said(&refused));

    let (status, text) = running.interrupt()?;
    assert!(status.success(), "{text}");
    // The inspections that were under way go on, end, and have changed nothing.
    must_be_whole(&run(directory.path(), SIZES)?);
    Ok(())
}

#[test]
fn a_run_can_do_without_a_dashboard() -> Outcome {
    let directory = tempfile::tempdir()?;
    let output = demo(directory.path(), &format!("{SIZES} --no-dashboard")).output()?;
    assert!(output.status.success() && !said(&output).contains("watch it"));
    Ok(())
}
