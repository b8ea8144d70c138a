//! The ring and the bounds of the model: nothing in it grows without end, and no gap goes unnoticed.

use std::collections::BTreeSet;
use std::sync::Arc;

use procession_actors::view::Status;
use procession_kernel::{Epoch, Kind, ProcedureId, ProcedureState, Seq, Timestamp, WaitReason};

use super::{Filling, LiveFlow, Missed, Model, Moment, Ring, Tally, Update};
use crate::Executor;
use crate::filter::{Filter, FilterContext};
use crate::operate::{OperatorRequest, PauseScope};
use crate::procedure::Noop;
use crate::status::ListFilter;

fn moment(seq: u64) -> Moment {
    Moment {
        epoch: Epoch(1),
        seq: Seq(seq),
    }
}

fn update(seq: u64) -> Update {
    Update {
        moment: moment(seq),
        gone: vec![seq],
        ..Update::default()
    }
}

fn seqs(updates: &[Arc<Update>]) -> Vec<u64> {
    updates.iter().map(|update| update.moment.seq.0).collect()
}

#[test]
fn a_ring_gives_what_came_after() {
    let mut ring = Ring::default();
    ring.begin(Seq(10));
    assert_eq!(ring.after(Seq(10), 9).map(|updates| seqs(&updates)), Ok(vec![]));
    assert_eq!(ring.after(Seq(9), 9).err(), Some(Missed));
    assert_eq!(ring.after(Seq(11), 9).err(), Some(Missed));
    for seq in [11, 12, 14] {
        ring.push(update(seq));
    }
    assert_eq!(ring.after(Seq(10), 2).map(|updates| seqs(&updates)), Ok(vec![11, 12]));
    assert_eq!(ring.after(Seq(12), 9).map(|updates| seqs(&updates)), Ok(vec![14]));
    // Commits that changed no row have numbers, too.
    assert_eq!(ring.after(Seq(13), 9).map(|updates| seqs(&updates)), Ok(vec![14]));
}

#[test]
fn a_ring_is_bounded_and_says_what_it_lost() {
    let mut ring = Ring::default();
    for seq in 1..=10_000 {
        ring.push(update(seq));
    }
    let kept = 4_096;
    assert_eq!(ring.after(Seq(10_000 - kept - 1), 1).err(), Some(Missed));
    assert_eq!(
        ring.after(Seq(10_000 - kept), 1).map(|updates| seqs(&updates)),
        Ok(vec![10_000 - kept + 1])
    );
}

#[test]
fn an_update_that_the_rows_were_read_behind_is_not_told_again() {
    let mut model = Model::default();
    let mut filling = Filling::default();
    filling.reach(moment(5));
    model.refill(filling);
    model.fold(update(4), Timestamp(4));
    model.fold(update(5), Timestamp(5));
    assert_eq!(model.moment(), moment(5));
    model.fold(update(6), Timestamp(6));
    assert_eq!(model.updates(moment(5), 9).map(|updates| seqs(&updates)), Ok(vec![6]));
}

/// A procedure that does not run, as the engine describes it.
async fn parked() -> Result<Status, Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    let executor = Executor::builder(directory.path()).register::<Noop>(()).start().await?;
    executor
        .pause(PauseScope::All, OperatorRequest::new("ann", "a test"))
        .await?;
    executor.submit(Noop).await?;
    let page = executor.list(ListFilter::default(), None, 1).await?;
    page.items.into_iter().next().ok_or_else(|| "nothing is listed".into())
}

fn ended(status: &Status) -> Status {
    let mut status = status.clone();
    status.state = ProcedureState::Success;
    status.ended = Some(Timestamp(9));
    status.revision = Seq(status.revision.0 + 1);
    status
}

