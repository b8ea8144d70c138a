//! The language of filters: which procedures a list shows.
//!
//! A filter is a line of terms separated by blanks, all of which must hold:
//!
//! | term | holds for |
//! |---|---|
//! | `state:waiting` | that state; also `live`, `ended`, `retrying` unless it is paused, and `rolling_back` as long as nobody has to act |
//! | `reason:lock` | those that do not run for this reason |
//! | `kind:create_table` | that type |
//! | `key:req-` | idempotency keys that begin so; with `=`, as `key:=req-4711`, this key alone |
//! | `label:customer=4711` | those that have this label, their own or an inherited one |
//! | `root:42` | the family of that root |
//! | `failure:any` | roots that failed or were rolled back, as long as nobody has acknowledged that; with a fingerprint in place of `any`, those whose causes say the same, ignoring numbers |
//! | `age:>10m` | how long ago it was born; until its end, if it has ended |
//! | `since:>10m` | how long state and reason have been as they are |
//! | `attempts:>3` | failed attempts of the stage that is next |
//! | `err:timeout` | causes of failure that contain this, in any case |
//! | `rule:retry_storm` | those of whom a verdict of that rule tells; also `S2` |
//! | `req-4` | ids and keys that begin so |
//!
//! `state`, `reason`, `kind`, `root` and `rule` take several values with commas: one of
//! them must fit. Times and numbers may have `>`, `>=`, `<`, `<=` or `=` before them;
//! without, `>=` is meant for times, and `=` for numbers. Units are `ms`, `s`, `m`, `h`
//! and `d`. What has blanks, colons or commas goes between `"`, with `\"` and `\\` inside, as in
//! `label:"city=New York"`.
//!
//! An index answers `failure`, `root`, `key` and `label`: a list with one of them reads the families that it may show, and no
//! others. All other terms are asked of each row.
//!
//! ```
//! use procession::filter::Filter;
//!
//! let filter: Filter = "state:waiting reason:lock,permit age:>10m".parse()?;
//! assert_eq!(filter.to_string(), "state:waiting reason:lock,permit age:>10m");
//! let wrong = "state:waiting age:soon".parse::<Filter>().unwrap_err();
//! assert_eq!(wrong.position(), 19);
//! # Ok::<(), procession::filter::FilterError>(())
//! ```

mod audit;
mod compare;
mod scan;
mod term;
mod words;

pub use audit::AuditFilter;
pub(crate) use words::{is_retrying, is_rolling_back};

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use procession_actors::view::{FamilyScope, Rule, Status};
use procession_kernel::Timestamp;

use scan::Scanner;
#[cfg(feature = "dashboard")]
use term::FailureTerm;
use term::{KeyTerm, Term};

/// Longest filter, in bytes, as it is given and as it is written in full (`age:1h` is `age:>=1h`): enough for every
/// field with several values, little enough for a URL.
pub const FILTER_MAX: usize = 1024;

/// Which procedures a list shows. The empty one shows all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    terms: Vec<Term>,
}

/// A text that is no filter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the filter cannot be read at character {position}: {why}")]
pub struct FilterError {
    position: usize,
    why: String,
}

impl FilterError {
    /// Returns where the text stops making sense: the number of the character, counted from 1.
    #[must_use]
    pub const fn position(&self) -> usize {
        self.position
    }

    /// Says what is wrong there, and what would be right.
    #[must_use]
    pub fn why(&self) -> &str {
        &self.why
    }
}

/// What a filter needs to know of a procedure besides its row.
#[derive(Clone, Debug, Default)]
pub struct FilterContext {
    /// The time to which ages count.
    pub now: Timestamp,
    /// Rules of the verdicts that tell of it.
    pub rules: BTreeSet<Rule>,
}

impl Filter {
    /// Returns `true` if a procedure is shown.
    #[must_use]
    pub fn admits(&self, status: &Status, context: &FilterContext) -> bool {
        self.terms.iter().all(|term| term.admits(status, context))
    }

    /// Returns `true` if it says anything of states: else a list shows those that have not ended.
    #[must_use]
    pub fn names_states(&self) -> bool {
        self.terms
            .iter()
            .any(|term| matches!(term, Term::State(_) | Term::Failure(_)))
    }

    /// Returns `true` if it shows none that has ended, by what it says of states.
    #[must_use]
    pub fn is_of_live(&self) -> bool {
        let is_of_live =
            |term: &Term| matches!(term, Term::State(states) if states.iter().all(|state| state.is_of_live()));
        !self.names_states() || self.terms.iter().any(is_of_live)
    }

    /// Returns `true` if it asks why one does not run.
    #[must_use]
    pub fn names_reasons(&self) -> bool {
        self.terms.iter().any(|term| matches!(term, Term::Reason(_)))
    }

