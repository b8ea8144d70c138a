//! Every possible combination of state and wait reason in a row yields a sentence, and a true one.

use procession_kernel::{Blob, InFlight, Kind, ProcedureId, Rare, Row, Seq, Timestamp, WaitReason as Wait};

use super::*;

const AT: Timestamp = Timestamp(90_000_000);

fn row(state: ProcedureState, wait: Option<Wait>) -> Row {
    // MessagePack for 2.
    let (id, stage) = (ProcedureId::new(1, 1), Blob::from(&[2_u8][..]));
    Row {
        revision: Seq(1),
        parent: Some(0),
        state,
        wait,
        visit: 1,
        history: 1,
        standing: 1,
        ..Row::new(id, Kind::from("kind"), 1, stage, Timestamp(0))
    }
}

fn going(state: ProcedureState) -> Row {
    let in_flight = Some(InFlight {
        run: Seq(1),
        deaths: 0,
        counted_from: None,
        alone: false,
    });
    Row {
        in_flight,
        ..row(state, None)
    }
}

#[test]
fn what_goes_on_says_when() {
    use ProcedureState::{Initializing, Runnable, Waiting, WaitingTimeout};
    let go = || "go".into();
    let told = [
        (row(Runnable, None), "stage 2 runs, or is queued at its worker"),
        (going(Runnable), "stage 2 runs, or is queued at its worker"),
        (
            row(Initializing, Some(Wait::Width)),
            "stage 2 runs once one of its siblings has ended",
        ),
        (
            row(Initializing, Some(Wait::Permit("move".into()))),
            "stage 2 runs once a permit of move is free and its turn has come",
        ),
        (
            row(Runnable, Some(Wait::Lock("ns/t".into()))),
            "stage 2 runs once the lock ns/t is free and its turn has come",
        ),
        (
            row(Waiting, Some(Wait::Children)),
            "stage 2 runs once its children finish",
        ),
        (
            row(WaitingTimeout, Some(Wait::Timer(AT))),
            "stage 2 runs at 1970-01-01T00:01:30Z",
        ),
        (
            row(WaitingTimeout, Some(Wait::Backoff(1, AT))),
            "stage 2 runs at 1970-01-01T00:01:30Z",
        ),
        (
            row(WaitingTimeout, Some(Wait::Event(go(), None))),
            "stage 2 runs once go arrives",
        ),
        (
            row(WaitingTimeout, Some(Wait::Event(go(), Some(AT)))),
            "stage 2 runs once go arrives, at the latest at 1970-01-01T00:01:30Z",
        ),
        (row(Runnable, Some(Wait::Queue)), "stage 2 runs at the next start"),
        (
            row(Runnable, Some(Wait::Suspect)),
            "stage 2 runs alone, once the suspect before it has reported",
        ),
        (
            row(Runnable, Some(Wait::Poison)),
            "stage 2 runs once an operator resumes it",
        ),
        (
            row(Runnable, Some(Wait::Paused)),
            "stage 2 runs once an operator resumes it",
        ),
        (row(Initializing, Some(Wait::Gate)), "stage 2 runs once its gate opens"),
        (
            row(Runnable, Some(Wait::RepeatLimit)),
            "stage 2 runs once an operator resumes it",
        ),
    ];
    for (row, words) in told {
        assert_eq!(next(&row), words);
    }
    let done = Row {
        rare: Rare {
            output: Some(Blob::default()),
            ..Rare::new()
        }
        .boxed(),
        ..row(Waiting, Some(Wait::Children))
    };
    assert_eq!(next(&done), "it succeeds once its children have ended");
    let paused = Row {
        rare: Rare {
            paused: true,
            ..Rare::new()
        }
        .boxed(),
        ..row(WaitingTimeout, Some(Wait::Timer(AT)))
    };
    assert_eq!(
        next(&paused),
        "stage 2 runs at 1970-01-01T00:01:30Z, but not before an operator resumes it"
    );
    let named = Row {
        stage: Blob::default(),
        ..row(Runnable, None)
    };
    assert_eq!(next(&named), "its stage runs, or is queued at its worker");
}

#[test]
fn what_fails_says_how_far_its_rollback_is() {
    let failed = |wait| row(ProcedureState::Failed, wait);
    let told = [
        (failed(None), "it is rolled back once no stage of its family runs"),
        (
            going(ProcedureState::Failed),
            "its stage reports; then it is rolled back",
        ),
        (
            failed(Some(Wait::Backoff(1, AT))),
            "its undo is retried at 1970-01-01T00:01:30Z",
        ),
        (
            failed(Some(Wait::RollbackFailed)),
            "nothing, until an operator retries or skips its undo",
        ),
        (
            failed(Some(Wait::Lock("t".into()))),
            "its rollback continues once the lock t is free",
        ),
        (
            failed(Some(Wait::Paused)),
            "its rollback continues once an operator resumes it",
        ),
        (
            failed(Some(Wait::Suspect)),
            "its stage, which is in doubt, runs alone; then it is rolled back",
        ),
        (
            failed(Some(Wait::Quarantined)),
            "nothing, until an operator bypasses or discharges it: its history has a hole",
        ),
    ];
    for (row, words) in told {
        assert_eq!(next(&row), words);
    }
}

#[test]
fn an_end_says_so() {
    let ended = |state| Row {
        ended: Some(AT),
        ..row(state, None)
    };
    for state in [
        ProcedureState::Success,
        ProcedureState::RolledBack,
        ProcedureState::Failed,
    ] {
        assert_eq!(next(&ended(state)), "nothing: it has ended");
    }
    let cleaning = Row {
        rare: Rare {
            cleaning: true,
            ..Rare::new()
        }
        .boxed(),
        ..ended(ProcedureState::RolledBack)
    };
    assert_eq!(next(&cleaning), "it has ended; its cleanup runs");
    let compensated = Row {
        on_failure: OnFailure::Compensate,
        ..ended(ProcedureState::Success)
    };
    assert_eq!(
        next(&compensated),
        "nothing, unless its family rolls back: then it is undone"
    );
}
