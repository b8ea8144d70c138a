//! Tells whether a batch that releases something is worth holding back until the limiter has been heard. If somebody
//! waits for it, the grant is decided then, and both take one sync. If nobody does, the wait is for nothing.
//!
//! It learns from the last time: after a wait in which nobody was served or queued it expects nobody, until somebody is.

/// What the limiter's answers said since the last wait began.
#[derive(Debug, Default)]
pub(super) struct Contention {
    /// Somebody was queued or served, so somebody probably waits for what is released next.
    is_expected: bool,
    /// A batch waits. There is one at a time.
    is_waiting: bool,
}

impl Contention {
    /// Notes that a request was queued, or that one was served that had waited.
    pub(super) const fn noted(&mut self) {
        self.is_expected = true;
    }

    /// Returns `true` if the batch should wait, and begins the wait.
    pub(super) const fn begin(&mut self) -> bool {
        let begins = self.is_expected && !self.is_waiting;
        if begins {
            (self.is_expected, self.is_waiting) = (false, true);
        }
        begins
    }

    /// Notes that the limiter has been heard.
    pub(super) const fn end(&mut self) {
        self.is_waiting = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_waits_while_waiting_pays() {
        let mut contention = Contention::default();
        assert!(!contention.begin(), "nobody was queued");
        contention.noted();
        assert!(contention.begin());
        contention.noted();
        assert!(!contention.begin(), "one wait at a time");
        contention.end();
        assert!(
            contention.begin(),
            "the last wait served somebody, or somebody was queued meanwhile"
        );
        contention.end();
        assert!(!contention.begin(), "the last wait was for nothing");
        contention.noted();
        assert!(contention.begin(), "somebody was served outside a wait");
    }
}
