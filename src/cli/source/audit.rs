//! What operators did, of either source.

use procession::filter::AuditFilter;
use procession::views::AuditView;
use serde_json::{Value, json};

use super::super::document::Document;
use super::super::exit::Failure;
use super::super::site::Site;
use super::Journal;

/// Entries of one page of a dashboard at most.
const PAGE_MAX: usize = 500;

impl Journal {
    pub(super) async fn audit(
        &self,
        filter: &AuditFilter,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Document, Failure> {
        let entries = self.offline.audit().await?;
        let scanned = entries.len();
        let older = entries
            .iter()
            .filter(|entry| before.is_none_or(|before| entry.number < before));
        let mut admitted = older.filter(|entry| filter.admits(entry)).peekable();
        let items: Vec<AuditView> = admitted.by_ref().take(limit).map(AuditView::from).collect();
        let last = items.last().map(|entry| entry.number.clone());
        let cursor = last.filter(|_| admitted.peek().is_some());
        self.reply(json!({ "items": items, "cursor": cursor, "scanned": scanned }))
    }
}

impl Site {
    /// Puts as many pages together as hold `limit` entries.
    pub(super) async fn audit(&self, filter: &str, before: Option<u64>, limit: usize) -> Result<Document, Failure> {
        let mut cursor = before.map(|before| before.to_string());
        let mut items: Vec<Value> = Vec::new();
        loop {
            let missing = limit.saturating_sub(items.len()).clamp(1, PAGE_MAX).to_string();
            let mut query = vec![("limit", missing.as_str()), ("filter", filter)];
            query.extend(cursor.as_deref().map(|cursor| ("cursor", cursor)));
            let mut page = self.get("audit", &query).await?;
            items.extend(page.take_items());
            cursor = page.get("cursor").as_str().map(str::to_owned);
            if cursor.is_none() || items.len() >= limit {
                page.put("items", items);
                return Ok(page);
            }
        }
    }
}
