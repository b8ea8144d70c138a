//! What threads share, in every order that the memory model allows: the same
//! modules that run, built on loom. Each model says what must hold; a model that
//! fails prints the order of events. docs/internals/testing.md says how to run it.

mod sync {
    //! loom's, where the engine has the standard library's.

    pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
    pub(crate) use loom::sync::{Arc, Mutex, MutexGuard};
}

#[path = "../../actors/src/journal/fjall/commit_queue.rs"]
mod commit_queue;
#[path = "../../actors/src/queues/coalescing.rs"]
mod coalescing;
#[allow(dead_code, reason = "the engine uses all of it")]
#[path = "../../actors/src/queues/depth.rs"]
mod queues;
#[allow(dead_code, reason = "the engine uses all of it")]
#[path = "../../actors/src/worker.rs"]
mod worker;

mod calls;
mod coalesced;
mod queue;

/// Each model with its name.
const MODELS: [(&str, fn()); 9] = [
    ("a call is begun or revoked, and done once", calls::done_once),
    ("of two calls each is done once, in order", calls::two_in_order),
    ("a call is revoked once", calls::revoked_once),
    ("who sees that a call has ended sees what it did", calls::end_shows_work),
    ("a blocked worker is told with one id, of who holds it", calls::one_id),
    ("actors are counted to the last", calls::counted),
    ("each batch is written once, in order, before its caller goes on", queue::each_once),
    ("a look at the writer loses no batch", queue::looked_at),
    ("an item of a coalescing queue is popped once, and one notification waits at most", coalesced::each_popped),
];

fn main() {
    for (name, model) in MODELS {
        let orders = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let counted = std::sync::Arc::clone(&orders);
        loom::model(move || {
            counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            model();
        });
        println!("loom: {name}: {} orders", orders.load(std::sync::atomic::Ordering::Relaxed));
    }
    println!("loom: all {} hold", MODELS.len());
}
