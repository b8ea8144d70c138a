//! Questions to a person: asked, answered once, given up, and what becomes of a place in the width meanwhile.

#![expect(clippy::expect_used, reason = "a test names what it expects")]

use std::time::Duration;

use procession_kernel::{
    Answer, Birth, Blob, BypassAs, BypassScope, Effect, Ending, Epoch, Event, EventName, JoinPolicy, Kernel, Kind,
    OperatorRequest, ProcedureId, ProcedureState, Refusal, RequestEffect, RequestId, Row, SentSignal, StageEffects,
    StageEnded, StageOutcome, StageTask, StoredTarget, Timestamp, Verb, WaitReason, Wake, check_rows,
};

use crate::shell::{KIND, ROOT, Shell};

const SECOND: u64 = 1_000_000;

fn stage() -> Blob {
    Blob::from(&b"then"[..])
}

fn birth() -> Birth {
    Birth::new(
        Kind::from(KIND),
        1,
        Blob::from(&b"first"[..]),
        Blob::from(&b"value"[..]),
    )
}

fn asks(timeout: Option<u64>) -> StageOutcome {
    StageOutcome::Ask("drop t?".to_owned(), timeout.map(Duration::from_secs), stage())
}

fn row(shell: &Shell, id: ProcedureId) -> &Row {
    shell.kernel.row(id).expect("it lives")
}

fn report(shell: &Shell, id: ProcedureId, outcome: StageOutcome) -> StageEnded {
    let run = row(shell, id).in_flight.expect("its stage is out").run;
    StageEnded::new(id, run, shell.kernel.epoch(), Timestamp(0), outcome)
}

fn end(shell: &mut Shell, id: ProcedureId, outcome: StageOutcome) -> Vec<Effect> {
    let report = report(shell, id, outcome);
    shell.feed(0, Event::StageEnded(Box::new(report)))
}

/// Sends a request; returns the refusal, if it is refused.
fn request(shell: &mut Shell, at: u64, verb: Verb) -> Option<Refusal> {
    let by = Box::new(OperatorRequest::new("ann", "so it is"));
    let event = Event::Requested(RequestId(9), Box::new(verb), by, StoredTarget::None);
    let effects = shell.feed(at, event);
    effects.into_iter().find_map(|effect| {
        if let Effect::Requests(RequestEffect::Reply(_, Answer::Refused(refusal))) = effect {
            Some(refusal)
        } else {
            None
        }
    })
}

fn decide(id: ProcedureId, answer: &[u8]) -> Verb {
    Verb::Decide(id, Blob::from(answer))
}

/// What woke the stage that is out.
fn woken(shell: &Shell, id: ProcedureId) -> Option<Wake> {
    let calls = shell.kernel.calls_of(id);
    calls.into_iter().find_map(|call| {
        if let StageTask::Execute { wake, .. } = call.task {
            wake
        } else {
            None
        }
    })
}

fn asking() -> Shell {
    let mut shell = Shell::new(birth());
    end(&mut shell, ROOT, asks(None));
    shell
}

#[test]
fn f_009_the_question_is_in_the_row_and_in_the_history() {
    let shell = asking();
    let row = row(&shell, ROOT);
    let question = row.wait.as_ref().and_then(WaitReason::question).expect("it asks");
    assert_eq!((question.text.as_str(), question.until), ("drop t?", None));
    assert_eq!((row.state, row.visit, row.standing), (ProcedureState::Runnable, 1, 1));
    let entry = shell.history.last().expect("the stage has an entry");
    assert_eq!((entry.ending, entry.error.as_deref()), (Ending::Asked, Some("drop t?")));
    assert_eq!(shell.kernel.families().frozen(), 1, "who only asks is frozen");
    assert_eq!(
        shell.kernel.asking().iter().map(|(_, id)| *id).collect::<Vec<_>>(),
        [ROOT]
    );
}

#[test]
fn f_009_an_answer_wakes_it_once_and_a_second_is_refused() {
    let mut shell = asking();
    assert_eq!(request(&mut shell, 1, decide(ROOT, b"yes")), None);
    assert_eq!(woken(&shell, ROOT), Some(Wake::Decision(Some(Blob::from(&b"yes"[..])))));
    assert!(shell.kernel.asking().is_empty());
    let refused = request(&mut shell, 1, decide(ROOT, b"no"));
    assert!(
        matches!(&refused, Some(Refusal::NotNow(_, why)) if why.contains("asks no question")),
        "{refused:?}"
    );
    // What it was told goes with the stage.
    end(&mut shell, ROOT, StageOutcome::Next(stage()));
    assert_eq!(woken(&shell, ROOT), None);
}

