//! How all families ended, in words that are the same whatever numbers they got: a
//! crash may skip numbers of families, and children that run at once may give birth in
//! another order.

use std::collections::BTreeMap;

use procession_actors::journal::{Space, keys};
use procession_actors::view::{ListFilter, Status};
use procession_kernel::{ProcedureId, ProcedureState};

use super::lines::Line;
use super::shown;
use crate::testkit::world::{Run, Trouble};

/// Procedures that are read at once.
const PAGE: usize = 1_000;

/// Lists those that match, all of them.
pub(super) async fn list(run: &Run, filter: ListFilter) -> Result<Vec<Status>, Trouble> {
    let (mut all, mut cursor) = (Vec::new(), None);
    loop {
        let page = run.executor.list(filter.clone(), cursor, PAGE).await?;
        all.extend(page.items);
        cursor = page.next;
        if cursor.is_none() {
            return Ok(all);
        }
    }
}

/// Returns `true` if something of this run stands, whatever became of its root: a child
/// whose result is kept, or a family of its own that it left behind.
pub(super) async fn stands(run: &Run, root: ProcedureId) -> Result<bool, Trouble> {
    let succeeded = ListFilter {
        state: Some(ProcedureState::Success),
        ..ListFilter::default()
    };
    let all = list(run, succeeded).await?;
    Ok(all.iter().any(|status| status.id > root))
}

/// Shows every family, a procedure a line, below its parent, in the order of birth.
pub(super) async fn shown(run: &Run) -> Result<Vec<Line>, Trouble> {
    run.settle().await;
    let all = list(run, ListFilter::default()).await?;
    let mut outputs = BTreeMap::new();
    for (key, value) in run.world.disk.dump(&Space::Payloads) {
        if let (Some(id), Some(&keys::OUTPUT)) = (keys::parse_procedure(&key), key.last()) {
            outputs.insert(id, value);
        }
    }
    let mut children: BTreeMap<Option<ProcedureId>, Vec<&Status>> = BTreeMap::new();
    for status in &all {
        children.entry(status.parent).or_default().push(status);
    }
    let roots = children.get(&None).map(Vec::as_slice).unwrap_or_default();
    let mut families: Vec<Vec<Line>> = Vec::new();
    for root in roots {
        let mut lines = Vec::new();
        show(root, 0, &children, &outputs, &mut lines);
        families.push(lines);
    }
    families.sort();
    Ok(families.concat())
}

fn show(
    status: &Status,
    depth: usize,
    children: &BTreeMap<Option<ProcedureId>, Vec<&Status>>,
    outputs: &BTreeMap<ProcedureId, Vec<u8>>,
    lines: &mut Vec<Line>,
) {
    let output = outputs.get(&status.id).map(Vec::as_slice).unwrap_or_default();
    let value = if output.is_empty() {
        String::new()
    } else {
        shown::value(output)
    };
    let cause = status.cause.as_ref();
    let cause = cause.map(|cause| cause.text.as_str()).unwrap_or_default();
    let (kind, state, not_undone) = (&status.kind, status.state, status.not_undone.len());
    let text = format!(
        "{:depth$}{kind} is {state} {cause} {value} ({not_undone} not undone)",
        ""
    );
    lines.push(Line::new(text, output));
    for child in children.get(&Some(status.id)).map(Vec::as_slice).unwrap_or_default() {
        show(child, depth + 1, children, outputs, lines);
    }
}
