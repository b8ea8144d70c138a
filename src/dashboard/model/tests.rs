//! The ring and the bounds of the model: nothing in it grows without end, and no gap goes unnoticed.

use std::sync::Arc;

use procession_actors::view::Change;
use procession_kernel::{Epoch, Seq, Timestamp};

use super::{Missed, Model, Moment, Ring, Rows};

fn change(seq: u64) -> Arc<Change> {
    Arc::new(Change {
        epoch: Epoch(1),
        seq: Seq(seq),
        rows: Vec::new(),
        untold: Vec::new(),
        gone: vec![seq],
    })
}

fn seqs(changes: &[Arc<Change>]) -> Vec<u64> {
    changes.iter().map(|change| change.seq.0).collect()
}

#[test]
fn a_ring_gives_what_came_after() {
    let mut ring = Ring::default();
    ring.begin(Seq(10));
    assert_eq!(ring.after(Seq(10), 9).map(|changes| seqs(&changes)), Ok(vec![]));
    assert_eq!(ring.after(Seq(9), 9).err(), Some(Missed));
    assert_eq!(ring.after(Seq(11), 9).err(), Some(Missed));
    for seq in [11, 12, 14] {
        ring.push(change(seq));
    }
    assert_eq!(ring.after(Seq(10), 2).map(|changes| seqs(&changes)), Ok(vec![11, 12]));
    assert_eq!(ring.after(Seq(12), 9).map(|changes| seqs(&changes)), Ok(vec![14]));
    // Commits that changed no row have numbers, too.
    assert_eq!(ring.after(Seq(13), 9).map(|changes| seqs(&changes)), Ok(vec![14]));
}

#[test]
fn a_ring_is_bounded_and_says_what_it_lost() {
    let mut ring = Ring::default();
    for seq in 1..=10_000 {
        ring.push(change(seq));
    }
    let kept = 4_096;
    assert_eq!(ring.after(Seq(10_000 - kept - 1), 1).err(), Some(Missed));
    assert_eq!(
        ring.after(Seq(10_000 - kept), 1).map(|changes| seqs(&changes)),
        Ok(vec![10_000 - kept + 1])
    );
}

#[test]
fn a_change_that_the_rows_were_read_behind_is_not_told_again() {
    let mut model = Model::default();
    let moment = Moment {
        epoch: Epoch(1),
        seq: Seq(5),
    };
    model.refill(Rows::default(), moment);
    model.fold(&change(4), Timestamp(4));
    model.fold(&change(5), Timestamp(5));
    assert_eq!(model.moment(), moment);
    model.fold(&change(6), Timestamp(6));
    assert_eq!(model.changes(moment, 9).map(|changes| seqs(&changes)), Ok(vec![6]));
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
