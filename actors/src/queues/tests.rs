//! Messages that were sent and not taken count as waiting, and nothing else does.

use std::sync::Arc;

use actix::prelude::*;

use super::{BatchedInbox, CountedAddr, CountedMessage, Depth, InboxWake, Outbox, handle_counted};

#[derive(Message)]
#[rtype(result = "u64")]
struct Ask;

#[derive(Message)]
#[rtype(result = "()")]
struct Note;

/// Reports how many messages wait when it takes one.
struct Clerk(Arc<Depth>);

impl Actor for Clerk {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(2);
    }
}

impl Handler<Ask> for Clerk {
    type Result = u64;

    fn handle(&mut self, _: Ask, _: &mut Self::Context) -> u64 {
        self.0.waiting()
    }
}

impl Handler<Note> for Clerk {
    type Result = ();

    fn handle(&mut self, _: Note, _: &mut Self::Context) {
        self.0.taken();
    }
}

impl Handler<CountedMessage<Ask>> for Clerk {
    type Result = u64;

    fn handle(&mut self, counted: CountedMessage<Ask>, ctx: &mut Self::Context) -> u64 {
        handle_counted(self, counted, ctx)
    }
}

#[test]
fn a_counted_message_waits_until_it_is_taken_or_dropped() {
    let depth = Arc::new(Depth::default());
    let runner = actix_rt::System::new();
    runner.block_on(async {
        let clerk = Clerk(Arc::clone(&depth)).start();
        let asks: Vec<_> = (0..3).map(|_| clerk.send(CountedMessage::new(Ask, &depth))).collect();
        assert_eq!(depth.waiting(), 3);
        let mut seen = Vec::new();
        for ask in asks {
            seen.push(ask.await.expect("it lives"));
        }
        assert_eq!((seen[0], depth.waiting()), (2, 0), "a taken message waits no more");
        // There is no room for all of these messages, and the ones that are left are never awaited.
        let given_up: Vec<_> = (0..9).map(|_| clerk.send(CountedMessage::new(Ask, &depth))).collect();
        assert_eq!(depth.waiting(), 9);
        drop(given_up);
        assert!(depth.waiting() < 9);
        clerk.send(Ask).await.expect("it lives");
        assert_eq!(depth.waiting(), 0);
    });
}

#[test]
fn a_refused_message_never_counts() {
    let depth = Arc::new(Depth::default());
    let runner = actix_rt::System::new();
    runner.block_on(async {
        let clerk = Clerk(Arc::default()).start();
        clerk.send(Ask).await.expect("it lives");
        let counted = CountedAddr::new(clerk, Arc::clone(&depth));
        let sent = (0..9).filter(|_| counted.try_send(Ask).is_ok()).count();
        assert!(sent < 9, "there is no room for all of them");
        assert_eq!(depth.waiting(), sent as u64);
    });
}

#[test]
fn a_full_mailbox_receives_the_message_once_there_is_room() {
    let depth = Arc::new(Depth::default());
    let runner = actix_rt::System::new();
    runner.block_on(async {
        let clerk = Clerk(Arc::clone(&depth)).start();
        clerk.send(Ask).await.expect("it lives");
        let outbox = Outbox::new(clerk.clone().recipient(), Arc::clone(&depth));
        let sent: Vec<_> = (0..9).map(|_| outbox.send(Note)).collect();
        assert_eq!(depth.waiting(), 9, "the mailbox has room for fewer");
        futures::future::join_all(sent).await;
        clerk.send(Ask).await.expect("it lives");
        assert_eq!(depth.waiting(), 0, "all were taken");
    });
}

/// Takes two items at a time, and keeps the batches.
struct Receiver {
    inbox: Arc<BatchedInbox<u32>>,
    batches: Vec<Vec<u32>>,
}

impl Actor for Receiver {
    type Context = Context<Self>;
}

impl Handler<InboxWake> for Receiver {
    type Result = ();

    fn handle(&mut self, _: InboxWake, _: &mut Self::Context) {
        self.batches.push(self.inbox.pop_batch(2));
    }
}

#[derive(Message)]
#[rtype(result = "Vec<Vec<u32>>")]
struct TakeBatches;

impl Handler<TakeBatches> for Receiver {
    type Result = Vec<Vec<u32>>;

    fn handle(&mut self, _: TakeBatches, _: &mut Self::Context) -> Vec<Vec<u32>> {
        std::mem::take(&mut self.batches)
    }
}

#[test]
fn an_inbox_is_emptied_in_order_and_in_batches() {
    let depth = Arc::new(Depth::default());
    let runner = actix_rt::System::new();
    runner.block_on(async {
        let mut inbox = None;
        let receiver = Receiver::create(|ctx| {
            let made = Arc::new(BatchedInbox::new(ctx.address().recipient(), Arc::clone(&depth)));
            inbox = Some(Arc::clone(&made));
            Receiver {
                inbox: made,
                batches: Vec::new(),
            }
        });
        let inbox = inbox.expect("it was made");
        (1..=5).for_each(|item| inbox.send(item));
        assert_eq!(depth.waiting(), 5);
        let mut batches = Vec::new();
        // Each wake is queued behind everything that waited when it was sent, including this request.
        while depth.waiting() > 0 {
            batches.extend(receiver.send(TakeBatches).await.expect("it lives"));
        }
        batches.extend(receiver.send(TakeBatches).await.expect("it lives"));
        assert_eq!(batches, [vec![1, 2], vec![3, 4], vec![5]]);
        inbox.send(6);
        assert_eq!(
            receiver.send(TakeBatches).await.expect("it lives"),
            [vec![6]],
            "a later item arrives as well"
        );
    });
}
