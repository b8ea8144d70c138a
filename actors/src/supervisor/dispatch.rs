//! When the workers' porters are told of calls: at once, or, of those that one receipt sets free, many at a
//! time. A worker that is woken takes the supervisor's processor, for the few calls that there are by then,
//! and goes to sleep again.

use std::sync::Arc;

use actix::prelude::*;

use crate::porter::Calls;
use crate::procedure_actor::{Call, ProcedureActor};

/// Calls of which porters are told together, at most: as much as keeps a worker busy while as many more are gathered.
const TOGETHER: usize = 64;

/// Porters that have not been told yet.
#[derive(Default)]
pub(super) struct Dispatch {
    gathers: bool,
    untold: Vec<Arc<Calls>>,
    /// Calls since they were told last.
    calls: usize,
}

impl Dispatch {
    /// Gathers from here on.
    pub(super) fn begin(&mut self) {
        self.gathers = true;
    }

    /// Tells all who have not been told yet, and gathers no more.
    pub(super) fn end(&mut self) {
        self.gathers = false;
        self.tell();
    }

    /// Sends a call on its way.
    pub(super) fn issue(&mut self, way: &Arc<Calls>, to: &Arc<Addr<ProcedureActor>>, call: Call) {
        if way.gather(to, call) {
            self.untold.push(Arc::clone(way));
        }
        self.calls += 1;
        if !self.gathers || self.calls >= TOGETHER {
            self.tell();
        }
    }

    fn tell(&mut self) {
        self.calls = 0;
        for way in self.untold.drain(..) {
            way.tell();
        }
    }
}