#[test]
fn f_009_neither_a_signal_nor_a_broadcast_is_an_answer() {
    let mut shell = asking();
    let signal = SentSignal {
        to: ROOT,
        name: EventName::from("decision"),
        payload: stage(),
        key: None,
        last: false,
    };
    shell.feed(1, Event::Signalled(RequestId(3), vec![signal]));
    shell.feed(
        1,
        Event::Broadcast {
            request: RequestId(4),
            name: EventName::from("decision"),
            payload: stage(),
            key: None,
        },
    );
    assert!(matches!(row(&shell, ROOT).wait, Some(WaitReason::Decision(_))));
}

#[test]
fn f_009_a_retry_lets_it_go_on_without_an_answer_and_time_says_so() {
    let mut shell = asking();
    assert_eq!(request(&mut shell, 1, Verb::RetryNow(ROOT)), None);
    assert!(row(&shell, ROOT).in_flight.is_some());
    assert_eq!(woken(&shell, ROOT), None);

    let mut shell = Shell::new(birth());
    end(&mut shell, ROOT, asks(Some(3_600)));
    assert_eq!(shell.kernel.next_deadline(), Some(Timestamp(3_600 * SECOND)));
    shell.feed(3_600 * SECOND, Event::TimerDue(ROOT));
    assert_eq!(woken(&shell, ROOT), Some(Wake::Decision(None)));
}

#[test]
fn f_009_an_answer_that_is_too_large_leaves_the_question() {
    let mut shell = asking();
    let refused = request(&mut shell, 1, Verb::Decide(ROOT, Blob::from(vec![0; (64 << 10) + 1])));
    assert_eq!(refused, Some(Refusal::TooLarge(65_537, 65_536)));
    assert_eq!(shell.kernel.asking().len(), 1);
}

#[test]
fn the_question_is_cut() {
    let mut shell = Shell::new(birth());
    end(&mut shell, ROOT, StageOutcome::Ask("?".repeat(3_000), None, stage()));
    let wait = row(&shell, ROOT).wait.clone().expect("it asks");
    assert!(wait.question().expect("it asks").text.len() <= 2_048 + 3);
}

#[test]
fn added_children_are_refused() {
    let mut shell = Shell::new(birth());
    let with_child = StageEnded {
        effects: StageEffects {
            children: vec![birth()],
            ..StageEffects::default()
        }
        .boxed(),
        ..report(&shell, ROOT, asks(None))
    };
    shell.feed(0, Event::StageEnded(Box::new(with_child)));
    let cause = row(&shell, ROOT).rare().cause.clone().expect("it has failed");
    assert!(cause.text.contains("return Next, Spawn or Done"), "{}", cause.text);
}

#[test]
fn an_abort_ends_the_question() {
    let mut shell = asking();
    assert_eq!(request(&mut shell, 1, Verb::Abort(ROOT)), None);
    assert!(shell.kernel.asking().is_empty());
    assert!(matches!(
        request(&mut shell, 2, decide(ROOT, b"yes")),
        Some(Refusal::NotNow(..))
    ));
}

#[test]
fn a_bypass_ends_the_question() {
    let mut shell = asking();
    let bypass = Verb::Bypass(ROOT, BypassScope::Alone, BypassAs::Success);
    assert_eq!(request(&mut shell, 1, bypass), None);
    assert!(shell.kernel.asking().is_empty());
    assert_eq!(
        request(&mut shell, 2, decide(ROOT, b"yes")),
        Some(Refusal::NotLive(ROOT))
    );
}

/// A parent of children with this width. The first child asks.
fn parent(children: usize, width: u32, keep_places: bool) -> Shell {
    let mut shell = Shell::new(birth());
    let spawn = StageOutcome::Spawn {
        births: vec![birth(); children],
        join: JoinPolicy::AllFinished,
        width,
        then: stage(),
    };
    let spawn = StageEnded {
        keep_places,
        ..report(&shell, ROOT, spawn)
    };
    shell.feed(0, Event::StageEnded(Box::new(spawn)));
    end(&mut shell, child(1), asks(None));
    shell
}

