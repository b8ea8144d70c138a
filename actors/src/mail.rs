//! Mail between the engine's actors, counted where it is sent and where it is taken. To find out how much waits, a
//! caller reads two numbers and enters no mailbox.

mod depth;
mod ordered;
#[cfg(test)]
mod tests;
mod tray;

pub(crate) use depth::Depth;
pub(crate) use ordered::Ordered;
pub(crate) use tray::Tray;

use std::sync::Arc;

use actix::dev::{MessageResponse, ToEnvelope};
use actix::prelude::*;

/// An address that counts the messages sent to it.
pub(crate) struct Counted<A: Actor> {
    addr: Addr<A>,
    depth: Arc<Depth>,
}

impl<A: Actor> Clone for Counted<A> {
    fn clone(&self) -> Self {
        Self::new(self.addr.clone(), Arc::clone(&self.depth))
    }
}

impl<A: Actor> Counted<A> {
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

/// Tells an actor that items were gathered for it. The actor takes the items; this message carries none.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Notice;

/// Items that many senders have for one actor, which takes many at a time. An item costs a place in a list. A message
/// of its own would take two allocations of one thread that another thread frees, and a wake.
pub(crate) struct Gathering<T> {
    tray: Tray<T>,
    to: Recipient<Notice>,
    depth: Arc<Depth>,
}

impl<T> Gathering<T> {
    pub(crate) fn new(to: Recipient<Notice>, depth: Arc<Depth>) -> Self {
        Self {
            tray: Tray::new(),
            to,
            depth,
        }
    }

    /// Gathers an item, and counts it as waiting from this call on. There is always room: a sender gathers its next
    /// item only once its last was taken. So the tray never holds more items than there are senders.
    pub(crate) fn send(&self, item: T) {
        self.depth.sent();
        if self.tray.put(item) {
            self.tell();
        }
    }

    /// Returns how many items wait to be taken.
    pub(crate) fn len(&self) -> usize {
        self.tray.len()
    }

    /// Takes the oldest items, at most `most` of them. If items are left, another notice is sent, behind everything
    /// that waits in the mailbox by now.
    pub(crate) fn take(&self, most: usize) -> Vec<T> {
        let (taken, more) = self.tray.take(most);
        self.depth.taken_all(taken.len() as u64);
        if more {
            self.tell();
        }
        taken
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "one notice is under way, or one more behind a taker who came unasked: the mailbox bears that, and nothing may hold it up"
    )]
    fn tell(&self) {
        self.to.do_send(Notice);
    }
}

/// A message from outside that counts as waiting until it is taken. A message that its sender drops before there was
/// room for it no longer counts.
#[derive(Debug)]
pub struct Mail<M> {
    message: M,
    stamp: Stamp,
}

impl<M> Mail<M> {
    pub(crate) fn new(message: M, depth: &Arc<Depth>) -> Self {
        Self {
            message,
            stamp: Stamp::new(depth),
        }
    }
}

impl<M: Message> Message for Mail<M> {
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

/// Opens the mail, and handles its message as if it had arrived without it.
pub(crate) fn open<A, M>(actor: &mut A, mail: Mail<M>, ctx: &mut A::Context) -> <A as Handler<M>>::Result
where
    A: Actor + Handler<M>,
    M: Message,
    <A as Handler<M>>::Result: MessageResponse<A, Mail<M>>,
{
    let Mail { message, stamp } = mail;
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
