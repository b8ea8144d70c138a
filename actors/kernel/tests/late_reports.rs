//! A report counts once: the same again, an older attempt's and an older
//! epoch's change nothing but a count.

use procession_kernel::{
    Birth, Blob, Commit, Effect, Epoch, Event, Immediate, JoinPolicy, Kernel, Kind, KindRules, ProcedureId,
    ProcedureState, Receipt, Record, RequestId, Rules, Seq, StageEnded, StageOutcome, Timestamp,
};

type Tested = Result<(), Box<dyn std::error::Error>>;

const ROOT: ProcedureId = ProcedureId::new(1, 0);
const CHILD: ProcedureId = ProcedureId::new(1, 1);
const NOW: Timestamp = Timestamp(0);
const LATER: Timestamp = Timestamp(60_000_000);

fn blob(text: &str) -> Blob {
    Blob::from(text.as_bytes().to_vec())
}

fn birth() -> Birth {
    Birth::new(Kind::from("k"), 1, blob("1"), blob("value"))
}

fn kernel(epoch: Epoch) -> Kernel {
    let rules = Rules {
        kinds: [(Kind::from("k"), KindRules::new(1))].into(),
        ..Rules::default()
    };
    Kernel::new(rules, epoch, 0)
}

fn report(id: ProcedureId, run: Seq, epoch: Epoch, outcome: StageOutcome) -> StageEnded {
    StageEnded::new(id, run, epoch, NOW, outcome)
}

/// Decides and applies; gives what goes to disk, and checks the state.
fn feed(kernel: &mut Kernel, now: Timestamp, event: Event) -> Result<Vec<Record>, String> {
    let decision = kernel.decide(now, event);
    let (records, _) = kernel.apply(decision, &mut Commit::new());
    kernel.validate()?;
    Ok(records)
}

fn stage(kernel: &mut Kernel, report: &StageEnded) -> Result<Vec<Record>, String> {
    feed(kernel, NOW, Event::StageEnded(Box::new(report.clone())))
}

fn run_of(kernel: &Kernel, id: ProcedureId) -> Result<Seq, String> {
    let in_flight = kernel.row(id).and_then(|row| row.in_flight);
    in_flight
        .map(|in_flight| in_flight.run)
        .ok_or_else(|| format!("{id} is not going"))
}

/// Children of the root that have not ended.
fn left(kernel: &Kernel) -> Option<u32> {
    let latch = kernel.families().get(&1)?.latches.get(&1)?;
    Some(latch.count - latch.ended)
}

/// A root that waits for two children, both of which are out.
fn two_children(epoch: Epoch) -> Result<Kernel, String> {
    let mut kernel = kernel(epoch);
    feed(&mut kernel, NOW, Event::Submitted(RequestId(1), vec![birth().into()]))?;
    let spawn = StageOutcome::Spawn {
        births: vec![birth(), birth()],
        join: JoinPolicy::AllSucceeded,
        width: 0,
        then: blob("2"),
    };
    let spawned = report(ROOT, run_of(&kernel, ROOT)?, epoch, spawn);
    stage(&mut kernel, &spawned)?;
    Ok(kernel)
}

/// Feeds a report that must change nothing but the count of late ones.
fn is_late(kernel: &mut Kernel, report: &StageEnded) -> Tested {
    let (before, late) = (kernel.families().clone(), kernel.late());
    let decision = kernel.decide(NOW, Event::StageEnded(Box::new(report.clone())));
    assert!(!decision.is_commit());
    let mut commit = Commit::new();
    assert_eq!(kernel.apply(decision, &mut commit), (Vec::new(), Immediate::default()));
    kernel.validate()?;
    let effects = commit.release(&Receipt::new(kernel.epoch(), kernel.seq()));
    assert_eq!(effects.ok(), Some(Vec::<Effect>::new()));
    assert_eq!(kernel.families(), &before);
    assert_eq!(kernel.late(), late + 1);
    Ok(())
}

#[test]
fn e_023_a_report_counts_once() -> Tested {
    let epoch = Epoch(2);
    let mut kernel = two_children(epoch)?;
    assert_eq!(left(&kernel), Some(2));

    // The first attempt asks for another one, which time sets going.
    let first = report(
        CHILD,
        run_of(&kernel, CHILD)?,
        epoch,
        StageOutcome::Retry("not yet".to_owned()),
    );
    stage(&mut kernel, &first)?;
    feed(&mut kernel, LATER, Event::TimerDue(CHILD))?;
    let run = run_of(&kernel, CHILD)?;
    assert_ne!(run, first.run);

    // Late while the second attempt is out: the older attempt, and an older epoch's.
    let done = |run, epoch| report(CHILD, run, epoch, StageOutcome::Done(blob("output")));
    is_late(&mut kernel, &done(first.run, epoch))?;
    is_late(&mut kernel, &done(run, Epoch(1)))?;
    assert_eq!(left(&kernel), Some(2));

    let records = stage(&mut kernel, &done(run, epoch))?;
    assert!(records.iter().any(|record| matches!(record, Record::Output(CHILD, _))));
    assert_eq!(left(&kernel), Some(1));

    // And after it has ended: the same again, and both others.
    is_late(&mut kernel, &done(run, epoch))?;
    is_late(&mut kernel, &done(first.run, epoch))?;
    is_late(&mut kernel, &done(run, Epoch(1)))?;
    assert_eq!(left(&kernel), Some(1));
    assert_eq!(kernel.row(CHILD).map(|row| row.state), Some(ProcedureState::Success));
    assert_eq!(kernel.row(ROOT).map(|row| row.state), Some(ProcedureState::Waiting));
    Ok(())
}
