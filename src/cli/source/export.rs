//! Families as JSON lines, of either source: rows, history, signals, and of values their size, or all of them in full.

use std::fmt::Display;

use procession::ProcedureId;
use procession::offline::FamilyExport;
use procession::status::FamilyScope;
use serde::Serialize;
use serde_json::{Value, json};

use super::super::document::Document;
use super::super::exit::Failure;
use super::super::print;
use super::super::site::Site;
use super::Journal;
use super::journal::unknown;
use super::page::PAGE_MAX;
use procession::views::{
    HistoryView, ProcedureView, SignalView, revealed_signals_of, revealed_values_of, signals_of, values_of,
};

/// Rows that are looked through at once for roots.
const PAGE: usize = 1_000;

/// Where the lines go, and what is wanted of each family.
pub(crate) struct Sink {
    /// Also users' data in full, and each family as it is stored.
    pub(crate) payload: bool,
    /// Why, as the audit of an engine that runs keeps it.
    pub(crate) reason: Option<String>,
    /// The family that was printed last: pages of rows overlap.
    last: Option<u64>,
}

impl Sink {
    pub(crate) const fn new(payload: bool, reason: Option<String>) -> Self {
        Self {
            payload,
            reason,
            last: None,
        }
    }

    /// Prints a document with its type.
    fn put(&self, kind: &str, document: impl Serialize) -> Result<(), Failure> {
        let mut line = Document::of(document)?;
        line.put("type", kind);
        line.print()
    }

    fn cannot_be_read(&self, family: u64, why: &str) -> Result<(), Failure> {
        self.put("unreadable", json!({ "family": family, "why": why }))
    }

    /// Prints whose value it is, which, and how large.
    fn value(&self, id: &str, part: &str, bytes: usize) -> Result<(), Failure> {
        self.put("value", json!({ "id": id, "part": part, "bytes": bytes }))
    }

    /// Prints a family that was read as a whole.
    fn family(&self, export: &FamilyExport) -> Result<(), Failure> {
        for status in export.statuses() {
            let status = match &export.quarantined {
                Some(_) => status.quarantined(),
                None => status,
            };
            self.put("procedure", ProcedureView::from(&status))?;
        }
        if self.payload {
            self.in_full(export)?;
        } else {
            self.sizes(export)?;
        }
        for why in &export.unreadable {
            self.cannot_be_read(export.family, why)?;
        }
        if self.payload {
            self.put("family", export)?;
        }
        Ok(())
    }

    fn sizes(&self, export: &FamilyExport) -> Result<(), Failure> {
        for entry in export.history() {
            self.put("history", HistoryView::from(&entry))?;
        }
        self.signals(export.family, signals_of(export))?;
        for value in values_of(export) {
            self.put("value", value)?;
        }
        Ok(())
    }

    fn in_full(&self, export: &FamilyExport) -> Result<(), Failure> {
        for entry in export.history() {
            self.put("history", HistoryView::revealed(&entry))?;
        }
        self.signals(export.family, revealed_signals_of(export))?;
        for value in revealed_values_of(export) {
            self.put("value", value)?;
        }
        Ok(())
    }

    fn signals(&self, family: u64, signals: Result<Vec<SignalView>, impl Display>) -> Result<(), Failure> {
        match signals {
            Ok(signals) => signals.iter().try_for_each(|signal| self.put("signal", signal)),
            Err(error) => self.cannot_be_read(family, &error.to_string()),
        }
    }

    /// Returns the families of these procedures that were not printed yet.
    fn new_families(&mut self, ids: impl Iterator<Item = ProcedureId>) -> Vec<u64> {
        let mut families: Vec<u64> = ids.map(|id| id.family).collect();
        families.sort_unstable();
        families.dedup();
        families.retain(|family| self.last.is_none_or(|last| *family > last));
        self.last = families.last().copied().or(self.last);
        families
    }
}

impl Journal {
    pub(super) async fn export(&self, id: ProcedureId, sink: &Sink) -> Result<(), Failure> {
        let export = self.offline.export(id).await?.ok_or_else(|| unknown(id))?;
        sink.family(&export)
    }

