//! Tells whether a batch that releases something is worth holding back until the limiter has been heard. If somebody
//! waits for it, the grant is decided then, and both take one sync. If nobody does, the wait is for nothing.
//!
//! It learns from the last time: after a wait in which nobody was served it expects nobody, until a request is queued.

/// What the limiter's last answers said.
#[derive(Debug, Default)]
pub(super) struct Contention {
    /// Somebody probably waits for what is released next.
    is_expected: bool,
    /// Somebody was served since the wait under way began; `None` without a wait.
    served: Option<bool>,
}

impl Contention {
    /// Notes that a request was queued.
    pub(super) const fn queued(&mut self) {
        self.is_expected = true;
    }

    /// Notes that a request that had waited was served.
    pub(super) fn served(&mut self) {
        self.is_expected = true;
        self.served = self.served.map(|_| true);
    }

    /// Returns `true` if the batch should wait, and begins the wait. There is one at a time.
    pub(super) fn begin(&mut self) -> bool {
        let begins = self.is_expected && self.served.is_none();
        if begins {
            self.served = Some(false);
        }
        begins
    }

    /// Notes that the limiter has been heard.
    pub(super) fn end(&mut self) {
        self.is_expected = self.served.take().unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_waits_while_waiting_pays() {
        let mut contention = Contention::default();
        assert!(!contention.begin(), "nobody was queued");
        contention.queued();
        assert!(contention.begin());
        assert!(!contention.begin(), "one wait at a time");
        contention.served();
        contention.end();
        assert!(contention.begin(), "the last wait served somebody");
        contention.end();
        assert!(!contention.begin(), "the last wait was for nothing");
        contention.served();
        assert!(contention.begin(), "somebody was served outside a wait");
    }
}
