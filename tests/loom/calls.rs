//! Call slots and heartbeats: calls that an actor's thread begins or the supervisor's revokes, and the look at a thread
//! from outside. Both sides are spawned threads, because loom does not try every order of what a model's first thread
//! loads.

use loom::thread;
use procession_kernel::ProcedureId;

use crate::sync::{Arc, AtomicU64, Ordering};
use crate::worker::{CallSlot, CallSlotGuard, Heartbeat};

/// An actor that takes so many calls out of its mailbox, and notes those that it may begin.
fn actor(guard: &CallSlotGuard, calls: u64, first: u64, done: &AtomicU64) {
    for call in first..first + calls {
        if guard.begin() {
            // Base ten: the digits are the calls that were done, in their order.
            done.store(done.load(Ordering::Relaxed) * 10 + call, Ordering::Relaxed);
            guard.end();
        }
    }
}

/// Revokes the calls that have not begun, and sends them again elsewhere. Returns the calls that were done, in their
/// order.
fn moved(calls: u64) -> u64 {
    let slot = CallSlot::new(Arc::new(Heartbeat::default()));
    let guard = CallSlot::guard(&slot);
    let done = Arc::new(AtomicU64::new(0));
    let here = Arc::clone(&done);
    let worker = thread::spawn(move || actor(&guard, calls, 1, &here));
    let other = Arc::new(AtomicU64::new(0));
    let there = Arc::clone(&other);
    let supervisor = thread::spawn(move || {
        if let Some(ended) = slot.revoke().filter(|ended| *ended < calls) {
            let elsewhere = CallSlot::new(Arc::new(Heartbeat::default()));
            actor(&CallSlot::guard(&elsewhere), calls - ended, ended + 1, &there);
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

pub(crate) fn revoked_once() {
    let slot = CallSlot::new(Arc::new(Heartbeat::default()));
    let guard = CallSlot::guard(&slot);
    let revokers = [Arc::clone(&slot), slot].map(|slot| thread::spawn(move || slot.revoke().is_some()));
    let [one, other] = revokers.map(|revoker| revoker.join().expect("it does not panic"));
    assert!(one != other, "one of two revokes it");
    assert!(!guard.begin(), "and then nothing is begun");
}

pub(crate) fn end_shows_work() {
    let slot = CallSlot::new(Arc::new(Heartbeat::default()));
    let (guard, work) = (CallSlot::guard(&slot), Arc::new(AtomicU64::new(0)));
    let there = Arc::clone(&work);
    let worker = thread::spawn(move || {
        if guard.begin() {
            there.store(7, Ordering::Relaxed);
            guard.end();
        }
    });
    let supervisor = thread::spawn(move || {
        if slot.has_ended(1) {
            assert_eq!(work.load(Ordering::Relaxed), 7);
            assert!(!slot.is_running());
        }
        if slot.revoke() == Some(1) {
            assert_eq!(work.load(Ordering::Relaxed), 7);
        }
    });
    worker.join().expect("the actor does not panic");
    supervisor.join().expect("the supervisor does not panic");
}

pub(crate) fn one_id() {
    let heartbeat = Arc::new(Heartbeat::default());
    let looked = Arc::clone(&heartbeat);
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
        drop(heartbeat.enter(id));
    }
    looker.join().expect("it does not panic");
    assert_eq!((heartbeat.beats(), heartbeat.holder(4)), (4, None));
}

pub(crate) fn counted() {
    let heartbeat = Arc::new(Heartbeat::default());
    let guards = [0, 1].map(|_| CallSlot::guard(&CallSlot::new(Arc::clone(&heartbeat))));
    assert_eq!(heartbeat.actors(), 2);
    let workers = guards.map(|guard| thread::spawn(move || drop(guard)));
    let slot = CallSlot::new(Arc::clone(&heartbeat));
    assert!(slot.is_on(&heartbeat));
    let late = CallSlot::guard(&slot);
    for worker in workers {
        worker.join().expect("it does not panic");
    }
    assert_eq!(heartbeat.actors(), 1, "an actor that was added meanwhile is counted");
    assert!(Arc::ptr_eq(&late.heartbeat(), &heartbeat));
}
