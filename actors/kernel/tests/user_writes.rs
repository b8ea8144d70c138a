//! What one stage writes of its users' own data is bounded: more fails the stage, and leaves nothing. A caller's writes
//! have the same bounds, and a commit of their own.

#![expect(clippy::expect_used, reason = "a test names what it expects, and fails on all else")]

use procession_kernel::{
    Answer, Birth, Blob, CauseKind, Effect, Epoch, Event, Key, Kind, NotNow, ProcedureState, Refusal, RequestEffect,
    RequestId, StageEffects, StageEnded, StageOutcome, Timestamp, UserWrite,
};

use crate::shell::{KIND, ROOT, Shell};

/// A root whose first stage makes this many writes, each of a key of 8 bytes and a value of this size.
fn writes(number: u64, size: usize) -> Shell {
    let (stage, payload) = (Blob::from(&b"first"[..]), Blob::from(&b"value"[..]));
    let mut shell = Shell::new(Birth::new(Kind::from(KIND), 1, stage, payload));
    let in_flight = shell.kernel.row(ROOT).and_then(|row| row.in_flight);
    let run = in_flight.expect("its stage is out").run;
    let next = StageOutcome::Next(Blob::from(&b"second"[..]));
    let mut report = StageEnded::new(ROOT, run, Epoch(1), Timestamp(1), next);
    let writes = (0..number).map(|key| UserWrite {
        space: Key::from("rows"),
        key: key.to_be_bytes().to_vec(),
        value: Some(vec![7; size]),
    });
    report.effects = left(writes.collect());
    shell.feed(1, Event::StageEnded(Box::new(report)));
    shell
}

fn refused(shell: &Shell) -> String {
    let row = shell.kernel.row(ROOT).expect("it is rolled back");
    let cause = row.rare().cause.clone().expect("it failed");
    assert_eq!((row.state, cause.kind), (ProcedureState::Failed, CauseKind::OverBound));
    cause.text
}

fn goes_on(shell: &Shell) -> bool {
    let row = shell.kernel.row(ROOT);
    row.is_some_and(|row| row.state == ProcedureState::Runnable && row.rare().cause.is_none())
}

#[test]
fn more_writes_than_the_bound_fail_the_stage() {
    assert!(goes_on(&writes(10_000, 1)));
    let text = refused(&writes(10_001, 1));
    assert!(text.contains("10001") && text.contains("10000"), "{text}");
}

#[test]
fn more_bytes_than_the_bound_fail_the_stage() {
    let limit: usize = 32 << 20;
    assert!(goes_on(&writes(4, limit / 4 - 8)));
    let text = refused(&writes(4, limit / 4 - 7));
    assert!(
        text.contains(&(limit + 4).to_string()) && text.contains(&limit.to_string()),
        "{text}"
    );
}

/// A root that has written to this many keyspaces in its first stage, and to these in its second.
fn spaces(first: usize, second: &[usize]) -> Shell {
    let write = |space: usize| UserWrite {
        space: Key::from(format!("space-{space}")),
        key: vec![1],
        value: None,
    };
    let (stage, payload) = (Blob::from(&b"first"[..]), Blob::from(&b"value"[..]));
    let mut shell = Shell::new(Birth::new(Kind::from(KIND), 1, stage, payload));
    for (at, writes) in [
        (0..first).map(write).collect(),
        second.iter().copied().map(write).collect(),
    ]
    .into_iter()
    .enumerate()
    {
        let Some(in_flight) = shell.kernel.row(ROOT).and_then(|row| row.in_flight) else {
            break;
        };
        let next = StageOutcome::Next(Blob::from(&b"second"[..]));
        let mut report = StageEnded::new(ROOT, in_flight.run, Epoch(1), Timestamp(1), next);
        report.effects = left(writes);
        shell.feed(1 + at as u64, Event::StageEnded(Box::new(report)));
    }
    shell
}

#[test]
fn more_keyspaces_than_the_bound_fail_the_stage() {
    assert!(goes_on(&spaces(256, &[])));
    let text = refused(&spaces(257, &[]));
    assert!(text.contains("257") && text.contains("256"), "{text}");
}

#[test]
fn keyspaces_of_earlier_commits_count_and_may_be_written_again() {
    assert!(goes_on(&spaces(255, &[0, 254, 255, 255])));
    assert!(goes_on(&spaces(256, &[0, 255])));
    let text = refused(&spaces(256, &[0, 256]));
    assert!(text.contains("257") && text.contains("max_keyspaces"), "{text}");
}

/// A caller writes one key of 1 byte in each of these keyspaces. Returns the answer, and how many writes were recorded.
fn write_to(shell: &mut Shell, spaces: &[usize]) -> (Answer, usize) {
    let writes = spaces.iter().map(|space| UserWrite {
        space: Key::from(format!("space-{space}")),
        key: vec![1],
        value: Some(vec![7]),
    });
    written(shell, writes.collect())
}

fn written(shell: &mut Shell, writes: Vec<UserWrite>) -> (Answer, usize) {
    let request = RequestId(9);
    let event = Event::Written(request, writes);
    let decision = shell.kernel.decide(Timestamp(1), event.clone());
    let recorded = decision.durable().count();
    let effects = shell.feed(1, event);
    let mut replies = effects.into_iter().filter_map(|effect| {
        if let Effect::Requests(RequestEffect::Reply(to, answer)) = effect {
            return Some((to, answer));
        }
        None
    });
    let answer = replies.find_map(|(to, answer)| (to == request).then_some(answer));
    (answer.expect("every caller is answered"), recorded)
}

#[test]
fn a_caller_writes_in_a_commit_of_its_own() {
    let mut shell = Shell::empty(Epoch(1));
    let before = shell.kernel.seq();
    assert_eq!(write_to(&mut shell, &[1, 2]), (Answer::Done, 2));
    assert!(shell.kernel.seq() > before);
}

#[test]
fn a_callers_writes_have_the_bounds_of_a_stage() {
    let write = |size: usize| UserWrite {
        space: Key::from("rows"),
        key: vec![1],
        value: Some(vec![7; size]),
    };
    let mut shell = Shell::empty(Epoch(1));
    let too_many = written(&mut shell, vec![write(1); 10_001]);
    assert_eq!(too_many, (Answer::Refused(Refusal::BatchTooLarge(10_001, 10_000)), 0));
    let limit: usize = 32 << 20;
    let too_large = written(&mut shell, vec![write(limit)]);
    assert_eq!(too_large, (Answer::Refused(Refusal::TooLarge(limit + 1, limit)), 0));

    assert_eq!(write_to(&mut shell, &Vec::from_iter(0..256)).0, Answer::Done);
    assert_eq!(write_to(&mut shell, &[255]), (Answer::Done, 1));
    let (answer, recorded) = write_to(&mut shell, &[256]);
    let is_full =
        matches!(&answer, Answer::Refused(Refusal::NotNow(NotNow::Full, text)) if text.contains("max_keyspaces"));
    assert!(is_full && recorded == 0, "{answer:?}");
}

#[test]
fn a_drain_refuses_a_callers_writes() {
    let mut shell = Shell::empty(Epoch(1));
    shell.feed(0, Event::DrainBegan);
    let (answer, recorded) = write_to(&mut shell, &[1]);
    let is_refused = matches!(answer, Answer::Refused(Refusal::NotNow(NotNow::Draining, _)));
    assert!(is_refused && recorded == 0, "{answer:?}");
}

fn left(writes: Vec<UserWrite>) -> Option<Box<StageEffects>> {
    StageEffects {
        writes,
        ..StageEffects::default()
    }
    .boxed()
}
