//! Why a procedure stands where it stands: the chain of who waits for whom, and where it ends.

use procession_actors::view::{ChainEnd, Explanation, Particulars, QueuePosition};
use procession_kernel::{Link, Siblings, WakeSource};
use serde::{Deserialize, Serialize};

use super::{CycleView, RateView, time};

/// Why a procedure stands where it stands, and who keeps it there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ExplanationView {
    /// Who it is.
    pub id: String,
    /// Its type.
    pub kind: String,
    /// Its state.
    pub state: String,
    /// Why it is in that state, in words.
    pub reason: String,
    /// Since when state and reason are as they are.
    pub since: String,
    /// What comes next, in words.
    pub next: String,
    /// Its place in the queue, if it waits for a permit or a lock.
    pub place: Option<PlaceView>,
    /// The lock that it waits for.
    #[serde(default)]
    pub lock: Option<LockWantedView>,
    /// The limit of which it waits for a permit.
    #[serde(default)]
    pub permit: Option<PermitWantedView>,
    /// The children that it waits for.
    #[serde(default)]
    pub children: Option<ChildrenLeftView>,
    /// The slot that it waits for, if its parent bounds how many of its children are in progress at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slot: Option<SlotWantedView>,
    /// Who waits for whom, nearest first.
    pub links: Vec<LinkView>,
    /// What those wait for who wait for no other one.
    pub ends: Vec<EndView>,
    /// How many wait behind it at gates; 1,000 also if there are more.
    #[serde(default)]
    pub behind: usize,
    /// Deadlocks in which the chains end.
    pub deadlocks: Vec<CycleView>,
    /// There are more links than are shown.
    pub truncated: bool,
}

/// A lock that is waited for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LockWantedView {
    /// What is to be locked.
    pub path: String,
    /// `shared` or `exclusive`.
    pub mode: String,
    /// Who holds what conflicts with it, 100 at most; nobody where those keep it who wait in a place before.
    pub holders: Vec<String>,
}

/// A limit of which a permit is waited for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PermitWantedView {
    /// Its name.
    pub key: String,
    /// Permits in all; none if that is not known here.
    pub limit: Option<u32>,
    /// Permits that are out.
    pub used: u32,
    /// How many may begin in a time, if it has a rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<RateView>,
}

/// Children that are waited for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ChildrenLeftView {
    /// How many of them have ended.
    pub done: u32,
    /// How many there are.
    pub total: u32,
    /// How many are in progress: they run, or wait for something of their own.
    #[serde(default)]
    pub running: u32,
    /// How many wait for a slot, because their parent bounds how many are in progress at once.
    #[serde(default)]
    pub held: u32,
    /// The first of those in progress, 10 at most.
    #[serde(default)]
    pub named: Vec<String>,
}

/// A slot that is waited for, among the children of one parent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SlotWantedView {
    /// How many children may be in progress at once.
    pub width: u32,
    /// How many are in progress.
    pub running: u32,
    /// The first of these, 10 at most.
    pub named: Vec<String>,
}

/// A place among those who wait for the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PlaceView {
    /// Counted from 1.
    pub place: usize,
    /// How many wait.
    pub of: usize,
}

/// Who waits for whom.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LinkView {
    /// Who waits.
    pub from: String,
    /// For whom.
    pub to: String,
    /// What for.
    pub why: String,
    /// Since when.
    pub since: String,
}

/// Where a chain ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct EndView {
    /// The procedure, which waits for no other one.
    pub id: String,
    /// When it continues: `at …`, `once …`, or `on its own`.
    pub until: String,
    /// Since when it waits for that.
    pub since: String,
}

impl From<&Explanation> for ExplanationView {
    fn from(explanation: &Explanation) -> Self {
        let place = |place: QueuePosition| PlaceView {
            place: place.position,
            of: place.of,
        };
        let (mut lock, mut permit, mut children, mut slot) = (None, None, None, None);
        let named = |siblings: &Siblings| siblings.named.iter().map(ToString::to_string).collect();
        match &explanation.particulars {
            Some(Particulars::Lock { need, holders }) => {
                lock = Some(LockWantedView {
                    path: need.path.to_string(),
                    mode: need.mode.to_string(),
                    holders: holders.iter().map(ToString::to_string).collect(),
                });
            }
            Some(Particulars::Permit(limit)) => {
                permit = Some(PermitWantedView {
                    key: limit.key.to_string(),
                    limit: limit.limit,
                    used: limit.used,
                    rate: limit.rate.as_ref().map(RateView::from),
                });
            }
            Some(Particulars::Children(of)) => {
                children = Some(ChildrenLeftView {
                    done: of.done,
                    total: of.total,
                    running: of.running,
                    held: of.held,
                    named: named(of),
                });
            }
            Some(Particulars::Slot(of)) => {
                slot = Some(SlotWantedView {
                    width: of.width,
                    running: of.running,
                    named: named(of),
                });
            }
            Some(_) | None => {}
        }
        Self {
            id: explanation.id.to_string(),
            kind: explanation.kind.to_string(),
            state: explanation.state.to_string(),
            reason: explanation.reason.clone(),
            since: time(explanation.since),
            next: explanation.next.clone(),
            place: explanation.queue_position.map(place),
            lock,
            permit,
            children,
            slot,
            links: explanation.links.iter().map(LinkView::from).collect(),
            ends: explanation.ends.iter().map(EndView::from).collect(),
            behind: explanation.waiting_behind,
            deadlocks: explanation.deadlocks.iter().map(CycleView::from).collect(),
            truncated: explanation.truncated,
        }
    }
}

impl From<&Link> for LinkView {
    fn from(link: &Link) -> Self {
        Self {
            from: link.from.to_string(),
            to: link.to.to_string(),
            why: link.why.to_string(),
            since: time(link.since),
        }
    }
}

/// Says what moves one that waits for nobody; instants as date and time.
fn until(until: &WakeSource<String>) -> String {
    match until {
        WakeSource::Timer(at) => format!("at {}", time(*at)),
        WakeSource::Event(name, Some(at)) => format!("once event \"{name}\" arrives, or at {}", time(*at)),
        WakeSource::Event(name, None) => format!("once event \"{name}\" arrives"),
        WakeSource::Stage(_)
        | WakeSource::Undo(..)
        | WakeSource::Operator(_)
        | WakeSource::Start
        | WakeSource::Nothing
        | _ => until.to_string(),
    }
}

impl From<&ChainEnd> for EndView {
    fn from(end: &ChainEnd) -> Self {
        Self {
            id: end.id.to_string(),
            until: until(&end.until),
            since: time(end.since),
        }
    }
}
