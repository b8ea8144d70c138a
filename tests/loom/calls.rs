//! Posts, seats and pulses: calls begun by an actor's thread or taken back by the
//! supervisor's, and the look at a thread from outside. Both sides are threads that
//! are spawned: of what a model's first thread loads, loom does not try every order.

use loom::thread;
use procession_kernel::ProcedureId;

use crate::sync::{Arc, AtomicU64, Ordering};
use crate::worker::{Post, Pulse, Seat};

/// An actor that takes so many calls out of its mailbox; those that it may begin, it notes.
fn actor(seat: &Seat, calls: u64, first: u64, done: &AtomicU64) {
    for call in first..first + calls {
        if seat.begin() {
            // Base ten: the digits are the calls that were done, in their order.
            done.store(done.load(Ordering::Relaxed) * 10 + call, Ordering::Relaxed);
            seat.end();
        }
    }
}

/// Takes back what has not begun, and issues it again elsewhere. Gives the calls that were done, in their order.
fn moved(calls: u64) -> u64 {
    let post = Post::new(Arc::new(Pulse::default()));
    let seat = Post::seat(&post);
    let done = Arc::new(AtomicU64::new(0));
    let here = Arc::clone(&done);
    let worker = thread::spawn(move || actor(&seat, calls, 1, &here));
    let other = Arc::new(AtomicU64::new(0));
    let there = Arc::clone(&other);
    let supervisor = thread::spawn(move || {
        if let Some(ended) = post.revoke().filter(|ended| *ended < calls) {
            let elsewhere = Post::new(Arc::new(Pulse::default()));
            actor(&Post::seat(&elsewhere), calls - ended, ended + 1, &there);
        }
    });
    worker.join().expect("the actor does not panic");
    supervisor.join().expect("the supervisor does not panic");
    let (here, there) = (done.load(Ordering::Relaxed), other.load(Ordering::Relaxed));
    let digits = there.checked_ilog10().map_or(0, |log| log + 1);
    here * 10_u64.pow(digits) + there
}

pub(crate) fn done_once() {
    assert_eq!(moved(1), 1);
}

pub(crate) fn two_in_order() {
    assert_eq!(moved(2), 12);
}

pub(crate) fn taken_back_once() {
    let post = Post::new(Arc::new(Pulse::default()));
    let seat = Post::seat(&post);
    let revokers = [Arc::clone(&post), post].map(|post| thread::spawn(move || post.revoke().is_some()));
    let [one, other] = revokers.map(|revoker| revoker.join().expect("it does not panic"));
    assert!(one != other, "one of two takes it back");
    assert!(!seat.begin(), "and then nothing is begun");
}

pub(crate) fn end_shows_work() {
    let post = Post::new(Arc::new(Pulse::default()));
    let (seat, work) = (Post::seat(&post), Arc::new(AtomicU64::new(0)));
    let there = Arc::clone(&work);
    let worker = thread::spawn(move || {
        if seat.begin() {
            there.store(7, Ordering::Relaxed);
            seat.end();
        }
    });
    let supervisor = thread::spawn(move || {
        if post.has_ended(1) {
            assert_eq!(work.load(Ordering::Relaxed), 7);
            assert!(!post.is_running());
        }
        if post.revoke() == Some(1) {
            assert_eq!(work.load(Ordering::Relaxed), 7);
        }
    });
    worker.join().expect("the actor does not panic");
    supervisor.join().expect("the supervisor does not panic");
}

pub(crate) fn one_id() {
    let pulse = Arc::new(Pulse::default());
    let looked = Arc::clone(&pulse);
    let ids = [ProcedureId::new(1, 1), ProcedureId::new(2, 2)];
    let looker = thread::spawn(move || {
        let beats = looked.beats();
        let expected = match beats {
            1 => Some(ids[0]),
            3 => Some(ids[1]),
            _ => None,
        };
        let holder = looked.holder(beats);
        assert!(holder.is_none() || holder == expected, "{beats} beats, and {holder:?}");
    });
    for id in ids {
        drop(pulse.enter(id));
    }
    looker.join().expect("it does not panic");
    assert_eq!((pulse.beats(), pulse.holder(4)), (4, None));
}

pub(crate) fn counted() {
    let pulse = Arc::new(Pulse::default());
    let seats = [0, 1].map(|_| Post::seat(&Post::new(Arc::clone(&pulse))));
    assert_eq!(pulse.actors(), 2);
    let workers = seats.map(|seat| thread::spawn(move || drop(seat)));
    let post = Post::new(Arc::clone(&pulse));
    assert!(post.is_on(&pulse));
    let late = Post::seat(&post);
    for worker in workers {
        worker.join().expect("it does not panic");
    }
    assert_eq!(pulse.actors(), 1, "one that was seated meanwhile is counted");
    assert!(Arc::ptr_eq(&late.pulse(), &pulse));
}
