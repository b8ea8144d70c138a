//! The loop of each of the engine's own actors, which a panic does not end in silence.
//!
//! actix drops an actor whose handler or future panics: its mailbox closes, whoever waits for it
//! may wait for ever, and nothing says why. Here the panic is caught around the loop's every turn,
//! and the actor says what becomes of it. The code that panicked is not run again: its message is
//! gone, and with a restart all futures of the actor are.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{self, Poll, Wake, Waker};

use actix::dev::ContextFut;
use actix::dev::channel::channel;
use actix::prelude::*;
use futures::task::AtomicWaker;

use crate::guard::panic_text;

/// Messages that a mailbox takes until its actor sets the capacity.
const CAPACITY: usize = 16;

/// The text of the newest panic, for the actor that is about to be restarted.
#[derive(Clone, Default)]
pub(crate) struct LastPanic(Rc<RefCell<Option<String>>>);

impl LastPanic {
    /// Takes the text, put into a sentence about this actor.
    pub(crate) fn take(&self, actor: &str) -> String {
        let text = self.0.borrow_mut().take();
        let text = text.unwrap_or_else(|| "without a text".to_owned());
        format!("{actor} panicked, which is a defect of the engine or of its store: {text}")
    }
}

/// Starts an actor on another thread. After a panic it goes on, without the futures that it had
/// spawned; [`Supervised::restarting`] decides what else that means.
pub(crate) fn start_restarting<A>(
    arbiter: &ArbiterHandle,
    make: impl FnOnce(&mut Context<A>, LastPanic) -> A + Send + 'static,
) -> Addr<A>
where
    A: Actor<Context = Context<A>> + Supervised,
{
    let (sender, receiver) = channel(CAPACITY);
    arbiter.spawn_fn(move || {
        let mut ctx = Context::with_receiver(receiver);
        let panic = LastPanic::default();
        let actor = make(&mut ctx, panic.clone());
        run(ctx.into_future(actor), move |actor, text| {
            *panic.0.borrow_mut() = Some(text);
            actor.restart()
        });
    });
    Addr::new(sender)
}

/// Starts an actor on this thread. A panic ends it, and is told.
pub(crate) fn start_ending<A>(actor: A, mut tell: impl FnMut(String) + Unpin + 'static) -> Addr<A>
where
    A: Actor<Context = Context<A>>,
{
    let ctx = Context::new();
    let addr = ctx.address();
    run(ctx.into_future(actor), move |_, text| {
        tell(text);
        false
    });
    addr
}

type Loop<A> = ContextFut<A, Context<A>>;

/// What wakes an actor, in place of the waker of its task. A mailbox keeps the waker that it was
/// given last for as long as anybody has its address, and a task's waker keeps the runtime with its
/// descriptors; this one lets go of the task when the actor ends.
#[derive(Default)]
struct Relay(AtomicWaker);

impl Wake for Relay {
    fn wake(self: Arc<Self>) {
        self.0.wake();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.wake();
    }
}

/// An actor's loop, and what happens when it panics: false ends it.
struct Caught<A: Actor<Context = Context<A>>, F> {
    actor: Loop<A>,
    panicked: F,
    relay: Arc<Relay>,
    waker: Waker,
}

impl<A: Actor<Context = Context<A>>, F> Drop for Caught<A, F> {
    fn drop(&mut self) {
        self.relay.0.take();
    }
}

fn run<A, F>(actor: Loop<A>, panicked: F)
where
    A: Actor<Context = Context<A>>,
    F: FnMut(&mut Loop<A>, String) -> bool + Unpin + 'static,
{
    let relay = Arc::<Relay>::default();
    let waker = Waker::from(Arc::clone(&relay));
    actix_rt::spawn(Caught {
        actor,
        panicked,
        relay,
        waker,
    });
}

impl<A, F> Future for Caught<A, F>
where
    A: Actor<Context = Context<A>>,
    F: FnMut(&mut Loop<A>, String) -> bool + Unpin,
{
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> Poll<()> {
        let Self {
            actor,
            panicked,
            relay,
            waker,
        } = self.get_mut();
        // Before the turn: a wake during the turn makes another one.
        relay.0.register(cx.waker());
        let mut cx = task::Context::from_waker(waker);
        loop {
            match catch_unwind(AssertUnwindSafe(|| Pin::new(&mut *actor).poll(&mut cx))) {
                Ok(poll) => return poll,
                Err(panic) => {
                    let text = panic_text(&*panic);
                    let goes_on = catch_unwind(AssertUnwindSafe(|| panicked(actor, text)));
                    if !goes_on.unwrap_or(false) {
                        return Poll::Ready(());
                    }
                }
            }
        }
    }
}
