//! Parameters of requests, read with their bounds.

use std::collections::BTreeMap;

use actix_web::{HttpRequest, web};
use procession_kernel::ProcedureId;

use super::problem::Problem;
use crate::filter::{AuditFilter, FILTER_MAX, Filter};

/// Longest query string: a filter whose every byte is escaped, and what else there is.
const QUERY_MAX: usize = 8 * 1024;

/// What stands behind the question mark.
pub(super) struct Params(BTreeMap<String, String>);

impl Params {
    /// Reads them; only these names may be there, each once.
    pub(super) fn of(request: &HttpRequest, names: &[&str]) -> Result<Self, Problem> {
        let query = request.query_string();
        if query.len() > QUERY_MAX {
            return Err(Problem::too_large("The query", query.len(), QUERY_MAX));
        }
        let pairs = web::Query::<Vec<(String, String)>>::from_query(query);
        let pairs =
            pairs.map_err(|error| Problem::request(format!("The query cannot be read: {error}."), "Escape it."))?;
        let mut params = BTreeMap::new();
        for (name, value) in pairs.into_inner() {
            let is_known = names.contains(&name.as_str());
            if !is_known || params.insert(name.clone(), value).is_some() {
                let why = if is_known {
                    "is there twice"
                } else {
                    "is not known here"
                };
                let remedy = format!("The parameters here are: {}.", names.join(", "));
                return Err(Problem::request(format!("The parameter \"{name}\" {why}."), remedy));
            }
        }
        Ok(Self(params))
    }

    /// Returns a parameter's text; an empty one counts as none.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|text| !text.is_empty())
    }

    /// Reads a number, at least 1 and at most `most`; one that is larger counts as that.
    pub(super) fn limit(&self, name: &str, default: usize, most: usize) -> Result<usize, Problem> {
        let Some(text) = self.text(name) else {
            return Ok(default);
        };
        match text.parse::<usize>() {
            Ok(number) if number > 0 => Ok(number.min(most)),
            Ok(_) | Err(_) => Err(Self::wrong(name, "a number from 1 on")),
        }
    }

    /// Reads one of these words; the first if there is none.
    pub(super) fn choice<const N: usize>(&self, name: &str, words: [&'static str; N]) -> Result<&'static str, Problem> {
        let text = self.text(name);
        let mut found = words.iter().filter(|word| text.is_none_or(|text| text == **word));
        let found = found.next().copied();
        found.ok_or_else(|| Self::wrong(name, &words.join(" or ")))
    }

    pub(super) fn number<T: std::str::FromStr>(&self, name: &str) -> Result<Option<T>, Problem> {
        let read = |text: &str| text.parse().map_err(|_| Self::wrong(name, "a number"));
        self.text(name).map(read).transpose()
    }

    /// Reads a switch, which is off unless it is there.
    pub(super) fn flag(&self, name: &str) -> Result<bool, Problem> {
        match self.text(name) {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(_) => Err(Self::wrong(name, "true or false")),
        }
    }

    pub(super) fn id(&self, name: &str) -> Result<Option<ProcedureId>, Problem> {
        let read = |text: &str| text.parse().map_err(|_| Self::wrong(name, "an id, for instance 42.0"));
        self.text(name).map(read).transpose()
    }

    pub(super) fn filter(&self) -> Result<Filter, Problem> {
        Self::filter_of(self.text("filter").unwrap_or_default())
    }

    pub(super) fn filter_of(text: &str) -> Result<Filter, Problem> {
        if text.len() > FILTER_MAX {
            return Err(Problem::too_large("The filter", text.len(), FILTER_MAX));
        }
        let read = text.parse::<Filter>();
        read.map_err(|error| Problem::filter(format!("The filter cannot be read: {}.", error.why()), error.position()))
    }

    /// Returns which entries of the audit log are asked for.
    pub(super) fn audit_filter(&self) -> Result<AuditFilter, Problem> {
        let text = self.text("filter").unwrap_or_default();
        if text.len() > FILTER_MAX {
            return Err(Problem::too_large("The filter", text.len(), FILTER_MAX));
        }
        let read = text.parse::<AuditFilter>();
        read.map_err(|error| Problem::filter(format!("The filter cannot be read: {}.", error.why()), error.position()))
    }

    fn wrong(name: &str, what: &str) -> Problem {
        Problem::request(format!("\"{name}\" is {what}."), "Correct it, or leave it out.")
    }
}

/// Returns a name that stands in the path. actix leaves three characters escaped there, for they would part it: a kind or a
/// limit may have them in its name all the same.
pub(super) fn name_of(request: &HttpRequest, part: &str) -> String {
    let escaped = request.match_info().get(part).unwrap_or_default();
    unescaped(escaped)
}

fn unescaped(text: &str) -> String {
    let others = [("%2F", "/"), ("%2f", "/"), ("%2B", "+"), ("%2b", "+")];
    let text = others
        .iter()
        .fold(text.to_owned(), |text, (escaped, plain)| text.replace(escaped, plain));
    // Last, for what it leaves is no escape.
    text.replace("%25", "%")
}

/// Reads the id of the path. A family's number alone is its root.
pub(super) fn id_of(request: &HttpRequest) -> Result<ProcedureId, Problem> {
    let text = request.match_info().get("id").unwrap_or_default();
    let id = match text.parse::<u64>() {
        Ok(family) => Ok(ProcedureId::root(family)),
        Err(_) => text.parse(),
    };
    id.map_err(|_| Problem::request("An id reads like 42.3, or 42 for the root.", "Correct it."))
}
