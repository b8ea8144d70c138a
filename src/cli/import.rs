//! `procession import`: an exported family goes into a closed journal. The plan first, then the
//! question whether that is meant, then the act, while the journal is held: nothing comes between.

mod file;
mod told;

use std::path::PathBuf;

use clap::Args;
use procession::ProcedureId;
use procession::errors::{ImportError, StartError, StoreError};
use procession::offline::FamilyExport;
use procession::offline::{Imported, Importer};
use procession::operate::OperatorRequest;

use super::act::ask;
use super::act::target::Target;
use super::document::Document;
use super::exit::{Exit, Failure};
use super::scratch::Scratch;
use super::{account, place, print};

#[derive(Debug, Clone, Args)]
pub(super) struct ImportArgs {
    /// What "procession export ID --payload" has printed; - is standard input.
    #[arg(
        value_name = "FILE",
        required_unless_present = "archived",
        conflicts_with = "archived"
    )]
    file: Option<PathBuf>,
    /// Take the family of this number out of the journal's own archive, where a discharge put it.
    #[arg(long, value_name = "FAMILY")]
    archived: Option<u64>,
    /// Directory of a closed journal. No engine may hold it.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// An engine that runs takes no import.
    #[arg(long, value_name = "URL", hide = true)]
    url: Option<String>,
    /// Say what would be imported, and do nothing.
    #[arg(long)]
    dry_run: bool,
    /// Do not ask for confirmation.
    #[arg(long, short)]
    yes: bool,
    /// Why; recorded in the audit log.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Who; recorded in the audit log [default: the user of this machine].
    #[arg(long, value_name = "NAME")]
    who: Option<String>,
    /// Print JSON, one document a line.
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(args: ImportArgs) -> Result<Exit, Failure> {
    let data = args.directory()?;
    let by = args.by()?;
    args.must_make_sense()?;
    // Dropped behind the importer: a copy is in it.
    let scratch = match args.dry_run {
        true => Some(Scratch::begin()?),
        false => None,
    };
    let importer = open(data.clone(), scratch.as_ref().map(|scratch| scratch.path().to_owned())).await?;
    let export = args.export(&importer).await?;
    let planned = importer.import(&export, &by.clone().dry_run()).await.map_err(failure)?;
    if args.dry_run {
        args.tell(&planned)?;
        return Ok(Exit::Done);
    }
    if !args.json {
        told::show(&planned);
    }
    if !args.yes {
        ask::must_be_meant("import", &Target::One(ProcedureId::root(planned.family)))?;
    }
    let imported = importer.import(&export, &by).await.map_err(failure)?;
    if args.json {
        document(&imported)?.print()?;
    } else {
        print::line(&told::sentence(&imported));
    }
    Ok(Exit::Done)
}

/// The journal in its place; for a plan alone a private copy of it.
async fn open(data: PathBuf, scratch: Option<PathBuf>) -> Result<Importer, Failure> {
    let place = data.clone();
    let open = move || match scratch {
        Some(scratch) => Importer::open_copy_in(&place, &scratch),
        None => Importer::open(&place),
    };
    let opened = actix_rt::task::spawn_blocking(open).await.map_err(Failure::new)?;
    opened.map_err(|error| {
        let StoreError::Held { place, holder } = &error else {
            return error.into();
        };
        Failure {
            exit: Exit::Refused,
            text: format!(
                "the journal in {place} is held by an engine{holder}; an import needs a closed journal: stop the \
                 engine, import, and start it again"
            ),
        }
    })
}

impl ImportArgs {
    fn directory(&self) -> Result<&PathBuf, Failure> {
        let Some(data) = self.data.as_ref().filter(|_| self.url.is_none()) else {
            return Err(Failure::usage(
                "an import goes into a closed journal, not to an engine that runs: stop the engine, and give the \
                 directory of its journal with --data",
            ));
        };
        match place::misplaced(data) {
            Some(why) => Err(Failure::new(why)),
            None => Ok(data),
        }
    }

    fn must_make_sense(&self) -> Result<(), Failure> {
        let from_input = self.file.as_ref().is_some_and(|file| file.as_os_str() == "-");
        if !self.dry_run && !self.yes && (self.json || from_input || !ask::is_possible()) {
            let text = "there is no terminal to ask on: look at the plan with --dry-run, and give --yes";
            return Err(Failure::usage(text));
        }
        Ok(())
    }

    fn by(&self) -> Result<OperatorRequest, Failure> {
        let reason = self.reason.clone().unwrap_or_default();
        if reason.trim().is_empty() && !self.dry_run {
            let text = "say why with --reason: the audit keeps it; or look at the plan with --dry-run";
            return Err(Failure::usage(text));
        }
        match self
            .who
            .clone()
            .filter(|who| !who.trim().is_empty())
            .or_else(account::user)
        {
            Some(who) => Ok(OperatorRequest::new(who, reason)),
            None if self.dry_run => Ok(OperatorRequest::new("", reason)),
            None => Err(Failure::usage("say who imports with --who: the audit keeps it")),
        }
    }

    async fn export(&self, importer: &Importer) -> Result<FamilyExport, Failure> {
        if let Some(family) = self.archived {
            let archived = importer.archived(family).await?;
            return archived.ok_or_else(|| {
                Failure::new(format!(
                    "the archive of this journal has no family {family}; the audit says which were discharged"
                ))
            });
        }
        let file = self.file.clone().unwrap_or_default();
        let read = actix_rt::task::spawn_blocking(move || file::read(&file)).await;
        read.map_err(Failure::new)?
    }

    fn tell(&self, planned: &Imported) -> Result<(), Failure> {
        if self.json {
            return document(planned)?.print();
        }
        told::show(planned);
        Ok(())
    }
}

fn document(imported: &Imported) -> Result<Document, Failure> {
    Document::of(told::ImportView::from(imported))
}

/// What stands in the way is refused; what the file says does not steer the terminal.
fn failure(error: ImportError) -> Failure {
    let is_in_the_way = matches!(
        error,
        ImportError::Present { .. } | ImportError::KeyTaken { .. } | ImportError::Locked { .. }
    );
    let exit = if is_in_the_way { Exit::Refused } else { Exit::Failed };
    if let ImportError::Start(StartError::Store(error)) = error {
        return error.into();
    }
    Failure {
        exit,
        text: print::plain(&error.to_string()),
    }
}
