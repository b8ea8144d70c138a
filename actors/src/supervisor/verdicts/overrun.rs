//! Stages that take longer than they should.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

use procession_kernel::{Kind, Row, Timestamp};

use super::super::Supervisor;
use super::super::insight::{Insight, Usual};
use super::rules::of_row;
use crate::journal::codec;
use crate::view::{Rule, Verdict};

/// As many times as 99 of 100 take, where a kind does not say what is expected.
const TIMES: u32 = 4;

impl Insight<'_> {
    pub(super) fn overrun(&self, row: &Row) -> Option<Verdict> {
        row.going?;
        match row.expected {
            Some(expected) => self.unexpected(row, expected),
            None => self.unusual(row),
        }
    }

    /// Time that passed before this start does not count: nothing ran then.
    fn unexpected(&self, row: &Row, expected: Duration) -> Option<Verdict> {
        let since = row.since.max(self.opened);
        let text = format!("{expected:?} is expected");
        self.over(row, since, ("expected", expected), &text)
    }

    /// One that nobody has said anything of is measured from its call on: what waits for its
    /// worker behind many others is not what takes long.
    fn unusual(&self, row: &Row) -> Option<Verdict> {
        let least = self.thresholds.of(&row.kind).unusual;
        if self.now.since(row.since) < least {
            return None;
        }
        let Usual { since, p99 } = (self.usual)(row)?;
        let most = (p99 * TIMES).max(least);
        let text = format!("99 of 100 of the newest took {p99:?} or less");
        self.over(row, since, ("usual", most), &text)
    }

    fn over(&self, row: &Row, since: Timestamp, measure: (&'static str, Duration), text: &str) -> Option<Verdict> {
        let time = self.now.since(since);
        let (name, most) = measure;
        if time <= most {
            return None;
        }
        let facts = vec![
            (name, format!("{most:?}")),
            ("time", format!("{time:?}")),
            ("call", (self.called)(row.id).to_owned()),
        ];
        let mut verdict = of_row(Rule::Overrun, row, facts, &format!("takes {time:?}; {text}"));
        verdict.since = since;
        Some(verdict)
    }
}

/// What stages of one audit usually take: asked of the newest runs once, however many run.
#[derive(Default)]
pub(super) struct Asked(RefCell<BTreeMap<(Kind, String), Option<Duration>>>);

impl Asked {
    /// Of a stage that runs on its worker now.
    pub(super) fn usual(&self, supervisor: &Supervisor, row: &Row) -> Option<Usual> {
        let since = supervisor.runs_since(row.id)?;
        let stage = codec::variant(row.stage.as_slice());
        let mut asked = self.0.borrow_mut();
        let p99 = asked
            .entry((row.kind.clone(), stage.to_owned()))
            .or_insert_with(|| supervisor.metrics.telemetry().usual(&row.kind, stage));
        p99.map(|p99| Usual { since, p99 })
    }
}
