//! Which procedures have a pending read, and in which order groups leave.

use procession_kernel::{Kernel, ProcedureId, StageCall};

use super::{CallInputs, GROUP, GROUPS, GroupRead, Revival};
use crate::context::Woken;
use crate::supervisor::dispatch::sample::call;

fn read(number: u64, group: Vec<StageCall>) -> GroupRead {
    let found = || CallInputs {
        payload: None,
        woken: Woken::Plainly,
    };
    GroupRead {
        number,
        group: group.into_iter().map(|call| (call, Ok(found()))).collect(),
    }
}

#[test]
fn a_procedure_is_pending_until_the_last_of_its_calls_has_left() {
    let (mut revival, id) = (Revival::default(), ProcedureId::root(7));
    revival.enqueue(Box::new(call(7)));
    let (number, first) = revival.begin(&Kernel::default(), |_| ()).expect("one waits");
    revival.enqueue(Box::new(call(7)));
    assert!(
        revival
            .begin(&Kernel::default(), |_| ())
            .is_some_and(|(next, _)| next == number + 1)
    );
    revival.end(read(number, first));
    assert_eq!(revival.next_ready().map(|group| group.len()), Some(1));
    assert!(revival.waiting().contains(&id), "its second call is being read for");
    revival.end(read(number + 1, vec![call(7)]));
    assert!(revival.next_ready().is_some());
    assert!(revival.waiting().is_empty());
}

#[test]
fn groups_are_bounded_and_leave_in_the_order_in_which_they_began() {
    let mut revival = Revival::default();
    let all = GROUP * (GROUPS + 1);
    (0..all as u64).for_each(|family| revival.enqueue(Box::new(call(family))));
    let mut begun: Vec<(u64, Vec<StageCall>)> =
        std::iter::from_fn(|| revival.begin(&Kernel::default(), |_| ())).collect();
    assert_eq!(begun.len(), GROUPS);
    let last = begun.pop().expect("there are some");
    revival.end(read(last.0, last.1));
    assert!(revival.next_ready().is_none(), "those before it are not there yet");
    for (number, group) in begun {
        revival.end(read(number, group));
    }
    let left: Vec<u64> = std::iter::from_fn(|| revival.next_ready())
        .flatten()
        .map(|(load, _)| load.id.family)
        .collect();
    assert!(left.iter().copied().eq(0..(GROUP * GROUPS) as u64));
    assert_eq!(revival.waiting().len(), GROUP, "those that have not begun");
    revival.clear();
    assert!(revival.waiting().is_empty());
}

#[test]
fn one_notice_is_wanted_until_it_has_arrived() {
    let mut revival = Revival::default();
    assert!(!revival.take_reads_due());
    revival.enqueue(Box::new(call(1)));
    assert!(revival.take_reads_due());
    revival.enqueue(Box::new(call(2)));
    assert!(!revival.take_reads_due(), "one is on its way");
    revival.reads_due();
    assert!(!revival.take_reads_due());
    revival.enqueue(Box::new(call(3)));
    assert!(revival.take_reads_due());
}
