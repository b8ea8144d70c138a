//! Places of `JoinPolicy::Named` count the whole list that the stage gave, each once, and each names a child.

#![expect(clippy::expect_used, reason = "a test names what it expects, and fails on all else")]

use procession_kernel::{
    Birth, Blob, CauseKind, Epoch, Event, JoinPolicy, Kind, Members, ProcedureId, ProcedureState, Row, StageEnded,
    StageOutcome, Timestamp, WaitReason, check_rows,
};

use crate::shell::{KIND, ROOT, Shell};

fn birth(detached: bool) -> Birth {
    let (stage, payload) = (Blob::from(&b"first"[..]), Blob::from(&b"value"[..]));
    Birth {
        detached,
        ..Birth::new(Kind::from(KIND), 1, stage, payload)
    }
}

/// A root that has spawned these children, detached or not, with this policy.
fn spawned(detached: &[bool], places: &[u32]) -> Shell {
    let mut shell = Shell::new(birth(false));
    let outcome = StageOutcome::Spawn {
        births: detached.iter().map(|detached| birth(*detached)).collect(),
        join: JoinPolicy::Named(places.to_vec()),
        width: 0,
        then: Blob::from(&b"joined"[..]),
    };
    ended(&mut shell, ROOT, outcome);
    shell
}

fn ended(shell: &mut Shell, id: ProcedureId, outcome: StageOutcome) {
    let in_flight = shell
        .kernel
        .row(id)
        .and_then(|row| row.in_flight)
        .expect("its stage is out");
    let report = StageEnded::new(id, in_flight.run, Epoch(1), Timestamp(1), outcome);
    shell.feed(1, Event::StageEnded(Box::new(report)));
}

fn succeeds(shell: &mut Shell, member: u32) {
    ended(shell, ProcedureId::new(1, member), StageOutcome::Done(Blob::default()));
}

fn fails(shell: &mut Shell, member: u32) {
    ended(
        shell,
        ProcedureId::new(1, member),
        StageOutcome::Fail("boom".to_owned()),
    );
}

fn root(shell: &Shell) -> &Row {
    shell.kernel.row(ROOT).expect("the root lives")
}

/// Tells whether the root runs the stage behind its children.
fn goes_on(shell: &Shell) -> bool {
    root(shell).state == ProcedureState::Runnable && root(shell).in_flight.is_some()
}

#[test]
fn a_place_counts_detached_children_as_well() {
    // The list: a detached child, member 1, member 2; named is the child at place 1, which is member 1.
    let mut shell = spawned(&[true, false, false], &[1]);
    fails(&mut shell, 1);
    assert_eq!(root(&shell).state, ProcedureState::Failed, "the named child failed");

    let mut shell = spawned(&[true, false, false], &[1]);
    fails(&mut shell, 2);
    assert_eq!(
        root(&shell).wait,
        Some(WaitReason::Children),
        "the other one is not named"
    );
    succeeds(&mut shell, 1);
    assert!(goes_on(&shell));

    let mut shell = spawned(&[true, false], &[1]);
    succeeds(&mut shell, 1);
    assert!(goes_on(&shell));
}

#[test]
fn a_place_that_is_named_twice_counts_once() {
    let mut shell = spawned(&[false, false], &[0, 0, 1, 0]);
    succeeds(&mut shell, 1);
    assert_eq!(root(&shell).wait, Some(WaitReason::Children));
    succeeds(&mut shell, 2);
    assert!(goes_on(&shell));
}

#[test]
fn a_set_that_names_nobody_waits_for_nobody() {
    let shell = spawned(&[false, false], &[]);
    assert!(goes_on(&shell));
    assert_eq!(
        shell.kernel.families().get(&1).map(|family| family.members.len()),
        Some(3)
    );
}

#[test]
fn a_place_that_names_no_child_to_wait_for_fails_the_stage() {
    let refused = |detached: &[bool], places: &[u32]| {
        let shell = spawned(detached, places);
        let row = root(&shell);
        let members = shell.kernel.families().get(&1).map_or(0, |family| family.members.len());
        assert_eq!((row.state, members), (ProcedureState::Failed, 1));
        assert!(!shell.kernel.families().contains_key(&2), "no detached child was born");
        let cause = row.rare().cause.clone().expect("it failed");
        assert_eq!(cause.kind, CauseKind::OverBound);
        cause.text
    };
    let beyond = refused(&[false, false], &[0, 2]);
    assert!(beyond.contains("place 2") && beyond.contains("2 children"), "{beyond}");
    assert!(refused(&[], &[0]).contains("place 0"));
    let detached = refused(&[false, true], &[1]);
    assert!(
        detached.contains("place 1") && detached.contains("detached"),
        "{detached}"
    );
}

/// A family as an engine has left it whose places nobody had checked.
fn left_behind(places: &[u32]) -> Members {
    let shell = spawned(&[false, false], &[0]);
    let mut members = shell.kernel.families().get(&1).expect("it lives").members.clone();
    let root = members.first_mut().expect("there is a root");
    root.rounds
        .iter_mut()
        .for_each(|round| round.join = JoinPolicy::Named(places.to_vec()));
    members
}

/// Takes a family in that another engine left behind, at the next start.
fn started(members: Members) -> Shell {
    let mut shell = Shell::empty(Epoch(2));
    assert_eq!(check_rows(&members), Ok(()));
    assert_eq!(shell.kernel.take_in(1, members, &[]), Ok(()));
    shell.feed(2, Event::Recovered);
    shell
}

fn succeeds_later(shell: &mut Shell, member: u32) {
    let id = ProcedureId::new(1, member);
    let in_flight = shell
        .kernel
        .row(id)
        .and_then(|row| row.in_flight)
        .expect("its stage is out");
    let report = StageEnded::new(
        id,
        in_flight.run,
        Epoch(2),
        Timestamp(3),
        StageOutcome::Done(Blob::default()),
    );
    shell.feed(3, Event::StageEnded(Box::new(report)));
}

#[test]
fn a_stored_list_with_a_place_beyond_it_waits_for_all() {
    for places in [&[2][..], &[0, 7], &[u32::MAX]] {
        let mut shell = started(left_behind(places));
        succeeds_later(&mut shell, 1);
        assert_eq!(root(&shell).wait, Some(WaitReason::Children), "{places:?}");
        succeeds_later(&mut shell, 2);
        assert!(goes_on(&shell), "{places:?}");
    }
}

#[test]
fn a_parent_whose_children_had_all_ended_goes_on_at_the_start() {
    for places in [&[2][..], &[0, 0]] {
        let mut members = left_behind(places);
        for child in members.iter_mut().skip(1) {
            (child.state, child.in_flight) = (ProcedureState::Success, None);
            child.ended = Some(Timestamp(1));
        }
        let shell = started(members);
        assert!(goes_on(&shell), "{places:?}");
    }
}
