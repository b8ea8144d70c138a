//! Stages that take longer than they should.

use std::time::Duration;

use procession_kernel::Row;

use super::super::insight::Insight;
use super::rules::of_row;
use crate::view::{Rule, Verdict};

/// As many times as 99 of 100 take, where a kind does not say what is expected.
const TIMES: u32 = 4;

impl Insight<'_> {
    /// Time that passed before this start does not count: nothing ran then.
    pub(super) fn overrun(&self, row: &Row) -> Option<Verdict> {
        row.going?;
        let since = row.since.max(self.opened);
        let time = self.now.since(since);
        let (measure, most, text) = match row.expected {
            Some(expected) => ("expected", expected, format!("{expected:?} is expected")),
            None => self.unusual(row, time)?,
        };
        if time <= most {
            return None;
        }
        let facts = vec![
            (measure, format!("{most:?}")),
            ("time", format!("{time:?}")),
            ("call", (self.called)(row.id).to_owned()),
        ];
        let mut verdict = of_row(Rule::Overrun, row, facts, &format!("takes {time:?}; {text}"));
        verdict.since = since;
        Some(verdict)
    }

    /// Gives by what a stage is measured of which nobody has said what is expected.
    fn unusual(&self, row: &Row, time: Duration) -> Option<(&'static str, Duration, String)> {
        if time < self.thresholds.unusual {
            return None;
        }
        let usual = (self.usual)(row)?;
        let text = format!("99 of 100 of the newest took {usual:?} or less");
        Some(("usual", usual * TIMES, text))
    }
}
