//! `procedures`: a page of those that a filter admits. The live ones come from the read model;
//! a filter that may mean others is read from the store, for most of the finished are only there.

mod walk;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use actix_web::{HttpRequest, web};
use procession_actors::view::{FamilyScope, Rule, Status};
use procession_kernel::{ProcedureId, Timestamp};
use serde_json::{Value, json};

use super::access::Grant;
use super::params::Params;
use super::problem::{Answer, Problem};
use super::show::Show;
use super::state::{State, viewer};
use crate::filter::{Filter, FilterContext};
pub(super) use walk::Walk;

/// Rows of one page at most.
const PAGE_MAX: usize = 500;
/// Rows of one page, unless another number is asked for.
const PAGE: usize = 100;
/// Rows that one request looks at, at most.
pub(super) const SCAN_MAX: usize = 100_000;
/// How long it looks, at most.
pub(super) const SCAN_TIME: Duration = Duration::from_millis(200);
/// Rows taken from the model at once: the lock is held for microseconds.
pub(super) const AT_ONCE: usize = 256;
/// Rows taken from the store at once: as many as it reads in one go, so that none is read twice.
pub(super) const STORED_AT_ONCE: usize = 1_000;

/// In which order rows are looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// By id.
    ById,
    /// The newest families first, the members of each in their order.
    NewestFirst,
}

impl Order {
    /// Reads it from a request: by id unless it says `order=newest`.
    pub(super) fn of(params: &Params) -> Result<Self, Problem> {
        Ok(match params.choice("order", ["oldest", "newest"])? {
            "newest" => Self::NewestFirst,
            _ => Self::ById,
        })
    }
}

/// The rules of the verdicts about each procedure.
pub(super) type Rules = BTreeMap<ProcedureId, BTreeSet<Rule>>;

/// A page that is being filled.
pub(super) struct Search<'a> {
    filter: &'a Filter,
    rules: Rules,
    show: Show<'a>,
    /// The families that the filter names, if it names any.
    families: Option<BTreeSet<u64>>,
    limit: usize,
    begun: Timestamp,
    pub(super) ids: Vec<ProcedureId>,
    pub(super) items: Vec<Value>,
    pub(super) scanned: usize,
    pub(super) truncated: bool,
    unreadable: Vec<String>,
}

pub(super) async fn list(request: HttpRequest, state: web::Data<State>) -> Answer {
    let grant = viewer(&request)?;
    let params = Params::of(&request, &["filter", "cursor", "limit", "order"])?;
    let filter = params.filter()?;
    let cursor = params.id("cursor")?;
    let limit = params.limit("limit", PAGE, PAGE_MAX)?;
    let order = Order::of(&params)?;
    let moment = state.moment()?;
    let mut search = Search::new(&state, &grant, &filter, limit).await?;
    let _turn = state.turns.take(&grant).await?;
    let next = search.fill(&state, cursor, order).await?;
    let body = json!({
        "items": search.items,
        "cursor": next.map(|id| id.to_string()),
        "scanned": search.scanned,
        "truncated": search.truncated,
        "unreadable": search.unreadable,
    });
    state.reply(moment, body)
}

/// Returns the rules of the verdicts by procedure, if the filter asks for them.
pub(super) async fn rules(state: &State, filter: &Filter) -> Result<Rules, Problem> {
    let mut rules = Rules::new();
    if filter.names_rules() {
        for verdict in state.live.verdicts().await?.iter() {
            if let Some(id) = verdict.procedure {
                rules.entry(id).or_default().insert(verdict.rule);
            }
        }
    }
    Ok(rules)
}

impl<'a> Search<'a> {
    pub(super) async fn new(
        state: &'a State,
        grant: &'a Grant,
        filter: &'a Filter,
        limit: usize,
    ) -> Result<Self, Problem> {
        Ok(Self {
            rules: rules(state, filter).await?,
            show: Show::new(state, grant),
            families: filter.families(),
            filter,
            limit,
            begun: state.now(),
            ids: Vec::new(),
            items: Vec::new(),
            scanned: 0,
            truncated: false,
            unreadable: Vec::new(),
        })
    }

    /// Looks from an id on until the page is full; gives where the next begins.
    pub(super) async fn fill(
        &mut self,
        state: &State,
        cursor: Option<ProcedureId>,
        order: Order,
    ) -> Result<Option<ProcedureId>, Problem> {
        // Not before: it may have waited for its turn.
        self.begun = state.now();
        match self.scope().await? {
            None => Ok(self.in_model(state, cursor, order).await),
            Some(scope) => {
                self.in_store(state, Walk::begin(state, &scope, cursor, order).await?)
                    .await
            }
        }
    }

