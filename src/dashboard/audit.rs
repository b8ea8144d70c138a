//! `audit`: what operators did, newest first, and as far as a filter admits it.
//!
//! | term | holds for |
//! |---|---|
//! | `who:ann` | acts of those whose name begins so |
//! | `verb:abort` | acts whose name, or the words they are shown in, begin so |
//! | `target:42.0`, `target:42` | acts on that procedure, or on any of that family |
//! | `night` | acts whose words or reason contain this, in any case |

use actix_web::{HttpRequest, web};
use procession_kernel::{Act, AuditEntry, ProcedureId};
use serde_json::{Value, json};

use super::live::AUDIT_NEWEST;
use super::params::Params;
use super::problem::{Answer, Problem};
use super::state::{State, viewer};
use super::whole::changed;
use crate::filter::FILTER_MAX;
use crate::views::time;

/// Entries read from the store at once.
const AT_ONCE: usize = 500;

/// One term of a filter.
enum Term {
    Who(String),
    Verb(String),
    Target(ProcedureId),
    Family(u64),
    Words(String),
}

impl Term {
    fn of(word: &str) -> Result<Self, String> {
        let Some((name, value)) = word.split_once(':') else {
            return Ok(Self::Words(word.to_lowercase()));
        };
        match (name, value) {
            (_, "") => Err(format!("{name} has no value")),
            ("who", who) => Ok(Self::Who(who.to_owned())),
            ("verb", verb) => Ok(Self::Verb(verb.to_owned())),
            ("target", id) => match (id.parse(), id.parse()) {
                (Ok(family), _) => Ok(Self::Family(family)),
                (Err(_), Ok(id)) => Ok(Self::Target(id)),
                (Err(_), Err(_)) => Err("a target is an id, for instance 42.0, or a family\'s number".to_owned()),
            },
            _ => Err(format!("\"{name}\" is no term; there are who, verb and target")),
        }
    }

    fn admits(&self, entry: &AuditEntry) -> bool {
        match self {
            Self::Who(who) => entry.who.starts_with(who),
            Self::Verb(verb) => {
                let is_named = |act: &Act| act.name().starts_with(verb.as_str());
                entry.act.as_ref().is_some_and(is_named) || entry.words.starts_with(verb)
            }
            Self::Target(id) => entry.target == Some(*id),
            Self::Family(family) => entry.target.is_some_and(|id| id.family == *family),
            Self::Words(words) => {
                entry.words.to_lowercase().contains(words) || entry.why.to_lowercase().contains(words)
            }
        }
    }
}

fn terms(text: &str) -> Result<Vec<Term>, Problem> {
    if text.len() > FILTER_MAX {
        return Err(Problem::too_large("The filter", text.len(), FILTER_MAX));
    }
    let mut terms = Vec::new();
    for word in text.split_whitespace() {
        // Words are pieces of the text itself.
        let offset = word.as_ptr().addr() - text.as_ptr().addr();
        let before = text.get(..offset).unwrap_or_default();
        let position = before.chars().count() + 1;
        let term = Term::of(word);
        terms.push(term.map_err(|why| Problem::filter(format!("The filter cannot be read: {why}."), position))?);
    }
    Ok(terms)
}

/// What operators did, newest first. The newest page is asked for once for all; what is older
/// is read from the store, at most all that is kept.
pub(super) async fn audit(request: HttpRequest, state: web::Data<State>) -> Answer {
    let grant = viewer(&request)?;
    let params = Params::of(&request, &["filter", "cursor", "limit"])?;
    let terms = terms(params.text("filter").unwrap_or_default())?;
    let mut before: Option<u64> = params.number("cursor")?;
    let limit = params.limit("limit", 100, AUDIT_NEWEST)?;
    let moment = state.moment()?;
    if before.is_none() {
        // They are asked for here already: an engine that does not answer must not hold up others' turns.
        state.live.audit().await?;
    }
    let _turn = state.turns.take(&grant).await?;
    let (mut items, mut scanned) = (Vec::new(), 0_usize);
    // The oldest entries go: behind the first that is kept there is an empty page.
    let cursor = loop {
        let entries = page(&state, before).await?;
        let Some(oldest) = entries.last().map(|entry| entry.number) else {
            break None;
        };
        let mut last = None;
        for entry in entries {
            scanned += 1;
            if terms.iter().all(|term| term.admits(&entry)) {
                items.push(act(&entry));
            }
            if items.len() == limit {
                last = Some(entry.number);
                break;
            }
        }
        match (last, oldest) {
            (Some(last), _) => break Some(last).filter(|last| *last > 0),
            (None, 0) => break None,
            (None, oldest) => before = Some(oldest),
        }
    };
    let cursor = cursor.map(|before| before.to_string());
    state.reply(moment, json!({ "items": items, "cursor": cursor, "scanned": scanned }))
}

/// Returns entries before one, or the newest, newest first; none if there are no more.
pub(super) async fn page(state: &State, before: Option<u64>) -> Result<Vec<AuditEntry>, Problem> {
    match before {
        Some(before) => Ok(state.engine().committed().audit(0, before, AT_ONCE).await?),
        None => Ok(state.live.audit().await?.to_vec()),
    }
}

fn act(entry: &AuditEntry) -> Value {
    json!({
        "number": entry.number.to_string(),
        "at": time(entry.at),
        "who": entry.who,
        "why": entry.why,
        "verb": entry.words,
        "target": entry.target.map(|id| id.to_string()),
        "changes": entry.changes.iter().map(changed).collect::<Vec<_>>(),
        "changed": entry.changed,
        "submitted": entry.submitted.map(|id| id.to_string()),
        "key": entry.key.as_ref().map(ToString::to_string),
    })
}
