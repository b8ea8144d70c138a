//! Explanations: which procedure waits for which, according to the kernel and the limiter's queues. Also builds the
//! graph in which deadlocks are searched.

use std::collections::BTreeSet;

use procession_kernel::{
    Blocker, Lacking, Link, Missing, Need, ProcedureId, Row, Seq, Timestamp, WaitGraph, WaitNode, WaitReason,
    WaitingFor, WakeSource,
};
use tokio::sync::oneshot;

use super::diagnosis_input::DiagnosisInput;
use super::queue_reading::Explained;
use super::undecided::{BehindCounter, STEPS};
use crate::error::AskError;
use crate::journal::codec;
use crate::limiter::WaitingClaim;
use crate::read::CommittedReader;
use crate::view::{self, ChainEnd, Explanation, Particulars, QueuePosition};

/// Bounds the links of one explanation. No reader wants more.
const LINKS_MAX: usize = 1_000;

/// Bounds the holders of one lock that an explanation names.
const HOLDERS_MAX: usize = 100;

/// Bounds the procedures that one search visits: some tens of megabytes. A procedure left out counts as able to move,
/// so that no deadlock is invented.
const NODES_MAX: usize = 200_000;

/// A search for which procedure waits for which.
#[derive(Default)]
pub(super) struct Search {
    pub(super) graph: WaitGraph,
    next: Vec<ProcedureId>,
    seen: BTreeSet<ProcedureId>,
}

impl Search {
    /// Adds a procedure to visit, unless it was added before or the bound is reached.
    pub(super) fn begin(&mut self, id: ProcedureId) {
        if self.seen.len() < NODES_MAX && self.seen.insert(id) {
            self.next.push(id);
        }
    }

    /// Returns how many procedures were added.
    pub(super) fn visited(&self) -> usize {
        self.seen.len()
    }
}

