//! `tail`: what changes is told line by line, over cuts of the connection, until it ends.

use std::io::{BufRead, BufReader, Lines, Read};
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::Outcome;
use crate::journal::Does;
use crate::remote::{Canned, problem};
use crate::site::{Site, Time, all};

/// One that runs.
struct Tail {
    child: Child,
    out: Lines<BufReader<ChildStdout>>,
    err: ChildStderr,
}

impl Tail {
    /// Starts it, and waits until it listens.
    fn start(site: &Site, arguments: &[&str]) -> Outcome<Self> {
        let mut child = Command::new(env!("CARGO_BIN_EXE_procession"))
            .args(["tail", "--url", site.url()])
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let out = BufReader::new(child.stdout.take().ok_or("no output")?).lines();
        let err = child.stderr.take().ok_or("no errors")?;
        let mut tail = Self { child, out, err };
        while !site.is_listened_to()? {
            if tail.child.try_wait()?.is_some() {
                return Err(format!("it ended before it listened: {}", tail.end()?.1).into());
            }
        }
        Ok(tail)
    }

    /// Reads on to a line that contains this.
    fn until(&mut self, text: &str) -> Outcome<String> {
        for line in self.out.by_ref() {
            let line = line?;
            if line.contains(text) {
                return Ok(line);
            }
        }
        Err(format!("it ended before \"{text}\": {}", self.end()?.1).into())
    }

    /// Waits for its end; gives the exit code, and what it said beside.
    fn end(&mut self) -> Outcome<(Option<i32>, String)> {
        let mut said = String::new();
        self.err.read_to_string(&mut said)?;
        Ok((self.child.wait()?.code(), said))
    }
}

impl Drop for Tail {
    fn drop(&mut self) {
        // It may have ended.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn waits() -> Does {
    Does::Waits("go".to_owned())
}

#[test]
fn changes_are_told_until_the_dashboard_says_goodbye() -> Outcome {
    let root = tempfile::tempdir()?;
    let site = Site::open(root.path(), Time::Real, all)?;
    site.submit(waits(), "before")?;
    let mut tail = Tail::start(&site, &[])?;
    site.submit(waits(), "a")?;
    let line = tail.until("waiting · event")?;
    let (time, rest) = line.split_once("  ").ok_or("no time")?;
    assert!(time.ends_with('Z') && time.len() == 20, "{line}");
    assert_eq!(
        rest,
        "2.0 job  waiting · event (waits for the event go)  stage End runs once go arrives"
    );
    site.close()?;
    let (code, said) = tail.end()?;
    assert!(code == Some(0) && said.contains("the stream has ended"), "{said}");
    Ok(())
}

#[test]
fn a_cut_loses_nothing() -> Outcome {
    let root = tempfile::tempdir()?;
    let site = Site::open(root.path(), Time::Real, all)?;
    let mut tail = Tail::start(&site, &["--json", "kind:job,other"])?;
    site.submit(waits(), "a")?;
    let told: Value = serde_json::from_str(&tail.until("\"WaitingTimeout\"")?)?;
    assert_eq!(
        (&told["event"], &told["rows"][0]["key"]),
        (&json!("change"), &json!("a"))
    );
    site.cut()?;
    site.submit(waits(), "b")?;
    site.serve_again()?;
    tail.until("\"key\":\"b\"")?;
    site.close()?;
    let (code, said) = tail.end()?;
    assert!(code == Some(0) && said.contains("trying again"), "{said}");
    Ok(())
}

#[test]
fn one_that_does_not_come_back_is_given_up() -> Outcome {
    let root = tempfile::tempdir()?;
    let site = Site::open(root.path(), Time::Real, all)?;
    let mut tail = Tail::start(&site, &["--retries", "1"])?;
    site.cut()?;
    let (code, said) = tail.end()?;
    assert!(code == Some(1) && said.contains("does not answer"), "{said}");
    Ok(())
}

#[test]
fn an_interrupt_is_its_usual_end() -> Outcome {
    let root = tempfile::tempdir()?;
    let site = Site::open(root.path(), Time::Real, all)?;
    let mut tail = Tail::start(&site, &[])?;
    let id = tail.child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status()?.success());
    let (code, said) = tail.end()?;
    assert!(code == Some(0) && said.is_empty(), "{code:?} {said}");
    Ok(())
}

#[test]
fn nobody_who_reads_is_its_end_too() -> Outcome {
    let root = tempfile::tempdir()?;
    let site = Site::open(root.path(), Time::Real, all)?;
    let mut tail = Tail::start(&site, &[])?;
    let nobody = Command::new("true").stdout(Stdio::piped()).spawn()?.stdout;
    let out = nobody.ok_or("no output")?;
    drop(std::mem::replace(&mut tail.out, BufReader::new(out).lines()));
    site.submit(waits(), "a")?;
    assert_eq!(tail.end()?.0, Some(0));
    Ok(())
}

fn row(id: &str, revision: &str) -> Value {
    json!({
        "id": id, "root": id, "parent": null, "kind": "job", "version": 1, "key": null, "state": "Runnable",
        "reason": null, "waits": null, "since": "s", "until": null, "next": "n", "stage": "Work", "attempt": 0,
        "going": false, "priority": 0, "paused": false, "holds": false, "locks": [], "past_no_return": null, "cause": null,
        "not_undone": 0, "mark": null, "submitted": "s", "ended": null, "revision": revision,
    })
}

#[test]
fn what_was_missed_is_read_anew() -> Outcome {
    let page = |as_of: &str, items: &[Value]| {
        let page = json!({ "now": "t", "as_of": as_of, "items": items, "cursor": null, "scanned": 2, "truncated": false,
            "unreadable": [] });
        Canned::json(200, &page)
    };
    let change =
        json!({ "now": "t", "as_of": "1-12", "rows": [row("1.0", "12")], "left": [], "gone": [], "cut": false });
    let first = format!("event: change\nid: 1-12\ndata: {change}\n\nevent: resync\nid: 2-20\ndata: {{}}\n\n");
    let canned = Canned::open(vec![
        page("1-10", &[]),
        Canned::stream(&first),
        page("2-21", &[row("1.0", "12"), row("2.0", "15")]),
        Canned::json(503, &problem(503, "recovering", "Reading.")),
        Canned::stream("event: bye\ndata: {}\n\n"),
    ])?;
    let said = canned.run("tail")?;
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert_eq!(said.out, "t  1.0 job  runnable  n\nt  2.0 job  runnable  n\n");
    let asked = canned.asked()?;
    assert!(asked[1].contains("from=1-10&"), "{}", asked[1]);
    assert!(
        asked[4].contains("from=2-21&") && !asked[4].contains("last-event-id"),
        "{}",
        asked[4]
    );
    Ok(())
}
