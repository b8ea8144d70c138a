//! The tray: two put in, and the taker comes when it is told, and then only.

use loom::thread;

use crate::sync::{Arc, AtomicUsize, Ordering};
use crate::tray::Tray;

/// As many as are taken at once: fewer than are put in.
const MOST: usize = 1;

pub(crate) fn each_taken() {
    let tray = Arc::new(Tray::new());
    // The taker's mailbox: how many notices wait in it.
    let notices = Arc::new(AtomicUsize::new(0));
    let putters = [10, 20].map(|item| {
        let (tray, notices) = (Arc::clone(&tray), Arc::clone(&notices));
        thread::spawn(move || {
            if tray.put(item) {
                let waited = notices.fetch_add(1, Ordering::AcqRel);
                assert_eq!(waited, 0, "one notice at a time");
            }
        })
    });
    let (from, told) = (Arc::clone(&tray), Arc::clone(&notices));
    let taker = thread::spawn(move || serve(&from, &told));
    for putter in putters {
        putter.join().expect("it does not panic");
    }
    let mut taken = taker.join().expect("it does not panic");
    taken.extend(serve(&tray, &notices));
    taken.sort_unstable();
    assert_eq!(taken, [10, 20]);
}

/// Handles the notices that wait, and those that come of it.
fn serve(tray: &Tray<usize>, notices: &AtomicUsize) -> Vec<usize> {
    let mut taken = Vec::new();
    while notices.load(Ordering::Acquire) > 0 {
        notices.fetch_sub(1, Ordering::AcqRel);
        let (some, more) = tray.take(MOST);
        taken.extend(some);
        if more {
            let waited = notices.fetch_add(1, Ordering::AcqRel);
            assert_eq!(waited, 0, "one notice at a time");
        }
    }
    taken
}
