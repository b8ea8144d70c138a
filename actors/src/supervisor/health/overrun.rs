//! Stages that take longer than expected.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

use procession_kernel::{Kind, Row, Timestamp};

use super::EngineState;
use super::diagnosis_input::{DiagnosisInput, StageTiming};
use super::rules::of_row;
use crate::journal::codec;
use crate::view::{Rule, Verdict};

/// A stage overruns at this multiple of the time that 99 of 100 take, if its kind declares no expected time.
const TIMES: u32 = 4;

impl DiagnosisInput<'_> {
    pub(super) fn overrun(&self, row: &Row) -> Option<Verdict> {
        row.in_flight?;
        match row.expected {
            Some(expected) => self.unexpected(row, expected),
            None => self.unusual(row),
        }
    }

    /// Judges a stage with an expected time. Time before this start does not count, because nothing ran then.
    fn unexpected(&self, row: &Row, expected: Duration) -> Option<Verdict> {
        let since = row.since.max(self.opened);
        let text = format!("{expected:?} is expected");
        self.over(row, since, ("expected", expected), &text)
    }

    /// Judges a stage without an expected time. It is measured from its call on: waiting for a worker behind many
    /// others does not count as taking long.
    fn unusual(&self, row: &Row) -> Option<Verdict> {
        let least = self.thresholds.of(&row.kind).unusual;
        if self.now.since(row.since) < least {
            return None;
        }
        let StageTiming { since, p99 } = (self.usual)(row)?;
        let most = (p99 * TIMES).max(least);
        let text = format!("99 of 100 recent calls took {p99:?} or less");
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

/// How long stages usually take. The telemetry is asked once per stage and check, however many procedures run it.
#[derive(Default)]
pub(super) struct UsualTimes(RefCell<BTreeMap<(Kind, String), Option<Duration>>>);

impl UsualTimes {
    /// Returns how long this stage usually takes, if it is running on its worker now.
    pub(super) fn of(&self, row: &Row, state: &EngineState<'_>) -> Option<StageTiming> {
        let since = state.actors.get(row.id)?.runs_since()?;
        let stage = codec::variant(row.stage.as_slice());
        let mut times = self.0.borrow_mut();
        let p99 = times
            .entry((row.kind.clone(), stage.to_owned()))
            .or_insert_with(|| state.telemetry.usual(&row.kind, stage));
        p99.map(|p99| StageTiming { since, p99 })
    }
}
