//! `audit`: what operators did, newest first, and as far as an [`AuditFilter`] admits it.

use actix_web::{HttpRequest, web};
use procession_kernel::AuditEntry;
use serde_json::json;

use super::live::AUDIT_NEWEST;
use super::params::Params;
use super::problem::{Answer, Problem};
use super::state::{State, viewer};
use crate::views::AuditView;

/// Entries read from the store at once.
const AT_ONCE: usize = 500;

/// What operators did, newest first. The newest page is asked for once for all; what is older
/// is read from the store, at most all that is kept.
pub(super) async fn audit(request: HttpRequest, state: web::Data<State>) -> Answer {
    let grant = viewer(&request)?;
    let params = Params::of(&request, &["filter", "cursor", "limit"])?;
    let filter = params.audit_filter()?;
    let mut before: Option<u64> = params.number("cursor")?;
    let limit = params.limit("limit", 100, AUDIT_NEWEST)?;
    let moment = state.moment()?;
    if before.is_none() {
        // They are asked for here already: an engine that does not answer must not hold up others' turns.
        state.live.audit().await?;
    }
    let _turn = state.turns.take(&grant).await?;
    let (mut items, mut scanned) = (Vec::new(), 0_usize);
    // The oldest entries go: behind the first that is kept there is an empty page.
    let cursor = loop {
        let entries = match page(&state, before).await? {
            // A number above the newest names a range that no entry is in: the newest are before it, too.
            none if none.is_empty() && scanned == 0 => newest_before(&state, before).await?,
            entries => entries,
        };
        let Some(oldest) = entries.last().map(|entry| entry.number) else {
            break None;
        };
        let mut last = None;
        for entry in entries {
            scanned += 1;
            if filter.admits(&entry) {
                items.push(AuditView::from(&entry));
            }
            if items.len() == limit {
                last = Some(entry.number);
                break;
            }
        }
        match (last, oldest) {
            (Some(last), _) => break Some(last).filter(|last| *last > 0),
            (None, 0) => break None,
            (None, oldest) => before = Some(oldest),
        }
    };
    let cursor = cursor.map(|before| before.to_string());
    state.reply(moment, json!({ "items": items, "cursor": cursor, "scanned": scanned }))
}

/// Returns the newest entries, if all of them are before this number.
async fn newest_before(state: &State, before: Option<u64>) -> Result<Vec<AuditEntry>, Problem> {
    let newest = page(state, None).await?;
    let is_before = |newest: &AuditEntry| before.is_some_and(|before| newest.number < before);
    Ok(match newest.first().is_some_and(is_before) {
        true => newest,
        false => Vec::new(),
    })
}

/// Returns entries before one, or the newest, newest first; none if there are no more.
pub(super) async fn page(state: &State, before: Option<u64>) -> Result<Vec<AuditEntry>, Problem> {
    match before {
        Some(before) => Ok(state.engine().committed().audit(0, before, AT_ONCE).await?),
        None => Ok(state.live.audit().await?.to_vec()),
    }
}
