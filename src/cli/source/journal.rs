//! A closed journal, whose rows are told as a running engine would tell them.

use procession::ProcedureId;
use procession::offline::{Offline, OfflineState};
use procession::provider::{Clock, SystemClock};
use procession::status::{FamilyScope, Status};
use serde::Serialize;
use serde_json::{Value, json};

use super::super::document::Document;
use super::super::exit::Failure;
use super::super::scratch::Scratch;
use procession::views::{
    ExplanationView, FAILURES_READ, FailuresView, HistoryView, LimitView, LockUseView, MailboxView, ProcedureView,
    Reply, SignalView, TreeNodeView, compared, tree_of, value_behind,
};

/// A private copy of a journal.
pub(crate) struct Journal {
    // Dropped in this order: the copy is in the directory.
    pub(super) offline: Offline,
    _scratch: Scratch,
}

/// Most bodies are a list.
#[derive(Serialize)]
struct Items<T> {
    items: Vec<T>,
}

impl Journal {
    pub(crate) const fn new(offline: Offline, scratch: Scratch) -> Self {
        Self {
            offline,
            _scratch: scratch,
        }
    }

    /// Returns the journal itself, for what is no document of every source.
    pub(crate) const fn offline(&self) -> &Offline {
        &self.offline
    }

    /// Puts a body into its reply.
    pub(crate) fn reply(&self, body: impl Serialize) -> Result<Document, Failure> {
        Document::of(Reply::new(SystemClock.now(), self.offline.as_of(), body))
    }

    fn items<T: Serialize>(&self, items: impl IntoIterator<Item = T>) -> Result<Document, Failure> {
        let items = items.into_iter().collect();
        self.reply(Items { items })
    }

    pub(super) async fn one(&self, id: ProcedureId) -> Result<Document, Failure> {
        let status = self.offline.status(id).await?.ok_or_else(|| unknown(id))?;
        let state = self.offline.state().await?;
        let paused_by = paused_by(&state, &status);
        let status = state.shown(status);
        let procedure = match paused_by.is_empty() {
            true => ProcedureView::from(&status),
            false => ProcedureView::from(&status.held_back()),
        };
        self.reply(json!({ "procedure": procedure, "paused_by": paused_by }))
    }

    pub(super) async fn waits(&self, id: ProcedureId) -> Result<Document, Failure> {
        let state = self.offline.state().await?;
        let explanation = ExplanationView::from(&self.offline.explain(&state, id).await?);
        let mut document = self.reply(explanation)?;
        if let Some(status) = self.offline.status(id).await? {
            document.put("paused_by", paused_by(&state, &status));
        }
        Ok(document)
    }

    pub(super) async fn signals(&self, id: ProcedureId) -> Result<Document, Failure> {
        let signals = self.offline.signals(id).await?;
        let own = signals.iter().filter(|signal| signal.id == id);
        let items: Vec<SignalView> = own.map(SignalView::from).collect();
        let mailbox = self.offline.mailbox(id).await?;
        let mailbox = mailbox.as_ref().map(MailboxView::from);
        self.reply(json!({ "items": items, "mailbox": mailbox }))
    }

    pub(super) async fn failures(&self) -> Result<Document, Failure> {
        let (entries, truncated) = self.offline.newest_failures(FAILURES_READ).await?;
        self.reply(FailuresView::of(entries, truncated, SystemClock.now()))
    }

    pub(super) async fn tree(&self, id: ProcedureId) -> Result<Document, Failure> {
        let family = family_of(&self.offline, &self.offline.state().await?, id).await?;
        let items: Vec<TreeNodeView> = tree_of(id, &family);
        self.items(items)
    }

    pub(super) async fn history(&self, id: ProcedureId, family: bool) -> Result<Document, Failure> {
        self.offline.status(id).await?.ok_or_else(|| unknown(id))?;
        let entries = self.offline.history(id).await?;
        let wanted = entries.iter().filter(|entry| family || entry.member == id.member);
        self.items(wanted.map(HistoryView::from))
    }

    pub(super) async fn values(&self, id: ProcedureId, entry: u32, from: Option<u32>) -> Result<Document, Failure> {
        let to = self.value(id, entry).await?;
        let from = match from {
            Some(from) => Some(self.value(id, from).await?),
            None => None,
        };
        self.reply(compared(from, to))
    }

    async fn value(&self, id: ProcedureId, entry: u32) -> Result<Value, Failure> {
        let behind = self.offline.value_behind(id, entry).await?;
        let behind = behind.ok_or_else(|| Failure::new(format!("the history of {id} has no entry {entry}")))?;
        Ok(value_behind(entry, &behind))
    }

    pub(super) async fn locks(&self) -> Result<Document, Failure> {
        let state = self.offline.state().await?;
        self.items(state.locks().iter().map(LockUseView::from))
    }

    pub(super) async fn limits(&self) -> Result<Document, Failure> {
        let state = self.offline.state().await?;
        self.items(state.limits().iter().map(LimitView::at_rest))
    }

    /// Reads every row there is, a page at a time, and names those that cannot be read. Where a page itself cannot be read,
    /// it says so and ends.
    pub(super) async fn unreadable(&self, unread: &mut Vec<String>) -> Vec<Value> {
        let mut found = Vec::new();
        let mut cursor: Option<ProcedureId> = None;
        loop {
            let page = match self.offline.list(&FamilyScope::All, cursor, 1, |_| false).await {
                Ok(page) => page,
                Err(error) => {
                    let from = cursor.map(|id| format!(" from {id} on")).unwrap_or_default();
                    unread.push(format!(
                        "could not read the rows of procedures{from}, one by one: {error}"
                    ));
                    return found;
                }
            };
            found.extend(page.unreadable.iter().map(|id| Value::from(id.to_string())));
            match page.next {
                Some(next) => cursor = Some(next),
                None => return found,
            }
        }
    }
}

/// Names each pause that covers a procedure.
fn paused_by(state: &OfflineState, status: &Status) -> Vec<Value> {
    if status.ended.is_some() {
        return Vec::new();
    }
    let pauses = state.pauses_of(status.id).into_iter();
    pauses.map(|what| json!({ "what": what.to_string() })).collect()
}

/// Reads the family of one that must be there.
pub(super) async fn family_of(
    journal: &Offline,
    state: &OfflineState,
    id: ProcedureId,
) -> Result<Vec<Status>, Failure> {
    let family = journal.family(id).await?;
    if !family.iter().any(|status| status.id == id) {
        return Err(unknown(id));
    }
    Ok(family.into_iter().map(|status| state.shown(status)).collect())
}

pub(super) fn unknown(id: ProcedureId) -> Failure {
    Failure::new(format!(
        "the journal knows no procedure {id}; its result may have been evicted; see \"procession ls\" for what is there"
    ))
}
