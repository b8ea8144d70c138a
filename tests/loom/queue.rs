//! The queue in front of the store's writer: the first thread to arrive writes for all.

use loom::thread;

use crate::commit_queue::CommitQueue;
use crate::sync::{Arc, AtomicUsize, Ordering};

/// What was written, in its order, and how far each caller may count on it.
type Written = Vec<usize>;

pub(crate) fn each_once() {
    let queue = Arc::new(CommitQueue::new(Written::new()));
    let writers = [1, 2].map(|first| {
        let queue = Arc::clone(&queue);
        thread::spawn(move || {
            let (one, other) = (first * 10, first * 10 + 1);
            queue.push(one);
            queue.push(other);
            queue.serve(Vec::push);
            let written = queue.writer();
            let places = [one, other].map(|item| written.iter().position(|found| *found == item));
            assert!(places[0].is_some() && places[0] < places[1], "{written:?}");
        })
    });
    for writer in writers {
        writer.join().expect("it does not panic");
    }
    let mut written = queue.writer().clone();
    written.sort_unstable();
    assert_eq!(written, [10, 11, 20, 21]);
}

/// One hands in and is dropped before it serves; others look at the writer; the next one writes it.
pub(crate) fn looked_at() {
    let queue = Arc::new(CommitQueue::new(Written::new()));
    let looks = Arc::new(AtomicUsize::new(0));
    let dropped = Arc::clone(&queue);
    let dropper = thread::spawn(move || dropped.push(1));
    let (looked, seen) = (Arc::clone(&queue), Arc::clone(&looks));
    let looker = thread::spawn(move || seen.store(looked.writer().len(), Ordering::Relaxed));
    let server = Arc::clone(&queue);
    let server = thread::spawn(move || {
        server.push(2);
        server.serve(Vec::push);
        assert!(server.writer().contains(&2));
    });
    server.join().expect("it does not panic");
    dropper.join().expect("it does not panic");
    looker.join().expect("it does not panic");
    queue.serve(Vec::push);
    let mut written = queue.writer().clone();
    written.sort_unstable();
    assert_eq!(written, [1, 2]);
    assert!(looks.load(Ordering::Relaxed) <= 2);
}
