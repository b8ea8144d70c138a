//! The threads that read, a few at once, and the reads that wait for one. A thread that has ended a read takes
//! the next by itself: so a read waits for those before it, and never for a busy thread to begin it.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Reads under way at once: enough to keep a disk busy, few enough that stages keep their processors.
const MOST: usize = 8;

/// A read, with the telling of what it found.
type Read = Box<dyn FnOnce() + Send>;

/// All lanes, and what waits for one.
#[derive(Default)]
pub(super) struct Lanes(Mutex<State>);

#[derive(Default)]
struct State {
    waiting: VecDeque<Read>,
    open: usize,
}

impl Lanes {
    /// Adds a read behind those that wait. Gives a lane to be driven where it may block, unless enough are.
    pub(super) fn add(self: &Arc<Self>, read: Read) -> Option<Lane> {
        let mut state = self.state();
        state.waiting.push_back(read);
        let opens = state.open < MOST;
        state.open += usize::from(opens);
        drop(state);
        opens.then(|| Lane(Arc::clone(self)))
    }

    /// Gives the next read, or closes a lane.
    fn next(&self) -> Option<Read> {
        let mut state = self.state();
        let next = state.waiting.pop_front();
        state.open -= usize::from(next.is_none());
        next
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads one after another until none waits. It does so also where it is dropped instead: the runtime that was to
/// drive it may be about to end, and others wait for these reads.
pub(super) struct Lane(Arc<Lanes>);

impl Lane {
    pub(super) fn drive(self) {
        drop(self);
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        while let Some(read) = self.0.next() {
            // Of one that panics, nothing is told: whoever waits for it learns that.
            catch_unwind(AssertUnwindSafe(read)).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    /// A read that waits until it is told to end.
    fn held(lanes: &Arc<Lanes>) -> (Option<Lane>, mpsc::Sender<()>) {
        let (end, ended) = mpsc::channel();
        let lane = lanes.add(Box::new(move || {
            ended.recv().ok();
        }));
        (lane, end)
    }

    #[test]
    fn so_many_at_once_and_the_others_in_their_order() {
        let lanes = Arc::<Lanes>::default();
        let (ends, threads): (Vec<_>, Vec<_>) = (0..MOST)
            .map(|_| held(&lanes))
            .map(|(lane, end)| (end, thread::spawn(move || lane.map(Lane::drive))))
            .unzip();
        let (tell, told) = mpsc::channel();
        for number in 0..100 {
            let tell = tell.clone();
            let lane = lanes.add(Box::new(move || tell.send(number).unwrap()));
            assert!(lane.is_none(), "as many as may be are under way");
        }
        assert!(told.try_recv().is_err());
        ends[0].send(()).unwrap();
        assert!(told.iter().take(100).eq(0..100), "one lane reads them all, in order");
        drop(ends);
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(lanes.state().open, 0);
    }

    #[test]
    fn one_that_panics_closes_no_lane() {
        let lanes = Arc::<Lanes>::default();
        let (tell, told) = mpsc::channel();
        let lane = lanes.add(Box::new(|| panic!("as planned")));
        lanes.add(Box::new(move || tell.send(()).unwrap()));
        lane.into_iter().for_each(Lane::drive);
        assert!(told.recv().is_ok());
        assert_eq!(lanes.state().open, 0);
    }

    #[test]
    fn a_lane_that_nobody_drives_reads_what_waits() {
        let lanes = Arc::<Lanes>::default();
        let (tell, told) = mpsc::channel();
        drop(lanes.add(Box::new(move || tell.send(()).unwrap())));
        assert!(told.recv().is_ok());
        assert!(lanes.add(Box::new(|| ())).is_some(), "the next read opens a lane again");
    }
}
