//! Appends under way: the store is called in the order of the batches, and its answers are taken in that order.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};

use procession_kernel::Receipt;

use super::store::AppendError;

type Answer = Result<Receipt, AppendError>;

enum Append {
    Pending(Pin<Box<dyn Future<Output = Answer>>>),
    Answered(Answer),
}

/// Appends that the store has, and of which the supervisor has no answer yet. The journal bounds their number.
#[derive(Default)]
pub(super) struct UnderWay {
    appends: VecDeque<Append>,
}

impl UnderWay {
    /// Adds an append behind all others. It begins with the next call of [`Self::poll_oldest`].
    pub(super) fn push(&mut self, append: impl Future<Output = Answer> + 'static) {
        self.appends.push_back(Append::Pending(Box::pin(append)));
    }

    /// Returns how many appends have not been answered.
    pub(super) fn len(&self) -> usize {
        self.appends.len()
    }

    /// Drops all appends: their outcome will not be reported.
    pub(super) fn clear(&mut self) {
        self.appends.clear();
    }

    /// Takes the answer to the oldest append; `None` if nothing is under way.
    pub(super) fn poll_oldest(&mut self, cx: &mut Context<'_>) -> Poll<Option<Answer>> {
        // Oldest first: a store may do its work in the first poll, and batches take effect in the order of the calls.
        for append in &mut self.appends {
            if let Append::Pending(pending) = append
                && let Poll::Ready(answer) = pending.as_mut().poll(cx)
            {
                *append = Append::Answered(answer);
            }
        }
        match self.appends.pop_front() {
            None => Poll::Ready(None),
            Some(Append::Answered(answer)) => Poll::Ready(Some(answer)),
            Some(pending @ Append::Pending(_)) => {
                self.appends.push_front(pending);
                Poll::Pending
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use futures::channel::oneshot;
    use futures::task::noop_waker;
    use procession_kernel::{Epoch, Seq};

    use super::*;

    fn receipt(seq: u64) -> Answer {
        Ok(Receipt::new(Epoch(1), Seq(seq)))
    }

    fn poll(under_way: &mut UnderWay) -> Poll<Option<u64>> {
        let polled = under_way.poll_oldest(&mut Context::from_waker(&noop_waker()));
        polled.map(|answer| answer.map(|answer| answer.map_or(0, |receipt| receipt.seq().0)))
    }

    #[test]
    fn answers_are_taken_in_the_order_of_the_appends() {
        let mut under_way = UnderWay::default();
        let mut tellers = Vec::new();
        for _ in 0..3 {
            let (teller, told) = oneshot::channel();
            under_way.push(async { told.await.expect("the test tells") });
            tellers.push(Some(teller));
        }
        let mut tell = |at: usize| tellers[at].take().expect("told once").send(receipt(at as u64 + 1)).ok();
        tell(2);
        assert_eq!(poll(&mut under_way), Poll::Pending, "the first is not answered");
        tell(0);
        assert_eq!(poll(&mut under_way), Poll::Ready(Some(1)));
        assert_eq!(
            poll(&mut under_way),
            Poll::Pending,
            "the third does not overtake the second"
        );
        tell(1);
        assert_eq!(poll(&mut under_way), Poll::Ready(Some(2)));
        assert_eq!(poll(&mut under_way), Poll::Ready(Some(3)));
        assert_eq!(poll(&mut under_way), Poll::Ready(None));
    }

    #[test]
    fn the_store_is_called_in_the_order_of_the_batches() {
        let calls = Rc::new(RefCell::new(Vec::new()));
        let mut under_way = UnderWay::default();
        for number in 1..=4 {
            let calls = Rc::clone(&calls);
            under_way.push(async move {
                calls.borrow_mut().push(number);
                std::future::pending().await
            });
        }
        assert_eq!(poll(&mut under_way), Poll::Pending);
        assert_eq!(
            *calls.borrow(),
            [1, 2, 3, 4],
            "all are called before the first is answered"
        );
        assert_eq!(under_way.len(), 4);
    }
}
