//! What stands where a dashboard was looked for: nothing, something else, one that refuses, one
//! that sends what it likes.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::JoinHandle;

use serde_json::{Value, json};

use crate::Outcome;
use crate::golden::made;
use crate::journal::{Does, of_each};
use crate::run::{Said, procession};
use crate::site::{Site, Time, all, who_knows};

/// A server that answers each request with the next of these texts, whatever was asked.
pub(crate) struct Canned {
    url: String,
    thread: JoinHandle<Result<Vec<String>, String>>,
}

impl Canned {
    pub(crate) fn open(replies: Vec<String>) -> Outcome<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let url = format!("http://{}", listener.local_addr()?);
        let thread = std::thread::spawn(move || answer(&listener, &replies).map_err(|error| error.to_string()));
        Ok(Self { url, thread })
    }

    pub(crate) fn run(&self, arguments: &str) -> Outcome<Said> {
        procession(arguments.split_whitespace().chain(["--url", &self.url]))
    }

    /// Returns what was asked, when all has been answered.
    pub(crate) fn asked(self) -> Outcome<Vec<String>> {
        Ok(self.thread.join().map_err(|_| "the server has panicked")??)
    }

    pub(crate) fn json(status: u16, body: &Value) -> String {
        let kind = if status == 200 {
            "application/json"
        } else {
            "application/problem+json"
        };
        Self::text(status, kind, &body.to_string())
    }

    pub(crate) fn text(status: u16, kind: &str, body: &str) -> String {
        let size = body.len();
        format!(
            "HTTP/1.1 {status} Status\r\nContent-Type: {kind}\r\nContent-Length: {size}\r\nConnection: close\r\n\r\n{body}"
        )
    }

    /// A stream that ends behind these events.
    pub(crate) fn stream(events: &str) -> String {
        format!("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n{events}")
    }
}

fn answer(listener: &TcpListener, replies: &[String]) -> std::io::Result<Vec<String>> {
    let mut asked = Vec::new();
    for reply in replies {
        let (mut stream, _) = listener.accept()?;
        asked.push(read(&mut stream)?);
        stream.write_all(reply.as_bytes())?;
    }
    Ok(asked)
}

/// Reads a request to the end of its body.
fn read(stream: &mut TcpStream) -> std::io::Result<String> {
    let mut request = String::new();
    loop {
        let mut part = [0; 4096];
        let count = stream.read(&mut part)?;
        request.push_str(&String::from_utf8_lossy(part.get(..count).unwrap_or_default()));
        let Some((head, body)) = request.split_once("\r\n\r\n") else {
            continue;
        };
        let sizes = head.lines().filter_map(|line| {
            line.to_lowercase()
                .strip_prefix("content-length: ")?
                .parse::<usize>()
                .ok()
        });
        let size: usize = sizes.sum();
        if count == 0 || body.len() >= size {
            return Ok(request);
        }
    }
}

pub(crate) fn problem(status: u16, kind: &str, detail: &str) -> Value {
    json!({ "type": "about:blank", "status": status, "kind": kind, "detail": detail, "remedy": "Do so." })
}

#[test]
fn one_of_a_journal_and_a_dashboard_is_named() -> Outcome {
    let root = tempfile::tempdir()?;
    let data = root.path().to_str().ok_or("the directory's name is not UTF-8")?;
    for (arguments, expected) in [
        (vec!["ls"], "--data, or the address of a dashboard"),
        (vec!["tail"], "say which dashboard to speak to, with --url"),
        (
            vec!["ls", "--data", data, "--url", "http://localhost:1"],
            "cannot be used with",
        ),
        (vec!["ls", "--data", data, "--header", "a: b"], "cannot be used with"),
        (vec!["ls", "--data", data, "--watch"], "cannot be used with"),
        (
            vec!["ls", "--url", "http://localhost:1", "--watch"],
            "--watch draws on a terminal",
        ),
        (vec!["ls", "--url", "localhost:1"], "an address reads like"),
        (
            vec!["ls", "--url", "http://ann:sesame@localhost:1"],
            "--header 'Authorization: ",
        ),
        (
            vec!["ls", "--url", "http://localhost:1", "--header", "sesame"],
            "a header reads like",
        ),
        (
            vec!["export", "--url", "http://localhost:1", "--all", "--payload"],
            "give it with --reason",
        ),
    ] {
        let said = procession(arguments.iter().copied())?;
        assert_eq!(said.code, Some(2), "{arguments:?}: {}", said.err);
        assert!(said.err.contains(expected), "{arguments:?}: {}", said.err);
        assert!(!said.err.contains("sesame@") || arguments.len() != 4, "{}", said.err);
    }
    Ok(())
}

