//! Where the verbs read: a closed journal or a dashboard. Both answer with the same documents,
//! so that there is one way to show them.

mod audit;
mod doctor;
mod export;
mod find;
mod flow;
mod journal;
mod page;
mod remote;
#[cfg(test)]
mod tests;

pub(super) use export::Sink;
pub(super) use journal::Journal;

use procession::ProcedureId;
use procession::status::FamilyScope;

use super::document::Document;
use super::exit::Failure;
use super::named::Named;
use super::site::Site;
use procession::filter::{AuditFilter, Filter};

/// Something that can be looked at.
pub(super) enum Source {
    /// A closed journal.
    Journal(Journal),
    /// A dashboard that runs.
    Site(Site),
}

/// Which procedures a list shows.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    pub(super) filter: Filter,
    /// Those that have ended, too, if the filter says nothing of states.
    pub(super) all: bool,
    pub(super) limit: usize,
    pub(super) after: Option<ProcedureId>,
}

impl Wanted {
    /// Without a word on states, a list is of those that have not ended.
    pub(super) fn shows_ended(&self) -> bool {
        self.all || self.filter.names_states()
    }

    /// Returns the families whose rows must be read.
    pub(super) fn among(&self) -> FamilyScope {
        let shows_live_alone = !self.shows_ended() || (self.filter.names_states() && self.filter.is_of_live());
        self.filter.scope(shows_live_alone)
    }
}

impl Source {
    /// Returns `true` if an engine runs there.
    pub(super) const fn is_running(&self) -> bool {
        matches!(self, Self::Site(_))
    }

    /// Returns the id of a named procedure. If the result of a key is gone, the failure names the id that it stood for.
    pub(super) async fn resolve(&self, named: &Named) -> Result<ProcedureId, Failure> {
        match self {
            Self::Journal(journal) => journal.resolve(named).await,
            Self::Site(site) => site.resolve(named).await,
        }
    }

    /// Returns `items`, `cursor`, `scanned`, `truncated`, `unreadable`.
    pub(super) async fn list(&self, wanted: &Wanted) -> Result<Document, Failure> {
        match self {
            Self::Journal(journal) => journal.list(wanted).await,
            Self::Site(site) => site.list(wanted).await,
        }
    }

    /// Returns `procedure`.
    pub(super) async fn one(&self, id: ProcedureId) -> Result<Document, Failure> {
        match self {
            Self::Journal(journal) => journal.one(id).await,
            Self::Site(site) => site.one(id).await,
        }
    }

    /// Returns an explanation.
    pub(super) async fn waits(&self, id: ProcedureId) -> Result<Document, Failure> {
        match self {
            Self::Journal(journal) => journal.waits(id).await,
            Self::Site(site) => site.waits(id).await,
        }
    }

    /// Returns `items`.
    pub(super) async fn signals(&self, id: ProcedureId) -> Result<Document, Failure> {
        match self {
            Self::Journal(journal) => journal.signals(id).await,
            Self::Site(site) => site.signals(id).await,
        }
    }

    /// Returns `items`: the procedure, and all below it.
    pub(super) async fn tree(&self, id: ProcedureId) -> Result<Document, Failure> {
        match self {
            Self::Journal(journal) => journal.tree(id).await,
            Self::Site(site) => site.tree(id).await,
        }
    }

    /// Returns `items`, `cursor`, `scanned`: what operators did. The filter is given as it is written, and as it is read.
    pub(super) async fn audit(
        &self,
        (text, filter): (&str, &AuditFilter),
        before: Option<u64>,
        limit: usize,
    ) -> Result<Document, Failure> {
        match self {
            Self::Journal(journal) => journal.audit(filter, before, limit).await,
            Self::Site(site) => site.audit(text, before, limit).await,
        }
    }

    /// Returns `items`, `cursor`, `scanned`, `truncated`, `unreadable`: sets and streams.
    pub(super) async fn flows(&self, wanted: &Wanted) -> Result<Document, Failure> {
        match self {
            Self::Journal(journal) => journal.flows(wanted).await,
            Self::Site(site) => site.flows(wanted).await,
        }
    }

    /// Returns the failures that nobody has acknowledged, in groups.
    pub(super) async fn failures(&self) -> Result<Document, Failure> {
        match self {
            Self::Journal(journal) => journal.failures().await,
            Self::Site(site) => Ok(site.get("failures", &[]).await?),
        }
    }

    /// Returns `items`, `total`, `counts`, `truncated`: the graph of a family.
    pub(super) async fn graph(&self, id: ProcedureId) -> Result<Document, Failure> {
        match self {
            Self::Journal(journal) => journal.graph(id).await,
            Self::Site(site) => site.graph(id).await,
        }
    }

    /// Returns what a stream does.
    pub(super) async fn queue(&self, id: ProcedureId, before: Option<u32>, limit: usize) -> Result<Document, Failure> {
        match self {
            Self::Journal(journal) => journal.queue(id, before, limit).await,
            Self::Site(site) => site.queue(id, before, limit).await,
        }
    }

    /// Returns `items`, and says if there are more than `limit`.
    pub(super) async fn history(&self, id: ProcedureId, family: bool, limit: usize) -> Result<Document, Failure> {
        let mut document = match self {
            Self::Journal(journal) => journal.history(id, family).await?,
            Self::Site(site) => site.history(id, family, limit).await?,
        };
        document.cut(limit);
        Ok(document)
    }

    /// Returns `to`, `from` and `difference`: the value behind an entry of the history, and behind the one it is compared
    /// with.
    pub(super) async fn values(&self, id: ProcedureId, entry: u32, from: Option<u32>) -> Result<Document, Failure> {
        match self {
            Self::Journal(journal) => journal.values(id, entry, from).await,
            Self::Site(site) => site.values(id, entry, from).await,
        }
    }

    /// Returns what attempts logged: an engine that runs has that in memory.
    pub(super) async fn logs(&self, id: ProcedureId, limit: usize) -> Result<Document, Failure> {
        match self {
            Self::Journal(_) => Err(Failure::usage(
                "a closed journal has no logs: an engine keeps them in memory; ask one that runs, with --url",
            )),
            Self::Site(site) => site.logs(id, limit).await,
        }
    }

    /// Returns `items`.
    pub(super) async fn locks(&self) -> Result<Document, Failure> {
        match self {
            Self::Journal(journal) => journal.locks().await,
            Self::Site(site) => site.locks().await,
        }
    }

    /// Returns `items`.
    pub(super) async fn limits(&self) -> Result<Document, Failure> {
        match self {
            Self::Journal(journal) => journal.limits().await,
            Self::Site(site) => site.limits().await,
        }
    }

    /// Returns `bytes`, `families`, `procedures`, `kinds`, `verdicts`, `unreadable`.
    pub(super) async fn findings(&self, quick: bool) -> Result<Document, Failure> {
        match self {
            Self::Journal(journal) => journal.findings(quick).await,
            Self::Site(site) => site.findings().await,
        }
    }

    /// Hands over the family of a procedure.
    pub(super) async fn export(&self, id: ProcedureId, sink: &mut Sink) -> Result<(), Failure> {
        match self {
            Self::Journal(journal) => journal.export(id, sink).await,
            Self::Site(site) => site.export(id, sink).await,
        }
    }

    /// Hands over every family, finished ones too, one after the other.
    pub(super) async fn export_all(&self, sink: &mut Sink) -> Result<(), Failure> {
        match self {
            Self::Journal(journal) => journal.export_all(sink).await,
            Self::Site(site) => site.export_all(sink).await,
        }
    }
}
