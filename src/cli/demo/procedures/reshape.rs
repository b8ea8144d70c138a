//! What create, split and merge have in common: new tablets are written, named
//! in the meta table in place of those they were made of, and loaded.

use serde::{Deserialize, Serialize};

use super::{LoadTablet, SweepFiles, Target, UnloadTablet};
use crate::demo::faults::Lot;
use crate::demo::master::Master;
use crate::demo::meta::{self, TabletRow, TabletState};
use crate::demo::rows::{self, Piece};
use crate::demo::stage;
use procession::limits::LockNeed;
use procession::procedure::CallContext;
use procession::{Children, Procedure, StageContext, StageError};

/// How many tablets of one table are loaded or unloaded at once: enough to keep
/// the disk busy, few enough that one table does not crowd out the others.
pub(crate) const WIDTH: u32 = 8;

/// New tablets in place of old ones.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Reshape {
    table: String,
    schema: u32,
    sources: Vec<TabletRow>,
    names: Vec<String>,
    results: Vec<TabletRow>,
}

impl Reshape {
    /// Plans so many new tablets, at most, of these. Their names are decided
    /// here, so that an undo knows them though the writing was never committed.
    pub(crate) fn plan(cx: &CallContext<'_>, table: &str, schema: u32, sources: Vec<TabletRow>, pieces: usize) -> Self {
        let token = cx.token();
        let name = |number| format!("{table}-{}-{}-{number}", token.procedure.family, token.visit);
        let names = (0..pieces).map(name).collect();
        Self {
            table: table.to_owned(),
            schema,
            sources,
            names,
            results: Vec::new(),
        }
    }

    /// Lists the locks of the new tablets. They are taken before there are any: from
    /// the moment at which the meta table names them others can see them, and they
    /// are not loaded yet. Nobody waits for what has no name yet, so they are free.
    pub(crate) fn locks(&self) -> Vec<LockNeed> {
        let lock = |name: &String| stage::tablet_lock(&self.table, name);
        self.names.iter().map(lock).collect()
    }

    /// Returns the names of the new tablets.
    pub(crate) fn ids(&self) -> Vec<String> {
        self.results.iter().map(|tablet| tablet.id.clone()).collect()
    }

    /// Lists the unloading of the old tablets.
    pub(crate) fn unloads(&self, lot: &Lot) -> Result<Children, StageError> {
        unloads(lot, &self.sources)
    }

