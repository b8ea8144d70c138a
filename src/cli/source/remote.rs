//! A dashboard that runs, read through its API.

use procession::ProcedureId;
use serde_json::Value;

use super::super::document::Document;
use super::super::exit::Failure;
use super::super::site::Site;

/// Entries of one page of a history at most.
const PAGE_MAX: usize = 500;
/// Attempts whose logs one reply has, at most.
const ATTEMPTS_MAX: usize = 100;

impl Site {
    pub(super) async fn one(&self, id: ProcedureId) -> Result<Document, Failure> {
        Ok(self.get(&format!("procedures/{id}"), &[]).await?)
    }

    pub(super) async fn waits(&self, id: ProcedureId) -> Result<Document, Failure> {
        Ok(self.get(&format!("procedures/{id}/waits"), &[]).await?)
    }

    pub(super) async fn signals(&self, id: ProcedureId) -> Result<Document, Failure> {
        Ok(self.get(&format!("procedures/{id}/signals"), &[]).await?)
    }

    pub(super) async fn locks(&self) -> Result<Document, Failure> {
        Ok(self.get("locks", &[]).await?)
    }

    pub(super) async fn limits(&self) -> Result<Document, Failure> {
        Ok(self.get("limits", &[]).await?)
    }

    pub(super) async fn values(&self, id: ProcedureId, entry: u32, from: Option<u32>) -> Result<Document, Failure> {
        let (entry, from) = (entry.to_string(), from.map(|from| from.to_string()));
        let mut query = vec![("entry", entry.as_str())];
        query.extend(from.as_deref().map(|from| ("from", from)));
        Ok(self.get(&format!("procedures/{id}/values"), &query).await?)
    }

    pub(super) async fn logs(&self, id: ProcedureId, limit: usize) -> Result<Document, Failure> {
        let limit = limit.clamp(1, ATTEMPTS_MAX).to_string();
        Ok(self.get(&format!("procedures/{id}/logs"), &[("limit", &limit)]).await?)
    }

    /// The dashboard gives whole families: what is not below the one that was asked for is left out.
    pub(super) async fn tree(&self, id: ProcedureId) -> Result<Document, Failure> {
        let mut family = self.get(&format!("procedures/{id}/tree"), &[]).await?;
        let below = below(family.take_items(), &id.to_string());
        if below.is_empty() {
            let is_cut = family.get("truncated").as_bool().unwrap_or_default();
            return Err(Failure::new(match is_cut {
                true => {
                    format!("the family of {id} is too large for the dashboard to show {id}; see \"procession show\"")
                }
                false => format!("there is no procedure {id}; its result may have been evicted"),
            }));
        }
        family.put("items", below);
        Ok(family)
    }

    /// Puts pages of a history together, as many as hold one entry more than `limit`.
    pub(super) async fn history(&self, id: ProcedureId, family: bool, limit: usize) -> Result<Document, Failure> {
        let path = format!("procedures/{id}/history");
        let mut items: Vec<Value> = Vec::new();
        let mut cursor: Option<String> = None;
        loop {
            let page_size = (limit - items.len().min(limit) + 1).min(PAGE_MAX).to_string();
            let mut query = vec![("limit", page_size.as_str())];
            query.extend(family.then_some(("family", "true")));
            query.extend(cursor.as_deref().map(|cursor| ("cursor", cursor)));
            let mut page = self.get(&path, &query).await?;
            items.extend(page.take_items());
            cursor = page.get("cursor").as_str().map(str::to_owned);
            if cursor.is_none() || items.len() > limit {
                page.put("items", items);
                return Ok(page);
            }
        }
    }
}

/// Returns a node of a tree and all below it, as a tree of its own: nodes stand behind their parents.
fn below(items: Vec<Value>, top: &str) -> Vec<Value> {
    let depth_of = |item: &Value| item.get("depth").and_then(Value::as_u64).unwrap_or_default();
    let is_top = |item: &Value| item.get("id").and_then(Value::as_str) == Some(top);
    let mut rest = items.into_iter().skip_while(|item| !is_top(item));
    let Some(first) = rest.next() else {
        return Vec::new();
    };
    let base = depth_of(&first);
    let others = rest.take_while(|item| depth_of(item) > base);
    let mut nodes = Vec::new();
    for mut node in std::iter::once(first).chain(others) {
        let depth = depth_of(&node) - base;
        if let Some(shown) = node.get_mut("depth") {
            *shown = Value::from(depth);
        }
        nodes.push(node);
    }
    nodes
}
