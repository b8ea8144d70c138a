//! `WorkerInbox`: an actor on each worker that moves queued calls to the mailboxes of their actors, on the thread that
//! they share. So a worker is woken once for many calls, and the supervisor does not lose its processor to each of
//! them.

use std::sync::Arc;

use actix::prelude::*;

use crate::context::Call;
use crate::mail::{Notice, Tray};
use crate::procedure_actor::ProcedureActor;

/// A call, and the actor that it is for.
type Addressed = (Arc<Addr<ProcedureActor>>, Call);

/// The calls on their way to the actors of one worker. Each actor has one or two calls out, which bounds the queue.
pub(crate) struct CallQueue {
    tray: Arc<Tray<Addressed>>,
    inbox: Addr<WorkerInbox>,
}

impl CallQueue {
    /// Starts the inbox of a worker. It stops when the queue is dropped.
    pub(crate) fn start(worker: &ArbiterHandle) -> Self {
        let tray = Arc::new(Tray::new());
        let served = Arc::clone(&tray);
        let inbox = WorkerInbox::start_in_arbiter(worker, move |_| WorkerInbox(served));
        Self { tray, inbox }
    }

    /// Queues a call. Returns `true` if the worker must be woken.
    #[must_use]
    pub(crate) fn push(&self, to: &Arc<Addr<ProcedureActor>>, call: Call) -> bool {
        self.tray.put((Arc::clone(to), call))
    }

    /// Wakes the worker. At most one notice is under way, so the mailbox has room for it. If the inbox is gone with its
    /// thread, so are its actors, and a health check finds them.
    pub(crate) fn wake(&self) {
        self.inbox.try_send(Notice).ok();
    }
}

/// Moves queued calls to their actors.
struct WorkerInbox(Arc<Tray<Addressed>>);

impl Actor for WorkerInbox {
    type Context = Context<Self>;
}

impl Handler<Notice> for WorkerInbox {
    type Result = ();

    fn handle(&mut self, _: Notice, _: &mut Self::Context) {
        let (calls, _) = self.0.take(usize::MAX);
        for (to, call) in calls {
            // Each actor has at most two calls out, so its mailbox has room. A health check finds an actor that is gone.
            to.try_send(call).ok();
        }
    }
}
