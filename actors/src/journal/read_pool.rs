//! `ReadPool`: a few threads that may block, and the reads that wait for them.
//!
//! A thread that has finished a read takes the next one itself. A read therefore waits only for earlier reads, never
//! for a busy arbiter to start it.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Reads under way at once: enough to keep a disk busy, few enough that stages keep their processors.
const THREADS: usize = 8;

/// A read that also delivers its answer.
type Read = Box<dyn FnOnce() + Send>;

/// The queued reads, and how many threads serve them.
#[derive(Default)]
pub(super) struct ReadPool(Mutex<State>);

#[derive(Default)]
struct State {
    waiting: VecDeque<Read>,
    threads: usize,
}

impl ReadPool {
    /// Queues a read. Returns a thread for the caller to run where blocking is allowed, unless enough run already.
    pub(super) fn submit(self: &Arc<Self>, read: Read) -> Option<PoolThread> {
        let mut state = self.state();
        state.waiting.push_back(read);
        let is_free = state.threads < THREADS;
        state.threads += usize::from(is_free);
        drop(state);
        is_free.then(|| PoolThread {
            pool: Some(Arc::clone(self)),
        })
    }

    /// Runs the queued reads in order until none is left, then frees the thread's slot.
    fn serve(&self) {
        while let Some(read) = self.next() {
            // A read that panics delivers no answer; its caller notices the closed channel.
            catch_unwind(AssertUnwindSafe(read)).ok();
        }
    }

    /// Returns the next read. If there is none, the thread's slot is freed under the same lock, so that the next
    /// queued read gets a thread.
    fn next(&self) -> Option<Read> {
        let mut state = self.state();
        let next = state.waiting.pop_front();
        state.threads -= usize::from(next.is_none());
        next
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A thread of the pool before it runs.
pub(super) struct PoolThread {
    /// `None` once it has run.
    pool: Option<Arc<ReadPool>>,
}

impl PoolThread {
    /// Runs the queued reads on the calling thread until none is left.
    pub(super) fn run(mut self) {
        self.serve();
    }

    fn serve(&mut self) {
        if let Some(pool) = self.pool.take() {
            pool.serve();
        }
    }
}

impl Drop for PoolThread {
    /// A runtime that shuts down drops blocking work that has not begun. Callers on other runtimes wait for these
    /// reads, and this thread still occupies its slot, so the reads run here.
    fn drop(&mut self) {
        self.serve();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    /// A read that waits until it is told to end.
    fn held(pool: &Arc<ReadPool>) -> (Option<PoolThread>, mpsc::Sender<()>) {
        let (end, ended) = mpsc::channel();
        let thread = pool.submit(Box::new(move || {
            ended.recv().ok();
        }));
        (thread, end)
    }

    #[test]
    fn so_many_at_once_and_the_others_in_their_order() {
        let pool = Arc::<ReadPool>::default();
        let (ends, threads): (Vec<_>, Vec<_>) = (0..THREADS)
            .map(|_| held(&pool))
            .map(|(thread, end)| (end, thread::spawn(move || thread.map(PoolThread::run))))
            .unzip();
        let (tell, told) = mpsc::channel();
        for number in 0..100 {
            let tell = tell.clone();
            let thread = pool.submit(Box::new(move || tell.send(number).unwrap()));
            assert!(thread.is_none(), "as many as may be are under way");
        }
        assert!(told.try_recv().is_err());
        ends[0].send(()).unwrap();
        assert!(told.iter().take(100).eq(0..100), "one thread reads them all, in order");
        drop(ends);
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(pool.state().threads, 0);
    }

    #[test]
    fn a_read_that_panics_ends_no_thread() {
        let pool = Arc::<ReadPool>::default();
        let (tell, told) = mpsc::channel();
        let thread = pool.submit(Box::new(|| panic!("as planned")));
        pool.submit(Box::new(move || tell.send(()).unwrap()));
        thread.into_iter().for_each(PoolThread::run);
        assert!(told.recv().is_ok());
        assert_eq!(pool.state().threads, 0);
    }

    #[test]
    fn a_thread_that_is_dropped_before_it_runs_reads_what_waits() {
        let pool = Arc::<ReadPool>::default();
        let (tell, told) = mpsc::channel();
        drop(pool.submit(Box::new(move || tell.send(()).unwrap())));
        assert!(told.recv().is_ok());
        assert!(
            pool.submit(Box::new(|| ())).is_some(),
            "the next read gets a thread again"
        );
    }
}
