//! A page of the procedures that a filter admits, of either source.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use procession::ProcedureId;
use procession::health::Rule;
use procession::offline::OfflineState;
use procession::provider::{Clock, SystemClock};
use procession::status::{Page, Status};
use serde_json::Value;

use super::super::document::Document;
use super::super::exit::Failure;
use super::super::site::Site;
use super::{Journal, Wanted};
use procession::filter::FilterContext;
use procession::views::PageView;

/// The list of procedures.
const PROCEDURES: &str = "procedures";
/// Rows that a dashboard puts into one page, at most.
pub(super) const PAGE_MAX: usize = 500;
/// Rows that a journal gives at once.
const AT_ONCE: usize = 1_000;
/// The most unreadable rows that a list names.
const UNREADABLE_MAX: usize = 1_000;

impl Journal {
    pub(super) async fn list(&self, wanted: &Wanted) -> Result<Document, Failure> {
        let page = self.page(wanted, |_| true).await?;
        self.reply(PageView::from(&page))
    }

    /// Returns the page, with those procedures only that the caller admits as well.
    pub(super) async fn page(&self, wanted: &Wanted, fits: impl Fn(&Status) -> bool) -> Result<Page, Failure> {
        let filter = &wanted.filter;
        let state = match filter.names_rules() || filter.names_reasons() {
            true => Some(self.offline.state().await?),
            false => None,
        };
        let rules = state.as_ref().map(rules_of).unwrap_or_default();
        let now = SystemClock.now();
        let shows_ended = wanted.shows_ended();
        let admits = |status: &Status| {
            let shown = state.as_ref().map(|state| state.shown(Status::clone(status)));
            let status = shown.as_ref().unwrap_or(status);
            let context = FilterContext {
                now,
                rules: rules.get(&status.id).cloned().unwrap_or_default(),
            };
            fits(status) && (shows_ended || status.ended.is_none()) && filter.admits(status, &context)
        };
        let mut page = self.newest(wanted, admits).await?;
        if let Some(state) = &state {
            page.items = page.items.into_iter().map(|status| state.shown(status)).collect();
        }
        Ok(page)
    }

    /// Reads all rows in question, and returns the newest families of those that are admitted, the members of each in
    /// their order. The journal reads forward alone, so as many as the page holds are kept on the way.
    async fn newest(&self, wanted: &Wanted, admits: impl Fn(&Status) -> bool) -> Result<Page, Failure> {
        let place_of = |id: ProcedureId| (Reverse(id.family), id.member);
        let after = wanted.after.map(place_of);
        let scope = wanted.among();
        let mut newest = BTreeMap::new();
        let mut whole = self.offline.list(&scope, None, AT_ONCE, &admits).await?;
        let mut read = std::mem::take(&mut whole.items);
        loop {
            for status in read {
                let place = place_of(status.id);
                if after.is_none_or(|after| after <= place) {
                    newest.insert(place, status);
                }
                if newest.len() > wanted.limit + 1 {
                    newest.pop_last();
                }
            }
            let Some(next) = whole.next else { break };
            let page = self.offline.list(&scope, Some(next), AT_ONCE, &admits).await?;
            whole.scanned += page.scanned;
            let room = UNREADABLE_MAX.saturating_sub(whole.unreadable.len());
            whole.unreadable.extend(page.unreadable.into_iter().take(room));
            (read, whole.next) = (page.items, page.next);
        }
        if newest.len() > wanted.limit {
            whole.next = newest.pop_last().map(|(_, status)| status.id);
        }
        whole.truncated = false;
        whole.items = newest.into_values().collect();
        Ok(whole)
    }
}

fn rules_of(state: &OfflineState) -> BTreeMap<ProcedureId, BTreeSet<Rule>> {
    let mut rules: BTreeMap<ProcedureId, BTreeSet<Rule>> = BTreeMap::new();
    for verdict in state.verdicts() {
        if let Some(id) = verdict.procedure {
            rules.entry(id).or_default().insert(verdict.rule);
        }
    }
    rules
}

impl Site {
    /// Puts as many pages of the dashboard's into one as it takes, unless it stops early.
    pub(crate) async fn list(&self, wanted: &Wanted) -> Result<Document, Failure> {
        let mut cursor = wanted.after.map(|id| id.to_string());
        let mut items: Vec<Value> = Vec::new();
        let mut unreadable: Vec<Value> = Vec::new();
        let mut scanned = 0;
        loop {
            let missing = wanted.limit.saturating_sub(items.len()).min(PAGE_MAX);
            let mut page = self.page(wanted, cursor.as_deref(), missing).await?;
            items.extend(page.take_items());
            unreadable.extend(page.get("unreadable").as_array().cloned().unwrap_or_default());
            scanned += page.get("scanned").as_u64().unwrap_or_default();
            cursor = page.get("cursor").as_str().map(str::to_owned);
            let is_cut = page.get("truncated").as_bool().unwrap_or_default();
            if cursor.is_none() || is_cut || items.len() >= wanted.limit {
                page.put("items", items);
                page.put("unreadable", unreadable);
                page.put("scanned", scanned);
                return Ok(page);
            }
        }
    }

    async fn page(&self, wanted: &Wanted, cursor: Option<&str>, limit: usize) -> Result<Document, Failure> {
        self.page_of(PROCEDURES, wanted, cursor, limit).await
    }

    /// Reads a page of procedures or of sets, the newest first.
    pub(super) async fn page_of(
        &self,
        path: &str,
        wanted: &Wanted,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<Document, Failure> {
        let mut filter = wanted.filter.to_string();
        if wanted.all && !wanted.filter.names_states() {
            filter.push_str(" state:live,ended");
        }
        let limit = limit.max(1).to_string();
        let mut query = vec![
            ("limit", limit.as_str()),
            ("filter", filter.trim()),
            ("order", "newest"),
        ];
        query.extend(cursor.map(|cursor| ("cursor", cursor)));
        Ok(self.get(path, &query).await?)
    }
}
