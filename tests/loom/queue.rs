//! The line before the store's writer: whoever comes first writes for all.

use loom::thread;

use crate::line::Line;
use crate::sync::{Arc, AtomicUsize, Ordering};

/// What was written, in its order, and how far each caller may count on it.
type Written = Vec<usize>;

pub(crate) fn each_once() {
    let line = Arc::new(Line::new(Written::new()));
    let writers = [1, 2].map(|first| {
        let line = Arc::clone(&line);
        thread::spawn(move || {
            let (one, other) = (first * 10, first * 10 + 1);
            line.push(one);
            line.push(other);
            line.serve(Vec::push);
            let written = line.writer();
            let places = [one, other].map(|item| written.iter().position(|found| *found == item));
            assert!(places[0].is_some() && places[0] < places[1], "{written:?}");
        })
    });
    for writer in writers {
        writer.join().expect("it does not panic");
    }
    let mut written = line.writer().clone();
    written.sort_unstable();
    assert_eq!(written, [10, 11, 20, 21]);
}

/// One hands in and is dropped before it serves; others look at the writer; the next one writes it.
pub(crate) fn looked_at() {
    let line = Arc::new(Line::new(Written::new()));
    let looks = Arc::new(AtomicUsize::new(0));
    let dropped = Arc::clone(&line);
    let dropper = thread::spawn(move || dropped.push(1));
    let (looked, seen) = (Arc::clone(&line), Arc::clone(&looks));
    let looker = thread::spawn(move || seen.store(looked.writer().len(), Ordering::Relaxed));
    let server = Arc::clone(&line);
    let server = thread::spawn(move || {
        server.push(2);
        server.serve(Vec::push);
        assert!(server.writer().contains(&2));
    });
    server.join().expect("it does not panic");
    dropper.join().expect("it does not panic");
    looker.join().expect("it does not panic");
    line.serve(Vec::push);
    let mut written = line.writer().clone();
    written.sort_unstable();
    assert_eq!(written, [1, 2]);
    assert!(looks.load(Ordering::Relaxed) <= 2);
}
