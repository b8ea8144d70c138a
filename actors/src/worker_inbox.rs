//! `WorkerInbox`: an actor on each worker that moves queued calls to the mailboxes of their actors, on the thread that
//! they share. So a worker is woken once for many calls, and the supervisor does not lose its processor to each of
//! them. A call that is alone needs no inbox, and is sent directly.

use std::sync::Arc;

use actix::prelude::*;

use crate::context::Call;
use crate::procedure_actor::ProcedureActor;
use crate::queues::{CoalescingQueue, InboxWake};

/// A call, and the actor that it is for.
type Addressed = (Arc<Addr<ProcedureActor>>, Call);

/// The calls on their way to the actors of one worker. Each actor has one or two calls out, which bounds the queue.
pub(crate) struct CallQueue {
    queue: Arc<CoalescingQueue<Addressed>>,
    inbox: Addr<WorkerInbox>,
}

impl CallQueue {
    /// Starts the inbox of a worker. It stops when the queue is dropped.
    pub(crate) fn start(worker: &ArbiterHandle) -> Self {
        let queue = Arc::new(CoalescingQueue::new());
        let served = Arc::clone(&queue);
        let inbox = WorkerInbox::start_in_arbiter(worker, move |_| WorkerInbox(served));
        Self { queue, inbox }
    }

    /// Takes the calls from the queue, and returns their numbers.
    #[cfg(test)]
    pub(crate) fn take_numbers(&self) -> Vec<u64> {
        let (calls, _) = self.queue.pop_batch(usize::MAX);
        calls.iter().map(|(_, call)| call.fence.call).collect()
    }

    /// Wakes the worker. At most one wake is under way, so the mailbox has room for it. If the inbox is gone with its
    /// thread, so are its actors, and a health check finds them.
    pub(crate) fn wake(&self) {
        self.inbox.try_send(InboxWake).ok();
    }
}

/// A call on its way to an actor.
pub(crate) struct OutgoingCall {
    /// The queue of the actor's worker.
    pub(crate) queue: Arc<CallQueue>,
    pub(crate) to: Arc<Addr<ProcedureActor>>,
    pub(crate) call: Call,
}

impl OutgoingCall {
    /// Sends the call to its actor, whose earlier calls must all have ended: one of them could be in the queue, and
    /// must not be overtaken. So the mailbox is empty and has room. A health check finds an actor that is gone.
    pub(crate) fn send_directly(self) {
        self.to.try_send(self.call).ok();
    }

    /// Puts the call into its queue. Returns the queue if its worker must be woken.
    #[must_use]
    pub(crate) fn enqueue(self) -> Option<Arc<CallQueue>> {
        let must_wake = self.queue.queue.push((self.to, self.call));
        must_wake.then_some(self.queue)
    }
}

/// Moves queued calls to their actors.
struct WorkerInbox(Arc<CoalescingQueue<Addressed>>);

impl Actor for WorkerInbox {
    type Context = Context<Self>;
}

impl Handler<InboxWake> for WorkerInbox {
    type Result = ();

    fn handle(&mut self, _: InboxWake, _: &mut Self::Context) {
        let (calls, _) = self.0.pop_batch(usize::MAX);
        for (to, call) in calls {
            // Each actor has at most two calls out, so its mailbox has room. A health check finds an actor that is gone.
            to.try_send(call).ok();
        }
    }
}
