//! `flows`: a page of sets, each with how its nodes stand; and `procedures/{id}/graph`, the graph of one family. Live
//! sets come from the read model, and no row is read for them; those that have ended are read from the store.

use actix_web::{HttpRequest, web};
use procession_actors::view::{FamilyScope, Status};
use procession_kernel::{ProcedureId, Timestamp};
use serde_json::{Value, json};

use super::list::{AT_ONCE, SCAN_MAX, SCAN_TIME, rules};
use super::params::Params;
use super::problem::{Answer, Problem};
use super::procedure::Asked;
use super::show::Show;
use super::state::{State, viewer};
use crate::filter::{Filter, FilterContext};
use crate::views::{FlowView, NODES_MAX, graph_of, is_set, set_status};

/// Sets of one page at most.
const PAGE_MAX: usize = 500;
/// Sets of one page, unless another number is asked for.
const PAGE: usize = 100;
/// Rows of sets that have ended that one request reads to count their nodes, at most.
const COUNTED_MAX: usize = 20_000;
/// Members of a family that one graph looks at, at most.
const MEMBERS_MAX: usize = 10_000;
/// Nodes of a graph that are drawn one by one, unless another number is asked for.
const DRAWN: usize = 300;

/// A page that is being filled.
struct Page<'a> {
    state: &'a State,
    filter: &'a Filter,
    show: Show<'a>,
    rules: super::list::Rules,
    limit: usize,
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
    let params = Params::of(&request, &["filter", "cursor", "limit"])?;
    let filter = params.filter()?;
    let cursor = params.id("cursor")?;
    let limit = params.limit("limit", PAGE, PAGE_MAX)?;
    let moment = state.moment()?;
    let mut page = Page {
        rules: rules(&state, &filter).await?,
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
    let _turn = state.turns.take(&grant).await?;
    page.begun = state.now();
    let next = match filter.is_of_live() || !filter.names_states() {
        true => page.of_live(cursor).await,
        false => page.of_all(cursor).await?,
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
    /// Looks through the live sets from one on; returns where the next page begins.
    async fn of_live(&mut self, cursor: Option<ProcedureId>) -> Option<ProcedureId> {
        let mut from = cursor.map_or(0, |cursor| cursor.family);
        loop {
            let sets = self.state.shared.read().sets(from, AT_ONCE);
            from = sets.last()?.root.id.family + 1;
            for set in sets {
                if self.is_full() {
                    return Some(set.root.id);
                }
                if self.admits(&set.root) {
                    self.push(&FlowView::of_set(&self.show.as_it_stands(&set.root), set.status()));
                }
            }
            // Others are served by this thread, too.
            tokio::task::yield_now().await;
        }
    }

    /// Looks through all sets of the store from one on; returns where the next page begins.
    async fn of_all(&mut self, cursor: Option<ProcedureId>) -> Result<Option<ProcedureId>, Problem> {
        let committed = self.state.engine().committed();
        let scope: FamilyScope = self.filter.scope(false);
        let mut from = cursor;
        loop {
            let page = committed.list_where(&scope, from, AT_ONCE, is_set).await?;
            self.unreadable.extend(page.unreadable.iter().map(ToString::to_string));
            for root in &page.items {
                if self.is_full() {
                    return Ok(Some(root.id));
                }
                if self.admits(root) {
                    let family = self.family(root).await?;
                    let status = family.as_deref().and_then(set_status);
                    self.push(&FlowView::of_set(&self.show.as_it_stands(root), status.as_ref()));
                }
            }
            match page.next {
                Some(next) if self.is_full() => return Ok(Some(next)),
                Some(next) => from = Some(next),
                None => return Ok(None),
            }
        }
    }

    /// Reads the rows of a set, unless so many were read for this page that others must wait no longer.
    async fn family(&mut self, root: &Status) -> Result<Option<Vec<Status>>, Problem> {
        let committed = self.state.engine().committed();
        let rows = committed.family(root.id.family, 0, self.left + 1).await?;
        let is_whole = rows.len() <= self.left;
        self.left = self.left.saturating_sub(rows.len());
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
        self.filter.admits(&status, &FilterContext { now, rules })
    }

    fn push(&mut self, flow: &FlowView) {
        self.items.push(json!(flow));
    }
}

/// The graph of a family. It is read from the store, for most of its members may have ended.
pub(super) async fn graph(request: HttpRequest, state: web::Data<State>) -> Answer {
    let asked = Asked::new(&request, &state, &["max"])?;
    let max = asked.params.limit("max", DRAWN, NODES_MAX)?;
    let moment = state.moment()?;
    let _turn = state.turns.take(&asked.grant).await?;
    let family = asked.family(MEMBERS_MAX + 1).await?;
    let is_cut = family.len() > MEMBERS_MAX;
    let shown = family.get(..MEMBERS_MAX).unwrap_or(&family);
    let mut graph = graph_of(shown, max);
    graph.truncated |= is_cut;
    let items = std::mem::take(&mut graph.items);
    let show = asked.show();
    let mut rows = shown.iter();
    // Nodes are in the order of the rows.
    let items = items.iter().filter_map(|node| {
        let row = rows.find(|row| row.id.to_string() == node.procedure.id)?;
        Some(show.redacted(row, node))
    });
    let items: Vec<Value> = items.collect();
    let mut body = json!(graph);
    if let Some(body) = body.as_object_mut() {
        body.insert("items".to_owned(), Value::from(items));
    }
    state.reply(moment, body)
}