impl DiagnosisInput<'_> {
    /// Returns the graph of waits that starts at these procedures. Rows newer than `until` are left out, and count as
    /// rows of procedures that can move.
    pub(super) fn graph(&self, from: impl IntoIterator<Item = ProcedureId>, until: Option<Seq>) -> WaitGraph {
        let mut search = Search::default();
        for id in from {
            search.begin(id);
            self.search(&mut search, until, usize::MAX);
        }
        search.graph
    }

    /// Continues a search by at most this many procedures. Returns how many it visited.
    pub(super) fn search(&self, search: &mut Search, until: Option<Seq>, most: usize) -> usize {
        let mut looked_at = 0;
        while looked_at < most
            && let Some(id) = search.next.pop()
        {
            looked_at += 1;
            let is_new = |row: &Row| until.is_some_and(|until| row.revision > until);
            if self.kernel.row(id).is_none_or(is_new) {
                continue;
            }
            let Some(node) = self.node(id) else { continue };
            for other in node.needs.iter().flat_map(|need| &need.of) {
                search.begin(*other);
            }
            search.graph.insert(id, node);
        }
        looked_at
    }

    /// Returns where the search for deadlocks starts because of a member that waits at the limiter: at the member, and at
    /// the root of the part that rolls back if the wait is for the member's undo. The member has often ended by then.
    ///
    /// In each cycle some procedure is waited for because it holds something, or because it is a relative: waits for
    /// procedures ahead in a queue alone lead to ever earlier places. That procedure waits at the limiter itself, or one
    /// of its relatives does. So no search starts from a procedure that holds nothing and has no relatives, however many
    /// of these wait.
    pub(super) fn starts(&self, id: ProcedureId, waiting: &WaitingClaim) -> impl Iterator<Item = ProcedureId> + use<> {
        let has_relatives = || {
            self.kernel
                .families()
                .get(&id.family)
                .is_some_and(|family| family.members.len() > 1)
        };
        let may_deadlock = waiting.holds || has_relatives();
        let starts = may_deadlock.then(|| [id, self.kernel.waits_as(id)]);
        starts.into_iter().flatten()
    }

    fn node(&self, id: ProcedureId) -> Option<WaitNode> {
        let mut node = self.kernel.needs_of(id)?;
        let asks = self.kernel.asks_as(id).and_then(|asker| self.queues.of(asker));
        for blocker in asks.into_iter().flat_map(|waiting| &waiting.blockers) {
            self.blocked(blocker, &mut node.needs);
        }
        Some(node)
    }

    /// Adds the procedures that block a waiter. A claim that belongs to no procedure (yet, or any more) is about to
    /// move.
    fn blocked(&self, blocker: &Blocker, needs: &mut Vec<Need>) {
        let why = match &blocker.lacking {
            Lacking::Lock(path) => WaitingFor::Lock(path.clone()),
            Lacking::Permit(key) => WaitingFor::Permit(key.clone()),
        };
        let of: Vec<ProcedureId> = blocker
            .by
            .iter()
            .filter_map(|claim| self.claims.procedure(*claim))
            .map(|id| match blocker.queued_ahead {
                true => self.kernel.waits_as(id),
                false => self.kernel.gives_back_as(id),
            })
            .collect();
        if !blocker.any {
            needs.extend(of.into_iter().map(|id| Need {
                why: why.clone(),
                of: vec![id],
                queued_ahead: blocker.queued_ahead,
            }));
        } else if of.len() == blocker.by.len() {
            needs.push(Need {
                why,
                of,
                queued_ahead: blocker.queued_ahead,
            });
        }
    }

    /// Explains a live procedure. Returns `None` for any other.
    pub(crate) fn explain(&self, id: ProcedureId) -> Option<Explanation> {
        let row = self.kernel.row(id).filter(|row| !row.is_ended())?;
        let graph = self.graph([id], None);
        let mut links = graph.chain(id, LINKS_MAX + 1);
        let truncated = links.len() > LINKS_MAX;
        links.truncate(LINKS_MAX);
        let particulars = self.particulars(row);
        let link = links.first().filter(|link| link.from == id);
        let hole = self
            .holes
            .get(&id)
            .filter(|_| row.wait == Some(WaitReason::Quarantined));
        Some(Explanation {
            id,
            kind: row.kind.clone(),
            state: row.state,
            reason: match hole {
                Some(hole) => format!("it cannot be rolled back: {hole}"),
                None => self.reason(row, link, particulars.as_ref()),
            },
            since: row.since,
            next: self.next(row),
            queue_position: self.queue_position(id),
            particulars,
            ends: self.ends(id, &links),
            links,
            waiting_behind: BehindCounter::new(self.kernel, STEPS).count(id),
            deadlocks: graph.deadlocks(),
            truncated,
        })
    }

    /// Describes what happens next. The row knows of its own pause alone.
    fn next(&self, row: &Row) -> String {
        let next = view::next(row);
        let names_it = row.rare().paused || row.wait == Some(WaitReason::Paused);
        match names_it || row.in_flight.is_some() || self.kernel.pauses_of(row.id).is_empty() {
            true => next,
            false => view::held_back(&next),
        }
    }

    /// Returns the wait in full, if there is more to say than the row does.
    fn particulars(&self, row: &Row) -> Option<Particulars> {
        if let Some(children) = self.kernel.children_of(row.id) {
            return Some(Particulars::Children(children));
        }
        if let Some((siblings, _)) = self.kernel.held_among(row.id) {
            return Some(Particulars::Slot(siblings));
        }
        let missing = self.missing?;
        // Another procedure may be asking by now: a different undo may be next.
        let waiting = self.queues.of(self.kernel.asks_as(row.id)?)?;
        let lacking = missing.lacking();
        if !waiting.blockers.iter().any(|blocker| blocker.lacking == lacking) {
            return None;
        }
        Some(match missing {
            Missing::Lock(need, holders) => Particulars::Lock {
                need: need.clone(),
                holders: holders
                    .iter()
                    .filter_map(|claim| self.claims.procedure(*claim))
                    .take(HOLDERS_MAX)
                    .collect(),
            },
            Missing::Permit(usage) => Particulars::Permit(usage.clone()),
        })
    }

    /// Returns the waits of the procedures at which the chain ends.
    fn ends(&self, id: ProcedureId, links: &[Link]) -> Vec<ChainEnd> {
        let from: BTreeSet<ProcedureId> = links.iter().map(|link| link.from).collect();
        let mut seen = BTreeSet::new();
        let reached = std::iter::once(id).chain(links.iter().map(|link| link.to));
        let last = reached.filter(|id| !from.contains(id) && seen.insert(*id));
        last.map(|id| self.end(id)).collect()
    }

    fn end(&self, id: ProcedureId) -> ChainEnd {
        let until = if self.quarantined.contains_key(&id.family) {
            WakeSource::Operator(WaitReason::Quarantined)
        } else {
            self.woken_by(id)
        };
        ChainEnd {
            id,
            until,
            since: self.kernel.row(id).map_or(self.now, |row| row.since),
        }
    }

    /// Returns what moves a procedure. Time does not move one that a pause holds back.
    fn woken_by(&self, id: ProcedureId) -> WakeSource<String> {
        let source = match (self.kernel.wake_source_of(id), self.begins_at(id)) {
            (WakeSource::Nothing, Some(at)) => WakeSource::Timer(at),
            (source, _) => source,
        };
        if matches!(source, WakeSource::Timer(_)) && !self.kernel.pauses_of(id).is_empty() {
            return WakeSource::Operator(WaitReason::Paused);
        }
        source.map(|stage| codec::describe(stage.as_slice()))
    }

    /// Returns when rates allow what a waiting procedure lacks, if it waits for nothing but that.
    fn begins_at(&self, id: ProcedureId) -> Option<Timestamp> {
        let waiting = self.queues.of(self.kernel.asks_as(id)?)?;
        let times: Option<Vec<Timestamp>> = waiting.blockers.iter().map(|blocker| blocker.at).collect();
        times?.into_iter().max()
    }

    fn reason(&self, row: &Row, link: Option<&Link>, particulars: Option<&Particulars>) -> String {
        // The row keeps the reason given when the procedure asked. Some of what it names may be free since.
        let wait = row.wait.as_ref().map(|wait| match particulars {
            Some(Particulars::Lock { need, .. }) => WaitReason::Lock(need.path.clone()),
            Some(Particulars::Permit(limit)) => WaitReason::Permit(limit.key.clone()),
            Some(Particulars::Children(_) | Particulars::Slot(_)) | None => wait.clone(),
        });
        match (link.map(|link| &link.why), &wait) {
            (Some(WaitingFor::Rollback), _) => "its family fails, and is rolled back".to_owned(),
            (Some(WaitingFor::Stage), _) => "its rollback waits until none of its stages runs".to_owned(),
            (_, Some(wait)) if row.is_failing() => format!("its rollback is held up: {wait}"),
            (_, Some(wait)) => wait.to_string(),
            (_, None) => {
                let until = self.end(row.id).until;
                if let WakeSource::Stage(stage) = &until {
                    return format!("stage {stage} {}", (self.called)(row.id));
                }
                format!("it continues {until}")
            }
        }
    }

    /// Returns the procedure's position among the waiters for the same thing.
    fn queue_position(&self, id: ProcedureId) -> Option<QueuePosition> {
        if let Some((siblings, position)) = self.kernel.held_among(id) {
            let of = siblings.held as usize;
            return Some(QueuePosition { position, of });
        }
        let reason = |id: ProcedureId| self.kernel.row(id)?.wait.as_ref();
        let asker = self.kernel.asks_as(id)?;
        let mine = self.queues.of(asker)?.order;
        let wanted = reason(id)?;
        let (mut before, mut of) = (0, 0);
        for (other, waiting) in &self.queues.waiting {
            if *other == asker || reason(*other) == Some(wanted) {
                of += 1;
                before += usize::from(waiting.order < mine);
            }
        }
        Some(QueuePosition {
            position: before + 1,
            of,
        })
    }
}

