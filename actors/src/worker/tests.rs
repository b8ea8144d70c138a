//! A call is begun or taken back, never both, and the pulse beats in pairs.

use std::sync::{Arc, Barrier};

use procession_kernel::ProcedureId;

use super::{Post, Pulse};

#[test]
fn a_call_is_begun_or_taken_back_never_both() {
    for _ in 0..1_000 {
        let post = Post::new(Arc::default());
        let (seat, both) = (Post::seat(&post), Arc::new(Barrier::new(2)));
        let ready = Arc::clone(&both);
        let actor = std::thread::spawn(move || {
            ready.wait();
            seat.begin()
        });
        both.wait();
        let revoked = post.revoke().is_some();
        let begun = actor.join().expect("it does not panic");
        assert_ne!(begun, revoked);
    }
}

#[test]
fn what_runs_is_not_taken_back_and_what_has_ended_is_counted() {
    let post = Post::new(Arc::default());
    let seat = Post::seat(&post);
    assert!(seat.begin());
    assert_eq!(post.revoke(), None);
    assert!(!post.has_ended(1));
    seat.end();
    assert!(post.has_ended(1));
    assert_eq!(post.revoke(), Some(1));
    assert_eq!(post.revoke(), None, "it is taken back once");
    assert!(!seat.begin());
}

#[test]
fn a_pulse_is_odd_within_user_code_and_counts_actors() {
    let pulse = Arc::new(Pulse::default());
    let id = ProcedureId::new(7, 3);
    let within = pulse.enter(id);
    assert_eq!((pulse.beats(), pulse.holder(1)), (1, Some(id)));
    drop(within);
    assert_eq!((pulse.beats(), pulse.holder(2)), (2, None));
    let _next = pulse.enter(ProcedureId::new(8, 0));
    assert_eq!(pulse.holder(1), None, "who has gone on holds the thread no more");
    let seat = Post::seat(&Post::new(Arc::clone(&pulse)));
    assert_eq!(pulse.actors(), 1);
    drop(seat);
    assert_eq!(pulse.actors(), 0);
}
