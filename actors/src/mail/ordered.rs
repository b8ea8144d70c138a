//! An address that delivers in the order of sending, whether its mailbox is full or not.

use std::sync::Arc;

use actix::dev::ToEnvelope;
use actix::prelude::*;

use super::Depth;

/// What one sender tells and asks one actor arrives in exactly this order.
///
/// A full mailbox would refuse a message, and a task that tries again later is overtaken by
/// whatever is sent meanwhile. So neither way here ever waits for room. That needs no more
/// memory: a refused message waits as well, in a task that is larger than it. The sender bounds
/// how much it says; it shares its thread with the actor, which takes its turn before the
/// sender's next one.
pub(crate) struct Ordered<A: Actor> {
    addr: Addr<A>,
    depth: Arc<Depth>,
}

impl<A: Actor> Clone for Ordered<A> {
    fn clone(&self) -> Self {
        Self::new(self.addr.clone(), Arc::clone(&self.depth))
    }
}

impl<A: Actor> Ordered<A> {
    pub(crate) const fn new(addr: Addr<A>, depth: Arc<Depth>) -> Self {
        Self { addr, depth }
    }

    /// Tells the actor something. An actor that has stopped hears nothing.
    #[expect(
        clippy::disallowed_methods,
        reason = "order must not depend on room; the type says why that is bounded"
    )]
    pub(crate) fn tell<M>(&self, message: M)
    where
        M: Message + Send + 'static,
        M::Result: Send,
        A: Handler<M>,
        A::Context: ToEnvelope<A, M>,
    {
        self.depth.sent();
        self.addr.do_send(message);
    }

    /// Asks the actor something, behind all that was told and asked before.
    pub(crate) fn ask<M>(&self, message: M) -> Request<A, M>
    where
        M: Message + Send + 'static,
        M::Result: Send,
        A: Handler<M>,
        A::Context: ToEnvelope<A, M>,
    {
        self.depth.sent();
        // A mailbox takes the first message of each new address, full or not; the second one from
        // the same address it may refuse.
        self.addr.clone().send(message)
    }
}
