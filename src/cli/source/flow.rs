//! Sets, streams, and families as graphs, of either source.

use procession::ProcedureId;
use procession::errors::AskError;
use procession::flow::StreamReader;
use procession::status::Status;
use procession::views::{DRAWN, FlowView, GraphView, QueueReading, QueueView, graph_of, is_set, is_stream, set_status};
use serde_json::json;

use super::super::document::Document;
use super::super::exit::Failure;
use super::super::site::Site;
use super::journal::family_of;
use super::{Journal, Wanted};

impl Journal {
    pub(super) async fn flows(&self, wanted: &Wanted) -> Result<Document, Failure> {
        let state = self.offline.state().await?;
        let is_flow = |row: &Status| is_set(row) || is_stream(row);
        let page = self.page(wanted, is_flow).await?;
        let mut items = Vec::new();
        let mut unreadable: Vec<String> = page.unreadable.iter().map(ToString::to_string).collect();
        for root in page.items {
            let id = root.id;
            match self.flow(state.shown(root)).await {
                Ok(flow) => items.push(flow),
                // The others are whole.
                Err(AskError::Read(_) | AskError::NotNow { .. }) => unreadable.push(id.to_string()),
                Err(error) => return Err(error.into()),
            }
        }
        self.reply(json!({
            "items": items,
            "cursor": page.next.map(|id| id.to_string()),
            "scanned": page.scanned,
            "truncated": page.truncated,
            "unreadable": unreadable,
        }))
    }

    /// Reads a set or a stream.
    async fn flow(&self, root: Status) -> Result<FlowView, AskError> {
        if is_stream(&root) {
            let status = StreamReader::closed(&self.offline, root.id).await?.status().await?;
            return Ok(FlowView::of_stream(&root, &status));
        }
        let read = set_status(&self.offline.family(root.id).await?);
        Ok(FlowView::of_set(&root, read.as_ref()))
    }

    pub(super) async fn graph(&self, id: ProcedureId) -> Result<Document, Failure> {
        let family = family_of(&self.offline, &self.offline.state().await?, id).await?;
        let graph: GraphView = graph_of(&family, DRAWN);
        self.reply(graph)
    }

    pub(super) async fn queue(&self, id: ProcedureId, before: Option<u32>, limit: usize) -> Result<Document, Failure> {
        let root = self.offline.status(id).await?.filter(is_stream);
        let root = root.ok_or_else(|| Failure::new(format!("there is no stream {id}; see \"procession flows\"")))?;
        let root = self.offline.state().await?.shown(root);
        let view = self.queue_of(&root, before, limit).await?;
        self.reply(view)
    }

    async fn queue_of(&self, root: &Status, before: Option<u32>, limit: usize) -> Result<QueueView, AskError> {
        let reader = StreamReader::closed(&self.offline, root.id).await?;
        // Nothing runs, so nothing is done in a minute.
        Ok(QueueView::new(root, &QueueReading::of(&reader, before, limit).await?))
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

    pub(super) async fn queue(&self, id: ProcedureId, before: Option<u32>, limit: usize) -> Result<Document, Failure> {
        let (limit, before) = (limit.to_string(), before.map(|before| before.to_string()));
        let mut query = vec![("limit", limit.as_str())];
        query.extend(before.as_deref().map(|before| ("before", before)));
        Ok(self.get(&format!("procedures/{id}/queue"), &query).await?)
    }
}
