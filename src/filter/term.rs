//! One term of a filter: what it asks, and how it is written.

use std::fmt;
use std::time::Duration;

use procession_actors::view::{Rule, Status};
use procession_kernel::{Label, ProcedureId, fingerprint};

use super::FilterContext;
use super::compare::Compare;
use super::scan::{Value, Word, Wrong, quote};
use super::words::{StateWord, read_rule};
use crate::views::Reason;

const FIELDS: &str = "state, reason, kind, name, key, label, root, failure, age, since, attempts, err, rule";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Term {
    State(Vec<StateWord>),
    Reason(Vec<Reason>),
    Kind(Vec<String>),
    /// Its name begins so.
    Name(String),
    Key(KeyTerm),
    Label(Label),
    Root(Vec<u64>),
    Failure(FailureTerm),
    Age(Compare<Duration>),
    Since(Compare<Duration>),
    Attempts(Compare<u32>),
    Error(String),
    Rule(Vec<Rule>),
    Bare(String),
}

/// What is asked of an idempotency key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum KeyTerm {
    /// It begins so.
    Begins(String),
    /// It is this one: `key:=order-4711`.
    Is(String),
}

impl KeyTerm {
    fn read(text: String) -> Result<Self, String> {
        match text.strip_prefix('=') {
            Some("") => Err("a key is missing behind the \"=\"".to_owned()),
            Some(key) => Ok(Self::Is(key.to_owned())),
            None => Ok(Self::Begins(text)),
        }
    }

    fn admits(&self, status: &Status) -> bool {
        match self {
            Self::Begins(prefix) => has_key(status, prefix),
            Self::Is(key) => status.key.as_ref().is_some_and(|own| own.as_str() == key),
        }
    }
}

/// Which failures that nobody has acknowledged are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FailureTerm {
    /// `failure:any`.
    Any,
    /// Those with this fingerprint of their text: `failure:85944171f73967e8`.
    Like(u64),
}

impl FailureTerm {
    fn read(text: &str) -> Result<Self, String> {
        if text == "any" {
            return Ok(Self::Any);
        }
        let print = (text.len() == 16).then(|| u64::from_str_radix(text, 16).ok()).flatten();
        print.map(Self::Like).ok_or_else(|| {
            let text = text.escape_debug();
            format!("\"{text}\" is no fingerprint of failures; write any, or 16 hexadecimal digits")
        })
    }

    /// Returns `true` for a root that failed. Whether somebody has acknowledged that is the list's to say.
    fn admits(self, status: &Status) -> bool {
        let is_like = match self {
            Self::Any => true,
            Self::Like(print) => {
                let cause = status.cause.as_ref();
                cause.is_some_and(|cause| fingerprint(&cause.text) == print)
            }
        };
        status.state.is_failure() && status.ended.is_some() && status.id.is_root() && is_like
    }

    pub(super) const fn print(self) -> Option<u64> {
        match self {
            Self::Any => None,
            Self::Like(print) => Some(print),
        }
    }
}

impl fmt::Display for FailureTerm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("any"),
            Self::Like(print) => write!(f, "{print:016x}"),
        }
    }
}

impl Term {
    pub(super) fn of(word: &Word<'_>) -> Result<Self, Wrong> {
        let values = &word.values;
        let Some((name, at)) = word.name else {
            return Ok(Self::Bare(single(values, Ok)?));
        };
        Ok(match name {
            "state" => Self::State(each(values, StateWord::read)?),
            "reason" => Self::Reason(each(values, read_reason)?),
            "kind" => Self::Kind(each(values, |kind| Ok(kind.to_owned()))?),
            "name" => Self::Name(single(values, Ok)?),
            "key" => Self::Key(single(values, KeyTerm::read)?),
            "label" => Self::Label(single(values, read_label)?),
            "root" => Self::Root(each(values, read_root)?),
            "failure" => Self::Failure(single(values, |text| FailureTerm::read(&text))?),
            "age" => Self::Age(single(values, |text| Compare::of_time(&text))?),
            "since" => Self::Since(single(values, |text| Compare::of_time(&text))?),
            "attempts" | "attempt" => Self::Attempts(single(values, |text| Compare::of_number(&text))?),
            "err" | "error" => Self::Error(single(values, Ok)?.to_lowercase()),
            "rule" => Self::Rule(each(values, read_rule)?.concat()),
            _ => {
                let why = format!("there is no field \"{name}\"; put it in quotes, or use one of {FIELDS}");
                return Err((at, why));
            }
        })
    }

