//! An address that delivers messages in the order of sending, whether the mailbox is full or not.

use std::sync::Arc;

use actix::dev::ToEnvelope;
use actix::prelude::*;

use super::Depth;

/// Delivers everything that one sender tells or asks one actor, in exactly the order of sending.
///
/// A full mailbox would refuse a message, and a task that retries later is overtaken by whatever is sent meanwhile. So
/// neither method here ever waits for room. That needs no more memory: a refused message would wait as well, in a task
/// that is larger than the message. The sender bounds how much it sends. It shares its thread with the actor, and the
/// actor runs before the sender's next turn.
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

    /// Sends the actor a message without an answer. An actor that has stopped receives nothing.
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

    /// Sends the actor a request, behind everything that was told or asked before.
    pub(crate) fn ask<M>(&self, message: M) -> Request<A, M>
    where
        M: Message + Send + 'static,
        M::Result: Send,
        A: Handler<M>,
        A::Context: ToEnvelope<A, M>,
    {
        self.depth.sent();
        // A mailbox accepts the first message of each new address, full or not. It may refuse the second message of the
        // same address.
        self.addr.clone().send(message)
    }
}
