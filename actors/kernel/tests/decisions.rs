//! Events in, literal lists of records and effects out.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "the lists name what these events lead to, and show all else as it is"
)]

use procession_kernel::{
    Answer, Birth, Blob, Commit, Decision, DispatchEffect, Effect, Epoch, Event, Kernel, Kind, KindRules,
    LifecycleEffect, NAMED_MAX, NUMBER_MAX, PauseScope, ProcedureId, ProcedureState, Receipt, Record, Refusal,
    RequestEffect, RequestId, Rules, Seq, StageEnded, StageOutcome, StageTask, StoredTarget, Timestamp, Verb,
    WaitReason,
};

const NOW: Timestamp = Timestamp(1_000_000);

fn kernel() -> Kernel {
    kernel_of_version(1)
}

fn kernel_of_version(version: u16) -> Kernel {
    let rules = KindRules {
        oldest: 1,
        ..KindRules::new(version)
    };
    let rules = Rules {
        kinds: [(Kind::from("k"), rules)].into(),
        ..Rules::default()
    };
    Kernel::new(rules, Epoch(1), 0)
}

fn birth() -> Birth {
    let (stage, payload) = (Blob::from(&b"first"[..]), Blob::from(&b"value"[..]));
    Birth::new(Kind::from("k"), 1, stage, payload)
}

fn submit(births: usize) -> Event {
    Event::Submitted(RequestId(1), vec![birth().into(); births])
}

/// Applies a decision as if its commit were on disk at once.
fn settle(kernel: &mut Kernel, decision: Decision) -> Vec<Effect> {
    let mut commit = Commit::new();
    kernel.apply(decision, &mut commit);
    commit
        .release(&Receipt::new(Epoch(1), kernel.seq()))
        .unwrap_or_default()
}

fn ended(kernel: &Kernel, id: ProcedureId, outcome: StageOutcome) -> Event {
    let run = kernel
        .row(id)
        .and_then(|row| row.in_flight)
        .map_or(Seq(0), |in_flight| in_flight.run);
    Event::StageEnded(Box::new(StageEnded::new(id, run, Epoch(1), NOW, outcome)))
}

/// Applies a decision, and names its records and effects, so that a list of them can be written down.
fn names(kernel: &mut Kernel, decision: Decision) -> (Vec<String>, Vec<&'static str>) {
    let record = |record: &Record| match record {
        Record::Row(row) => format!("row {} {}", row.id, row.state),
        Record::Payload(id, _) => format!("payload {id}"),
        Record::Output(id, _) => format!("output {id}"),
        Record::History(entry) => format!("history {} {:?}", entry.number, entry.ending),
        Record::FamilyBegan(family) => format!("began {family}"),
        Record::FamilyEnded(family, _) => format!("ended {family}"),
        Record::FamiliesReserved(_) => "reserved".to_owned(),
        Record::StackAsked(id) => format!("asked {id}"),
        Record::StackHeld(id, stack, _) => format!("held {id}: {}", stack.len()),
        Record::UndoOut(id, out) => format!("undo of {id} is out: {out}"),
        Record::Late(id) => format!("late {id}"),
        other => format!("{other:?}"),
    };
    let effect = |effect: &Effect| match effect {
        Effect::Requests(RequestEffect::Reply(..)) => "reply",
        Effect::Dispatch(DispatchEffect::Call(call)) => match call.task {
            StageTask::Execute { .. } => "execute",
            StageTask::Undo { .. } => "undo",
            StageTask::Join(_) => "join",
            StageTask::Gate => "gate",
            StageTask::CleanUp => "clean up",
        },
        Effect::Dispatch(DispatchEffect::LoadStack(_)) => "load stack",
        Effect::Dispatch(DispatchEffect::Stop(_)) => "stop",
        Effect::Lifecycle(LifecycleEffect::ArmTimer) => "arm",
        Effect::Requests(RequestEffect::Ended(_)) => "ended",
        _ => "other",
    };
    let records = decision.records().iter().map(record).collect();
    (records, settle(kernel, decision).iter().map(effect).collect())
}

