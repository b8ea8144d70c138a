//! Tells whether a batch that releases something is worth holding back until the limiter has been heard. If somebody
//! waits for it, the grant is decided then, and both take one sync. If nobody does, the wait is for nothing.
//!
//! It learns from the last time: after a wait in which nobody was served or queued it expects nobody, until somebody is.

/// What the limiter's answers said since the last wait began.
#[derive(Debug, Default)]
pub(super) struct Contention {
    /// Somebody was queued or served, so somebody probably waits for what is released next.
    is_expected: bool,
    /// Waits so far.
    begun: u64,
    /// The wait that a batch is held back for, by its number. There is one at a time.
    waiting: Option<u64>,
}

impl Contention {
    /// Notes that a request was queued, or that one was served that had waited.
    pub(super) const fn noted(&mut self) {
        self.is_expected = true;
    }

    /// Notes that the limiter has served somebody on its own, which is what the wait was for. The answer may arrive much
    /// later: a busy supervisor takes other messages first, and the next release must not find the wait going on.
    pub(super) const fn served(&mut self) {
        self.is_expected = true;
        self.waiting = None;
    }

    /// Begins a wait if the batch should wait, and returns its number.
    pub(super) const fn begin(&mut self) -> Option<u64> {
        if !self.is_expected || self.waiting.is_some() {
            return None;
        }
        self.is_expected = false;
        self.begun += 1;
        self.waiting = Some(self.begun);
        self.waiting
    }

    /// Notes that the limiter has answered a wait. Returns `true` if no batch is held back any more: the answer to a wait
    /// that is over must not let go the batch of a later one.
    pub(super) fn end(&mut self, number: u64) -> bool {
        self.waiting.take_if(|waiting| *waiting == number);
        self.waiting.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_waits_while_waiting_pays() {
        let mut contention = Contention::default();
        assert_eq!(contention.begin(), None, "nobody was queued");
        contention.noted();
        assert_eq!(contention.begin(), Some(1));
        contention.noted();
        assert_eq!(contention.begin(), None, "one wait at a time");
        assert!(contention.end(1));
        assert_eq!(
            contention.begin(),
            Some(2),
            "the last wait served somebody, or somebody was queued meanwhile"
        );
        assert!(contention.end(2));
        assert_eq!(contention.begin(), None, "the last wait was for nothing");
        contention.noted();
        assert_eq!(contention.begin(), Some(3), "somebody was served outside a wait");
    }

    #[test]
    fn a_wait_that_has_served_somebody_is_over_before_its_answer() {
        let mut contention = Contention::default();
        contention.noted();
        assert_eq!(contention.begin(), Some(1));
        contention.served();
        assert_eq!(contention.begin(), Some(2));
        assert!(!contention.end(1), "the second goes on");
        assert_eq!(contention.begin(), None);
        assert!(contention.end(2));
    }
}
