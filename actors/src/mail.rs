//! Mail between the engine's actors, counted where it is sent and where it is taken: so
//! whoever wants to know how much waits reads two numbers, and enters no mailbox.

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

/// An address that counts what is sent to it.
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

    /// Sends, and waits for room where there is none. It counts from here on.
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

    /// Sends if there is room.
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

/// The same for messages of one type, to whichever actor takes them.
pub(crate) struct Outbox<M: Message<Result = ()> + Send> {
    to: Recipient<M>,
    depth: Arc<Depth>,
}

impl<M: Message<Result = ()> + Send + 'static> Outbox<M> {
    pub(crate) const fn new(to: Recipient<M>, depth: Arc<Depth>) -> Self {
        Self { to, depth }
    }

    /// Sends without loss: at once where there is room, else on the task that awaits it. It counts from here on.
    pub(crate) fn send(&self, message: M) -> impl Future<Output = ()> + use<M> {
        self.depth.sent();
        // The address is cloned only for those that wait: that takes three allocations.
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

/// Says that something has been gathered for an actor: it takes it, not this.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Notice;

/// What many say to one actor, who takes it many at a time: each costs a place in a list, where a
/// message of its own takes two allocations of one thread that another frees, and wakes.
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

    /// Gathers it, and counts it from here on. There is always room: whoever says something here says
    /// the next only when that was heard, so that the tray holds no more than there are of them.
    pub(crate) fn send(&self, item: T) {
        self.depth.sent();
        if self.tray.put(item) {
            self.tell();
        }
    }

    /// Gives how many items wait to be taken.
    pub(crate) fn len(&self) -> usize {
        self.tray.len()
    }

    /// Takes what was gathered first, so many at most. If that is not all, there is another notice behind what waits by now.
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

/// A message from outside that counts as waiting until it is taken. One that is given up
/// before there was room for it counts no more.
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

/// Counts as one that waits, until it is dropped.
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

/// Opens the mail, and has its message handled as it is.
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

/// Sends without loss: at once where there is room, else when there is.
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
