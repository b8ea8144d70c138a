//! How many failures nobody has acknowledged. They are counted on disk, beside the checks, whenever the list has
//! changed; so a start reads none of them.

use std::collections::BTreeMap;
use std::time::Duration;

use procession_kernel::{FailureEntry, Kind, Record, Seq, Timestamp};

use super::rules::verdict;
use crate::journal::Reader;
use crate::read::failures::failures;
use crate::view::{Rule, Verdict};

/// How many are counted, the newest.
const COUNTED_MAX: usize = 1_000;
/// Kinds that the verdict names.
const KINDS_NAMED: usize = 3;
/// Counts that nobody waits for take at most one part in this many of the time.
const SHARE: u32 = 20;

/// The longest rest after a count that nobody waits for. A clock that is set forward during a count does not make it a long
/// one.
const REST_MAX: Duration = Duration::from_secs(10);

/// Returns `true` as long as the next count would be too early. A clock that was set back postpones nothing.
fn rests(begun: Timestamp, ended: Timestamp, now: Timestamp) -> bool {
    let rest = ended.since(begun).saturating_mul(SHARE).min(REST_MAX);
    now >= ended && now.since(ended) < rest
}

/// The newest count, and whether it still holds.
pub(super) struct FailureCount {
    /// The commits in which the list has changed since the last count began: the first of them, and the last.
    changed: Option<(Seq, Seq)>,
    is_counting: bool,
    /// When the last count began and ended, by the engine's clock.
    last: Option<(Timestamp, Timestamp)>,
    found: Counted,
}

/// What a count has found.
#[derive(Default)]
pub(crate) struct Counted {
    count: usize,
    /// There may be more.
    has_more: bool,
    oldest: Timestamp,
    newest: Option<FailureEntry>,
    kinds: BTreeMap<Kind, usize>,
}

/// Returns `true` if the record changes the list.
pub(in crate::supervisor) fn changes_list(record: &Record) -> bool {
    matches!(record, Record::FailureListed(_) | Record::FailureClosed(..))
        || matches!(record, Record::Evicted(doomed) if doomed.failed.is_some())
}

impl FailureCount {
    pub(super) fn new() -> Self {
        Self {
            changed: Some((Seq::default(), Seq::default())),
            is_counting: false,
            last: None,
            found: Counted::default(),
        }
    }

    /// Notes that this commit changes the list.
    pub(super) const fn note_change(&mut self, at: Seq) {
        self.changed = match self.changed {
            Some((first, _)) => Some((first, at)),
            None => Some((at, at)),
        };
    }

    /// Returns a new count, if the list has changed on disk since the last one, which must be over. If a caller waits
    /// for verdicts, it begins at once, and otherwise not so soon that counts take more than their share of the time.
    pub(super) fn begin(
        &mut self,
        durable: Seq,
        is_asked: bool,
        reader: &Reader,
        now: Timestamp,
    ) -> Option<impl Future<Output = Option<Counted>> + use<>> {
        let (first, last) = self.changed?;
        let is_early = !is_asked && self.last.is_some_and(|(begun, ended)| rests(begun, ended, now));
        if durable < first || self.is_counting || is_early {
            return None;
        }
        self.changed = (durable < last).then_some((last, last));
        self.is_counting = true;
        self.last = Some((now, now));
        let reader = reader.clone();
        Some(async move { count(&reader).await })
    }

    /// Takes a count. Without one, because the store did not answer, the next is made as if the list had changed.
    pub(super) fn counted(&mut self, found: Option<Counted>, now: Timestamp) {
        self.is_counting = false;
        match found {
            Some(found) => {
                self.last = self.last.map(|(begun, _)| (begun, now));
                self.found = found;
            }
            None => self.changed = Some((Seq::default(), self.changed.map(|(_, last)| last).unwrap_or_default())),
        }
    }

    pub(super) fn verdict(&self) -> Option<Verdict> {
        self.found.verdict()
    }
}

impl Counted {
    pub(crate) fn verdict(&self) -> Option<Verdict> {
        let Self { count, newest, .. } = self;
        let newest = newest.as_ref()?;
        let more = if self.has_more { "more than " } else { "" };
        let (failures, are) = if *count == 1 {
            ("failure", "is")
        } else {
            ("failures", "are")
        };
        let text = format!(
            "{more}{count} {failures} {are} not acknowledged ({}). The newest is {}.0 of {}: {}",
            self.named_kinds(),
            newest.family,
            newest.kind,
            newest.text
        );
        // Whoever hides what users say of errors goes by the kind that has said it.
        let said_by = newest.origin_kind.as_ref().unwrap_or(&newest.kind);
        let facts = vec![
            ("unacknowledged", count.to_string()),
            ("kinds", self.named_kinds()),
            ("newest", format!("{}.0", newest.family)),
            ("kind", newest.kind.to_string()),
            ("error", newest.text.clone()),
            ("error_kind", said_by.to_string()),
        ];
        Some(verdict(Rule::UnacknowledgedFailures, None, self.oldest, facts, text))
    }

    /// Returns the kinds with the most failures, each with its number.
    fn named_kinds(&self) -> String {
        let mut kinds: Vec<(&Kind, usize)> = self.kinds.iter().map(|(kind, count)| (kind, *count)).collect();
        kinds.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let others: usize = kinds.iter().skip(KINDS_NAMED).map(|(_, count)| count).sum();
        let mut named: Vec<String> = kinds
            .iter()
            .take(KINDS_NAMED)
            .map(|(kind, count)| format!("{count} {kind}"))
            .collect();
        if others > 0 {
            named.push(format!("{others} of other kinds"));
        }
        named.join(", ")
    }
}

/// Counts the newest failures. Returns `None` if the store did not answer.
pub(crate) async fn count(reader: &Reader) -> Option<Counted> {
    let page = failures(reader, None, COUNTED_MAX).await.ok()?;
    let mut found = Counted {
        count: page.items.len(),
        has_more: page.next.is_some(),
        oldest: page.items.last().map(|entry| entry.ended).unwrap_or_default(),
        ..Counted::default()
    };
    for entry in &page.items {
        *found.kinds.entry(entry.kind.clone()).or_default() += 1;
    }
    found.newest = page.items.into_iter().next();
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_rests_for_its_share_of_the_time_whatever_the_clock_does() {
        let (begun, ended) = (Timestamp(1_000_000), Timestamp(1_002_000));
        let after = |micros| Timestamp(ended.0 + micros);
        assert!(rests(begun, ended, ended));
        assert!(rests(begun, ended, after(39_999)), "it took 2 ms");
        assert!(!rests(begun, ended, after(40_000)));
        assert!(!rests(begun, ended, Timestamp(0)), "the clock was set back");
        assert!(!rests(ended, begun, begun), "the clock was set back during the count");
        // Set forward by an hour during the count.
        let ended = begun.after(Duration::from_hours(1));
        assert!(rests(begun, ended, ended));
        assert!(!rests(begun, ended, ended.after(REST_MAX)));
        assert!(!rests(Timestamp(0), Timestamp(u64::MAX), Timestamp(0)));
    }
}
