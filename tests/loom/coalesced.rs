//! The coalescing queue: two threads push, and the receiver pops only while a notification waits for it.

use loom::thread;

use crate::coalescing::CoalescingQueue;
use crate::sync::{Arc, AtomicUsize, Ordering};

/// The size of a batch: less than what is pushed, so that the receiver must be notified again.
const LIMIT: usize = 1;

pub(crate) fn each_popped() {
    let queue = Arc::new(CoalescingQueue::new());
    // The receiver's mailbox: how many notifications wait in it.
    let notifications = Arc::new(AtomicUsize::new(0));
    let senders = [10, 20].map(|item| {
        let (queue, notifications) = (Arc::clone(&queue), Arc::clone(&notifications));
        thread::spawn(move || {
            if queue.push(item) {
                notify(&notifications);
            }
        })
    });
    let (from, mailbox) = (Arc::clone(&queue), Arc::clone(&notifications));
    let receiver = thread::spawn(move || receive(&from, &mailbox));
    for sender in senders {
        sender.join().expect("it does not panic");
    }
    let mut popped = receiver.join().expect("it does not panic");
    popped.extend(receive(&queue, &notifications));
    popped.sort_unstable();
    assert_eq!(popped, [10, 20]);
    assert_eq!(queue.len(), 0, "nothing is left");
}

/// Handles the waiting notifications, and those that this sends.
fn receive(queue: &CoalescingQueue<usize>, notifications: &AtomicUsize) -> Vec<usize> {
    let mut popped = Vec::new();
    while notifications.load(Ordering::Acquire) > 0 {
        notifications.fetch_sub(1, Ordering::AcqRel);
        let (batch, more) = queue.pop_batch(LIMIT);
        popped.extend(batch);
        if more {
            notify(notifications);
        }
    }
    popped
}

fn notify(notifications: &AtomicUsize) {
    let waited = notifications.fetch_add(1, Ordering::AcqRel);
    assert_eq!(waited, 0, "one notification at a time");
}
