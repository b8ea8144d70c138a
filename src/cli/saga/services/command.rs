//! Services that are commands: a process for each call.

use std::collections::BTreeMap;
use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use super::group::Group;
use futures::future::{LocalBoxFuture, join3};
use procession::saga::{Call, Fault, Network, Service};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStdin, Command};

/// What stands in a word of the command for the name of the method.
const METHOD: &str = "{method}";
/// Most bytes of a result, and of what is said of a fault.
const RESULT_MAX: u64 = 1 << 20;
const FAULT_MAX: u64 = 64 << 10;

/// A command that is run for each call: the arguments as a JSON list on its standard input, the result as JSON on its
/// standard output. Another exit code than 0 is a fault, which the command may write to its standard error;
/// else its class is `command.<code>`.
pub(super) struct CommandService {
    words: Vec<String>,
    timeout: Duration,
    faults: BTreeMap<String, String>,
}

impl CommandService {
    pub(super) const fn new(words: Vec<String>, timeout: Duration, faults: BTreeMap<String, String>) -> Self {
        Self { words, timeout, faults }
    }
}

impl Service for CommandService {
    fn methods(&self) -> &[&str] {
        &[]
    }

    /// A definition names methods. A name must choose neither another program nor an option.
    fn has_method(&self, method: &str) -> bool {
        let is_plain = |letter: char| letter.is_alphanumeric() || "_-.:".contains(letter);
        method.starts_with(char::is_alphanumeric) && method.chars().all(is_plain)
    }

    fn call(&self, method: &str, arguments: Vec<Value>, call: Call) -> LocalBoxFuture<'_, Result<Value, Fault>> {
        let method = method.to_owned();
        Box::pin(async move {
            let ran = self.run(&method, &arguments, &call);
            let ran = match tokio::time::timeout(self.timeout, ran).await {
                Ok(ran) => ran,
                Err(_) => Err(silent(self.timeout)),
            };
            ran.map_err(|fault| match self.faults.get(fault.class()) {
                Some(class) => fault.of_class(class),
                None => fault,
            })
        })
    }
}

impl CommandService {
    async fn run(&self, method: &str, arguments: &[Value], call: &Call) -> Result<Value, Fault> {
        let mut command = self.command(method, call);
        let mut child = command.spawn().map_err(not_begun)?;
        // Dropped before `child`: until that is waited for, nobody else has the number of its group.
        let group = Group::of(child.id());
        let input = serde_json::to_vec(arguments)?;
        let (fed, out, err) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (_, out, err) = join3(feed(fed, &input), read(out, RESULT_MAX), read_all(err, FAULT_MAX)).await;
        if out.is_too_long {
            // It is killed with its group.
            return Err(bad_result(&format!("its result has more than {RESULT_MAX} bytes")));
        }
        let status = child.wait().await?;
        group.has_ended();
        match status.success() {
            true => result(&out.bytes),
            false => Err(Fault::read(&err.bytes, || class_of(status))),
        }
    }

    fn command(&self, method: &str, call: &Call) -> Command {
        let mut words = self.words.iter().map(|word| word.replace(METHOD, method));
        let mut command = Command::new(words.next().unwrap_or_default());
        command
            .args(words)
            .env("IDEMPOTENCY_KEY", call.token().to_string())
            .env("PROCESSION_SAGA", call.saga().to_string())
            .env("PROCESSION_STATE", call.state())
            .env("PROCESSION_ATTEMPT", call.attempt().to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        // What it starts belongs to it, and is killed with it.
        #[cfg(unix)]
        command.process_group(0);
        if let Some(trace) = call.trace_parent() {
            command.env("TRACEPARENT", trace.to_string());
        }
        command
    }
}

/// Writes the arguments. A command that needs none may end before it has read them.
async fn feed(input: Option<ChildStdin>, bytes: &[u8]) {
    if let Some(mut input) = input {
        drop(input.write_all(bytes).await);
    }
}

/// What a process has written.
#[derive(Default)]
struct Written {
    bytes: Vec<u8>,
    is_too_long: bool,
}

/// Reads up to a bound. A process that writes more finds its pipe closed.
async fn read(from: Option<impl AsyncRead + Unpin>, most: u64) -> Written {
    let mut bytes = Vec::new();
    if let Some(from) = from {
        // What came before an error is what there is.
        drop(from.take(most + 1).read_to_end(&mut bytes).await);
    }
    let is_too_long = bytes.len() as u64 > most;
    Written { bytes, is_too_long }
}

/// Reads to the end, and keeps no more than a bound: a command may log as much as it likes.
async fn read_all(from: Option<impl AsyncRead + Unpin>, most: u64) -> Written {
    let Some(mut from) = from else {
        return Written::default();
    };
    let kept = read(Some(&mut from), most).await;
    drop(tokio::io::copy(&mut from, &mut tokio::io::sink()).await);
    kept
}

fn result(bytes: &[u8]) -> Result<Value, Fault> {
    match bytes.trim_ascii().is_empty() {
        true => Ok(Value::Null),
        false => serde_json::from_slice(bytes).map_err(|error| bad_result(&format!("its result is no JSON: {error}"))),
    }
}

fn class_of(status: ExitStatus) -> String {
    match status.code() {
        Some(code) => format!("command.{code}"),
        None => "command.killed".to_owned(),
    }
}

fn bad_result(why: &str) -> Fault {
    Fault::new("procession.BadResult", why)
}

/// Nothing ran, so the call had no effect.
fn not_begun(error: io::Error) -> Fault {
    Fault::new("command.not_begun", format!("the command cannot be run: {error}")).network(Network::Refused)
}

fn silent(time: Duration) -> Fault {
    let text = format!(
        "the command was not done within {} ms, and was killed",
        time.as_millis()
    );
    Fault::new("procession.Timeout", text).network(Network::ReadTimeout)
}
