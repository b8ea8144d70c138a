//! A failure that a stage decides on: it fails the procedure, and what the stage did is part of the commit.

#![expect(clippy::expect_used, reason = "a test names what it expects")]

use procession_kernel::{
    Birth, Blob, CauseKind, Ending, Event, Key, Kind, LockNeed, NextStageNeeds, ProcedureId, ProcedureState, Record,
    Row, StageEffects, StageEnded, StageOutcome, Timestamp, UserWrite, WaitReason,
};

use crate::shell::{KIND, ROOT, Shell};

fn birth() -> Birth {
    let (stage, payload) = (Blob::from(&b"first"[..]), Blob::from(&b"value"[..]));
    Birth::new(Kind::from(KIND), 1, stage, payload)
}

fn gives_up() -> StageOutcome {
    StageOutcome::GiveUp("boom".to_owned())
}

/// A report with a value, a write and a submission.
fn busy(shell: &Shell, outcome: StageOutcome) -> StageEnded {
    let run = row(shell).in_flight.expect("its stage is out").run;
    StageEnded {
        payload: Some(Blob::from(&b"new"[..])),
        effects: StageEffects {
            writes: vec![UserWrite {
                space: Key::from("rows"),
                key: vec![1],
                value: None,
            }],
            submitted: vec![birth().into()],
            ..StageEffects::default()
        }
        .boxed(),
        ..StageEnded::new(ROOT, run, shell.kernel.epoch(), Timestamp(5), outcome)
    }
}

fn row(shell: &Shell) -> &Row {
    shell.kernel.row(ROOT).expect("it lives")
}

/// What of the report is in the commit: the value, the write, the submission.
fn kept(shell: &Shell, report: StageEnded) -> (bool, bool, bool) {
    let decision = shell.kernel.decide(Timestamp(5), Event::StageEnded(Box::new(report)));
    let any = |wanted: fn(&Record) -> bool| decision.records().iter().any(wanted);
    (
        any(|record| matches!(record, Record::Payload(ROOT, _))),
        any(|record| matches!(record, Record::User(_))),
        any(|record| matches!(record, Record::FamilyBegan(2))),
    )
}

#[test]
fn g_068_what_the_stage_did_is_part_of_the_commit_that_fails() {
    let mut shell = Shell::new(birth());
    let report = busy(&shell, gives_up());
    assert_eq!(kept(&shell, report.clone()), (true, true, true));
    shell.feed(5, Event::StageEnded(Box::new(report)));
    let row = row(&shell);
    assert_eq!((row.state, row.visit, row.standing), (ProcedureState::Failed, 1, 1));
    let cause = row.rare().cause.as_ref().expect("it has failed");
    assert_eq!(
        (cause.kind, cause.text.as_str(), cause.origin),
        (CauseKind::Failed, "boom", ROOT)
    );
    let entry = shell.history.last().expect("the stage has an entry");
    assert_eq!(
        (entry.ending, entry.error.as_deref(), entry.stands),
        (Ending::Fail, Some("boom"), true)
    );
}

#[test]
fn g_068_a_plain_failure_keeps_nothing() {
    let shell = Shell::new(birth());
    let report = busy(&shell, StageOutcome::Fail("boom".to_owned()));
    assert_eq!(kept(&shell, report), (false, false, false));
}

#[test]
fn g_068_past_the_point_of_no_return_nothing_is_kept_and_the_stage_runs_again() {
    let mut born = birth();
    born.next_needs.next_is_no_return = Some("first".to_owned());
    let mut shell = Shell::new(born);
    let report = busy(&shell, gives_up());
    assert_eq!(kept(&shell, report.clone()), (false, false, false));
    shell.feed(5, Event::StageEnded(Box::new(report)));
    let row = row(&shell);
    assert_eq!((row.visit, row.attempt), (0, 1));
    assert!(matches!(row.wait, Some(WaitReason::Backoff(1, _))), "{:?}", row.wait);
}

#[test]
fn g_068_added_children_are_refused_whatever_the_bounds() {
    let mut shell = Shell::new(birth());
    let report = StageEnded {
        effects: StageEffects {
            children: vec![birth()],
            ..StageEffects::default()
        }
        .boxed(),
        ..busy(&shell, gives_up())
    };
    assert_eq!(kept(&shell, report.clone()), (false, false, false));
    shell.feed(5, Event::StageEnded(Box::new(report)));
    let cause = row(&shell).rare().cause.clone().expect("it has failed");
    assert_eq!(cause.kind, CauseKind::OverBound);
    assert!(cause.text.contains("return Next, Spawn or Done"), "{}", cause.text);
    assert_eq!(shell.kernel.row(ProcedureId::new(1, 1)), None);
}

#[test]
fn its_entry_names_no_locks_as_it_is_undone_under_those_of_its_row() {
    let mut born = birth();
    let locks = vec![LockNeed::exclusive("t")];
    born.next_needs = NextStageNeeds {
        locks: locks.clone(),
        ..NextStageNeeds::default()
    };
    born.admission.asked = Some(procession_kernel::ClaimId(1));
    let mut shell = Shell::new(born);
    let report = busy(&shell, gives_up());
    shell.feed(5, Event::StageEnded(Box::new(report)));
    assert_eq!(shell.history.last().and_then(|entry| entry.locks.clone()), None);
    assert_eq!((&*row(&shell).locks, &*row(&shell).locked), (&*locks, &*locks));
}
