//! A call is begun or revoked, never both, and the heartbeat beats in pairs.

use std::sync::{Arc, Barrier};

use procession_kernel::ProcedureId;

use super::{CallSlot, Heartbeat};

#[test]
fn a_call_is_begun_or_revoked_never_both() {
    for _ in 0..1_000 {
        let slot = CallSlot::new(Arc::default());
        let (guard, both) = (CallSlot::guard(&slot), Arc::new(Barrier::new(2)));
        let ready = Arc::clone(&both);
        let actor = std::thread::spawn(move || {
            ready.wait();
            guard.begin()
        });
        both.wait();
        let revoked = slot.revoke().is_some();
        let begun = actor.join().expect("it does not panic");
        assert_ne!(begun, revoked);
    }
}

#[test]
fn a_running_call_is_not_revoked_and_ended_calls_are_counted() {
    let slot = CallSlot::new(Arc::default());
    let guard = CallSlot::guard(&slot);
    assert!(guard.begin());
    assert_eq!(slot.revoke(), None);
    assert!(!slot.has_ended(1));
    guard.end();
    assert!(slot.has_ended(1));
    assert_eq!(slot.revoke(), Some(1));
    assert_eq!(slot.revoke(), None, "it is revoked once");
    assert!(!guard.begin());
}

#[test]
fn a_heartbeat_is_odd_within_user_code_and_counts_actors() {
    let heartbeat = Arc::new(Heartbeat::default());
    let id = ProcedureId::new(7, 3);
    let polled = heartbeat.enter(id);
    assert_eq!((heartbeat.beats(), heartbeat.holder(1)), (1, Some(id)));
    drop(polled);
    assert_eq!((heartbeat.beats(), heartbeat.holder(2)), (2, None));
    let _next = heartbeat.enter(ProcedureId::new(8, 0));
    assert_eq!(
        heartbeat.holder(1),
        None,
        "code that has returned does not hold the thread any more"
    );
    let guard = CallSlot::guard(&CallSlot::new(Arc::clone(&heartbeat)));
    assert_eq!(heartbeat.actors(), 1);
    drop(guard);
    assert_eq!(heartbeat.actors(), 0);
}
