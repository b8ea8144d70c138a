//! `flows`: a page of sets, each with how its nodes stand, and of streams; `procedures/{id}/graph`, the graph of one
//! family; and `procedures/{id}/queue`, what a stream does. Live sets come from the read model, and no row is read for
//! them; those that have ended, and streams, are read from the store.

use actix_web::{HttpRequest, web};
use procession_actors::view::{FamilyScope, Status};
use procession_actors::{AskError, ReadError, StoreError};
use procession_kernel::{ProcedureId, Timestamp};
use serde_json::{Value, json};

use super::access::Grant;
use super::list::{AT_ONCE, Order, SCAN_MAX, SCAN_TIME, Walk, rules};
use super::model::{LiveFlow, LiveSet};
use super::params::Params;
use super::problem::{Answer, Problem};
use super::procedure::Asked;
use super::redact::Part;
use super::show::Show;
use super::state::{State, viewer};
use super::turns::Turn;
use crate::filter::{Filter, FilterContext};
use crate::flow::{NodeStatus, StreamReader};
use crate::views::{DRAWN, FlowView, NODES_MAX, QueueReading, QueueView, graph_of, is_set, is_stream, set_status};

/// Sets of one page at most.
const PAGE_MAX: usize = 500;
/// Sets of one page, unless another number is asked for.
const PAGE: usize = 100;
/// Rows of sets that have ended that one request reads to count their nodes, at most.
const COUNTED_MAX: usize = 20_000;
/// Members of a family that one graph looks at, at most.
const MEMBERS_MAX: usize = 10_000;
/// Records of a stream in one reply, unless another number is asked for, and at most.
const RECORDS: usize = 50;
const RECORDS_MAX: usize = 500;

/// A page that is being filled.
struct Page<'a> {
    state: &'a State,
    filter: &'a Filter,
    show: Show<'a>,
    rules: super::list::Rules,
    limit: usize,
    turn: Turn<'a>,
    begun: Timestamp,
    items: Vec<Value>,
    scanned: usize,
    truncated: bool,
    unreadable: Vec<String>,
    /// Rows that may still be read to count nodes.
    left: usize,
}

pub(super) async fn flows(request: HttpRequest, state: web::Data<State>) -> Answer {
    let grant = viewer(&request)?;
    let params = Params::of(&request, &["filter", "cursor", "limit", "order"])?;
    let filter = params.filter()?;
    let cursor = params.id("cursor")?;
    let limit = params.limit("limit", PAGE, PAGE_MAX)?;
    let order = Order::of(&params)?;
    let moment = state.moment()?;
    let rules = rules(&state, &filter).await?;
    let mut page = Page {
        turn: state.turns.take(&grant).await?,
        rules,
        show: Show::new(&state, &grant),
        state: &state,
        filter: &filter,
        limit,
        begun: state.now(),
        items: Vec::new(),
        scanned: 0,
        truncated: false,
        unreadable: Vec::new(),
        left: COUNTED_MAX,
    };
    let next = match filter.is_of_live() || !filter.names_states() {
        true => page.of_live(cursor, order).await?,
        false => page.of_all(cursor, order).await?,
    };
    let body = json!({
        "items": page.items,
        "cursor": next.map(|id| id.to_string()),
        "scanned": page.scanned,
        "truncated": page.truncated,
        "unreadable": page.unreadable,
    });
    state.reply(moment, body)
}

