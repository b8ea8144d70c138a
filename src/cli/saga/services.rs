//! A services file: what stands behind the names that definitions call.

mod command;
mod filled;
mod group;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

use command::CommandService;
use futures::future::LocalBoxFuture;
pub(super) use group::kill_all;
use procession::saga::{Call, Endpoint, Fault, SagasBuilder, Service};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::super::exit::Failure;
use super::super::print;

/// Largest services file, in bytes.
const BYTES_MAX: u64 = 1 << 20;
/// The entry that is no service: classes of faults.
const FAULTS: &str = "faults";
/// Each type of service, with what it needs.
const TYPES: [(&str, Option<&str>); 3] = [("http", Some("url")), ("command", Some("command")), ("echo", None)];
/// How long a call may take, unless its service says otherwise.
const TIMEOUT_MS: u64 = 30_000;

/// A service, as its entry has it.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
enum Entry {
    Http {
        url: String,
        #[serde(default = "timeout")]
        timeout_ms: u64,
        #[serde(default)]
        headers: BTreeMap<String, String>,
    },
    Command {
        command: Vec<String>,
        #[serde(default = "timeout")]
        timeout_ms: u64,
    },
    Echo {},
}

const fn timeout() -> u64 {
    TIMEOUT_MS
}

/// The classes that stand for others, for instance for `http.409`.
type Faults = BTreeMap<String, String>;

/// Returns the names of the services, once all of them have a known type and what it needs. No `${NAME}` is looked up.
pub(super) fn names(path: &Path) -> Result<Vec<String>, Failure> {
    let (services, _) = entries(path)?;
    Ok(services.into_iter().map(|(name, _)| name).collect())
}

/// Registers all services of a file. `${NAME}` in an address, a header or a command is the environment's variable.
pub(super) fn register(mut builder: SagasBuilder, path: &Path) -> Result<SagasBuilder, Failure> {
    let (services, faults) = entries(path)?;
    let mut problems = Problems::new(path);
    for (name, entry) in services {
        match ready(entry, &faults) {
            Ok(Ready::Http(endpoint)) => builder = builder.http(&name, endpoint),
            Ok(Ready::Command(command)) => builder = builder.service(&name, command),
            Ok(Ready::Echo) => builder = builder.service(&name, Echo),
            Err(why) => problems.add(&name, &why),
        }
    }
    problems.into_result()?;
    Ok(builder)
}

/// A service that can be registered.
enum Ready {
    Http(Endpoint),
    Command(CommandService),
    Echo,
}

fn ready(entry: Entry, faults: &Faults) -> Result<Ready, String> {
    Ok(match entry {
        Entry::Http {
            url,
            timeout_ms,
            headers,
        } => {
            let endpoint = Endpoint::new(filled::fill(&url)?).timeout(Duration::from_millis(timeout_ms));
            let endpoint = headers.iter().try_fold(endpoint, |endpoint, (name, value)| {
                Ok::<_, String>(endpoint.header(name, filled::fill(value)?))
            })?;
            Ready::Http(
                faults
                    .iter()
                    .fold(endpoint, |endpoint, (from, class)| endpoint.fault(from, class)),
            )
        }
        Entry::Command { command, timeout_ms } => {
            let words = command.iter().map(|word| filled::fill(word));
            Ready::Command(CommandService::new(
                words.collect::<Result<_, _>>()?,
                Duration::from_millis(timeout_ms),
                faults.clone(),
            ))
        }
        Entry::Echo {} => Ready::Echo,
    })
}

/// Returns its first argument.
struct Echo;

impl Service for Echo {
    fn methods(&self) -> &[&str] {
        &[]
    }

    fn has_method(&self, _: &str) -> bool {
        true
    }

    fn call(&self, _: &str, arguments: Vec<Value>, _: Call) -> LocalBoxFuture<'_, Result<Value, Fault>> {
        Box::pin(async move { Ok(arguments.into_iter().next().unwrap_or_default()) })
    }
}

