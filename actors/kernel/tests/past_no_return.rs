//! Past the point of no return a failed stage runs again, and each of its attempts is told of the same wake.

#![expect(clippy::expect_used, reason = "a test names what it expects")]

use procession_kernel::{
    Birth, Blob, Event, EventName, JoinPolicy, Kind, OperatorRequest, ProcedureId, RequestId, Row, SentSignal,
    StageEnded, StageOutcome, StageTask, StoredTarget, Timestamp, Verb, WaitReason, Wake,
};

use crate::shell::{KIND, ROOT, Shell};

const CHILD: ProcedureId = ProcedureId::new(1, 1);

fn stage() -> Blob {
    Blob::from(&b"then"[..])
}

fn birth() -> Birth {
    Birth::new(Kind::from(KIND), 1, stage(), Blob::default())
}

/// A root whose first stage is its point of no return, and ends with this.
fn passed(outcome: StageOutcome) -> Shell {
    let mut birth = birth();
    birth.next_needs.next_is_no_return = Some("the bridge".to_owned());
    let mut shell = Shell::new(birth);
    end(&mut shell, ROOT, outcome);
    shell
}

fn row(shell: &Shell) -> &Row {
    shell.kernel.row(ROOT).expect("it lives")
}

fn end(shell: &mut Shell, id: ProcedureId, outcome: StageOutcome) {
    let in_flight = shell.kernel.row(id).and_then(|row| row.in_flight);
    let run = in_flight.expect("its stage is out").run;
    let report = StageEnded::new(id, run, shell.kernel.epoch(), Timestamp(0), outcome);
    shell.feed(0, Event::StageEnded(Box::new(report)));
}

/// What woke the stage that is out.
fn woken(shell: &Shell) -> Option<Wake> {
    let calls = shell.kernel.calls_of(ROOT);
    calls.into_iter().find_map(|call| {
        if let StageTask::Execute { wake, .. } = call.task {
            wake
        } else {
            None
        }
    })
}

fn signals(shell: &Shell) -> usize {
    let family = shell.kernel.families().get(&1).expect("it lives");
    family.signals.waiting(ROOT.member)
}

fn by_signal() -> Shell {
    let name = EventName::from("go");
    let mut shell = passed(StageOutcome::Wait(name.clone(), None, stage()));
    let signal = SentSignal {
        to: ROOT,
        name,
        payload: stage(),
        key: None,
        last: false,
    };
    shell.feed(0, Event::Signalled(RequestId(3), vec![signal]));
    shell
}

fn by_answer() -> Shell {
    let mut shell = passed(StageOutcome::Ask("drop t?".to_owned(), None, stage()));
    let decide = Box::new(Verb::Decide(ROOT, Blob::from(&b"yes"[..])));
    let by = Box::new(OperatorRequest::new("ann", "so it is"));
    shell.feed(0, Event::Requested(RequestId(3), decide, by, StoredTarget::None));
    shell
}

fn by_children() -> Shell {
    let mut shell = passed(StageOutcome::Spawn {
        births: vec![birth()],
        join: JoinPolicy::AllFinished,
        width: 0,
        then: stage(),
    });
    end(&mut shell, CHILD, StageOutcome::Done(stage()));
    shell
}

/// Ways to fail: decided on, for good, and refused by the kernel.
fn failures() -> [StageOutcome; 3] {
    let refused = StageOutcome::Spawn {
        births: Vec::new(),
        join: JoinPolicy::Named(vec![7]),
        width: 0,
        then: stage(),
    };
    let failed = "boom".to_owned();
    [
        StageOutcome::GiveUp(failed.clone()),
        StageOutcome::Fail(failed),
        refused,
    ]
}

#[test]
fn each_attempt_is_told_of_the_same_wake() {
    for (begin, kept) in [(by_signal as fn() -> Shell, 1), (by_answer, 0), (by_children, 0)] {
        let mut shell = begin();
        let wake = woken(&shell);
        assert!(wake.is_some(), "it was woken");
        for outcome in failures() {
            end(&mut shell, ROOT, outcome.clone());
            let wait = row(&shell).wait.clone();
            let until = wait.as_ref().and_then(WaitReason::deadline).expect("it backs off");
            shell.feed(until.0, Event::TimerDue(ROOT));
            assert_eq!((woken(&shell), signals(&shell)), (wake.clone(), kept), "{outcome:?}");
        }
        end(&mut shell, ROOT, StageOutcome::Next(stage()));
        assert_eq!((woken(&shell), signals(&shell)), (None, 0), "{wake:?}");
    }
}