    /// Returns `true` if it asks what errors say.
    #[cfg(feature = "dashboard")]
    pub(crate) fn names_errors(&self) -> bool {
        self.terms.iter().any(|term| matches!(term, Term::Error(_)))
    }

    /// Returns the fingerprint of the failures that it asks for.
    #[cfg(feature = "dashboard")]
    pub(crate) fn failure_print(&self) -> Option<u64> {
        self.terms.iter().find_map(|term| {
            let Term::Failure(failure) = term else { return None };
            failure.print()
        })
    }

    /// Returns the same filter for failures that say anything.
    #[cfg(feature = "dashboard")]
    pub(crate) fn of_any_failure(&self) -> Self {
        let any = |term: &Term| match matches!(term, Term::Failure(_)) {
            true => Term::Failure(FailureTerm::Any),
            false => term.clone(),
        };
        Self {
            terms: self.terms.iter().map(any).collect(),
        }
    }

    /// Returns `true` if verdicts must be known before it can be asked.
    #[must_use]
    pub fn names_rules(&self) -> bool {
        self.terms.iter().any(|term| matches!(term, Term::Rule(_)))
    }

    /// Returns the kinds that it names; none if it admits all.
    #[must_use]
    pub fn kinds(&self) -> Vec<&str> {
        let named = self.terms.iter().filter_map(|term| {
            let Term::Kind(kinds) = term else { return None };
            Some(kinds)
        });
        named.flatten().map(String::as_str).collect()
    }

    /// Returns the only families that it can show, if it names any: a list need read no other.
    #[must_use]
    pub fn families(&self) -> Option<BTreeSet<u64>> {
        let named = self.terms.iter().filter_map(|term| {
            let Term::Root(families) = term else { return None };
            Some(families.iter().copied().collect::<BTreeSet<u64>>())
        });
        named.reduce(|one, other| one.intersection(&other).copied().collect())
    }

    /// Returns the families that a list must read. With `live`, it leaves out families that have ended.
    #[must_use]
    pub fn scope(&self, live: bool) -> FamilyScope {
        for term in &self.terms {
            // First of all: no row says whether a failure was acknowledged.
            if let Term::Failure(failure) = term {
                return FamilyScope::Failures(failure.print());
            }
        }
        if let Some(families) = self.families() {
            return FamilyScope::Families(families);
        }
        let mut labels = Vec::new();
        let mut prefix: Option<&str> = None;
        for term in &self.terms {
            match term {
                Term::Key(KeyTerm::Is(key)) => return FamilyScope::Key(key.clone()),
                Term::Key(KeyTerm::Begins(begin)) => prefix = prefix.max(Some(begin)),
                Term::Label(label) => labels.push(label.clone()),
                Term::State(_)
                | Term::Reason(_)
                | Term::Kind(_)
                | Term::Name(_)
                | Term::Root(_)
                | Term::Failure(_)
                | Term::Age(_)
                | Term::Since(_)
                | Term::Attempts(_)
                | Term::Error(_)
                | Term::Rule(_)
                | Term::Bare(_) => {}
            }
        }
        match prefix {
            _ if !labels.is_empty() => FamilyScope::Labelled(labels),
            Some(prefix) => FamilyScope::KeyPrefix {
                prefix: prefix.to_owned(),
                live,
            },
            None if live => FamilyScope::Live,
            None => FamilyScope::All,
        }
    }
}

impl FromStr for Filter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Self, FilterError> {
        if text.len() > FILTER_MAX {
            let position = text.floor_char_boundary(FILTER_MAX);
            let why = format!("it has {} bytes, and {FILTER_MAX} are the limit", text.len());
            return Err(at(text, position, why));
        }
        let mut scanner = Scanner::new(text);
        let mut terms = Vec::new();
        while let Some(word) = scanner.next_word().map_err(|(offset, why)| at(text, offset, why))? {
            terms.push(Term::of(&word).map_err(|(offset, why)| at(text, offset, why))?);
        }
        let filter = Self { terms };
        // It goes on to others as it is written here, and they have the same limit.
        let written = filter.to_string().len();
        if written > FILTER_MAX {
            let why = format!("written in full it has {written} bytes, and {FILTER_MAX} are the limit");
            return Err(at(text, text.len(), why));
        }
        Ok(filter)
    }
}

fn at(text: &str, offset: usize, why: String) -> FilterError {
    let before = text.get(..offset).unwrap_or(text);
    FilterError {
        position: before.chars().count() + 1,
        why,
    }
}

impl fmt::Display for Filter {
    /// As it would be written; read again it is the same.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, term) in self.terms.iter().enumerate() {
            let blank = if place == 0 { "" } else { " " };
            write!(f, "{blank}{term}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
