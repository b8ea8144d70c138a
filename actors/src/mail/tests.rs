//! Messages that were sent and not taken count as waiting, and nothing else does.

use std::sync::Arc;

use actix::prelude::*;

use super::{Counted, Depth, Gathering, Mail, Notice, Outbox, open};

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

impl Handler<Mail<Ask>> for Clerk {
    type Result = u64;

    fn handle(&mut self, mail: Mail<Ask>, ctx: &mut Self::Context) -> u64 {
        open(self, mail, ctx)
    }
}

#[test]
fn mail_counts_until_it_is_taken_or_given_up() {
    let depth = Arc::new(Depth::default());
    let runner = actix_rt::System::new();
    runner.block_on(async {
        let clerk = Clerk(Arc::clone(&depth)).start();
        let asks: Vec<_> = (0..3).map(|_| clerk.send(Mail::new(Ask, &depth))).collect();
        assert_eq!(depth.waiting(), 3);
        let mut seen = Vec::new();
        for ask in asks {
            seen.push(ask.await.expect("it lives"));
        }
        assert_eq!((seen[0], depth.waiting()), (2, 0), "one that is taken waits no more");
        // There is no room for all of these messages, and the ones that are left are never awaited.
        let given_up: Vec<_> = (0..9).map(|_| clerk.send(Mail::new(Ask, &depth))).collect();
        assert_eq!(depth.waiting(), 9);
        drop(given_up);
        assert!(depth.waiting() < 9);
        clerk.send(Ask).await.expect("it lives");
        assert_eq!(depth.waiting(), 0);
    });
}

#[test]
fn what_is_turned_away_never_counted() {
    let depth = Arc::new(Depth::default());
    let runner = actix_rt::System::new();
    runner.block_on(async {
        let clerk = Clerk(Arc::default()).start();
        clerk.send(Ask).await.expect("it lives");
        let counted = Counted::new(clerk, Arc::clone(&depth));
        let sent = (0..9).filter(|_| counted.try_send(Ask).is_ok()).count();
        assert!(sent < 9, "there is no room for all of them");
        assert_eq!(depth.waiting(), sent as u64);
    });
}

#[test]
fn what_there_is_no_room_for_is_sent_when_there_is() {
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

/// Takes two items at a time, and keeps what it took.
struct Gatherer {
    gathering: Arc<Gathering<u32>>,
    taken: Vec<Vec<u32>>,
}

impl Actor for Gatherer {
    type Context = Context<Self>;
}

impl Handler<Notice> for Gatherer {
    type Result = ();

    fn handle(&mut self, _: Notice, _: &mut Self::Context) {
        self.taken.push(self.gathering.take(2));
    }
}

#[derive(Message)]
#[rtype(result = "Vec<Vec<u32>>")]
struct Taken;

impl Handler<Taken> for Gatherer {
    type Result = Vec<Vec<u32>>;

    fn handle(&mut self, _: Taken, _: &mut Self::Context) -> Vec<Vec<u32>> {
        std::mem::take(&mut self.taken)
    }
}

#[test]
fn what_is_gathered_is_taken_in_order_and_many_at_a_time() {
    let depth = Arc::new(Depth::default());
    let runner = actix_rt::System::new();
    runner.block_on(async {
        let mut gathering = None;
        let gatherer = Gatherer::create(|ctx| {
            let made = Arc::new(Gathering::new(ctx.address().recipient(), Arc::clone(&depth)));
            gathering = Some(Arc::clone(&made));
            Gatherer {
                gathering: made,
                taken: Vec::new(),
            }
        });
        let gathering = gathering.expect("it was made");
        (1..=5).for_each(|item| gathering.send(item));
        assert_eq!(depth.waiting(), 5);
        let mut taken = Vec::new();
        // Each notice is queued behind everything that waited when it was sent, including this request.
        while depth.waiting() > 0 {
            taken.extend(gatherer.send(Taken).await.expect("it lives"));
        }
        taken.extend(gatherer.send(Taken).await.expect("it lives"));
        assert_eq!(taken, [vec![1, 2], vec![3, 4], vec![5]]);
        gathering.send(6);
        assert_eq!(
            gatherer.send(Taken).await.expect("it lives"),
            [vec![6]],
            "one who comes later is heard, too"
        );
    });
}