#[actix_rt::test]
async fn a_page_does_not_bring_back_what_ended_since_it_was_read() -> Result<(), Box<dyn std::error::Error>> {
    let live = parked().await?;
    let of = |update: Update, page: &Status| {
        let mut filling = Filling::default();
        filling.fold(&update);
        filling.take(vec![page.clone()]);
        let mut model = Model::default();
        drop(model.refill(filling));
        model.get(live.id)
    };
    let quiet = Update::default();
    assert_eq!(of(quiet, &live).as_deref(), Some(&live));
    let untold = Update {
        moment: moment(7),
        untold: vec![live.id],
        ..Update::default()
    };
    assert_eq!(of(untold.clone(), &live), None, "its end is not told of");
    let end = ended(&live);
    assert_eq!(of(untold, &end).as_deref(), Some(&end), "its end was read");
    let told = Update {
        moment: moment(7),
        rows: vec![Arc::new(end.clone())],
        ..Update::default()
    };
    assert_eq!(of(told, &live).as_deref(), Some(&end), "its end is told of");
    let gone = Update {
        moment: moment(7),
        gone: vec![live.id.family],
        ..Update::default()
    };
    assert_eq!(of(gone, &live), None, "nothing is left of it");
    Ok(())
}

#[actix_rt::test]
async fn who_needs_an_operator_is_not_counted_among_those_that_go_on() -> Result<(), Box<dyn std::error::Error>> {
    let mut calm = parked().await?;
    calm.wait = None;
    let with = |state, wait: Option<WaitReason>, paused| {
        let mut status = calm.clone();
        (status.state, status.wait, status.paused) = (state, wait, paused);
        status
    };
    let failed = |wait| with(ProcedureState::Failed, wait, false);
    let waits = |wait, paused| with(ProcedureState::Runnable, Some(wait), paused);
    let backoff = || WaitReason::Backoff(3, Timestamp(9));
    let (now, rules) = (Timestamp(9), BTreeSet::new());
    let context = FilterContext { now, rules };
    for (what, status, retrying, rolling_back) in [
        ("an undo is out", failed(None), 0, 1),
        ("an undo is tried again", failed(Some(backoff())), 0, 1),
        (
            "an undo has failed for good",
            failed(Some(WaitReason::RollbackFailed)),
            0,
            0,
        ),
        ("its history has a hole", failed(Some(WaitReason::Quarantined)), 0, 0),
        ("its family is set aside", failed(None).quarantined(), 0, 0),
        ("it is tried again", waits(backoff(), false), 1, 0),
        ("it is tried again, and paused", waits(backoff(), true), 0, 0),
        (
            "it is tried again, and set aside",
            waits(backoff(), false).quarantined(),
            0,
            0,
        ),
        ("it is queued", waits(WaitReason::Queue, false), 0, 0),
    ] {
        let mut tally = Tally::default();
        tally.add(&status);
        assert_eq!(
            (tally.tiles.retrying, tally.tiles.rolling_back),
            (retrying, rolling_back),
            "{what}"
        );
        // A tile leads to a list of just those.
        let listed = |text: &str| {
            text.parse::<Filter>()
                .is_ok_and(|filter| filter.admits(&status, &context))
        };
        assert_eq!(listed("state:retrying"), retrying == 1, "{what}");
        assert_eq!(listed("state:rolling_back"), rolling_back == 1, "{what}");
    }
    Ok(())
}

/// A row of a set, as the engine would describe it.
fn row_of_set(like: &Status, member: u32, revision: u64, wait: Option<WaitReason>) -> Arc<Status> {
    let mut row = like.clone();
    row.id = ProcedureId::new(7, member);
    row.revision = Seq(revision);
    match member {
        0 => (row.kind, row.parent) = (Kind::from("procession.set"), None),
        _ => row.parent = Some(ProcedureId::root(7)),
    }
    row.wait = wait;
    Arc::new(row)
}

fn ready_and_pending(model: &Model) -> Option<(u32, u32)> {
    let flows = model.flows(0, 9);
    let Some(LiveFlow::Set(set)) = flows.first() else {
        return None;
    };
    let status = set.status()?;
    Some((status.counts.ready, status.counts.pending))
}