#[cfg(not(feature = "https"))]
#[test]
fn https_needs_its_feature() -> Outcome {
    let said = procession(["ls", "--url", "https://localhost:1"])?;
    assert!(
        said.code == Some(2) && said.err.contains("--features https"),
        "{}",
        said.err
    );
    Ok(())
}

#[test]
fn where_nobody_answers_is_said() -> Outcome {
    let url = format!("http://{}", TcpListener::bind("127.0.0.1:0")?.local_addr()?);
    for verb in ["ls", "doctor", "tail"] {
        let said = procession([verb, "--url", &url])?;
        assert_eq!(said.code, Some(1), "{verb}: {}", said.err);
        assert!(said.err.contains(&format!("{url} does not answer")), "{}", said.err);
    }
    Ok(())
}

#[test]
fn what_is_no_dashboard_is_named() -> Outcome {
    let page = |status| Canned::text(status, "text/html", "<p>hello</p>");
    let to =
        "HTTP/1.1 302 Found\r\nLocation: http://localhost:1/login\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    for (reply, code, expected) in [
        (page(200), 1, "there is no dashboard at "),
        (page(404), 1, "it answers 404"),
        (page(401), 5, "wants a login; give it with --header"),
        (page(403), 5, "give a login that may do it"),
        (
            to.to_owned(),
            1,
            "sends to http://localhost:1/login, which is not followed",
        ),
        (
            Canned::json(200, &json!([])),
            1,
            "another shape than this release knows",
        ),
        (
            Canned::json(404, &problem(404, "unknown", "No\u{1b}[2J.")),
            1,
            "No\\u{1b}[2J. Do so.",
        ),
        (
            Canned::json(500, &problem(500, "unreadable", "Damaged.")),
            1,
            "Damaged. Do so.",
        ),
        (String::new(), 1, "does not answer"),
    ] {
        let canned = Canned::open(vec![reply])?;
        let said = canned.run("locks")?;
        assert_eq!(said.code, Some(code), "{expected}: {}", said.err);
        assert!(said.err.contains(expected), "{expected}: {}", said.err);
        assert_eq!(said.out, "");
    }
    Ok(())
}

#[test]
fn what_is_sent_does_not_steer_the_terminal() -> Outcome {
    let lock = json!({ "path": "a\u{1b}]0;b", "holders": [{ "id": "1.0\r", "mode": "x" }], "waiting": ["\u{202e}"] });
    let canned = Canned::open(vec![Canned::json(200, &json!({ "items": [lock] }))])?;
    let said = canned.run("locks")?;
    assert_eq!(said.code, Some(0), "{}", said.err);
    let steers = |letter: char| letter.is_control() && letter != '\n' || letter == '\u{202e}';
    assert!(!said.out.contains(steers), "{:?}", said.out);
    Ok(())
}

#[test]
fn one_that_is_busy_for_a_moment_is_asked_again() -> Outcome {
    let busy = Canned::json(503, &problem(503, "recovering", "Reading.")).replacen("\r\n", "\r\nRetry-After: 0\r\n", 1);
    let canned = Canned::open(vec![busy, Canned::json(200, &json!({ "items": [] }))])?;
    let said = canned.run("locks")?;
    assert_eq!(said.code, Some(0), "{}", said.err);
    Ok(())
}