#[test]
fn a_submission_is_one_commit_that_sets_the_first_stage_going() {
    let mut kernel = kernel();
    let decision = kernel.decide(NOW, submit(1));
    let (records, effects) = names(&mut kernel, decision);
    assert_eq!(records, ["began 1", "payload 1.0", "reserved", "row 1.0 Runnable"]);
    assert_eq!(effects, ["execute", "reply"]);
}

#[test]
fn next_writes_the_entry_and_the_row_and_nothing_else() {
    let mut kernel = kernel();
    let decision = kernel.decide(NOW, submit(1));
    settle(&mut kernel, decision);
    let next = ended(&kernel, ProcedureId::root(1), StageOutcome::Next(Blob::default()));
    let decision = kernel.decide(NOW, next);
    let (records, effects) = names(&mut kernel, decision);
    assert_eq!(records, ["history 1 Next", "row 1.0 Runnable"]);
    assert_eq!(effects, ["execute"]);
}

#[test]
fn an_upgraded_value_is_stored_whatever_the_stage_says() {
    let mut kernel = kernel_of_version(2);
    let decision = kernel.decide(NOW, submit(1));
    settle(&mut kernel, decision);
    let id = ProcedureId::root(1);
    assert_eq!(kernel.row(id).map(|row| row.version), Some(1));
    let report = |outcome, payload: Option<&[u8]>| {
        let Event::StageEnded(mut report) = ended(&kernel, id, outcome) else {
            return Event::Recovered;
        };
        report.payload = payload.map(Blob::from);
        report.upgraded = Some(Blob::from(&b"upgraded"[..]));
        Event::StageEnded(report)
    };
    let stored = |decision: &Decision| {
        let records = decision.records().iter();
        let parts = records.filter_map(|record| match record {
            Record::Payload(_, value) => Some(String::from_utf8_lossy(value.as_slice()).into_owned()),
            Record::Row(row) => Some(format!("version {}", row.version)),
            _ => None,
        });
        parts.collect::<Vec<_>>()
    };
    let retry = || StageOutcome::Retry("not yet".to_owned());
    let cases = [
        (report(StageOutcome::Next(Blob::default()), None), "upgraded"),
        (report(StageOutcome::Next(Blob::default()), Some(b"newer")), "newer"),
        (report(retry(), None), "upgraded"),
        (report(retry(), Some(b"half done")), "upgraded"),
        (report(StageOutcome::Fail("boom".to_owned()), None), "upgraded"),
    ];
    for (event, value) in cases {
        assert_eq!(stored(&kernel.decide(NOW, event)), [value, "version 2"]);
    }
    let yielded = kernel.decide(NOW, report(StageOutcome::Yield, None));
    assert_eq!(stored(&yielded), Vec::<String>::new());
}

#[test]
fn done_ends_the_family_in_the_same_commit() {
    let mut kernel = kernel();
    let decision = kernel.decide(NOW, submit(1));
    settle(&mut kernel, decision);
    let done = ended(&kernel, ProcedureId::root(1), StageOutcome::Done(Blob::default()));
    let decision = kernel.decide(NOW, done);
    let (records, effects) = names(&mut kernel, decision);
    assert_eq!(records, ["history 1 Done", "output 1.0", "row 1.0 Success", "ended 1"]);
    assert_eq!(effects, ["stop", "ended"]);
    assert!(kernel.families().is_empty());
}