/// Answers `Explain` once the commit that the explanation rests on is on disk. A procedure that is not live is
/// explained from the store.
pub(in crate::supervisor) async fn answer(
    id: ProcedureId,
    explained: oneshot::Receiver<Explained>,
    committed: CommittedReader,
) -> Result<Explanation, AskError> {
    let (explanation, settled) = explained.await.map_err(|_| AskError::Stopped)?;
    settled.await?;
    match explanation {
        Some(explanation) => Ok(explanation),
        None => stored(&committed, id).await,
    }
}

/// Explains a procedure that is not live: it has ended, is quarantined, or is unknown.
pub(crate) async fn stored(committed: &CommittedReader, id: ProcedureId) -> Result<Explanation, AskError> {
    let row = committed.row(id).await?.ok_or(AskError::Unknown(id))?;
    let mut explanation = Explanation {
        id,
        kind: row.kind.clone(),
        state: row.state,
        reason: row.rare().cause.as_ref().map_or_else(
            || "it has ended".to_owned(),
            |cause| format!("it has ended: {}", cause.text),
        ),
        since: row.since,
        next: view::next(&row),
        queue_position: None,
        particulars: None,
        links: Vec::new(),
        ends: Vec::new(),
        waiting_behind: 0,
        deadlocks: Vec::new(),
        truncated: false,
    };
    if let Some(why) = committed.why_quarantined(id.family).filter(|_| !row.is_ended()) {
        explanation.reason = format!("its family is quarantined: {why}");
        explanation.next = "nothing, until a start can load its family, or an operator discharges it".to_owned();
        explanation.ends.push(ChainEnd {
            id,
            until: WakeSource::Operator(WaitReason::Quarantined),
            since: row.since,
        });
    }
    Ok(explanation)
}
