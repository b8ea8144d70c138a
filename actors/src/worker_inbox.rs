//! `WorkerInbox`: an actor on each worker that moves queued calls to the mailboxes of their actors, on the thread that
//! they share. So a worker is woken once for many calls, and the supervisor does not lose its processor to each of
//! them.

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

    /// Queues a call. Returns `true` if the worker must be woken.
    #[must_use]
    pub(crate) fn push(&self, to: &Arc<Addr<ProcedureActor>>, call: Call) -> bool {
        self.queue.push((Arc::clone(to), call))
    }

    /// Wakes the worker. At most one wake is under way, so the mailbox has room for it. If the inbox is gone with its
    /// thread, so are its actors, and a health check finds them.
    pub(crate) fn wake(&self) {
        self.inbox.try_send(InboxWake).ok();
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