    /// Writes the rows of the old tablets into the files of the new ones.
    pub(crate) async fn write<P>(&mut self, cx: &StageContext<'_, P>) -> Result<(), StageError>
    where
        P: Procedure<Env = Master>,
    {
        let planned = self.clone();
        self.results = stage::on_files(cx, move |master| planned.rewrite(master)).await?;
        Ok(())
    }

    fn rewrite(&self, master: &Master) -> Result<Vec<TabletRow>, StageError> {
        let mut text = String::new();
        for source in &self.sources {
            text.push_str(&read_unchanged(master, source)?);
        }
        let (Some(first), Some(last)) = (self.sources.first(), self.sources.last()) else {
            return Err(StageError::fail("there is no tablet to make new ones of"));
        };
        let lines: Vec<&str> = text.lines().collect();
        let pieces = rows::divide(&lines, self.names.len(), &first.start, last.end.as_deref());
        if pieces.len() < self.names.len() {
            return Err(StageError::fail(format!(
                "tablet {} has one key only: it cannot be split",
                first.id
            )));
        }
        self.write_pieces(master, &pieces, &first.server)
    }

    /// Writes these pieces; the first for this server, the others for those after it.
    pub(crate) fn write_pieces(
        &self,
        master: &Master,
        pieces: &[Piece<'_>],
        server: &str,
    ) -> Result<Vec<TabletRow>, StageError> {
        let servers = master.files().servers();
        let from = servers.iter().position(|name| name == server).unwrap_or(0);
        let placed = servers.iter().cycle().skip(from);
        let mut results = Vec::new();
        for ((piece, id), server) in pieces.iter().zip(&self.names).zip(placed) {
            let text = rows::text_of(piece.lines.iter().copied());
            let tablet = TabletRow {
                table: self.table.clone(),
                id: id.clone(),
                start: piece.start.clone(),
                end: piece.end.clone(),
                state: TabletState::Offline,
                server: server.clone(),
                rows: u64::try_from(piece.lines.len()).unwrap_or(u64::MAX),
                digest: rows::digest(text.as_bytes()),
                schema: self.schema,
            };
            master
                .files()
                .write_shared(&tablet.file(), &text)
                .map_err(|error| stage::of_system(&error))?;
            results.push(tablet);
        }
        Ok(results)
    }

    /// Takes what was written as the new tablets.
    pub(crate) fn written(&mut self, results: Vec<TabletRow>) {
        self.results = results;
    }

    /// Names the new tablets in the meta table, and no longer the old ones.
    pub(crate) fn commit(&self, cx: &mut CallContext<'_>) -> Result<(), StageError> {
        for source in &self.sources {
            cx.delete(meta::TABLETS, source.key());
        }
        for result in &self.results {
            cx.put(meta::TABLETS, result.key(), result)?;
        }
        Ok(())
    }

    /// Lists the loading of the new tablets.
    pub(crate) fn loads(&self, lot: &Lot) -> Result<Children, StageError> {
        loads(lot, &self.results, self.schema)
    }

    /// Has the files of the old tablets removed, once this stage is committed.
    pub(crate) fn sweep(&self, cx: &mut CallContext<'_>) -> Result<(), StageError> {
        let files = self.sources.iter().map(TabletRow::file).collect();
        Ok(cx.submit(&SweepFiles::new(files))?)
    }

    /// Names the old tablets again.
    pub(crate) fn undo_commit(&self, cx: &mut CallContext<'_>) -> Result<(), StageError> {
        for result in &self.results {
            cx.delete(meta::TABLETS, result.key());
        }
        for source in &self.sources {
            cx.put(meta::TABLETS, source.key(), &source.offline())?;
        }
        Ok(())
    }

    /// Removes whatever was written.
    pub(crate) async fn undo_write<P>(&self, cx: &StageContext<'_, P>) -> Result<(), StageError>
    where
        P: Procedure<Env = Master>,
    {
        let files: Vec<String> = self.names.iter().map(|name| format!("{name}.rows")).collect();
        stage::on_files(cx, move |master| {
            files
                .iter()
                .try_for_each(|file| stage::undone(master.files().remove_shared(file)))
        })
        .await
    }
}

/// Lists the unloading of these tablets, to be undone with the rest.
pub(crate) fn unloads(lot: &Lot, tablets: &[TabletRow]) -> Result<Children, StageError> {
    let mut children = Children::new();
    for (place, tablet) in tablets.iter().enumerate() {
        let target = Target::Tablet(tablet.id.clone());
        let unload = UnloadTablet::new(lot.of_child(place, tablets.len()), &tablet.table, target);
        children = children.and_compensated(&unload)?;
    }
    Ok(children.width(WIDTH))
}

/// Lists the loading of these tablets, to be undone with the rest.
pub(crate) fn loads(lot: &Lot, tablets: &[TabletRow], schema: u32) -> Result<Children, StageError> {
    let mut children = Children::new();
    for (place, tablet) in tablets.iter().enumerate() {
        let target = Target::Tablet(tablet.id.clone());
        let load = LoadTablet::new(lot.of_child(place, tablets.len()), &tablet.table, target)
            .on(Some(&tablet.server))
            .with_schema(schema);
        children = children.and_compensated(&load)?;
    }
    Ok(children.width(WIDTH))
}

/// Reads an offline tablet's file, which must be as it was written.
fn read_unchanged(master: &Master, tablet: &TabletRow) -> Result<String, StageError> {
    let text = master
        .files()
        .read_shared(&tablet.file())
        .map_err(|error| stage::of_system(&error))?;
    if rows::digest(text.as_bytes()) == tablet.digest {
        Ok(text)
    } else {
        Err(StageError::fail(format!(
            "the file {} has changed since it was written",
            tablet.file()
        )))
    }
}