const fn child(number: u32) -> ProcedureId {
    ProcedureId::new(1, number)
}

fn runs(shell: &Shell, number: u32) -> bool {
    row(shell, child(number)).in_flight.is_some()
}

fn checked(shell: &Shell) {
    shell.kernel.validate().expect("its counts are those of its rows");
    for (_, family) in shell.kernel.families() {
        assert_eq!(check_rows(&family.members), Ok(()));
    }
}

/// The next engine, from the rows alone.
fn restarted(before: &Shell) -> Shell {
    let mut next = Shell {
        told: Vec::new(),
        early: Vec::new(),
        kernel: Kernel::new(before.kernel.rules().clone(), Epoch(2), 0),
        history: Vec::new(),
    };
    for (number, family) in before.kernel.families() {
        assert_eq!(next.kernel.take_in(number, family.members.clone(), &[]), Ok(()));
    }
    next.feed(0, Event::Recovered);
    next
}

#[test]
fn f_010_a_sibling_takes_its_place_and_it_waits_for_another() {
    for restarts in [false, true] {
        let mut shell = parent(3, 1, false);
        assert!(
            runs(&shell, 2) && !runs(&shell, 3),
            "one sibling begins in the commit of the question"
        );
        checked(&shell);
        end(&mut shell, child(2), StageOutcome::Done(stage()));
        assert!(runs(&shell, 3));
        if restarts {
            shell = restarted(&shell);
        }
        assert_eq!(request(&mut shell, 1, decide(child(1), b"yes")), None);
        assert_eq!(row(&shell, child(1)).wait, Some(WaitReason::Width));
        checked(&shell);
        if restarts {
            shell = restarted(&shell);
        }
        end(&mut shell, child(3), StageOutcome::Done(stage()));
        assert!(runs(&shell, 1), "it goes on in the commit of the end before it");
        assert_eq!(
            woken(&shell, child(1)),
            Some(Wake::Decision(Some(Blob::from(&b"yes"[..]))))
        );
        end(&mut shell, child(1), StageOutcome::Done(stage()));
        assert!(row(&shell, ROOT).in_flight.is_some());
        checked(&shell);
    }
}

#[test]
fn f_010_a_free_place_is_taken_at_once() {
    let mut shell = parent(2, 1, false);
    end(&mut shell, child(2), StageOutcome::Done(stage()));
    assert_eq!(request(&mut shell, 1, decide(child(1), b"yes")), None);
    assert!(runs(&shell, 1));
    checked(&shell);
}

#[test]
fn f_010_an_abort_of_the_parent_ends_the_question_and_the_answer_is_refused() {
    let mut shell = parent(2, 0, false);
    end(&mut shell, child(2), StageOutcome::Done(stage()));
    assert_eq!(request(&mut shell, 1, Verb::Abort(ROOT)), None);
    let refused = request(&mut shell, 1, decide(child(1), b"yes"));
    assert!(
        matches!(&refused, Some(Refusal::NotNow(_, why)) if why.contains("fails")),
        "{refused:?}"
    );
}

#[test]
fn g_072_who_asks_keeps_its_place_if_its_list_says_so() {
    for restarts in [false, true] {
        let mut shell = parent(5, 2, true);
        end(&mut shell, child(2), asks(None));
        if restarts {
            shell = restarted(&shell);
        }
        assert!(!runs(&shell, 3), "both places are kept");
        checked(&shell);
        assert_eq!(request(&mut shell, 1, decide(child(1), b"yes")), None);
        assert!(runs(&shell, 1) && !runs(&shell, 3));
        end(&mut shell, child(1), StageOutcome::Done(stage()));
        assert!(runs(&shell, 3) && !runs(&shell, 4));
        checked(&shell);
    }
    let mut shell = parent(5, 2, false);
    end(&mut shell, child(2), asks(None));
    assert!(runs(&shell, 3) && runs(&shell, 4) && !runs(&shell, 5));
    end(&mut shell, child(3), StageOutcome::Done(stage()));
    assert!(runs(&shell, 5));
    checked(&shell);
}
