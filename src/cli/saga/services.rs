//! A services file: what stands behind the names that definitions call.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde_json::{Map, Value};

use super::super::exit::Failure;
use super::super::print;

/// Largest services file, in bytes.
const BYTES_MAX: u64 = 1 << 20;
/// The entry that is no service: classes of faults.
const FAULTS: &str = "faults";
/// Each type of service, with what it needs.
const TYPES: [(&str, Option<&str>); 3] = [("http", Some("url")), ("command", Some("command")), ("echo", None)];

/// Returns the names of the services, once all of them have a known type and what it needs. Values are not looked into.
pub(super) fn names(path: &Path) -> Result<Vec<String>, Failure> {
    let file = path.display();
    let entries = read(path)?;
    let services = entries.iter().filter(|(name, _)| *name != FAULTS);
    let mut names = Vec::new();
    let mut wrong = 0;
    for (name, service) in services {
        match wrong_with(service) {
            None => names.push(name.clone()),
            Some(what) => {
                wrong += 1;
                // As a JSON pointer has them.
                let pointer = name.replace('~', "~0").replace('/', "~1");
                print::line(&print::plain(&format!("{file}#/{pointer}: {what}")));
            }
        }
    }
    match wrong {
        0 => Ok(names),
        1 => Err(Failure::new("1 service is wrong: mend the services file")),
        wrong => Err(Failure::new(format!(
            "{wrong} services are wrong: mend the services file"
        ))),
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

/// Says what is wrong with a service, and what to do.
fn wrong_with(service: &Value) -> Option<String> {
    const USE: &str = "use http, command or echo";
    let Some(of_type) = service.get("type") else {
        return Some(format!("the service has no type; {USE}"));
    };
    let known = TYPES.into_iter().find(|(word, _)| of_type.as_str() == Some(word));
    let Some((word, needs)) = known else {
        return Some(format!("the type {of_type} is unknown; {USE}"));
    };
    let needs = needs?;
    let is_there = match service.get(needs) {
        Some(Value::String(url)) => word == "http" && !url.is_empty(),
        Some(Value::Array(words)) => word == "command" && !words.is_empty() && words.iter().all(Value::is_string),
        _ => false,
    };
    let example = match word {
        "http" => "\"http://127.0.0.1:8080/stock/{method}\"",
        _ => "[\"./stock\", \"{method}\"]",
    };
    (!is_there).then(|| format!("a service of type {word} has no {needs}; write for instance \"{needs}\": {example}"))
}