    pub(super) fn admits(&self, status: &Status, context: &FilterContext) -> bool {
        match self {
            Self::State(states) => states.iter().any(|state| state.admits(status)),
            Self::Reason(reasons) => {
                let reason = status.wait.as_ref().map(Reason::from);
                // One that waits for something else, and would not go on then either, is paused as well.
                let is_paused = status.paused && status.ended.is_none();
                reason.is_some_and(|reason| reasons.contains(&reason)) || is_paused && reasons.contains(&Reason::Paused)
            }
            Self::Kind(kinds) => kinds.iter().any(|kind| kind == status.kind.as_str()),
            Self::Name(prefix) => status
                .name
                .as_ref()
                .is_some_and(|name| name.starts_with(prefix.as_str())),
            Self::Key(key) => key.admits(status),
            Self::Label(label) => status.labels.contains(label),
            Self::Root(families) => families.contains(&status.id.family),
            Self::Failure(failure) => failure.admits(status),
            Self::Age(compare) => {
                let end = status.ended.unwrap_or(context.now);
                compare.admits(&end.since(status.submitted))
            }
            Self::Since(compare) => compare.admits(&context.now.since(status.since)),
            Self::Attempts(compare) => compare.admits(&status.attempt),
            Self::Error(text) => {
                let cause = status.cause.as_ref();
                cause.is_some_and(|cause| cause.text.to_lowercase().contains(text))
            }
            Self::Rule(rules) => rules.iter().any(|rule| context.rules.contains(rule)),
            Self::Bare(prefix) => status.id.to_string().starts_with(prefix) || has_key(status, prefix),
        }
    }
}

fn has_key(status: &Status, prefix: &str) -> bool {
    status.key.as_ref().is_some_and(|key| key.as_str().starts_with(prefix))
}

fn each<T>(values: &[Value], read: impl Fn(&str) -> Result<T, String>) -> Result<Vec<T>, Wrong> {
    let read = |value: &Value| read(&value.text).map_err(|why| (value.at, why));
    values.iter().map(read).collect()
}

fn single<T>(values: &[Value], read: impl Fn(String) -> Result<T, String>) -> Result<T, Wrong> {
    match values {
        [value] => read(value.text.clone()).map_err(|why| (value.at, why)),
        [_, second, ..] => Err((second.at, "this field takes one value".to_owned())),
        [] => Err((0, "a value is missing".to_owned())),
    }
}

fn read_reason(word: &str) -> Result<Reason, String> {
    word.parse().map_err(|()| {
        let known: Vec<&str> = Reason::ALL.into_iter().map(Reason::as_str).collect();
        let word = word.escape_debug();
        format!("\"{word}\" is no reason; the reasons are {}", known.join(", "))
    })
}

/// A name, `=` and a value. The first `=` parts them, since no name has one.
fn read_label(text: String) -> Result<Label, String> {
    let (name, value) = text.split_once('=').ok_or_else(|| {
        let text = text.escape_debug();
        format!("\"{text}\" has no value; write for instance label:customer=4711")
    })?;
    let label = Label::new(name, value);
    label.check().map_err(|why| why.to_string())?;
    Ok(label)
}

/// A family's number, or the id of one of its members.
fn read_root(text: &str) -> Result<u64, String> {
    let family = text.parse::<u64>().ok();
    let member = || Some(text.parse::<ProcedureId>().ok()?.family);
    family.or_else(member).ok_or_else(|| {
        let text = text.escape_debug();
        format!("\"{text}\" is no root; write its number or its id, for instance 42 or 42.0")
    })
}

fn list<T>(f: &mut fmt::Formatter<'_>, name: &str, values: &[T], say: impl Fn(&T) -> String) -> fmt::Result {
    let said: Vec<String> = values.iter().map(say).collect();
    write!(f, "{name}:{}", said.join(","))
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::State(states) => list(f, "state", states, ToString::to_string),
            Self::Reason(reasons) => list(f, "reason", reasons, ToString::to_string),
            Self::Kind(kinds) => list(f, "kind", kinds, |kind| quote(kind)),
            Self::Name(prefix) => write!(f, "name:{}", quote(prefix)),
            Self::Key(KeyTerm::Begins(prefix)) => write!(f, "key:{}", quote(prefix)),
            Self::Key(KeyTerm::Is(key)) => write!(f, "key:{}", quote(&format!("={key}"))),
            Self::Label(label) => write!(f, "label:{}", quote(&label.to_string())),
            Self::Root(families) => list(f, "root", families, ToString::to_string),
            Self::Failure(failure) => write!(f, "failure:{failure}"),
            Self::Age(compare) => write!(f, "age:{compare}"),
            Self::Since(compare) => write!(f, "since:{compare}"),
            Self::Attempts(compare) => write!(f, "attempts:{compare}"),
            Self::Error(text) => write!(f, "err:{}", quote(text)),
            Self::Rule(rules) => list(f, "rule", rules, ToString::to_string),
            Self::Bare(prefix) => f.write_str(&quote(prefix)),
        }
    }
}