    /// One family after the other, so that but one is in memory.
    pub(super) async fn export_all(&self, sink: &mut Sink) -> Result<(), Failure> {
        let mut cursor: Option<ProcedureId> = None;
        loop {
            let page = self.offline.list(&FamilyScope::All, cursor, PAGE, |_| true).await?;
            let ids = page.items.iter().map(|status| status.id).chain(page.unreadable);
            for family in sink.new_families(ids) {
                if let Some(export) = self.offline.export(ProcedureId::root(family)).await? {
                    sink.family(&export)?;
                }
            }
            match page.next {
                Some(next) => cursor = Some(next),
                None => return Ok(()),
            }
        }
    }
}

impl Site {
    pub(super) async fn export(&self, id: ProcedureId, sink: &Sink) -> Result<(), Failure> {
        let root = ProcedureId::root(id.family);
        if sink.payload {
            return sink.family(&self.stored(root, sink).await?);
        }
        let mut family = self.tree(root).await?;
        let members = family.take_items();
        let ids: Vec<String> = members.iter().filter_map(id_of).map(|id| id.to_string()).collect();
        for mut member in members {
            if let Value::Object(fields) = &mut member {
                for of_trees in ["depth", "children", "ended_children"] {
                    fields.remove(of_trees);
                }
            }
            sink.put("procedure", member)?;
        }
        for entry in self.history(root, true, usize::MAX - 1).await?.take_items() {
            sink.put("history", entry)?;
        }
        self.put_values(&ids, sink).await?;
        if family.get("truncated").as_bool().unwrap_or_default() {
            let why = "it is larger than the dashboard shows: what is beyond is not here";
            sink.cannot_be_read(id.family, why)?;
        }
        Ok(())
    }

    /// Signals first, then values, each by id.
    async fn put_values(&self, ids: &[String], sink: &Sink) -> Result<(), Failure> {
        for id in ids {
            for signal in self.get(&format!("procedures/{id}/signals"), &[]).await?.take_items() {
                sink.put("signal", signal)?;
            }
        }
        for id in ids {
            let one = self.get(&format!("procedures/{id}"), &[]).await?;
            for part in ["payload", "output"] {
                let size = one.get(part).get("size").and_then(Value::as_u64);
                if let Some(size) = size.and_then(|size| usize::try_from(size).ok()) {
                    sink.value(id, part, size)?;
                }
            }
        }
        Ok(())
    }

    /// Asks for a family as it is stored. Who asked for it, and why, goes into the audit first.
    async fn stored(&self, root: ProcedureId, sink: &Sink) -> Result<FamilyExport, Failure> {
        let body = json!({ "reason": sink.reason.as_deref().unwrap_or_default() });
        let Document(mut told) = self.post(&format!("procedures/{root}/export"), &body, false).await?;
        let export = told.get_mut("export").map(Value::take).unwrap_or_default();
        serde_json::from_value(export).map_err(|error| {
            Failure::new(format!(
                "the dashboard gave no family that this release reads ({error}); use the release of the command line \
                 that the engine has"
            ))
        })
    }

    pub(super) async fn export_all(&self, sink: &mut Sink) -> Result<(), Failure> {
        let limit = PAGE_MAX.to_string();
        let mut cursor: Option<String> = None;
        loop {
            // The oldest first: a family may go on behind the end of a page, and is printed once.
            let mut query = vec![
                ("limit", limit.as_str()),
                ("filter", "state:live,ended"),
                ("order", "oldest"),
            ];
            query.extend(cursor.as_deref().map(|cursor| ("cursor", cursor)));
            let page: Document = self.get("procedures", &query).await?;
            let rows = page.get("items").as_array().into_iter().flatten().filter_map(id_of);
            let unreadable = page.get("unreadable").as_array().into_iter().flatten();
            let unreadable = unreadable.filter_map(|id| id.as_str()?.parse().ok());
            for family in sink.new_families(rows.chain(unreadable)) {
                match self.export(ProcedureId::root(family), sink).await {
                    Ok(()) => {}
                    // It went while the others were printed, or it cannot be read.
                    Err(failure) => {
                        sink.cannot_be_read(family, &failure.text)?;
                        print::notice(&format!("the family of {family}.0 is left out: {}", failure.text));
                        failure.stop_if_refused()?;
                    }
                }
            }
            match page.get("cursor").as_str() {
                Some(next) => cursor = Some(next.to_owned()),
                None => return Ok(()),
            }
        }
    }
}

fn id_of(row: &Value) -> Option<ProcedureId> {
    row.get("id")?.as_str()?.parse().ok()
}
