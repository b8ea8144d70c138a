//! `procedures/{id}` and what belongs to it: its family, its history, its signals, and why it
//! does not move.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;
use std::time::Duration;

use actix_web::{HttpRequest, web};
use procession_actors::view::Status;
use procession_kernel::{HistoryEntry, Kind, ProcedureId};
use serde::Serialize;
use serde_json::{Value, json};

use super::access::Grant;
use super::beyond::{counts, failing, paused_by};
use super::params::{Params, id_of};
use super::problem::{Answer, Problem};
use super::redact::Part;
use super::show::{Show, Shown, words};
use super::state::{State, viewer};
use crate::views::{ExplanationView, MailboxView, TreeNodeView, tree_of};

/// Members of a family that one tree shows, at most.
pub(super) const MEMBERS_MAX: usize = 5_000;
/// Entries of a family's history that one request looks at, at most.
pub(super) const HISTORY_MAX: usize = 100_000;
/// Rows of one page at most, and unless another number is asked for.
const PAGE_MAX: usize = 500;
/// Signals of one page at most: each is read with its payload, which may have a megabyte.
const SIGNALS_MAX: usize = 64;
/// Bytes of a value that is shown with its procedure, at most.
pub(super) const VALUE_MAX: usize = 64 * 1024;

/// What a request for one procedure begins with.
pub(super) struct Asked<'a> {
    state: &'a State,
    pub(super) grant: Grant,
    pub(super) id: ProcedureId,
    pub(super) params: Params,
}

impl<'a> Asked<'a> {
    pub(super) fn new(request: &HttpRequest, state: &'a State, names: &[&str]) -> Result<Self, Problem> {
        Ok(Self {
            state,
            grant: viewer(request)?,
            id: id_of(request)?,
            params: Params::of(request, names)?,
        })
    }

    pub(super) fn show(&self) -> Show<'_> {
        Show::new(self.state, &self.grant)
    }

    /// Returns its row: as the model has it, or from the store if it has ended long ago.
    pub(super) async fn row(&self) -> Result<Arc<Status>, Problem> {
        let known = self.state.shared.read().get(self.id);
        if let Some(row) = known {
            return Ok(row);
        }
        let stored = self.state.engine().committed().status(self.id).await?;
        stored.map(Arc::new).ok_or_else(|| Problem::unknown(self.id))
    }

    /// Returns its family as it is to be shown, by member: so many at most.
    pub(super) async fn family(&self, most: usize) -> Result<Vec<Status>, Problem> {
        let committed = self.state.engine().committed();
        let family = committed.family(self.id.family, 0, most).await?;
        if family.is_empty() {
            return Err(Problem::unknown(self.id));
        }
        let show = self.show();
        Ok(family
            .iter()
            .map(|status| show.as_it_stands(status).into_owned())
            .collect())
    }

    /// Returns the kinds of its family's members, as far as a tree shows them.
    async fn kinds(&self) -> Result<BTreeMap<u32, Kind>, Problem> {
        let committed = self.state.engine().committed();
        let family = committed.family(self.id.family, 0, MEMBERS_MAX).await?;
        Ok(family.into_iter().map(|row| (row.id.member, row.kind)).collect())
    }

    /// Adds the kinds of members that a tree does not show any more: what is hidden of a kind stays hidden there, too.
    async fn add_kinds(&self, kinds: &mut BTreeMap<u32, Kind>, entries: &[&HistoryEntry]) -> Result<(), Problem> {
        for entry in entries {
            if let Entry::Vacant(vacant) = kinds.entry(entry.member) {
                let id = ProcedureId::new(self.id.family, entry.member);
                let row = self.state.engine().committed().status(id).await?;
                vacant.insert(row.ok_or_else(|| Problem::unknown(id))?.kind);
            }
        }
        Ok(())
    }

    /// Returns its family's history, without the values that stages left.
    pub(super) async fn history(&self) -> Result<Vec<HistoryEntry>, Problem> {
        Ok(self
            .state
            .engine()
            .committed()
            .history_outline(self.id.family, HISTORY_MAX)
            .await?)
    }
}

pub(super) async fn one(request: HttpRequest, state: web::Data<State>) -> Answer {
    let asked = Asked::new(&request, &state, &[])?;
    let moment = state.moment()?;
    let row = asked.row().await?;
    let sizes = state.engine().committed().sizes(asked.id).await?;
    let (show, kind) = (asked.show(), row.kind.as_str());
    let are_small = [sizes.payload, sizes.output]
        .iter()
        .flatten()
        .all(|size| *size <= VALUE_MAX);
    let (payload, output) = if are_small && state.redact.reads_values() {
        let values = state.engine().committed().values(asked.id).await?;
        let shown = |part, value: Option<Vec<u8>>| show.value(kind, part, value.as_deref());
        (shown(Part::Payload, values.payload), shown(Part::Output, values.output))
    } else {
        let shown = |part, size| show.size(kind, part, size);
        (shown(Part::Payload, sizes.payload), shown(Part::Output, sizes.output))
    };
    let paused_by = paused_by(&state, &row).await?;
    let row = match paused_by.is_empty() {
        true => row,
        false => Arc::new(Status::clone(&row).held_back()),
    };
    let body = json!({
        "procedure": show.procedure(&row),
        "payload": payload,
        "output": output,
        "paused_by": paused_by,
        "failing": failing(&state, &asked.grant, &show, &row).await?,
        "counts": counts(&state, asked.id).await?,
    });
    state.reply(moment, body)
}

