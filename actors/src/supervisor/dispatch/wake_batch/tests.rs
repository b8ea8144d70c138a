//! Which calls pass through the worker's queue.

use actix::prelude::*;
use procession_kernel::Epoch;

use super::*;
use crate::context::{Call, Fence, RunProgress, Woken};
use crate::procedure_actor::ProcedureActor;
use crate::supervisor::dispatch::sample;

fn call(number: u64) -> Call {
    let (epoch, call) = (Epoch(1), number);
    Call {
        stage: Box::new(sample::call(1)),
        store: 0,
        fence: Fence { epoch, call },
        woken: Woken::Plainly,
        row: None,
        is_speculative: false,
        run: RunProgress::default(),
    }
}

/// A worker that is this thread, so nothing leaves its queue during a test.
struct Worker {
    batch: WakeBatch,
    queue: Arc<CallQueue>,
    to: Arc<Addr<ProcedureActor>>,
}

impl Worker {
    fn send(&mut self, number: u64, may_go_directly: bool) {
        let call = OutgoingCall {
            queue: Arc::clone(&self.queue),
            to: Arc::clone(&self.to),
            call: call(number),
        };
        self.batch.send(call, may_go_directly);
    }
}

fn with_worker(test: impl FnOnce(&mut Worker)) {
    actix_rt::System::new().block_on(async {
        let receiver = Context::<ProcedureActor>::new();
        let mut worker = Worker {
            batch: WakeBatch::default(),
            queue: Arc::new(CallQueue::start(&Arbiter::current())),
            to: Arc::new(receiver.address()),
        };
        test(&mut worker);
        assert!(
            worker.batch.first.is_none() && worker.batch.asleep.is_empty(),
            "everything was sent"
        );
    });
}

#[test]
fn a_call_that_is_alone_needs_no_queue() {
    with_worker(|worker| {
        worker.send(1, true);
        assert!(worker.batch.first.is_none(), "no batch is open");
        worker.batch.begin();
        worker.send(2, true);
        assert!(worker.batch.first.is_some(), "it may not remain the only one");
        worker.batch.end();
        assert_eq!(worker.queue.take_numbers(), []);
    });
}

#[test]
fn several_calls_share_a_wake() {
    with_worker(|worker| {
        worker.batch.begin();
        (1..=3).for_each(|number| worker.send(number, true));
        assert_eq!(worker.batch.asleep.len(), 1);
        worker.batch.end();
        assert_eq!(worker.queue.take_numbers(), [1, 2, 3]);
        worker.batch.begin();
        (0..BATCH).for_each(|_| worker.send(4, true));
        assert!(worker.batch.asleep.is_empty(), "the batch is full");
        worker.batch.end();
        assert_eq!(worker.queue.take_numbers().len(), BATCH);
    });
}

#[test]
fn a_call_does_not_overtake_an_earlier_one_of_its_actor() {
    with_worker(|worker| {
        worker.batch.begin();
        worker.send(1, true);
        worker.send(2, false);
        worker.batch.end();
        assert_eq!(worker.queue.take_numbers(), [1, 2]);
        worker.send(3, false);
        assert_eq!(worker.queue.take_numbers(), [3], "even if it is alone");
    });
}
