//! The signals that a procedure has yet to consume, by name, and the events that it takes no further signals of.

use procession_actors::view::Mailbox;
use serde::{Deserialize, Serialize};

use super::time;

/// How many names are listed, those with the most signals. A sender may make up any number of names.
const NAMES_MAX: usize = 64;

/// The queue of a procedure that has not ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct MailboxView {
    /// How many signals wait in all.
    pub waiting: u64,
    /// The names with the most signals, 64 at most.
    pub names: Vec<NameView>,
    /// `true` if there are more names than are listed.
    pub more: bool,
    /// When the oldest signal was sent.
    pub oldest: Option<String>,
    /// The events whose last signal was sent. Later signals of them are refused.
    pub closed: Vec<String>,
}

/// How many signals of one name wait.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct NameView {
    /// Name of the event.
    pub name: String,
    /// How many of its signals wait.
    pub waiting: u32,
}

impl From<&Mailbox> for MailboxView {
    fn from(mailbox: &Mailbox) -> Self {
        let kept = mailbox.kept.iter();
        let mut names: Vec<NameView> = kept
            .map(|(name, waiting)| NameView {
                name: name.clone(),
                waiting: *waiting,
            })
            .collect();
        // The sort keeps names with equally many signals in their order.
        names.sort_by_key(|name| std::cmp::Reverse(name.waiting));
        let more = names.len() > NAMES_MAX;
        names.truncate(NAMES_MAX);
        Self {
            waiting: mailbox.kept.values().map(|waiting| u64::from(*waiting)).sum(),
            names,
            more,
            oldest: mailbox.oldest.map(time),
            closed: mailbox.closed.clone(),
        }
    }
}
