//! Sets, and families as graphs, of either source.

use procession::ProcedureId;
use procession::views::{FlowView, GraphView, graph_of, is_set, set_status};
use serde_json::json;

use super::super::document::Document;
use super::super::exit::Failure;
use super::super::site::Site;
use super::journal::family_of;
use super::{Journal, Wanted};

/// Nodes up to which a closed journal's graph is not grouped. The tables list each.
const UNGROUPED: usize = usize::MAX;

impl Journal {
    pub(super) async fn flows(&self, wanted: &Wanted) -> Result<Document, Failure> {
        let state = self.offline.state().await?;
        let page = self.page(wanted, is_set).await?;
        let mut items = Vec::new();
        for root in page.items {
            let read = set_status(&self.offline.family(root.id).await?);
            items.push(FlowView::of_set(&state.shown(root), read.as_ref()));
        }
        self.reply(json!({
            "items": items,
            "cursor": page.next.map(|id| id.to_string()),
            "scanned": page.scanned,
            "truncated": page.truncated,
            "unreadable": page.unreadable.iter().map(ToString::to_string).collect::<Vec<String>>(),
        }))
    }

    pub(super) async fn graph(&self, id: ProcedureId) -> Result<Document, Failure> {
        let family = family_of(&self.offline, &self.offline.state().await?, id).await?;
        let graph: GraphView = graph_of(&family, UNGROUPED);
        self.reply(graph)
    }
}

impl Site {
    pub(super) async fn flows(&self, wanted: &Wanted) -> Result<Document, Failure> {
        let cursor = wanted.after.map(|id| id.to_string());
        self.page_of("flows", wanted, cursor.as_deref(), wanted.limit).await
    }

    pub(super) async fn graph(&self, id: ProcedureId) -> Result<Document, Failure> {
        Ok(self.get(&format!("procedures/{id}/graph"), &[]).await?)
    }
}
