//! `Porter`: one on each worker. It brings the calls that the supervisor has gathered to the mailboxes of
//! their actors, on the thread that they share: a worker is woken once for many calls, and the supervisor
//! is not put aside for it with each of them.

use std::sync::Arc;

use actix::prelude::*;

use crate::mail::{Notice, Tray};
use crate::procedure_actor::{Call, ProcedureActor};

/// A call, and whose it is.
type Addressed = (Arc<Addr<ProcedureActor>>, Call);

/// Calls on their way to the actors of one worker: one or two for each of them, at most.
pub(crate) struct Calls {
    tray: Arc<Tray<Addressed>>,
    porter: Addr<Porter>,
}

impl Calls {
    /// Starts the porter of a worker, who goes when these are dropped.
    pub(crate) fn start(worker: &ArbiterHandle) -> Self {
        let tray = Arc::new(Tray::new());
        let carried = Arc::clone(&tray);
        let porter = Porter::start_in_arbiter(worker, move |_| Porter(carried));
        Self { tray, porter }
    }

    /// Gathers a call. True if the porter has to be told.
    #[must_use]
    pub(crate) fn gather(&self, to: &Arc<Addr<ProcedureActor>>, call: Call) -> bool {
        self.tray.put((Arc::clone(to), call))
    }

    /// Tells the porter. It has one notice at a time, and there is room for that; one that has gone with
    /// its thread has left actors that a health check finds gone, too.
    pub(crate) fn tell(&self) {
        self.porter.try_send(Notice).ok();
    }
}

/// Brings calls to actors.
struct Porter(Arc<Tray<Addressed>>);

impl Actor for Porter {
    type Context = Context<Self>;
}

impl Handler<Notice> for Porter {
    type Result = ();

    fn handle(&mut self, _: Notice, _: &mut Self::Context) {
        let (calls, _) = self.0.take(usize::MAX);
        for (to, call) in calls {
            // One call at a time is out to each actor, so its mailbox has room; one that is gone is found by a health check.
            to.try_send(call).ok();
        }
    }
}
