//! What every reply carries: the reader's clock, and the commit that it shows.

use procession_actors::view::Page;
use procession_kernel::{Epoch, Seq, Timestamp};
use serde::{Deserialize, Serialize};

use super::{ProcedureView, time};

/// A body, with the time at which it was read and the commit that it shows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Reply<T> {
    /// When it was read: ages count to here.
    pub now: String,
    /// The newest commit in it, as `epoch-seq`.
    pub as_of: String,
    /// The rest.
    #[serde(flatten)]
    pub body: T,
}

impl<T> Reply<T> {
    /// Puts a body into its reply.
    #[must_use]
    pub fn new(now: Timestamp, (epoch, seq): (Epoch, Seq), body: T) -> Self {
        Self {
            now: time(now),
            as_of: format!("{epoch}-{seq}"),
            body,
        }
    }
}

/// One page of a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PageView {
    /// The procedures, by id.
    pub items: Vec<ProcedureView>,
    /// Where the next page begins; none if this is the last.
    pub cursor: Option<String>,
    /// How many rows were read for it.
    pub scanned: usize,
    /// It stopped because it had read as many rows as one request may.
    pub truncated: bool,
    /// Those whose rows cannot be read.
    pub unreadable: Vec<String>,
}

impl From<&Page> for PageView {
    fn from(page: &Page) -> Self {
        Self {
            items: page.items.iter().map(ProcedureView::from).collect(),
            cursor: page.next.map(|id| id.to_string()),
            scanned: page.scanned,
            truncated: page.truncated,
            unreadable: page.unreadable.iter().map(ToString::to_string).collect(),
        }
    }
}
