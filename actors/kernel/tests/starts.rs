//! A start calls each stage that is out once.

#![expect(clippy::expect_used, reason = "a test names what it expects, and fails on all else")]

use procession_kernel::{
    Birth, Blob, Effect, Epoch, Event, JoinPolicy, Kernel, Kind, ProcedureId, StageEnded, StageOutcome, Timestamp,
};

use crate::shell::{KIND, ROOT, Shell};

fn birth() -> Birth {
    Birth::new(Kind::from(KIND), 1, Blob::default(), Blob::default())
}

fn ended(shell: &mut Shell, id: ProcedureId, outcome: StageOutcome) {
    let in_flight = shell.kernel.row(id).and_then(|row| row.in_flight);
    let run = in_flight.expect("its stage is out").run;
    let report = StageEnded::new(id, run, Epoch(1), Timestamp(1), outcome);
    shell.feed(1, Event::StageEnded(Box::new(report)));
}

/// A root that waits for a child, which rolls back.
fn rolling_back() -> Shell {
    let mut shell = Shell::new(birth());
    let spawn = StageOutcome::Spawn {
        births: vec![birth()],
        join: JoinPolicy::AllFinished,
        width: 0,
        then: Blob::default(),
    };
    ended(&mut shell, ROOT, spawn);
    ended(
        &mut shell,
        ProcedureId::new(1, 1),
        StageOutcome::Fail("boom".to_owned()),
    );
    shell
}

#[test]
fn a_parent_that_goes_on_because_nothing_can_be_undone_any_more_is_called_once() {
    let before = rolling_back();
    let mut rules = before.kernel.rules().clone();
    let kind = rules.kinds.get_mut(&Kind::from(KIND)).expect("it is registered");
    kind.rollback = false;
    let mut next = Shell {
        kernel: Kernel::new(rules, Epoch(2), 0),
        ..Shell::empty(Epoch(2))
    };
    let family = before.kernel.families().get(&1).expect("it lives");
    assert_eq!(next.kernel.take_in(1, family.members.clone(), &[]), Ok(()));
    let effects = next.feed(2, Event::Recovered);
    let calls = effects.iter().filter_map(Effect::call).filter(|call| call.id == ROOT);
    assert_eq!(calls.count(), 1, "{effects:?}");
}
