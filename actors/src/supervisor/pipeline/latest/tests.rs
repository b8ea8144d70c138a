//! What a follower that asks seldom is told of the procedures that have ended meanwhile.

use procession_kernel::{Blob, Epoch, Kernel, Kind, ProcedureId, ProcedureState, Record, Row, Rules, Timestamp};

use super::{ENDED_KEPT, Noted, ROOTS_KEPT};
use crate::view::LatestRows;

/// Members of one family, which all end at different instants.
fn ends(family: u64, members: impl Iterator<Item = u32>) -> impl Iterator<Item = Record> {
    members.map(move |member| {
        let id = ProcedureId::new(family, member);
        let mut row = Row::new(id, Kind::from("k"), 1, Blob::default(), Timestamp(family));
        row.state = ProcedureState::Success;
        row.ended = Some(Timestamp(family + u64::from(member)));
        Record::Row(Box::new(row))
    })
}

fn told(records: impl Iterator<Item = Record>) -> (Noted, LatestRows) {
    let mut noted = Noted::default();
    records.for_each(|record| noted.take(&record));
    let rows = noted.copy(&Kernel::new(Rules::default(), Epoch(1), 0));
    (noted, rows)
}

#[test]
fn of_many_roots_the_first_are_told_of_by_their_rows_and_the_others_by_their_ids() {
    let family = |number: usize| number as u64 + 1;
    let roots = |from: usize, to: usize| (from..to).flat_map(move |number| ends(family(number), 0..1));
    let (mut noted, newest) = told(roots(0, ROOTS_KEPT + 2));
    let rows: Vec<u64> = newest.rows.iter().map(|row| row.id.family).collect();
    assert_eq!(rows, (0..ROOTS_KEPT).map(family).collect::<Vec<_>>());
    assert_eq!(
        newest.untold,
        [ROOTS_KEPT, ROOTS_KEPT + 1].map(|number| ProcedureId::root(family(number)))
    );

    // The next answer has room again.
    roots(0, ROOTS_KEPT).for_each(|record| noted.take(&record));
    let next = noted.copy(&Kernel::new(Rules::default(), Epoch(1), 0));
    assert_eq!((next.rows.len(), next.untold.len()), (ROOTS_KEPT, 0));
}

#[test]
fn of_many_children_the_newest_are_told_of_by_their_rows() {
    let children = u32::try_from(ENDED_KEPT).expect("it is small") + 3;
    // A root in front, so that the number of roots falls as the oldest are left out.
    let records = ends(1, 0..1).chain(ends(2, 1..children + 1));
    let (noted, newest) = told(records);
    assert_eq!(newest.rows.len(), ENDED_KEPT);
    assert_eq!(newest.rows.first().map(|row| row.id), Some(ProcedureId::new(2, 4)));
    let members = (1..4).map(|member| ProcedureId::new(2, member));
    assert_eq!(
        newest.untold,
        [ProcedureId::root(1)].into_iter().chain(members).collect::<Vec<_>>()
    );
    assert_eq!(noted.roots, 0);
}
