//! Who is known to be read for, and in which order groups leave.

use procession_kernel::{Kernel, Kind, ProcedureId};

use super::{GROUP, GROUPS, Group, Load, Loads, Purpose};
use crate::context::Woken;
use crate::supervisor::loads::wanted::Found;

fn load(family: u64) -> Load {
    Load {
        id: ProcedureId::root(family),
        kind: Kind::from("k"),
        version: 1,
        payload: None,
        wake: None,
        purpose: Purpose::CleanUp,
    }
}

fn read(group: Vec<Load>) -> Group {
    let found = || Found {
        payload: None,
        woken: Woken::Plainly,
    };
    group.into_iter().map(|load| (load, Ok(found()))).collect()
}

#[test]
fn one_is_held_until_the_last_of_its_calls_has_left() {
    let (mut loads, id) = (Loads::default(), ProcedureId::root(7));
    loads.enter(load(7));
    let (number, first) = loads.begin(&Kernel::default()).expect("one waits");
    loads.enter(load(7));
    assert!(
        loads
            .begin(&Kernel::default())
            .is_some_and(|(next, _)| next == number + 1)
    );
    loads.ready(number, read(first));
    assert_eq!(loads.next_ready().map(|group| group.len()), Some(1));
    assert!(loads.waiting().contains(&id), "its second call is being read for");
    loads.ready(number + 1, read(vec![load(7)]));
    assert!(loads.next_ready().is_some());
    assert!(loads.waiting().is_empty());
}

#[test]
fn groups_are_bounded_and_leave_in_the_order_in_which_they_began() {
    let mut loads = Loads::default();
    let all = GROUP * (GROUPS + 1);
    (0..all as u64).for_each(|family| loads.enter(load(family)));
    let mut begun: Vec<(u64, Vec<Load>)> = std::iter::from_fn(|| loads.begin(&Kernel::default())).collect();
    assert_eq!(begun.len(), GROUPS);
    let last = begun.pop().expect("there are some");
    loads.ready(last.0, read(last.1));
    assert!(loads.next_ready().is_none(), "those before it are not there yet");
    for (number, group) in begun {
        loads.ready(number, read(group));
    }
    let left: Vec<u64> = std::iter::from_fn(|| loads.next_ready())
        .flatten()
        .map(|(load, _)| load.id.family)
        .collect();
    assert!(left.iter().copied().eq(0..(GROUP * GROUPS) as u64));
    assert_eq!(loads.waiting().len(), GROUP, "those that have not begun");
    loads.clear();
    assert!(loads.waiting().is_empty());
}