/// Reads a file's services and classes. All that is wrong is printed.
fn entries(path: &Path) -> Result<(Vec<(String, Entry)>, Faults), Failure> {
    let (mut services, mut problems) = (Vec::new(), Problems::new(path));
    let mut entries = read(path)?;
    let faults = entries.remove(FAULTS).unwrap_or_else(|| Map::new().into());
    let faults = serde_json::from_value(faults).unwrap_or_else(|_| {
        problems.add(
            FAULTS,
            "it is no object of names; write for instance {\"http.409\": \"com.acme.Conflict\"}",
        );
        Faults::new()
    });
    for (name, entry) in entries {
        match parsed(entry) {
            Ok(entry) => services.push((name, entry)),
            Err(why) => problems.add(&name, &why),
        }
    }
    problems.into_result()?;
    Ok((services, faults))
}

/// What is wrong with a file: a line each.
struct Problems<'a> {
    file: &'a Path,
    count: usize,
}

impl<'a> Problems<'a> {
    const fn new(file: &'a Path) -> Self {
        Self { file, count: 0 }
    }

    fn add(&mut self, entry: &str, why: &str) {
        self.count += 1;
        // As a JSON pointer has them.
        let pointer = entry.replace('~', "~0").replace('/', "~1");
        print::line(&print::plain(&format!("{}#/{pointer}: {why}", self.file.display())));
    }

    fn into_result(self) -> Result<(), Failure> {
        match self.count {
            0 => Ok(()),
            1 => Err(Failure::new("1 service is wrong: mend the services file")),
            wrong => Err(Failure::new(format!(
                "{wrong} services are wrong: mend the services file"
            ))),
        }
    }
}

fn read(path: &Path) -> Result<Map<String, Value>, Failure> {
    let file = path.display();
    let mut text = Vec::new();
    File::open(path)
        .and_then(|content| content.take(BYTES_MAX + 1).read_to_end(&mut text))
        .map_err(|error| Failure::new(format!("the services file {file} cannot be read: {error}")))?;
    if text.len() > usize::try_from(BYTES_MAX).unwrap_or(usize::MAX) {
        let text = format!("the services file {file} has more than {BYTES_MAX} bytes");
        return Err(Failure::new(text));
    }
    match serde_json::from_slice(&text) {
        Ok(Value::Object(entries)) => Ok(entries),
        Ok(_) => Err(Failure::new(format!(
            "the services file {file} is no object; write {{\"stock\": {{\"type\": \"http\", \"url\": \"..\"}}}}"
        ))),
        Err(error) => Err(Failure::new(format!("the services file {file} is no JSON: {error}"))),
    }
}

/// Reads a service, or says what is wrong with it and what to do.
fn parsed(service: Value) -> Result<Entry, String> {
    const USE: &str = "use http, command or echo";
    let Some(of_type) = service.get("type") else {
        return Err(format!("the service has no type; {USE}"));
    };
    let known = TYPES.into_iter().find(|(word, _)| of_type.as_str() == Some(word));
    let Some((word, needs)) = known else {
        return Err(format!("the type {of_type} is unknown; {USE}"));
    };
    if let Some(needs) = needs.filter(|needs| !has(&service, word, needs)) {
        let example = match word {
            "http" => "\"http://127.0.0.1:8080/stock/{method}\"",
            _ => "[\"./stock\", \"{method}\"]",
        };
        return Err(format!(
            "a service of type {word} has no {needs}; write for instance \"{needs}\": {example}"
        ));
    }
    let entry: Entry = serde_json::from_value(service).map_err(|error| error.to_string())?;
    if let Entry::Http { timeout_ms: 0, .. } | Entry::Command { timeout_ms: 0, .. } = entry {
        return Err(format!("its timeout_ms is 0; leave it out for {TIMEOUT_MS}"));
    }
    Ok(entry)
}

fn has(service: &Value, word: &str, needs: &str) -> bool {
    match service.get(needs) {
        Some(Value::String(url)) => word == "http" && !url.is_empty(),
        Some(Value::Array(words)) => word == "command" && !words.is_empty() && words.iter().all(Value::is_string),
        _ => false,
    }
}
