//! Which entries of the audit log are shown.

use std::str::FromStr;

use procession_kernel::{Act, AuditEntry, ProcedureId};

use super::{FILTER_MAX, FilterError};

/// Which entries of the audit log a list shows: a line of terms, all of which must hold.
///
/// | term | holds for |
/// |---|---|
/// | `who:ann` | acts of those whose name begins so |
/// | `verb:abort` | acts whose name, or the words they are shown in, begin so |
/// | `target:42.0`, `target:42` | acts on that procedure, or on any of that family |
/// | `night` | acts whose words or reason contain this, in any case |
///
/// ```
/// use procession::filter::AuditFilter;
///
/// assert!("who:ann verb:abort night".parse::<AuditFilter>().is_ok());
/// let wrong = "who:ann when:now".parse::<AuditFilter>().unwrap_err();
/// assert_eq!(wrong.position(), 9);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditFilter {
    terms: Vec<Term>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Term {
    Who(String),
    Verb(String),
    Target(ProcedureId),
    Family(u64),
    Words(String),
}

impl AuditFilter {
    /// Returns `true` if an entry is shown.
    #[must_use]
    pub fn admits(&self, entry: &AuditEntry) -> bool {
        self.terms.iter().all(|term| term.admits(entry))
    }
}

impl FromStr for AuditFilter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Self, FilterError> {
        if text.len() > FILTER_MAX {
            let why = format!("it has {} bytes, of {FILTER_MAX}", text.len());
            return Err(FilterError { position: 1, why });
        }
        let mut terms = Vec::new();
        for word in text.split_whitespace() {
            // Words are pieces of the text itself.
            let offset = word.as_ptr().addr() - text.as_ptr().addr();
            let before = text.get(..offset).unwrap_or_default();
            let position = before.chars().count() + 1;
            terms.push(Term::of(word).map_err(|why| FilterError { position, why })?);
        }
        Ok(Self { terms })
    }
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
                (Err(_), Err(_)) => Err("a target is an id, for instance 42.0, or a family's number".to_owned()),
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