#[actix_rt::test]
async fn a_set_is_counted_as_it_changes_and_read_anew_once_a_change_was_missed()
-> Result<(), Box<dyn std::error::Error>> {
    let like = parked().await?;
    let row = |member, revision, wait| row_of_set(&like, member, revision, wait);
    let ready = || Some(WaitReason::Queue);
    let mut model = Model::default();
    drop(model.refill(Filling::default()));
    let told = |seq: u64, rows: Vec<Arc<Status>>, untold: Vec<ProcedureId>| Update {
        moment: moment(seq),
        rows,
        untold,
        ..Update::default()
    };
    // In whatever order its rows arrive.
    let born = vec![
        row(2, 1, ready()),
        row(0, 1, Some(WaitReason::Children)),
        row(1, 1, ready()),
    ];
    model.fold(told(1, born, vec![]), Timestamp(1));
    assert_eq!((ready_and_pending(&model), model.unread()), (Some((2, 0)), None));
    model.fold(told(2, vec![row(1, 2, Some(WaitReason::Poison))], vec![]), Timestamp(2));
    assert_eq!(ready_and_pending(&model), Some((1, 1)));

    model.fold(told(3, vec![], vec![ProcedureId::new(7, 2)]), Timestamp(3));
    assert_eq!(ready_and_pending(&model), None, "nobody said how it ended");
    let unread = model.unread().ok_or("it is to be read")?;
    model.take_nodes(
        unread,
        &[
            (*row(1, 1, ready())).clone(),
            (*row(2, 3, Some(WaitReason::Poison))).clone(),
        ],
    );
    // What was missed meanwhile may be older than the reading.
    model.fold(told(4, vec![], vec![ProcedureId::new(7, 2)]), Timestamp(4));
    model.end_reading(unread, true);
    assert_eq!(ready_and_pending(&model), None);
    let unread = model.unread().ok_or("it is to be read again")?;
    model.end_reading(unread, true);
    assert_eq!(ready_and_pending(&model), Some((0, 2)), "an older row changes nothing");
    model.fold(
        Update {
            moment: moment(5),
            gone: vec![7],
            ..Update::default()
        },
        Timestamp(5),
    );
    assert_eq!((model.flows(0, 9).len(), model.unread()), (0, None));
    Ok(())
}

#[actix_rt::test]
async fn sets_that_were_there_before_the_model_are_read() -> Result<(), Box<dyn std::error::Error>> {
    let like = parked().await?;
    let mut filling = Filling::default();
    filling.take(vec![(*row_of_set(&like, 0, 1, Some(WaitReason::Children))).clone()]);
    // It changes while the rows are read, but not for the first time.
    filling.fold(&Update {
        moment: moment(9),
        rows: vec![row_of_set(&like, 2, 9, Some(WaitReason::Queue))],
        ..Update::default()
    });
    let mut model = Model::default();
    drop(model.refill(filling));
    assert_eq!(ready_and_pending(&model), None);
    model.fold(update(10), Timestamp(10));
    assert_eq!(ready_and_pending(&model), None, "it was not born with that update");
    let unread = model.unread().ok_or("it is to be read")?;
    let rows = [1, 2].map(|member| (*row_of_set(&like, member, 5, Some(WaitReason::Poison))).clone());
    model.take_nodes(unread, &rows);
    model.end_reading(unread, true);
    assert_eq!(ready_and_pending(&model), Some((1, 1)));
    Ok(())
}

#[test]
fn a_moment_reads_as_it_is_written() {
    let moment = Moment {
        epoch: Epoch(3),
        seq: Seq(77),
    };
    assert_eq!(moment.to_string().parse(), Ok(moment));
    for wrong in ["", "3", "3-", "-7", "a-b", "3-7-1"] {
        assert_eq!(wrong.parse::<Moment>(), Err(()), "{wrong}");
    }
}
