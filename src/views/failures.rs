//! Failures that nobody has acknowledged, as groups of those of one kind that say the same, ignoring numbers.

use std::collections::BTreeMap;

use procession_kernel::{FailureEntry, Kind, ProcedureId, Timestamp};
use serde::{Deserialize, Serialize};

use super::{millis, time};

/// Failures that one reading looks at, the newest.
pub const FAILURES_READ: usize = 10_000;
/// Groups of one reading at most, those with the newest failures.
const GROUPS_MAX: usize = 200;
/// Columns of a sparkline.
const COLUMNS: usize = 24;
/// The shortest time of one column, in microseconds.
const COLUMN_LEAST: u64 = 60 * 1_000_000;

/// The failures that nobody has acknowledged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FailuresView {
    /// How many were looked at, the newest.
    pub count: usize,
    /// There are more than were looked at.
    pub truncated: bool,
    /// The groups, those with the newest failures first.
    pub items: Vec<FailureGroupView>,
    /// How many groups there are beside these.
    pub more_groups: usize,
    /// When the first column of the sparklines begins.
    pub columns_from: String,
    /// The time of one column, in milliseconds.
    pub column_ms: u64,
}

/// Failures of one kind that say the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FailureGroupView {
    /// Kind of the roots.
    pub kind: String,
    /// The fingerprint of what they say: the value of the filter's `failure`.
    pub fingerprint: String,
    /// Kind of the failure.
    pub cause: String,
    /// What the newest says, its first 256 bytes.
    pub text: String,
    /// Kind of the procedure in which the newest began, if that is another.
    pub origin_kind: Option<String>,
    /// How many there are.
    pub count: usize,
    /// When the first of them ended.
    pub first: String,
    /// When the newest ended.
    pub last: String,
    /// The id of the newest.
    pub newest: String,
    /// The idempotency key of the newest.
    pub newest_key: Option<String>,
    /// How many ended in each column of the sparkline.
    pub columns: Vec<u32>,
}

/// The times of a sparkline's columns, the same for all groups.
#[derive(Clone, Copy)]
struct Columns {
    from: Timestamp,
    step: u64,
}

/// Failures of one kind that say the same.
struct Group {
    newest: FailureEntry,
    ends: Vec<Timestamp>,
}

impl FailuresView {
    /// Groups failures, which come newest first; `truncated` if there are more.
    #[must_use]
    pub fn of(entries: Vec<FailureEntry>, truncated: bool, now: Timestamp) -> Self {
        let count = entries.len();
        let oldest = entries.last().map_or(now, |entry| entry.ended);
        let columns = Columns::new(oldest, now);
        let mut groups = grouped(entries);
        let more_groups = groups.len().saturating_sub(GROUPS_MAX);
        groups.truncate(GROUPS_MAX);
        Self {
            count,
            truncated,
            items: groups.into_iter().map(|group| group.view(columns)).collect(),
            more_groups,
            columns_from: time(columns.from),
            column_ms: millis(std::time::Duration::from_micros(columns.step)),
        }
    }
}

fn grouped(entries: Vec<FailureEntry>) -> Vec<Group> {
    let mut places: BTreeMap<(Kind, u64), usize> = BTreeMap::new();
    let mut groups: Vec<Group> = Vec::new();
    for entry in entries {
        let place = *places.entry((entry.kind.clone(), entry.print)).or_insert(groups.len());
        match groups.get_mut(place) {
            Some(group) => group.ends.push(entry.ended),
            None => groups.push(Group {
                ends: vec![entry.ended],
                newest: entry,
            }),
        }
    }
    groups
}

impl Group {
    fn view(self, columns: Columns) -> FailureGroupView {
        let Self { newest, ends } = self;
        FailureGroupView {
            kind: newest.kind.to_string(),
            fingerprint: format!("{:016x}", newest.print),
            cause: format!("{:?}", newest.cause),
            text: newest.text,
            origin_kind: newest.origin_kind.map(|kind| kind.to_string()),
            count: ends.len(),
            first: time(ends.last().copied().unwrap_or(newest.ended)),
            last: time(newest.ended),
            newest: ProcedureId::root(newest.family).to_string(),
            newest_key: newest.key.map(|key| key.as_str().to_owned()),
            columns: columns.counts(&ends),
        }
    }
}

impl Columns {
    fn new(oldest: Timestamp, now: Timestamp) -> Self {
        let columns = u64::try_from(COLUMNS).unwrap_or(u64::MAX);
        let span = now.0.saturating_sub(oldest.0);
        let step = (span / columns + 1).max(COLUMN_LEAST);
        let from = Timestamp(now.0.saturating_sub(step.saturating_mul(columns)));
        Self { from, step }
    }

    fn counts(self, ends: &[Timestamp]) -> Vec<u32> {
        let mut counts = vec![0; COLUMNS];
        for end in ends {
            let column = usize::try_from(end.0.saturating_sub(self.from.0) / self.step).unwrap_or(usize::MAX);
            if let Some(count) = counts.get_mut(column.min(COLUMNS - 1)) {
                *count += 1;
            }
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sparkline_has_each_failure_once() {
        let hour = 3_600 * 1_000_000;
        let (oldest, now) = (Timestamp(100 * hour), Timestamp(148 * hour));
        let columns = Columns::new(oldest, now);
        let counts = columns.counts(&[now, Timestamp(124 * hour), oldest]);
        assert_eq!((counts.len(), counts.iter().sum::<u32>()), (COLUMNS, 3));
        assert_eq!((counts.first(), counts.last()), (Some(&1), Some(&1)));
        let soon = Columns::new(now, now);
        assert_eq!(soon.step, COLUMN_LEAST, "a minute at least");
        assert_eq!(soon.counts(&[now]).last(), Some(&1));
    }
}
