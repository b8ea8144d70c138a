//! What a verb speaks to: a closed journal, or a dashboard that runs.

use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use procession::offline::Offline;

use super::document::Document;
use super::exit::Failure;
use super::fields;
use super::login::Login;
use super::scratch::Scratch;
use super::site::Site;
use super::source::{Journal, Source};

/// Where the address of a dashboard is, unless it is given.
const URL: &str = "PROCESSION_URL";

/// What is looked at, and how it is told.
#[derive(Debug, Clone, Args)]
pub(super) struct Place {
    /// Directory of a closed journal. No engine may hold it; it is not changed.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["url", "headers", "token_file", "profile"])]
    data: Option<PathBuf>,
    #[command(flatten)]
    remote: Remote,
    /// Print JSON, one document a line.
    #[arg(long)]
    pub(super) json: bool,
    /// Print these fields alone, as --json names them: id,state,cause.text. With --json one entry a line.
    #[arg(long, value_name = "FIELD,..", value_delimiter = ',', value_parser = NonEmptyStringValueParser::new())]
    fields: Vec<String>,
}

/// A dashboard that runs.
#[derive(Debug, Clone, Args)]
pub(super) struct Remote {
    /// Address of a dashboard that runs, with the path where it is mounted, for instance
    /// http://localhost:8080/ops/procedures [default: what PROCESSION_URL says].
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// A header for each request, as the host's login wants it: 'Authorization: Bearer …'. May be
    /// given several times.
    #[arg(long = "header", value_name = "NAME: VALUE")]
    headers: Vec<String>,
    #[command(flatten)]
    login: Login,
}

impl Place {
    /// Opens what was named: the journal as a private copy, the dashboard without asking it anything yet.
    pub(super) async fn open(&self) -> Result<Source, Failure> {
        let Some(data) = &self.data else {
            return match self.remote.site()? {
                Some(site) => Ok(Source::Site(site)),
                None => Err(Failure::usage(format!(
                    "say what to look at: the directory of a closed journal with --data, or the address of a \
                     dashboard that runs with --url or {URL}"
                ))),
            };
        };
        if let Some(why) = misplaced(data) {
            return Err(Failure::new(why));
        }
        let (directory, scratch) = (data.clone(), Scratch::begin()?);
        let within = scratch.path().to_owned();
        let opened = actix_rt::task::spawn_blocking(move || Offline::open_copy_in(&directory, &within)).await;
        Ok(Source::Journal(Journal::new(opened.map_err(Failure::new)??, scratch)))
    }

    /// Prints a document for programs, or the fields that are asked for. Returns `false` if people are to read it.
    pub(super) fn prints(&self, document: &Document) -> Result<bool, Failure> {
        if !self.fields.is_empty() {
            fields::print(document, &self.fields, self.json)?;
        } else if self.json {
            document.print()?;
        }
        Ok(self.json || !self.fields.is_empty())
    }

    /// Returns `true` if a directory is looked at, which does not change.
    pub(super) const fn is_closed(&self) -> bool {
        self.data.is_some()
    }
}

impl Remote {
    /// Returns the dashboard that must be named.
    pub(super) fn must_be_named(&self) -> Result<Site, Failure> {
        self.site()?.ok_or_else(|| {
            Failure::usage(format!(
                "say which dashboard to speak to, with --url or {URL}: a closed journal does not move"
            ))
        })
    }

    fn site(&self) -> Result<Option<Site>, Failure> {
        let profile = self.login.profile()?;
        let named = self.url.clone().or_else(|| profile.url.clone());
        let named = named.or_else(|| std::env::var(URL).ok());
        let Some(url) = named.filter(|url| !url.is_empty()) else {
            return Ok(None);
        };
        let mut headers = self.headers.clone();
        headers.extend(self.login.authorization(&profile, &url)?);
        Site::new(&url, &headers).map(Some)
    }
}

/// Says what is wrong with a directory that holds no journal.
pub(super) fn misplaced(data: &Path) -> Option<String> {
    let place = data.display();
    if !data.is_dir() {
        return Some(format!(
            "there is no directory {place}; give that of a journal with --data"
        ));
    }
    if data.join("store").is_dir() {
        return None;
    }
    let below = data.join("journal");
    if below.join("store").is_dir() {
        return Some(format!(
            "there is no journal in {place}, but one in {}; give that with --data",
            below.display()
        ));
    }
    Some(format!(
        "there is no journal in {place}; give the directory that an engine was started with"
    ))
}
