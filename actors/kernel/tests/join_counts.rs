//! A join policy that asks for more successes than its list has children is refused; a stored one fails with a cause.

#![expect(clippy::expect_used, reason = "a test names what it expects, and fails on all else")]

use procession_kernel::{
    Answer, Birth, Blob, Brood, CauseKind, Effect, Epoch, Event, JoinPolicy, Kind, ProcedureId, ProcedureState,
    Refusal, RequestEffect, RequestId, Row, StageEffects, StageEnded, StageOutcome, Timestamp, WaitReason,
};

use crate::shell::{KIND, ROOT, Shell};

fn birth() -> Birth {
    Birth::new(Kind::from(KIND), 1, Blob::from(&b"first"[..]), Blob::default())
}

fn detached() -> Birth {
    Birth {
        detached: true,
        ..birth()
    }
}

fn report(shell: &Shell, id: ProcedureId, outcome: StageOutcome) -> StageEnded {
    let in_flight = shell.kernel.row(id).and_then(|row| row.in_flight);
    let run = in_flight.expect("its stage is out").run;
    StageEnded::new(id, run, shell.kernel.epoch(), Timestamp(1), outcome)
}

/// A root that spawns these children, and adds others, and waits for this many successes.
fn spawned(births: Vec<Birth>, added: Vec<Birth>, least: u32) -> Shell {
    let mut shell = Shell::new(birth());
    let spawn = StageOutcome::Spawn {
        births,
        join: JoinPolicy::AtLeast(least),
        width: 0,
        then: Blob::from(&b"joined"[..]),
    };
    let spawn = StageEnded {
        effects: StageEffects {
            children: added,
            ..StageEffects::default()
        }
        .boxed(),
        ..report(&shell, ROOT, spawn)
    };
    shell.feed(1, Event::StageEnded(Box::new(spawn)));
    shell
}

fn root(shell: &Shell) -> &Row {
    shell.kernel.row(ROOT).expect("the root lives")
}

#[test]
fn more_successes_than_children_fail_the_stage() {
    for births in [vec![birth(), birth()], vec![detached(), birth(), birth()]] {
        let shell = spawned(births, Vec::new(), 3);
        let cause = root(&shell).rare().cause.clone().expect("it failed");
        assert_eq!(cause.kind, CauseKind::OverBound);
        assert!(
            cause.text.contains("AtLeast(3)") && cause.text.contains("2 children"),
            "{}",
            cause.text
        );
        assert_eq!(shell.kernel.families().iter().count(), 1, "no detached child was born");
    }
}

#[test]
fn children_that_were_added_count() {
    let shell = spawned(vec![birth(), birth()], vec![birth()], 3);
    assert_eq!(root(&shell).wait, Some(WaitReason::Children));
}

#[test]
fn an_empty_list_is_the_next_stage_whatever_its_policy_says() {
    for births in [Vec::new(), vec![detached()]] {
        let shell = spawned(births, Vec::new(), 1);
        assert!(root(&shell).in_flight.is_some() && root(&shell).visit == 1);
    }
}

#[test]
fn a_submission_with_such_a_list_is_refused() {
    let brood = Brood {
        children: vec![birth(), birth()],
        join: JoinPolicy::AtLeast(3),
        ..Brood::default()
    };
    let birth = Birth {
        brood: Some(Box::new(brood)),
        ..birth()
    };
    let mut shell = Shell::empty(Epoch(1));
    let effects = shell.feed(0, Event::Submitted(RequestId(7), vec![birth.into()]));
    let is_refused = |effect: &Effect| {
        matches!(effect, Effect::Requests(RequestEffect::Reply(_, Answer::Refused(Refusal::BadChildren(why))))
            if why.contains("AtLeast(3)"))
    };
    assert!(effects.iter().any(is_refused), "{effects:?}");
}

/// Earlier engines did not look.
#[test]
fn a_stored_list_of_that_kind_fails_its_parent_with_a_cause() {
    let before = spawned(vec![birth(), birth()], Vec::new(), 2);
    let mut members = before.kernel.families().get(&1).expect("it lives").members.clone();
    let stored = members.first_mut().expect("there is a root");
    stored
        .rounds
        .iter_mut()
        .for_each(|round| round.join = JoinPolicy::AtLeast(3));
    let mut shell = Shell::empty(Epoch(2));
    assert_eq!(shell.kernel.take_in(1, members, &[]), Ok(()));
    shell.feed(2, Event::Recovered);
    let done = report(&shell, ProcedureId::new(1, 1), StageOutcome::Done(Blob::default()));
    shell.feed(3, Event::StageEnded(Box::new(done)));
    let row = root(&shell);
    assert_eq!(row.state, ProcedureState::Failed);
    let cause = row.rare().cause.clone().expect("it says why");
    assert_eq!((cause.kind, cause.origin), (CauseKind::JoinUnmet, ROOT));
}
