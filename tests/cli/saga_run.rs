//! `procession saga run` and `demo`: sagas without a line of Rust, with services over HTTP and as commands.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::Outcome;
use crate::run::Said;
use crate::server::{Answer, Request, serve};

const DEMO_EXCEPTION: &str = "org.apache.seata.saga.engine.mock.DemoException";

fn seata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("saga/demo/data/seata")
        .join(name)
}

/// A directory with a services file, and what its server has seen.
struct Place {
    directory: TempDir,
    asked: Arc<Mutex<Vec<Request>>>,
    /// Methods that fail.
    failing: Arc<Mutex<Vec<(&'static str, u16)>>>,
    instant: Arc<Mutex<Option<Instant>>>,
}

/// When a process is killed: once a method is called, before it is answered or while the answer is under way.
struct Instant {
    method: &'static str,
    came: Sender<()>,
    /// The answer waits for this.
    killed: Option<Receiver<()>>,
}

impl Instant {
    fn come(self) {
        // The test waits for one, and may have failed before the other.
        self.came.send(()).ok();
        if let Some(killed) = self.killed {
            killed.recv().ok();
        }
    }
}

impl Place {
    /// Starts a server that answers as `demoService` would: with an object, or with its exception.
    fn new() -> Outcome<Self> {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let failing = Arc::new(Mutex::new(Vec::new()));
        let instant = Arc::new(Mutex::new(None::<Instant>));
        let (seen, fails, at) = (Arc::clone(&asked), Arc::clone(&failing), Arc::clone(&instant));
        let address = serve(move |request| {
            seen.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(request.clone());
            let method = request.path.rsplit('/').next().unwrap_or_default();
            let instant = at
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take_if(|instant| instant.method == method);
            if let Some(instant) = instant {
                instant.come();
            }
            let fails = fails.lock().unwrap_or_else(PoisonError::into_inner);
            match fails.iter().find(|(failing, _)| *failing == method) {
                Some((_, 500)) => {
                    Answer::Status(500, json!({ "class": DEMO_EXCEPTION, "message": "no bar" }).to_string())
                }
                Some((_, status)) => Answer::Status(*status, "down".to_owned()),
                None => Answer::Status(200, json!({ "fruit": "apple" }).to_string()),
            }
        })?;
        let directory = tempfile::tempdir()?;
        let services = json!({
            "demoService": { "type": "http", "url": format!("http://{address}/{{method}}"), "timeout_ms": 30_000 }
        });
        fs::write(directory.path().join("services.json"), services.to_string())?;
        Ok(Self {
            directory,
            asked,
            failing,
            instant,
        })
    }

