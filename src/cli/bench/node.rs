//! What nodes of sets and streams do here: nothing, or they hold up the others until told otherwise.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use procession::StageError;
use procession::flow::{NodeContext, Processed, Processor};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use super::taken::{now, record, times};

/// One node's data.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Work {
    act: Act,
    payload: String,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
enum Act {
    /// Does nothing.
    Pass,
    /// Says when it began.
    Hop,
    /// Waits at the gate.
    Hold,
}

impl Work {
    /// Creates a node that does nothing.
    pub(super) fn pass(payload: &str) -> Self {
        Self::new(Act::Pass, payload)
    }

    /// Creates a node that does nothing, and whose beginning is measured.
    pub(super) fn hop(payload: &str) -> Self {
        Self::new(Act::Hop, payload)
    }

    /// Creates a node that waits at the gate of its site.
    pub(super) fn hold(payload: &str) -> Self {
        Self::new(Act::Hold, payload)
    }

    fn new(act: Act, payload: &str) -> Self {
        let payload = payload.to_owned();
        Self { act, payload }
    }
}

impl Processor for Work {
    const NAME: &'static str = "bench_node";
    type Env = Site;
    type Output = ();

    async fn process(&self, _: &mut NodeContext<'_>, site: &Site) -> Result<Processed<()>, StageError> {
        match self.act {
            Act::Pass => Ok(Processed::Done(())),
            Act::Hop => {
                site.began();
                Ok(Processed::Done(()))
            }
            Act::Hold => {
                site.began();
                site.pass_gate().await
            }
        }
    }
}

/// What becomes of a node at the gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Gate {
    /// It waits.
    Closed,
    /// It succeeds.
    Open,
    /// It fails.
    Failing,
    /// It parks itself, and stays.
    Parking,
}

/// What all nodes of an engine share: a gate, and the times at which some of them began.
#[derive(Clone)]
pub(super) struct Site {
    gate: watch::Sender<Gate>,
    hops: Arc<Mutex<Hops>>,
}

struct Hops {
    first: Option<Instant>,
    last: Option<Instant>,
    between: Histogram<u64>,
}

impl Hops {
    fn new() -> Self {
        Self {
            first: None,
            last: None,
            between: times(),
        }
    }
}

impl Site {
    /// Makes a site with its gate like this.
    pub(super) fn new(gate: Gate) -> Self {
        Self {
            gate: watch::Sender::new(gate),
            hops: Arc::new(Mutex::new(Hops::new())),
        }
    }

    /// Sets the gate.
    pub(super) fn set(&self, gate: Gate) {
        self.gate.send_replace(gate);
    }

    async fn pass_gate(&self) -> Result<Processed<()>, StageError> {
        let mut gate = self.gate.subscribe();
        let gate = *gate.wait_for(|gate| *gate != Gate::Closed).await?;
        match gate {
            Gate::Failing => Err(StageError::fail("the gate is closed for good")),
            Gate::Parking => Ok(Processed::Park { timeout: None }),
            Gate::Closed | Gate::Open => Ok(Processed::Done(())),
        }
    }

    fn began(&self) {
        let at = now();
        let mut hops = self.hops.lock().unwrap_or_else(PoisonError::into_inner);
        hops.first.get_or_insert(at);
        if let Some(before) = hops.last.replace(at) {
            record(&mut hops.between, at.duration_since(before));
        }
    }

    /// Returns the times between one node and the next since this was asked the last time, and begins anew.
    pub(super) fn take_hops(&self) -> Histogram<u64> {
        let mut hops = self.hops.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *hops, Hops::new()).between
    }

    /// Returns the time from then until the first node began.
    pub(super) fn until_first(&self, begun: Instant) -> Option<Duration> {
        let hops = self.hops.lock().unwrap_or_else(PoisonError::into_inner);
        hops.first.map(|first| first.duration_since(begun))
    }
}