impl Page<'_> {
    /// Looks through the live ones from one on; returns where the next page begins.
    async fn of_live(&mut self, cursor: Option<ProcedureId>, order: Order) -> Result<Option<ProcedureId>, Problem> {
        let mut from = cursor.map(|cursor| cursor.family);
        loop {
            let flows = match order {
                Order::ById => self.state.shared.read().flows(from.unwrap_or(0), AT_ONCE),
                Order::NewestFirst => self.state.shared.read().newest_flows(from.unwrap_or(u64::MAX), AT_ONCE),
            };
            let Some(last) = flows.last().map(|last| last.root().id.family) else {
                return Ok(None);
            };
            for flow in flows {
                if self.is_full() {
                    return Ok(Some(flow.root().id));
                }
                if self.admits(flow.root()) {
                    match &flow {
                        LiveFlow::Set(set) => self.push_set(set),
                        LiveFlow::Stream(root) => self.push_stream(root).await?,
                    }
                }
            }
            from = match order {
                Order::ById => Some(last + 1),
                Order::NewestFirst => last.checked_sub(1),
            };
            if from.is_none() {
                return Ok(None);
            }
            // Others are served by this thread, too.
            tokio::task::yield_now().await;
        }
    }

    /// Looks through all of them in the store from one on; returns where the next page begins.
    async fn of_all(&mut self, cursor: Option<ProcedureId>, order: Order) -> Result<Option<ProcedureId>, Problem> {
        let scope: FamilyScope = self.show.scope(self.filter, false).await?;
        let mut walk = Walk::begin(self.state, &scope, cursor, order).await?;
        loop {
            let chunk = walk.read().await?;
            self.unreadable.extend(chunk.unreadable.iter().map(ToString::to_string));
            for row in &chunk.rows {
                // However long the read took, at least one row is looked at: the next page begins behind it.
                if self.scanned > 0 && self.is_full() {
                    return Ok(Some(row.id));
                }
                if is_set(row) || is_stream(row) {
                    self.look(row).await?;
                } else {
                    self.scanned += 1;
                }
            }
            match chunk.behind {
                Some(next) if self.is_full() => return Ok(Some(next)),
                Some(_) => {}
                None => return Ok(None),
            }
        }
    }

    /// Shows a set or a stream of which the root was read, if the filter admits it.
    async fn look(&mut self, root: &Status) -> Result<(), Problem> {
        if !self.admits(root) {
            return Ok(());
        }
        if is_stream(root) {
            return self.push_stream(root).await;
        }
        let live = self.state.shared.read().set(root.id.family);
        let known = live.filter(|live| root.ended.is_none() && (live.is_unreadable || live.status().is_some()));
        if let Some(set) = known {
            self.push_set(&set);
            return Ok(());
        }
        match self.family(root).await {
            Ok(family) => {
                let status = family.as_deref().and_then(set_status);
                self.push(&FlowView::of_set(&self.show.as_it_stands(root), status.as_ref()));
            }
            Err(error) if is_damage(&error) => self.unreadable.push(root.id.to_string()),
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Reads the rows of a set, unless so many were read for this page that others must wait no longer.
    async fn family(&mut self, root: &Status) -> Result<Option<Vec<Status>>, AskError> {
        let committed = self.state.engine().committed();
        let rows = committed.family(root.id.family, 0, self.left + 1).await?;
        let is_whole = rows.len() <= self.left;
        // A large one is left out, and takes nothing from the others.
        self.left -= if is_whole { rows.len() } else { 0 };
        Ok(is_whole.then_some(rows))
    }

    fn is_full(&mut self) -> bool {
        self.truncated = self.scanned >= SCAN_MAX || self.state.now().since(self.begun) > SCAN_TIME;
        self.truncated || self.items.len() >= self.limit
    }

    fn admits(&mut self, root: &Status) -> bool {
        self.scanned += 1;
        let status = self.show.as_it_stands(root);
        let rules = self.rules.get(&root.id).cloned().unwrap_or_default();
        let now = self.state.now();
        self.show.admits(self.filter, &status, &FilterContext { now, rules })
    }

    /// Shows a set as the model has it.
    fn push_set(&mut self, set: &LiveSet) {
        if set.is_unreadable {
            self.unreadable.push(set.root.id.to_string());
        }
        self.push(&FlowView::of_set(&self.show.as_it_stands(&set.root), set.status()));
    }

    /// Reads a stream, and shows it. One that has gone meanwhile is left out.
    async fn push_stream(&mut self, root: &Status) -> Result<(), Problem> {
        // The engine counts what waits.
        let read = async { StreamReader::live(&self.state.executor, root.id).await?.status().await };
        match self.state.live.in_time(read).await {
            Ok(status) => self.push(&FlowView::of_stream(&self.show.as_it_stands(root), &status)),
            Err(AskError::Unknown(_)) => {}
            Err(AskError::NotYet) => {
                self.turn.waited();
                return Err(AskError::NotYet.into());
            }
            Err(error) if is_damage(&error) => self.unreadable.push(root.id.to_string()),
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    fn push(&mut self, flow: &FlowView) {
        self.items.push(json!(flow));
    }
}

/// What is asked for is damaged, or set aside for it: nothing is wrong with others, and a later read fails as well.
pub(super) const fn is_damage(error: &AskError) -> bool {
    if let AskError::Read(ReadError::Store(error)) = error {
        return matches!(error, StoreError::Damaged { .. } | StoreError::Newer { .. });
    }
    matches!(error, AskError::Read(_) | AskError::NotNow { .. })
}

/// The graph of a family. It is read from the store, for most of its members may have ended.
pub(super) async fn graph(request: HttpRequest, state: web::Data<State>) -> Answer {
    let asked = Asked::new(&request, &state, &["max"])?;
    let max = asked.params.limit("max", DRAWN, NODES_MAX)?;
    let moment = state.moment()?;
    // Of a member that is not known there is no graph, whatever its family has.
    asked.row().await?;
    let _turn = state.turns.take(&asked.grant).await?;
    let family = asked.family(MEMBERS_MAX + 1).await?;
    let is_cut = family.len() > MEMBERS_MAX;
    let shown = family.get(..MEMBERS_MAX).unwrap_or(&family);
    let mut graph = graph_of(shown, max);
    graph.truncated |= is_cut;
    graph.of_first = is_cut.then_some(MEMBERS_MAX);
    let items = std::mem::take(&mut graph.items);
    let show = asked.show();
    let mut rows = shown.iter();
    // Nodes are in the order of the rows.
    let items = items.iter().filter_map(|node| {
        let row = rows.find(|row| row.id.to_string() == node.procedure.id)?;
        Some(show.redacted(row, node).into_value())
    });
    let items: Vec<Value> = items.collect();
    let mut body = json!(graph);
    if let Some(body) = body.as_object_mut() {
        body.insert("items".to_owned(), Value::from(items));
    }
    state.reply(moment, body)
}

/// What a stream does: the node in hand, those behind it, and the newest records.
pub(super) async fn queue(request: HttpRequest, state: web::Data<State>) -> Answer {
    let asked = Asked::new(&request, &state, &["before", "limit"])?;
    let before: Option<u32> = asked.params.number("before")?;
    let limit = asked.params.limit("limit", RECORDS, RECORDS_MAX)?;
    let moment = state.moment()?;
    let row = asked.row().await?;
    if !is_stream(&row) {
        return Err(Problem::other_sort("stream", row.id, "`flows`"));
    }
    let mut turn = state.turns.take(&asked.grant).await?;
    let reader = StreamReader::live(&state.executor, row.id).await?;
    let read = state.live.in_time(QueueReading::of(&reader, before, limit)).await;
    let reading = read.inspect_err(|_| turn.waited())?;
    let show = asked.show();
    let mut view = QueueView::new(&show.as_it_stands(&row), &reading);
    if before.is_none() {
        view = view.at(state.now(), &reading.records);
    }
    let mut body = json!(view);
    if let (Some(node), Some(shown)) = (&reading.status.in_hand, body.pointer_mut("/in_hand/question")) {
        redact_question(&state, &asked.grant, node, shown);
    }
    let shown = body.get_mut("records").and_then(Value::as_array_mut);
    for (record, shown) in reading.records.items.iter().zip(shown.into_iter().flatten()) {
        *shown = show.record(record);
    }
    state.reply(moment, body)
}

fn redact_question(state: &State, grant: &Grant, node: &NodeStatus, shown: &mut Value) {
    if let Some(question) = &node.cause {
        *shown = state.redact_text(node.kind.as_str(), Part::Question, question, grant);
    }
}