pub(super) async fn tree(request: HttpRequest, state: web::Data<State>) -> Answer {
    let asked = Asked::new(&request, &state, &[])?;
    let moment = state.moment()?;
    let _turn = state.turns.take(&asked.grant).await?;
    let mut shown = asked.family(MEMBERS_MAX + 1).await?;
    let truncated = shown.len() > MEMBERS_MAX;
    shown.truncate(MEMBERS_MAX);
    let show = asked.show();
    let rows: BTreeMap<String, &Status> = shown.iter().map(|status| (status.id.to_string(), status)).collect();
    let nodes = tree_of(ProcedureId::root(asked.id.family), &shown);
    if nodes.is_empty() {
        return Err(Problem::unknown(asked.id));
    }
    let redacted = |node: TreeNodeView| {
        let status = rows.get(&node.procedure.id);
        status.map(|status| show.redacted(status, node))
    };
    let items = nodes.into_iter().filter_map(redacted).collect();
    state.reply(moment, TreeBody { items, truncated })
}

/// A family as a tree.
#[derive(Serialize)]
struct TreeBody {
    items: Vec<Shown<TreeNodeView>>,
    truncated: bool,
}

pub(super) async fn history(request: HttpRequest, state: web::Data<State>) -> Answer {
    let asked = Asked::new(&request, &state, &["cursor", "limit", "family"])?;
    let cursor: u32 = asked.params.number("cursor")?.unwrap_or_default();
    let limit = asked.params.limit("limit", PAGE_MAX, PAGE_MAX)?;
    let of_family = asked.params.flag("family")?;
    let moment = state.moment()?;
    let row = asked.row().await?;
    let _turn = state.turns.take(&asked.grant).await?;
    let mut kinds = if of_family {
        asked.kinds().await?
    } else {
        BTreeMap::new()
    };
    let entries = asked.history().await?;
    let (scanned, truncated) = (entries.len(), entries.len() == HISTORY_MAX);
    let mut rest = entries
        .iter()
        .filter(|entry| (of_family || entry.member == asked.id.member) && entry.number >= cursor);
    let page: Vec<&HistoryEntry> = rest.by_ref().take(limit).collect();
    if of_family {
        asked.add_kinds(&mut kinds, &page).await?;
    }
    let show = asked.show();
    let items: Vec<Value> = page
        .into_iter()
        .map(|entry| show.history(kinds.get(&entry.member).unwrap_or(&row.kind).as_str(), entry))
        .collect();
    let next = rest.next().map(|entry| entry.number.to_string());
    let body = json!({ "items": items, "cursor": next, "scanned": scanned, "truncated": truncated });
    state.reply(moment, body)
}

pub(super) async fn signals(request: HttpRequest, state: web::Data<State>) -> Answer {
    let asked = Asked::new(&request, &state, &[])?;
    let moment = state.moment()?;
    let row = asked.row().await?;
    let mut signals = state.engine().committed().signals(asked.id, SIGNALS_MAX + 1).await?;
    let truncated = signals.len() > SIGNALS_MAX;
    signals.truncate(SIGNALS_MAX);
    // Counting goes through all that wait, and the supervisor does it.
    let mailbox = match row.ended {
        None => {
            let _turn = state.turns.take(&asked.grant).await?;
            state.live.mailbox(asked.id).await?
        }
        Some(_) => None,
    };
    let show = asked.show();
    let items: Vec<Value> = signals
        .iter()
        .map(|kept| show.signal(row.kind.as_str(), kept))
        .collect();
    let mailbox = mailbox.as_ref().map(MailboxView::from);
    state.reply(
        moment,
        json!({ "items": items, "truncated": truncated, "mailbox": mailbox }),
    )
}

/// Why it does not move. The queues are asked at a bounded rate, whoever asks.
pub(super) async fn waits(request: HttpRequest, state: web::Data<State>) -> Answer {
    let asked = Asked::new(&request, &state, &[])?;
    let moment = state.moment()?;
    let row = asked.row().await?;
    let Some(explanation) = state.live.explain(asked.id).await? else {
        let text = "Too many explanations are asked for at once.";
        return Err(Problem::too_many(
            text,
            "Ask again in a second.",
            Duration::from_secs(1),
        ));
    };
    let mut view = ExplanationView::from(&explanation);
    if let Some(cause) = &row.cause {
        // Of one that has ended, the reason is what it said when it failed.
        let shown = words(asked.show().cause(&row, cause));
        view.reason = view.reason.replace(cause.text.as_str(), &shown);
    }
    let mut body = json!(view);
    if let Some(body) = body.as_object_mut() {
        body.insert("paused_by".to_owned(), paused_by(&state, &row).await?.into());
    }
    state.reply(moment, body)
}