#[test]
fn headers_carry_the_login_of_the_host() -> Outcome {
    let place = made(of_each)?;
    let site = Site::open(&place.journal, Time::Still, who_knows)?;
    let said = site.run("ls")?;
    assert!(
        said.code == Some(5) && said.err.contains("may not see the dashboard"),
        "{}",
        said.err
    );
    for (word, code) in [("sesame", 0), ("barley", 5)] {
        let header = format!("Authorization: Bearer {word}");
        let said = procession(["show", "4.0", "--url", site.url(), "--header", header.as_str()])?;
        assert_eq!(said.code, Some(code), "{}", said.err);
        assert!(!said.err.contains(word), "{}", said.err);
    }
    let said = std::process::Command::new(env!("CARGO_BIN_EXE_procession"))
        .args(["locks", "--header", "Authorization: Bearer sesame"])
        .env("PROCESSION_URL", site.url())
        .output()?;
    assert_eq!(said.status.code(), Some(0), "{}", String::from_utf8_lossy(&said.stderr));
    Ok(())
}

#[test]
fn one_that_is_not_there_is_not_made_up_online() -> Outcome {
    let root = tempfile::tempdir()?;
    let site = Site::open(root.path(), Time::Still, all)?;
    site.submit(Does::Waits("go".to_owned()), "a")?;
    for verb in [
        "show 77.0",
        "tree 77.0",
        "tree 1.77",
        "history 77.0",
        "why 77.0",
        "export 77.0",
    ] {
        let said = site.run(verb)?;
        assert_eq!(said.code, Some(1), "{verb}: {}", said.err);
        assert!(said.err.contains("77"), "{verb}: {}", said.err);
        assert_eq!(said.out, "", "{verb}");
    }
    let said = site.run("ls state:sleepy")?;
    assert_eq!(said.code, Some(2), "{}", said.err);
    Ok(())
}

#[test]
fn a_list_is_put_together_of_pages() -> Outcome {
    let root = tempfile::tempdir()?;
    let site = Site::open(root.path(), Time::Still, all)?;
    let below = (0..600).map(|_| Does::Waits("go".to_owned())).collect();
    site.submit(Does::Spawns(below), "a")?;
    let said = site.run("ls --limit 1000")?;
    assert_eq!(said.out.lines().count(), 602, "{}", said.err);
    let said = site.run("ls --limit 550")?;
    assert_eq!(said.out.lines().count(), 551, "{}", said.err);
    assert!(said.err.contains("go on with --after 1.550"), "{}", said.err);
    let said = site.run("history 1.0 --family --limit 600")?;
    assert_eq!(said.out.lines().count(), 601, "{}", said.err);
    assert!(said.err.contains("600 of 601 are shown"), "{}", said.err);
    Ok(())
}

#[test]
fn payloads_are_asked_for_with_a_reason() -> Outcome {
    let family = json!({
        "format": 1, "family": 1, "whole": true, "quarantined": null, "procedures": [], "stages": [], "unreadable": [],
        // The payload of 1.0: the number 7.
        "entries": [{ "space": "payloads", "key": "00000000000000010000000000", "value": "07" }],
    });
    let canned = Canned::open(vec![Canned::json(200, &json!({ "dry_run": false, "export": family }))])?;
    let said = canned.run("export 1.0 --payload --reason report")?;
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert_eq!(
        said.out,
        "{\"bytes\":1,\"id\":\"1.0\",\"part\":\"payload\",\"raw\":null,\"type\":\"value\",\"value\":7}\n\
         {\"entries\":[{\"key\":\"00000000000000010000000000\",\"space\":\"payloads\",\"value\":\"07\"}],\
         \"family\":1,\"format\":1,\"procedures\":[],\"quarantined\":null,\"stages\":[],\"type\":\"family\",\
         \"unreadable\":[],\"whole\":true}\n"
    );
    let asked = canned.asked()?;
    assert!(
        asked[0].starts_with("POST /api/v1/procedures/1.0/export "),
        "{}",
        asked[0]
    );
    assert!(asked[0].ends_with("{\"reason\":\"report\"}"), "{}", asked[0]);
    Ok(())
}
