//! A stage lifts the timeout of its procedure: from then on nothing happens when it would pass.

#![expect(clippy::expect_used, reason = "a test names what it expects")]

use std::time::Duration;

use procession_kernel::{
    Birth, Blob, Event, Kind, OnTimeout, ProcedureState, Row, StageEnded, StageOutcome, StageTask, Timestamp,
};

use crate::shell::{KIND, ROOT, Shell};

const DUE: u64 = 5_000_000;
const AWAKE: u64 = 60_000_000;

fn begun(on_timeout: OnTimeout) -> Shell {
    Shell::new(Birth {
        timeout: Some(Duration::from_secs(5)),
        on_timeout,
        ..Birth::new(Kind::from(KIND), 1, Blob::from(&b"first"[..]), Blob::default())
    })
}

fn row(shell: &Shell) -> &Row {
    shell.kernel.row(ROOT).expect("it lives")
}

fn end(shell: &mut Shell, at: u64, outcome: StageOutcome) {
    let run = row(shell).in_flight.expect("its stage is out").run;
    let report = StageEnded {
        lifts_timeout: true,
        ..StageEnded::new(ROOT, run, shell.kernel.epoch(), Timestamp(at), outcome)
    };
    shell.feed(at, Event::StageEnded(Box::new(report)));
}

fn sleeps() -> StageOutcome {
    StageOutcome::Sleep(Timestamp(AWAKE), Blob::from(&b"then"[..]))
}

/// Whether the stage that is out is told that its procedure is out of time.
fn is_told(shell: &Shell) -> bool {
    let calls = shell.kernel.calls_of(ROOT);
    calls
        .iter()
        .any(|call| matches!(call.task, StageTask::Execute { out_of_time: true, .. }))
}

#[test]
fn a_timeout_that_is_lifted_does_not_pass() {
    for on_timeout in [OnTimeout::Fail, OnTimeout::Execute] {
        let mut shell = begun(on_timeout);
        end(&mut shell, 0, sleeps());
        assert_eq!(shell.kernel.next_deadline(), Some(Timestamp(AWAKE)), "{on_timeout:?}");
        shell.feed(DUE, Event::TimerDue(ROOT));
        assert_eq!(row(&shell).state, ProcedureState::WaitingTimeout, "{on_timeout:?}");
        shell.feed(AWAKE, Event::TimerDue(ROOT));
        assert!(row(&shell).in_flight.is_some(), "{on_timeout:?}");
        assert!(!is_told(&shell), "{on_timeout:?}");
    }
}

#[test]
fn one_that_passed_during_the_stage_is_not_told() {
    let mut shell = begun(OnTimeout::Execute);
    shell.feed(DUE, Event::TimerDue(ROOT));
    assert!(row(&shell).out_of_time);
    end(&mut shell, DUE, sleeps());
    assert_eq!(row(&shell).state, ProcedureState::WaitingTimeout);
    shell.feed(AWAKE, Event::TimerDue(ROOT));
    assert!(!is_told(&shell));
}

#[test]
fn a_stage_that_fails_lifts_nothing() {
    let mut shell = begun(OnTimeout::Fail);
    end(&mut shell, 0, StageOutcome::Retry("boom".to_owned()));
    assert_eq!(row(&shell).deadline, Some(Timestamp(DUE)));
}
