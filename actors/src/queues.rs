//! The queues between the engine's actors. Each message is counted where it is sent and where it is taken. To find out
//! how many wait, a caller reads two numbers and enters no mailbox.

mod coalescing;
mod depth;
mod ordered;
#[cfg(test)]
mod tests;

pub(crate) use coalescing::CoalescingQueue;
pub(crate) use depth::Depth;
pub(crate) use ordered::Ordered;

use std::sync::Arc;

use actix::dev::{MessageResponse, ToEnvelope};
use actix::prelude::*;

/// An address that counts the messages sent to it.
pub(crate) struct CountedAddr<A: Actor> {
    addr: Addr<A>,
    depth: Arc<Depth>,
}

impl<A: Actor> Clone for CountedAddr<A> {
    fn clone(&self) -> Self {
        Self::new(self.addr.clone(), Arc::clone(&self.depth))
    }
}

impl<A: Actor> CountedAddr<A> {
    pub(crate) const fn new(addr: Addr<A>, depth: Arc<Depth>) -> Self {
        Self { addr, depth }
    }

    /// Sends a message, and waits for room if there is none. The message counts as waiting from this call on.
    pub(crate) fn send<M>(&self, message: M) -> Request<A, M>
    where
        M: Message + Send + 'static,
        M::Result: Send,
        A: Handler<M>,
        A::Context: ToEnvelope<A, M>,
    {
        self.depth.sent();
        self.addr.send(message)
    }

    /// Sends a message if there is room.
    pub(crate) fn try_send<M>(&self, message: M) -> Result<(), SendError<M>>
    where
        M: Message + Send + 'static,
        M::Result: Send,
        A: Handler<M>,
        A::Context: ToEnvelope<A, M>,
    {
        self.depth.sent();
        self.addr.try_send(message).inspect_err(|_| self.depth.taken())
    }
}

/// A counting address for messages of one type, whatever the receiving actor.
pub(crate) struct Outbox<M: Message<Result = ()> + Send> {
    to: Recipient<M>,
    depth: Arc<Depth>,
}

impl<M: Message<Result = ()> + Send + 'static> Outbox<M> {
    pub(crate) const fn new(to: Recipient<M>, depth: Arc<Depth>) -> Self {
        Self { to, depth }
    }

    /// Sends a message without loss: at once if there is room, otherwise on the task that awaits the future. The
    /// message counts as waiting from this call on.
    pub(crate) fn send(&self, message: M) -> impl Future<Output = ()> + use<M> {
        self.depth.sent();
        // Cloning the address takes three allocations, so it is cloned only for messages that wait.
        let waits = match self.to.try_send(message) {
            Ok(()) | Err(SendError::Closed(_)) => None,
            Err(SendError::Full(message)) => Some((self.to.clone(), message)),
        };
        async move {
            if let Some((to, message)) = waits {
                deliver(&to, message).await;
            }
        }
    }
}

/// Wakes an actor whose inbox has items. The actor takes the items; this message carries none.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct InboxWake;

/// Items that many senders have for one actor, which takes many at a time. An item costs a place in a list. A message
/// of its own would take two allocations of one thread that another thread frees, and a wake.
pub(crate) struct BatchedInbox<T> {
    queue: CoalescingQueue<T>,
    to: Recipient<InboxWake>,
    depth: Arc<Depth>,
}

impl<T> BatchedInbox<T> {
    pub(crate) fn new(to: Recipient<InboxWake>, depth: Arc<Depth>) -> Self {
        Self {
            queue: CoalescingQueue::new(),
            to,
            depth,
        }
    }

    /// Adds an item, and counts it as waiting from this call on. There is always room: a sender adds its next item only
    /// once its last was taken. So the inbox never holds more items than there are senders.
    pub(crate) fn send(&self, item: T) {
        self.depth.sent();
        if self.queue.push(item) {
            self.wake();
        }
    }

    /// Returns how many items wait to be taken.
    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }

    /// Removes the oldest items, at most `limit`. If items are left, another wake is sent, behind everything that waits
    /// in the mailbox by now.
    pub(crate) fn pop_batch(&self, limit: usize) -> Vec<T> {
        let (batch, more) = self.queue.pop_batch(limit);
        self.depth.taken_all(batch.len() as u64);
        if more {
            self.wake();
        }
        batch
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "one wake is under way, or two if the receiver came unasked; the mailbox has room, and no sender may wait"
    )]
    fn wake(&self) {
        self.to.do_send(InboxWake);
    }
}

/// A message from outside that counts as waiting until it is taken. A message that its sender drops before there was
/// room for it no longer counts.
#[derive(Debug)]
pub struct CountedMessage<M> {
    message: M,
    stamp: Stamp,
}

impl<M> CountedMessage<M> {
    pub(crate) fn new(message: M, depth: &Arc<Depth>) -> Self {
        Self {
            message,
            stamp: Stamp::new(depth),
        }
    }
}

impl<M: Message> Message for CountedMessage<M> {
    type Result = M::Result;
}

/// Counts as one waiting message until it is dropped.
#[derive(Debug)]
pub(crate) struct Stamp(Arc<Depth>);

impl Stamp {
    pub(crate) fn new(depth: &Arc<Depth>) -> Self {
        depth.sent();
        Self(Arc::clone(depth))
    }
}

impl Drop for Stamp {
    fn drop(&mut self) {
        self.0.taken();
    }
}

/// Stops counting a message as waiting, and handles it as if it had arrived uncounted.
pub(crate) fn handle_counted<A, M>(
    actor: &mut A,
    counted: CountedMessage<M>,
    ctx: &mut A::Context,
) -> <A as Handler<M>>::Result
where
    A: Actor + Handler<M>,
    M: Message,
    <A as Handler<M>>::Result: MessageResponse<A, CountedMessage<M>>,
{
    let CountedMessage { message, stamp } = counted;
    drop(stamp);
    actor.handle(message, ctx)
}

/// Sends a message without loss: at once if there is room, otherwise once there is.
pub(crate) async fn deliver<M>(to: &Recipient<M>, message: M)
where
    M: Message + Send + 'static,
    M::Result: Send,
{
    match to.try_send(message) {
        Ok(()) | Err(SendError::Closed(_)) => {}
        Err(SendError::Full(message)) => {
            if to.send(message).await.is_err() {
                tracing::debug!("the receiver stopped before it took the message");
            }
        }
    }
}
