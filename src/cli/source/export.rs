//! Families as JSON lines, of either source: rows, history, signals, and of values their size, or all of them in full.

use std::fmt::Display;

use procession::ProcedureId;
use procession::offline::FamilyExport;
use procession::status::FamilyScope;
use serde::Serialize;
use serde_json::{Value, json};

use super::super::document::Document;
use super::super::exit::{Exit, Failure};
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
    /// Families that could not be read at all, or not to their end.
    left_out: Vec<u64>,
    /// Families that are there in part, or as they were at different moments.
    not_whole: Vec<u64>,
    /// Rows could not be read in their order, so nobody knows whether each family was met.
    unlisted: bool,
}

impl Sink {
    pub(crate) const fn new(payload: bool, reason: Option<String>) -> Self {
        Self {
            payload,
            reason,
            last: None,
            left_out: Vec::new(),
            not_whole: Vec::new(),
            unlisted: false,
        }
    }

    /// Names what is missing from the printed lines, and returns the exit code.
    pub(crate) fn end(&self) -> Exit {
        for (families, what) in [
            (&self.left_out, "left out"),
            (&self.not_whole, "not exported as a whole"),
        ] {
            if families.is_empty() {
                continue;
            }
            let names: Vec<String> = families.iter().map(ToString::to_string).collect();
            let counted = print::counted(families.len(), "family is", "families are");
            print::notice(&format!("{counted} {what}: {}", names.join(", ")));
        }
        match self.unlisted || !self.left_out.is_empty() || !self.not_whole.is_empty() {
            true => Exit::NeedsYou,
            false => Exit::Done,
        }
    }

    /// Leaves a family out, and says why. The others are printed all the same.
    fn leave_out(&mut self, family: u64, why: &str) -> Result<(), Failure> {
        self.cannot_be_read(family, why)?;
        print::notice(&format!("the family of {family}.0 is left out: {why}"));
        self.left_out.push(family);
        Ok(())
    }

    /// Says that the lines of a family are not of one moment.
    fn has_moved(&mut self, family: u64) {
        print::notice(&format!(
            "the family of {family}.0 went on while it was read, so its lines are of different moments, and no import \
             takes them; pause it, or stop its engine, and export it again"
        ));
        self.lacks(family);
    }

    /// Notes, once, that what is printed of a family is not all of it, or not of one moment.
    fn lacks(&mut self, family: u64) {
        if self.not_whole.last() != Some(&family) {
            self.not_whole.push(family);
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
    fn family(&mut self, export: &FamilyExport) -> Result<(), Failure> {
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
        if let Some(why) = export.unreadable.first() {
            print::notice(&format!(
                "parts of the family of {}.0 cannot be read: {why}",
                export.family
            ));
            self.lacks(export.family);
        }
        if self.payload {
            self.put("family", export)?;
        }
        if !export.whole {
            self.has_moved(export.family);
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
    pub(super) async fn export(&self, id: ProcedureId, sink: &mut Sink) -> Result<(), Failure> {
        let export = self.offline.export(id).await?.ok_or_else(|| unknown(id))?;
        sink.family(&export)
    }

    /// One family after the other, so that but one is in memory. What cannot be read is left out.
    pub(super) async fn export_all(&self, sink: &mut Sink) -> Result<(), Failure> {
        let mut cursor: Option<ProcedureId> = None;
        loop {
            let page = match self.offline.list(&FamilyScope::All, cursor, PAGE, |_| true).await {
                Ok(page) => page,
                Err(error) => return self.export_indexed(sink, &error.to_string()).await,
            };
            let ids = page.items.iter().map(|status| status.id).chain(page.unreadable);
            for family in sink.new_families(ids) {
                self.export_or_leave_out(family, sink).await?;
            }
            match page.next {
                Some(next) => cursor = Some(next),
                None => return Ok(()),
            }
        }
    }

    /// Goes on where rows cannot be read in their order, with the families that the indexes name: those whose own rows can
    /// be read are printed.
    async fn export_indexed(&self, sink: &mut Sink, why: &str) -> Result<(), Failure> {
        let behind = sink
            .last
            .map(|last| format!(" behind the family {last}"))
            .unwrap_or_default();
        print::notice(&format!(
            "could not read the rows of procedures{behind} in their order, so the families that the indexes name are \
             tried one by one: {why}"
        ));
        sink.unlisted = true;
        let (families, unread) = self.offline.indexed_families().await;
        for error in unread {
            print::notice(&format!("families that one of the indexes names are left out: {error}"));
        }
        let from = sink.last.map_or(0, |last| last.saturating_add(1));
        for family in families.range(from..) {
            self.export_or_leave_out(*family, sink).await?;
        }
        Ok(())
    }

    async fn export_or_leave_out(&self, family: u64, sink: &mut Sink) -> Result<(), Failure> {
        match self.offline.export(ProcedureId::root(family)).await {
            Ok(Some(export)) => sink.family(&export),
            Ok(None) => Ok(()),
            Err(error) => sink.leave_out(family, &error.to_string()),
        }
    }
}

impl Site {
    pub(super) async fn export(&self, id: ProcedureId, sink: &mut Sink) -> Result<(), Failure> {
        let root = ProcedureId::root(id.family);
        if sink.payload {
            return sink.family(&self.stored(root, sink).await?);
        }
        let mut family = self.tree(root).await?;
        let members = family.take_items();
        let before = revisions(&members);
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
            print::notice(&format!("the family of {root} is there in part: {why}"));
            sink.lacks(id.family);
        }
        if !self.is_as_it_was(root, &before).await? {
            sink.has_moved(id.family);
        }
        Ok(())
    }

    /// Compares the rows of a family with those from before: every commit that moves it writes one of them.
    async fn is_as_it_was(&self, root: ProcedureId, before: &[(String, String)]) -> Result<bool, Failure> {
        match self.tree(root).await {
            Ok(mut family) => Ok(revisions(&family.take_items()) == before),
            // It may have gone meanwhile.
            Err(failure) => failure.stop_if_refused().map(|()| false),
        }
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
        print::notice(
            "the engine runs, so each family is as it was when it was read, and no two need be of one moment; for an \
             archive of one moment, stop the engine and export its directory",
        );
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
                        sink.leave_out(family, &failure.text)?;
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

/// Returns the ids of rows with their revisions.
fn revisions(rows: &[Value]) -> Vec<(String, String)> {
    let text = |row: &Value, name: &str| row.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    rows.iter()
        .map(|row| (text(row, "id"), text(row, "revision")))
        .collect()
}