    /// Lets methods answer with this status: with 500 it is Seata's exception.
    fn fail(&self, status: u16, methods: &[&'static str]) {
        let methods = methods.iter().map(|method| (*method, status)).collect();
        *self.failing.lock().unwrap_or_else(PoisonError::into_inner) = methods;
    }

    /// Returns what was asked since the last time: the state, and the key.
    fn asked(&self) -> Vec<(String, String)> {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let header = |request: &Request, name: &str| request.headers.get(name).cloned().unwrap_or_default();
        let asked = asked.drain(..);
        asked
            .map(|request| {
                (
                    header(&request, "procession-state"),
                    header(&request, "idempotency-key"),
                )
            })
            .collect()
    }

    fn command(&self, file: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_procession"));
        command
            .args(["saga", "run"])
            .arg(file)
            .args(["--services", "services.json", "--data", "journal"])
            .args(arguments)
            .current_dir(self.directory.path())
            .env_remove("NO_SUCH_VARIABLE")
            .stdin(Stdio::null());
        command
    }

    fn run(&self, file: &str, arguments: &[&str]) -> Outcome<Said> {
        said(&mut self.command(&seata(file), arguments))
    }
}

fn said(command: &mut Command) -> Outcome<Said> {
    let output = command.output()?;
    Ok(Said {
        code: output.status.code(),
        out: String::from_utf8(output.stdout)?,
        err: String::from_utf8(output.stderr)?,
    })
}

fn states(asked: &[(String, String)]) -> Vec<&str> {
    asked.iter().map(|(state, _)| state.as_str()).collect()
}

#[test]
fn g_038_a_saga_runs_without_rust() -> Outcome {
    let place = Place::new()?;
    let file = "simple_statelang_with_compensation.json";
    let ran = place.run(file, &["--params", r#"{"a": 1}"#])?;
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    assert!(ran.out.ends_with("every step took effect\n"), "{}", ran.out);
    assert_eq!(states(&place.asked()), ["FirstState", "SecondState"]);

    // The same saga again: it has ended, and nothing is called.
    let again = place.run(file, &[])?;
    assert_eq!((again.code, again.out.as_str()), (Some(0), ran.out.as_str()));
    let other = place.run(file, &["--params", r#"{"a": 2}"#])?;
    assert_eq!(other.code, Some(5), "{}", other.err);
    assert!(other.err.contains("was started with other params"), "{}", other.err);
    assert!(place.asked().is_empty());

    place.fail(500, &["bar"]);
    let failed = place.run(file, &["--params", r#"{"a": 1}"#, "--key", "2", "--json"])?;
    assert_eq!(failed.code, Some(1), "{}{}", failed.out, failed.err);
    let last: Value = serde_json::from_str(failed.out.lines().last().ok_or("there is an end")?)?;
    assert_eq!((&last["status"], &last["compensation"]), (&json!("UN"), &json!("SU")));
    let sentence = last["sentence"].as_str().unwrap_or_default();
    assert!(
        sentence.starts_with("rolled back, 2 undone: state [SecondState]: NOT_FOUND"),
        "{sentence}"
    );
    let asked = place.asked();
    let expected = [
        "FirstState",
        "SecondState",
        "CompensateSecondState",
        "CompensateFirstState",
    ];
    assert_eq!(states(&asked), expected);
    // A compensator has the key of the state that it undoes, with a mark.
    assert_eq!(
        asked.last().map(|(_, key)| key.clone()),
        asked.first().map(|(_, key)| format!("{key}-c"))
    );
    Ok(())
}

#[test]
fn g_038_a_saga_is_killed_at_any_time_and_goes_on() -> Outcome {
    let place = Place::new()?;
    let file = seata("simple_statelang_with_compensation.json");
    for instant in 0..20 {
        let key = format!("killed at {instant}");
        let arguments = ["--params", r#"{"a": 1}"#, "--key", &key];
        let ((came, wait), (killed, held)) = (channel(), channel());
        let is_answered = instant % 4 < 2;
        *place.instant.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant {
            method: if instant % 2 == 0 { "foo" } else { "bar" },
            came,
            killed: (!is_answered).then_some(held),
        });
        let mut command = place.command(&file, &arguments);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        wait.recv()?;
        child.kill()?;
        child.wait()?;
        killed.send(()).ok();

        let ran = said(&mut place.command(&file, &arguments))?;
        assert_eq!(ran.code, Some(0), "{instant}: {}{}", ran.out, ran.err);
        let asked = place.asked();
        for state in ["FirstState", "SecondState"] {
            let keys = asked.iter().filter(|(asked, _)| asked == state).map(|(_, key)| key);
            let (times, keys) = (keys.clone().count(), keys.collect::<BTreeSet<_>>());
            assert_eq!(keys.len(), 1, "{instant}: the keys of {state} are {keys:?}");
            assert!(times <= 2, "{instant}: {state} was called {times} times");
        }
        if !is_answered {
            assert_eq!(asked.len(), 3, "{instant}: what was cut off is called again: {asked:?}");
        }
    }
    Ok(())
}

#[test]
fn g_038_a_saga_rests_until_a_person_decides() -> Outcome {
    let place = Place::new()?;
    let file = "simple_statelang_with_compensation_for_recovery.json";
    place.fail(503, &["bar"]);
    let rests = place.run(file, &["--params", r#"{"a": 1}"#])?;
    assert_eq!(rests.code, Some(3), "{}{}", rests.out, rests.err);
    assert!(rests.err.contains("--forward"), "{}", rests.err);
    // Again without a decision it still rests, and nothing is called.
    place.asked();
    assert_eq!(place.run(file, &[])?.code, Some(3));
    assert!(place.asked().is_empty());
    place.fail(503, &[]);
    let forward = place.run(file, &["--forward", r#"{"a": 1}"#])?;
    assert_eq!(forward.code, Some(0), "{}{}", forward.out, forward.err);
    let asked = place.asked();
    assert!(
        !states(&asked).contains(&"FirstState"),
        "what has succeeded is not called again: {asked:?}"
    );

    place.fail(503, &["bar"]);
    assert_eq!(
        place.run(file, &["--params", r#"{"a": 1}"#, "--key", "2"])?.code,
        Some(3)
    );
    let skipped = place.run(file, &["--key", "2", "--skip", "{}"])?;
    assert_eq!(skipped.code, Some(0), "{}{}", skipped.out, skipped.err);

    assert_eq!(
        place.run(file, &["--params", r#"{"a": 1}"#, "--key", "3"])?.code,
        Some(3)
    );
    place.fail(503, &["compensateFoo", "compensateBar"]);
    place.asked();
    let undone = place.run(file, &["--key", "3", "--compensate"])?;
    assert_eq!(undone.code, Some(3), "{}{}", undone.out, undone.err);
    assert!(undone.err.contains("--skip-compensation"), "{}", undone.err);
    place.fail(503, &[]);
    let undone = place.run(file, &["--key", "3", "--compensate"])?;
    assert_eq!(undone.code, Some(1), "{}{}", undone.out, undone.err);
    assert!(undone.out.contains("rolled back"), "{}", undone.out);
    Ok(())
}

/// A machine of one task that has a compensator and says nothing of statuses.
const PAY: &str = r#"{
    "Name": "pay", "StartState": "Pay",
    "States": {
        "Pay": {
            "Type": "ServiceTask", "ServiceName": "bank", "ServiceMethod": "charge", "Input": ["$.[cents]"],
            "Output": { "receipt": "$.#root" }, "CompensateState": "Refund"
        },
        "Refund": { "Type": "ServiceTask", "ServiceName": "bank", "ServiceMethod": "refund" }
    }
}"#;

/// Runs it with this service, and returns the code and the lines.
fn pay(service: &Value) -> Outcome<(Said, Vec<Value>)> {
    let directory = tempfile::tempdir()?;
    fs::write(directory.path().join("pay.json"), PAY)?;
    let services = json!({ "bank": service, "faults": { "command.7": "com.acme.NotCovered" } });
    fs::write(directory.path().join("services.json"), services.to_string())?;
    let mut command = Command::new(env!("CARGO_BIN_EXE_procession"));
    command
        .args([
            "saga",
            "run",
            "pay.json",
            "--services",
            "services.json",
            "--data",
            "journal",
            "--json",
        ])
        .args(["--params", r#"{"cents": 500}"#])
        .current_dir(directory.path())
        .stdin(Stdio::null());
    let said = said(&mut command)?;
    let lines = said
        .out
        .lines()
        .map(serde_json::from_str)
        .collect::<Result<Vec<Value>, _>>();
    let lines = lines.unwrap_or_default();
    Ok((said, lines))
}

#[test]
fn g_038_a_refused_connection_had_no_effect_and_silence_is_doubt() -> Outcome {
    let closed = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let (said, lines) = pay(&json!({ "type": "http", "url": format!("http://{closed}/") }))?;
    assert_eq!(
        (said.code, &lines[0]["status"]),
        (Some(3), &json!("FA")),
        "{}{}",
        said.out,
        said.err
    );
    for silent in [
        serve(|_| Answer::Never)?,
        serve(|_| Answer::Raw(b"HTTP/1.1 ".to_vec()))?,
    ] {
        let (said, lines) = pay(&json!({ "type": "http", "url": format!("http://{silent}/"), "timeout_ms": 200 }))?;
        let found = (said.code, &lines[0]["status"]);
        assert_eq!(found, (Some(3), &json!("UN")), "{}{}", said.out, said.err);
    }
    Ok(())
}

#[test]
fn g_038_a_service_is_a_command() -> Outcome {
    let command = |script: &str| json!({ "type": "command", "command": ["sh", "-c", script, "sh", "{method}"], "timeout_ms": 10_000 });
    let context = |lines: &[Value]| lines.last().map(|last| last["context"]["receipt"].clone());
    let (said, lines) = pay(&command(
        r#"read args; echo "{\"method\":\"$1\",\"args\":$args,\"state\":\"$PROCESSION_STATE\"}""#,
    ))?;
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    assert_eq!(
        context(&lines),
        Some(json!({ "method": "charge", "args": [500], "state": "Pay" }))
    );
    // What is logged, and what is not read, is nobody's fault.
    let (said, _) = pay(&command("head -c 200000 /dev/zero >&2"))?;
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    for (script, fault) in [
        (
            r#"echo '{"class":"x.Boom","message":"boom"}' >&2; exit 3"#,
            "x.Boom: boom",
        ),
        ("echo 'not today' >&2; exit 4", "command.4: not today"),
        ("echo 'not today' >&2; exit 7", "com.acme.NotCovered: not today"),
        ("kill -9 $$", "command.killed: "),
        (
            "echo none",
            "procession.BadResult: method [charge] of service [bank]: its result is no JSON",
        ),
        (
            "head -c 1100000 /dev/zero",
            "procession.BadResult: method [charge] of service [bank]: its result has more than 1048576 bytes",
        ),
    ] {
        let (said, lines) = pay(&command(script))?;
        let found = lines[0]["fault"].as_str().unwrap_or_default();
        assert!(said.code == Some(3) && found.starts_with(fault), "{script}: {found}");
    }
    let (_, lines) = pay(&json!({ "type": "command", "command": ["./no-such-program"] }))?;
    assert_eq!(lines[0]["status"], "FA", "nothing ran: {lines:?}");
    let (_, lines) = pay(&json!({ "type": "command", "command": ["sleep", "60"], "timeout_ms": 200 }))?;
    assert_eq!(lines[0]["status"], "UN", "{lines:?}");
    Ok(())
}

/// Runs a machine whose service starts a process of its own, whose number is then in the file `child`.
fn with_child(place: &Path, timeout_ms: u64) -> Outcome<Command> {
    let script = "sleep 600 & echo $! >new; mv new child; wait";
    let services = json!({ "bank": { "type": "command", "command": ["sh", "-c", script], "timeout_ms": timeout_ms } });
    fs::write(place.join("pay.json"), PAY)?;
    fs::write(place.join("services.json"), services.to_string())?;
    let mut command = Command::new(env!("CARGO_BIN_EXE_procession"));
    command
        .args(["saga", "run", "pay.json", "--services", "services.json"])
        .args(["--data", "journal", "--params", r#"{"cents": 500}"#])
        .current_dir(place)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    Ok(command)
}

/// Tells whether a process runs: one that has ended may wait for its parent to ask.
#[cfg(target_os = "linux")]
fn runs(process: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit_once(')')
        .is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
}

#[test]
#[cfg(target_os = "linux")]
fn a_command_is_killed_with_what_it_started() -> Outcome {
    for ends_by_signal in [false, true] {
        let root = tempfile::tempdir()?;
        let timeout_ms = if ends_by_signal { 60_000 } else { 500 };
        let mut saga = with_child(root.path(), timeout_ms)?.spawn()?;
        let file = root.path().join("child");
        while !file.exists() {
            assert!(saga.try_wait()?.is_none(), "it ended before its service began");
            thread::yield_now();
        }
        if ends_by_signal {
            let killed = Command::new("kill").args(["-TERM", &saga.id().to_string()]).status()?;
            assert!(killed.success());
        }
        saga.wait()?;
        let child = fs::read_to_string(&file)?;
        // The signal is under way by now. Each look costs a process, and that is some time.
        let has_ended = (0..1_000).any(|_| !runs(child.trim()) || Command::new("true").status().is_err());
        assert!(has_ended, "by a signal: {ends_by_signal}");
    }
    Ok(())
}

#[test]
fn params_are_read_from_a_file() -> Outcome {
    let place = Place::new()?;
    let file = "simple_statelang_with_compensation.json";
    fs::write(place.directory.path().join("params.json"), r#"{ "a": 1 }"#)?;
    let said = place.run(file, &["--params", "@params.json"])?;
    assert!(!said.err.contains("it is no JSON"), "{}", said.err);
    let missing = place.run(file, &["--params", "@nowhere.json"])?;
    assert!(
        missing.code == Some(2) && missing.err.contains("cannot read nowhere.json"),
        "{}",
        missing.err
    );
    let unknown = place.run(file, &["--machine", "nope", "--key", "other"])?;
    assert!(
        unknown.code == Some(2)
            && unknown
                .err
                .contains("no file has a machine [nope]; name one with --machine: ["),
        "{}",
        unknown.err
    );
    Ok(())
}

#[test]
fn g_038_what_is_missing_is_named_before_anything_runs() -> Outcome {
    let place = Place::new()?;
    let services = place.directory.path().join("services.json");
    fs::write(&services, r#"{ "other": { "type": "echo" } }"#)?;
    let file = "simple_statelang_with_compensation.json";
    let refused = place.run(file, &[])?;
    assert_eq!(refused.code, Some(5), "{}", refused.err);
    assert!(
        refused.out.contains("service [demoService] is not registered"),
        "{}",
        refused.out
    );
    assert!(!place.directory.path().join("journal").exists());

    fs::write(
        &services,
        r#"{ "demoService": { "type": "http", "url": "${NO_SUCH_VARIABLE}/" } }"#,
    )?;
    let refused = place.run(file, &[])?;
    assert_eq!(refused.code, Some(1), "{}", refused.err);
    assert!(
        refused.out.contains("the environment has no variable NO_SUCH_VARIABLE"),
        "{}",
        refused.out
    );

    fs::write(
        &services,
        r#"{ "demoService": { "type": "http", "url": "https://localhost/{method}" } }"#,
    )?;
    let refused = place.run(file, &[])?;
    assert!(
        refused.out.contains("services.json: ") && !refused.out.contains("Sagas::builder()"),
        "{}",
        refused.out
    );

    for arguments in [
        &["--params", "7"][..],
        &["--forward", "{"],
        &["--skip", "{}", "--compensate"],
    ] {
        assert_eq!(place.run(file, arguments)?.code, Some(2), "{arguments:?}");
    }
    Ok(())
}

#[test]
fn the_demo_runs_a_case_and_can_be_run_again() -> Outcome {
    let directory = tempfile::tempdir()?;
    let data = directory.path().join("demo");
    let demo = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_procession"));
        command
            .args(["saga", "demo", "--case", "g_009", "--json", "--data"])
            .arg(&data);
        said(command.stdin(Stdio::null()))
    };
    let first = demo()?;
    assert_eq!(first.code, Some(0), "{}{}", first.out, first.err);
    let verdict: Value = serde_json::from_str(first.out.lines().next().ok_or("there is a case")?)?;
    assert_eq!((&verdict["found"], &verdict["commits"]), (&json!("(UN,SU)"), &json!(5)));
    assert_eq!(demo()?.out, first.out);
    let none = said(Command::new(env!("CARGO_BIN_EXE_procession")).args(["saga", "demo", "--case", "none"]))?;
    assert_eq!(none.code, Some(2), "{}", none.err);
    Ok(())
}

/// Each in the middle of a case, once so many lines were noted of it.
#[test]
fn cases_of_the_demo_are_killed_and_agree() -> Outcome {
    let directory = tempfile::tempdir()?;
    let mut killed = 0;
    for (case, lines) in [
        ("g_002_a_is_2", 2),
        ("g_006_demo", 4),
        ("g_009_bar_fails", 3),
        ("g_013_compensated", 7),
        ("g_020_compensated", 9),
        ("g_023_one_fails", 12),
        ("g_030_forward_restarted", 3),
        ("g_042_upstream", 6),
    ] {
        let demo = || {
            let mut command = Command::new(env!("CARGO_BIN_EXE_procession"));
            command
                .args(["saga", "demo", "--case", case, "--json", "--data"])
                .arg(directory.path());
            command.stdin(Stdio::null());
            command
        };
        let notes = directory.path().join(case).join("notes.jsonl");
        let mut child = demo().stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        while child.try_wait()?.is_none() {
            let noted = fs::read_to_string(&notes).unwrap_or_default();
            if noted.lines().count() >= lines {
                child.kill()?;
                break;
            }
            thread::yield_now();
        }
        child.wait()?;
        let ended = said(&mut demo())?;
        assert_eq!(ended.code, Some(0), "{case}: {}{}", ended.out, ended.err);
        killed += ended
            .out
            .lines()
            .filter(|line| line.contains("\"was_killed\":true"))
            .count();
    }
    assert!(killed >= 4, "{killed} of 8 cases were killed");
    Ok(())
}
