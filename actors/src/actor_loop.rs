//! The loop of each of the engine's own actors, in which a panic does not go unnoticed.
//!
//! actix drops an actor whose handler or future panics. Its mailbox closes, callers may wait for ever, and nothing
//! says why. Here the panic is caught around each turn of the loop, and the actor decides what follows. The code that
//! panicked is not run again: its message is lost, and a restart loses all futures of the actor.

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

/// Capacity of a mailbox until its actor sets another.
const CAPACITY: usize = 16;

/// The text of the newest panic, for the actor that is about to be restarted.
#[derive(Clone, Default)]
pub(crate) struct LastPanic(Rc<RefCell<Option<String>>>);

impl LastPanic {
    /// Takes the text, as a sentence about this actor.
    pub(crate) fn take(&self, actor: &str) -> String {
        let text = self.0.borrow_mut().take();
        let text = text.unwrap_or_else(|| "without a text".to_owned());
        format!("{actor} panicked, which is a defect of the engine or of its store: {text}")
    }
}

/// Starts an actor on another thread. After a panic it continues without the futures that it had spawned;
/// [`Supervised::restarting`] decides what else follows.
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

/// Starts an actor on this thread. A panic ends it, and is reported.
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

/// Wakes an actor, instead of the waker of its task. A mailbox keeps its last waker as long as anybody has its
/// address, and a task's waker keeps the runtime with its descriptors. This one releases the task when the actor
/// ends.
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

/// An actor's loop, and what happens when it panics: `false` ends it.
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
        // Registered before the turn, so that a wake during the turn causes another one.
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
