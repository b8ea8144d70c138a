//! Fingerprints of failures, for viewers to whom the texts are not shown.
//!
//! A fingerprint is made from the text alone, so whoever has it can try texts until one fits, and whoever may ask for one is
//! told whether a text was guessed. Where a rule hides the text, a group is therefore called by an alias: a digest with a key
//! that this dashboard drew when it began, and tells nobody. It leads to the group's list as the fingerprint does elsewhere.

use std::hash::{BuildHasher, RandomState};

use procession_actors::view::{FamilyScope, Status};
use procession_kernel::{FailureEntry, fingerprint};

use super::access::Grant;
use super::problem::Problem;
use super::redact::Part;
use super::state::State;
use crate::filter::Filter;
use crate::views::FAILURES_READ;

/// Aliases of fingerprints. Each dashboard has others.
#[derive(Default)]
pub(super) struct Prints(RandomState);

impl Prints {
    fn alias(&self, print: u64) -> u64 {
        self.0.hash_one(print)
    }
}

impl State {
    /// Returns what a group of failures is called to a caller.
    pub(super) fn print_shown(&self, print: u64, text: &str, grant: &Grant) -> u64 {
        match self.is_hidden(text, grant) {
            true => self.prints.alias(print),
            false => print,
        }
    }

    /// Returns the families that a list with a filter reads.
    pub(super) async fn scope(&self, filter: &Filter, live: bool, grant: &Grant) -> Result<FamilyScope, Problem> {
        let Some(asked) = filter.failure_print() else {
            return Ok(filter.scope(live));
        };
        let (entries, _) = self.engine().committed().newest_failures(FAILURES_READ).await?;
        let found = entries.iter().find(|entry| self.is_called(entry, asked, grant));
        // How many rows are looked at is told, so none is if the fingerprint is not the caller's to ask for.
        Ok(found.map_or(FamilyScope::Families(Default::default()), |entry| {
            FamilyScope::Failures(Some(entry.print))
        }))
    }

    fn is_called(&self, entry: &FailureEntry, asked: u64, grant: &Grant) -> bool {
        let may_be = entry.print == asked || self.prints.alias(entry.print) == asked;
        may_be && self.print_shown(entry.print, &entry.text, grant) == asked
    }

    /// Returns `true` if a filter calls the group of this failure by its alias.
    pub(super) fn is_asked_by_alias(&self, filter: &Filter, status: &Status) -> bool {
        let asked = filter.failure_print().zip(status.cause.as_ref());
        asked.is_some_and(|(asked, cause)| self.prints.alias(fingerprint(&cause.text)) == asked)
    }

    /// Returns `true` if the rule for any kind hides a text or a part of it. Failures that say the same may be of several
    /// kinds, and may have begun in others.
    fn is_hidden(&self, text: &str, grant: &Grant) -> bool {
        let mut kinds = self.engine().kinds();
        kinds.any(|kind| self.redact_text(kind.as_str(), Part::Error, text, grant) != text)
    }
}