#[test]
fn a_failure_asks_for_the_stack_and_undoes_nothing_yet() {
    let mut kernel = kernel();
    let decision = kernel.decide(NOW, submit(1));
    settle(&mut kernel, decision);
    let next = ended(
        &kernel,
        ProcedureId::root(1),
        StageOutcome::Next(Blob::from(&b"second"[..])),
    );
    let decision = kernel.decide(NOW, next);
    settle(&mut kernel, decision);
    let fail = ended(&kernel, ProcedureId::root(1), StageOutcome::Fail("boom".to_owned()));
    let decision = kernel.decide(NOW, fail);
    let (records, effects) = names(&mut kernel, decision);
    assert_eq!(records, ["history 2 Fail", "row 1.0 Failed", "asked 1.0"]);
    assert_eq!(effects, ["load stack"]);
    let cause = kernel
        .row(ProcedureId::root(1))
        .and_then(|row| row.rare().cause.clone());
    assert_eq!(cause.map(|cause| cause.text).as_deref(), Some("boom"));
}

#[test]
fn the_failure_of_a_first_stage_sends_its_undo() {
    let mut kernel = kernel();
    let decision = kernel.decide(NOW, submit(1));
    settle(&mut kernel, decision);
    let fail = ended(&kernel, ProcedureId::root(1), StageOutcome::Fail("boom".to_owned()));
    let decision = kernel.decide(NOW, fail);
    let (records, effects) = names(&mut kernel, decision);
    assert_eq!(
        records,
        [
            "history 1 Fail",
            "row 1.0 Failed",
            "held 1.0: 1",
            "undo of 1.0 is out: true"
        ]
    );
    assert_eq!(effects, ["undo"]);
}

#[test]
fn a_retry_parks_until_its_backoff_is_over() {
    let mut kernel = kernel();
    let decision = kernel.decide(NOW, submit(1));
    settle(&mut kernel, decision);
    let retry = ended(&kernel, ProcedureId::root(1), StageOutcome::Retry("not yet".to_owned()));
    let decision = kernel.decide(NOW, retry);
    settle(&mut kernel, decision);
    let until = Timestamp(2_000_000);
    let row = kernel.row(ProcedureId::root(1));
    assert_eq!(
        row.map(|row| (row.state, row.wait.clone())),
        Some((ProcedureState::WaitingTimeout, Some(WaitReason::Backoff(1, until))))
    );
    assert_eq!(kernel.next_deadline(), Some(until));
    assert_eq!(kernel.due(Timestamp(1_999_999)), None);
    assert_eq!(kernel.due(until), Some(ProcedureId::root(1)));
}

#[test]
fn effects_do_not_leave_without_their_receipt() {
    let mut kernel = kernel();
    let decision = kernel.decide(NOW, submit(1));
    let mut commit = Commit::new();
    kernel.apply(decision, &mut commit);
    let kept = commit.release(&Receipt::new(Epoch(1), Seq(0)));
    assert!(kept.is_err(), "a receipt for an older commit released effects");
    let released = kept
        .err()
        .and_then(|commit| commit.release(&Receipt::new(Epoch(1), Seq(1))).ok());
    assert_eq!(released.map(|effects| effects.len()), Some(2));
}

#[test]
fn a_refusal_leaves_nothing_and_waits_for_what_it_rests_on() {
    let mut kernel = kernel();
    let mut unknown = birth();
    unknown.kind = Kind::from("stranger");
    let decision = kernel.decide(NOW, submit(1));
    let mut held = Commit::new();
    kernel.apply(decision, &mut held);
    let decision = kernel.decide(NOW, Event::Submitted(RequestId(2), vec![unknown.into()]));
    assert!(!decision.is_commit());
    let mut refusal = Commit::new();
    kernel.apply(decision, &mut refusal);
    assert_eq!(refusal.seq(), Seq(1), "the refusal rests on the submission before it");
    let released = refusal.release(&Receipt::new(Epoch(1), Seq(1))).ok();
    assert!(matches!(
        released.as_deref(),
        Some([Effect::Requests(RequestEffect::Reply(RequestId(2), Answer::Refused(_)))])
    ));
}

