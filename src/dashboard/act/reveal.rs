//! User data in full. The audit entry is on disk before any of it leaves.

use actix_web::web;
use procession_kernel::{Operated, ProcedureId, RevealScope};
use serde_json::{Value, json};

use super::wish::Request;
use crate::dashboard::problem::{Answer, Problem};
use crate::dashboard::state::State;
use crate::views::revealed;

/// Bytes of a family that one export over HTTP holds, at most: as JSON it is several times that.
const EXPORT_MAX: usize = 16 << 20;

/// `procedures/{id}/reveal`: payload and output. A dry run tells their sizes.
pub(super) async fn reveal(state: &web::Data<State>, id: ProcedureId, request: Request) -> Answer {
    request.must_have_no_key()?;
    let is_dry = request.by.dry_run;
    state.moment()?;
    let committed = state.engine().committed();
    let row = committed.status(id).await?;
    let row = row.ok_or_else(|| Problem::unknown(id))?;
    let told = state.executor.audit_reveal(id, RevealScope::Values, request.by).await?;
    let values = committed.values(id).await?;
    let shown = |bytes: Option<Vec<u8>>| bytes.map(|bytes| value(&bytes, is_dry));
    let body = json!({
        "dry_run": is_dry,
        "number": number(&told),
        "id": id.to_string(),
        "kind": row.kind.as_str(),
        "payload": shown(values.payload),
        "output": shown(values.output),
    });
    state.reply_acted(is_dry, body)
}

/// `procedures/{id}/export`: all that the journal holds of the family, also of one that cannot
/// be read. A dry run tells how much that is.
pub(super) async fn export(state: &web::Data<State>, id: ProcedureId, request: Request) -> Answer {
    request.must_have_no_key()?;
    let is_dry = request.by.dry_run;
    state.moment()?;
    let export = state.engine().committed().export(id.family, EXPORT_MAX).await?;
    let mut export = export.ok_or_else(|| Problem::unknown(id))?;
    let snapshot = state.live.snapshot().await?;
    let why = snapshot.quarantined.iter().find(|(family, _)| *family == id.family);
    export.quarantined = why.map(|(_, why)| why.clone());
    let told = state.executor.audit_reveal(id, RevealScope::Family, request.by).await?;
    let bytes: usize = export
        .entries
        .iter()
        .map(|entry| entry.key.len() + entry.value.len())
        .sum();
    let body = json!({
        "dry_run": is_dry,
        "number": number(&told),
        "id": ProcedureId::root(id.family).to_string(),
        "entries": export.entries.len(),
        "bytes": bytes,
        "export": (!is_dry).then_some(&export),
    });
    state.reply_acted(is_dry, body)
}

fn number(told: &Operated) -> Option<String> {
    told.number.map(|number| number.to_string())
}

/// Shows a user's value; a plan shows only its size.
fn value(bytes: &[u8], is_dry: bool) -> Value {
    if is_dry {
        return json!({ "size": bytes.len(), "value": null, "raw": null });
    }
    revealed(bytes)
}