    /// Returns what is to be read of the store. Returns `None` if the model has all that the filter may show.
    async fn scope(&self) -> Result<Option<FamilyScope>, Problem> {
        // The model has no index, and would be walked whole for the few procedures of a key or a label.
        let is_of_live = self.filter.is_of_live();
        let scope = self.show.scope(self.filter, is_of_live).await?;
        let is_known = is_of_live && matches!(scope, FamilyScope::Live | FamilyScope::Families(_));
        Ok((!is_known).then_some(scope))
    }

    /// Looks through the model from an id on, in this order. Returns where the next page begins.
    async fn in_model(&mut self, state: &State, cursor: Option<ProcedureId>, order: Order) -> Option<ProcedureId> {
        let mut from = cursor.map_or(Bound::Unbounded, Bound::Included);
        loop {
            let rows: Vec<Arc<Status>> = match order {
                Order::ById => state.shared.read().live(self.skip(from)?, AT_ONCE),
                Order::NewestFirst => state.shared.read().newest(self.skip_newer(from)?, AT_ONCE),
            };
            let last = rows.last()?.id;
            for row in rows {
                if self.is_full(state.now()) {
                    return Some(row.id);
                }
                self.look(&row, state.now());
            }
            from = Bound::Excluded(last);
            // Others are served by this thread, too.
            tokio::task::yield_now().await;
        }
    }

    /// Looks through the store; returns where the next page begins.
    async fn in_store(&mut self, state: &State, mut walk: Walk<'_>) -> Result<Option<ProcedureId>, Problem> {
        loop {
            let chunk = walk.read().await?;
            self.unreadable.extend(chunk.unreadable.iter().map(ToString::to_string));
            for row in &chunk.rows {
                // However long the read took, at least one row is looked at: the next page begins behind it.
                if self.scanned > 0 && self.is_full(state.now()) {
                    return Ok(Some(row.id));
                }
                self.look(row, state.now());
            }
            // A part of the index may name nothing that is shown, so the time is looked at here as well.
            match chunk.behind {
                Some(next) if self.is_full(state.now()) => return Ok(Some(next)),
                Some(_) => {}
                None => return Ok(None),
            }
        }
    }

    /// Leaves out families that the filter does not name; none if there is nothing behind.
    fn skip(&self, from: Bound<ProcedureId>) -> Option<Bound<ProcedureId>> {
        let Some(families) = &self.families else {
            return Some(from);
        };
        let (Bound::Included(id) | Bound::Excluded(id)) = from else {
            return families
                .first()
                .map(|family| Bound::Included(ProcedureId::root(*family)));
        };
        let family = families.range(id.family..).next()?;
        if *family == id.family {
            Some(from)
        } else {
            Some(Bound::Included(ProcedureId::root(*family)))
        }
    }

    /// Leaves out families that the filter does not name; none if there is no older one.
    fn skip_newer(&self, from: Bound<ProcedureId>) -> Option<Bound<ProcedureId>> {
        let Some(families) = &self.families else {
            return Some(from);
        };
        let (Bound::Included(id) | Bound::Excluded(id)) = from else {
            return families
                .last()
                .map(|family| Bound::Included(ProcedureId::root(*family)));
        };
        let family = *families.range(..=id.family).next_back()?;
        Some(match family == id.family {
            true => from,
            false => Bound::Included(ProcedureId::root(family)),
        })
    }

    fn is_full(&mut self, now: Timestamp) -> bool {
        self.truncated = self.scanned >= SCAN_MAX || now.since(self.begun) > SCAN_TIME;
        self.truncated || self.ids.len() >= self.limit
    }

    fn look(&mut self, row: &Status, now: Timestamp) {
        self.scanned += 1;
        let is_named = self
            .families
            .as_ref()
            .is_none_or(|families| families.contains(&row.id.family));
        if !is_named {
            return;
        }
        // Without a word on states, a list is of those that have not ended.
        if row.ended.is_some() && !self.filter.names_states() {
            return;
        }
        let status = self.show.as_it_stands(row);
        let rules = self.rules.get(&row.id).cloned().unwrap_or_default();
        if self.show.admits(self.filter, &status, &FilterContext { now, rules }) {
            self.ids.push(status.id);
            self.items.push(self.show.procedure(&status));
        }
    }
}