#[test]
fn near_the_last_number_nothing_new_is_taken_and_what_runs_goes_on() {
    let mut kernel = kernel();
    let decision = kernel.decide(NOW, submit(1));
    settle(&mut kernel, decision);
    let last = NUMBER_MAX - (1 << 32);
    kernel.continue_from(last);
    let decision = kernel.decide(NOW, submit(1));
    let effects = settle(&mut kernel, decision);
    assert!(kernel.row(ProcedureId::root(last)).is_some(), "{effects:?}");
    let decision = kernel.decide(NOW, submit(1));
    assert!(decision.records().is_empty());
    let refused = Effect::Requests(RequestEffect::Reply(
        RequestId(1),
        Answer::Refused(Refusal::NumbersExhausted),
    ));
    assert_eq!(settle(&mut kernel, decision), [refused]);
    let pause = Event::Requested(
        RequestId(2),
        Box::new(Verb::Pause(PauseScope::All)),
        Box::default(),
        StoredTarget::None,
    );
    let decision = kernel.decide(NOW, pause);
    assert!(decision.records().is_empty());
    let refused = Effect::Requests(RequestEffect::Reply(
        RequestId(2),
        Answer::Refused(Refusal::NumbersExhausted),
    ));
    assert_eq!(settle(&mut kernel, decision), [refused]);
    let done = ended(&kernel, ProcedureId::root(1), StageOutcome::Done(Blob::default()));
    let decision = kernel.decide(NOW, done);
    let names = names(&mut kernel, decision).0;
    assert!(names.contains(&"ended 1".to_owned()), "{names:?}");
}

#[test]
fn a_number_above_those_given_is_believed_up_to_a_bound_alone() {
    let mut kernel = kernel();
    let refusal = |kernel: &mut Kernel, family: u64, seq: u64| {
        let mut row = kernel.row(ProcedureId::root(1)).cloned().expect("it lives");
        (row.id, row.revision) = (ProcedureId::root(family), Seq(seq));
        let mut trial = kernel.clone();
        let taken = trial.take_in(family, vec![Box::new(row)], &[]);
        assert_eq!(taken.is_ok(), trial.row(ProcedureId::root(family)).is_some());
        taken.err().map(|rejected| (rejected.why, rejected.rows.len()))
    };
    let (no_number, no_commit) = (
        "no engine assigned this family number",
        "no engine made the commit that it names",
    );
    let is = |refused: Option<(String, usize)>, why: &str| {
        refused.is_some_and(|(said, rows)| said.contains(why) && rows == 1)
    };
    let decision = kernel.decide(NOW, submit(1));
    settle(&mut kernel, decision);
    assert_eq!(refusal(&mut kernel, NAMED_MAX, NAMED_MAX), None);
    assert!(is(refusal(&mut kernel, NAMED_MAX + 1, 1), no_number));
    assert!(is(refusal(&mut kernel, 2, NAMED_MAX + 1), no_commit));
    kernel.continue_from(NAMED_MAX + 2);
    kernel.continue_after(Seq(NAMED_MAX + 1));
    assert_eq!(refusal(&mut kernel, NAMED_MAX + 1, NAMED_MAX + 1), None);
    assert!(is(refusal(&mut kernel, NAMED_MAX + 2, 1), no_number));
    assert!(is(refusal(&mut kernel, 2, NAMED_MAX + 2), no_commit));
}

#[test]
fn a_family_that_cannot_be_is_given_back_and_leaves_nothing_but_its_number() {
    let mut kernel = kernel();
    let decision = kernel.decide(NOW, submit(1));
    settle(&mut kernel, decision);
    let mut row = kernel.row(ProcedureId::root(1)).cloned().expect("it lives");
    row.id = ProcedureId::root(7);
    let mut without = kernel.clone();
    assert!(kernel.clone().take_in(7, vec![Box::new(row.clone())], &[]).is_ok());
    row.in_flight = None;
    let rejected = kernel.take_in(7, vec![Box::new(row.clone())], &[]).err();
    let rejected = rejected.expect("nothing will ever move it");
    assert_eq!(rejected.why, "member 0: nothing will ever move it");
    assert_eq!(rejected.rows, [Box::new(row)]);
    assert_eq!(without.pass_over(7), Ok(()));
    assert_eq!(kernel, without);
}
