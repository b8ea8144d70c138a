//! What the nodes of the audit do. Of its set: copy the reference, compare packages with it, report. Of its streams, one for
//! each section: write a line.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use procession::flow::{Node, NodeContext, NodeState, ParentError, Processed, Processor, StreamName};
use procession::{Builder, StageError};
use serde::{Deserialize, Serialize};

use crate::dpkg::{Compared, Installed, Package, Reference, Root, Trouble, compare};

/// Names of the nodes that are no packages: no package has a blank in its name.
pub(crate) const SNAPSHOT: &str = "the snapshot";
pub(crate) const REPORT: &str = "the report";

/// Spaces of user data: what packages should be, what became of them, and each file that is wrong.
const REFERENCE: &str = "reference";
pub(crate) const CHECKED: &str = "checked";
const WRONG: &str = "wrong";
/// The number of packages, and the sections of the report.
pub(crate) const AUDIT: &str = "audit";
pub(crate) const PACKAGES: &str = "packages";
pub(crate) const SECTIONS: &str = "sections";
/// The scene of the streams; their groups are the sections.
pub(crate) const SCENE: &str = "report";
/// Items of a list that are one value: lists may be long, and a value is at most 1 MiB.
const CHUNK: usize = 1_000;

/// Registers what an audit of this root needs.
pub(crate) fn register(builder: Builder, root: Root, report: ReportDirectory) -> Builder {
    builder
        .processor::<Snapshot>(root.clone())
        .processor::<Verify>(root)
        .processor::<Report>(report.clone())
        .streams()
        .processor::<Line>(report.clone())
        .processor::<Sort>(report)
}

/// A package in a list.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Listed {
    pub(crate) name: String,
    version: String,
    section: String,
}

impl From<&Package> for Listed {
    fn from(package: &Package) -> Self {
        Self {
            name: package.name.clone(),
            version: package.version.clone(),
            section: package.section.clone(),
        }
    }
}

/// Copies what packages should be, so that an upgrade meanwhile does not matter.
#[derive(Serialize, Deserialize)]
pub(crate) struct Snapshot {
    /// Checksum of the list of packages that the set was made of.
    pub(crate) status: String,
}

impl Processor for Snapshot {
    const NAME: &'static str = "snapshot";
    type Env = Root;
    type Output = ();

    async fn process(&self, cx: &mut NodeContext<'_>, root: &Root) -> Result<Processed<()>, StageError> {
        let (root, status) = (root.clone(), self.status.clone());
        let copied = cx.blocking(move || {
            let installed = Installed::read(&root.0)?;
            let references = installed.references(&root.0)?;
            // All of it is of one moment if the list is still the same.
            let is_same = installed.checksum == status && Installed::read(&root.0)?.checksum == status;
            Ok::<_, Trouble>(is_same.then_some((installed, references)))
        });
        let Some((installed, references)) = copied.await?.map_err(StageError::fail)? else {
            let why = "packages were installed or removed meanwhile; start again, with an empty --data";
            return Err(StageError::fail(why));
        };
        for (package, references) in installed.packages.iter().zip(&references) {
            put_list(cx, REFERENCE, &package.name, references)?;
        }
        let sections: BTreeSet<&str> = installed
            .packages
            .iter()
            .map(|package| package.section.as_str())
            .collect();
        cx.put(AUDIT, SECTIONS, &sections)?;
        cx.put(AUDIT, PACKAGES, &installed.packages.len())?;
        Ok(Processed::Done(()))
    }
}

/// Puts a long list into the node's commit, as a few values.
fn put_list<T: Serialize>(cx: &mut NodeContext<'_>, space: &str, name: &str, list: &[T]) -> Result<(), StageError> {
    for (number, chunk) in list.chunks(CHUNK).enumerate() {
        cx.put(space, format!("{name}/{number:05}"), &chunk)?;
    }
    Ok(())
}

/// Compares packages with what they should be. There are several where they depend on each other.
#[derive(Serialize, Deserialize)]
pub(crate) struct Verify {
    pub(crate) packages: Vec<Listed>,
    /// A package that was changed waits for a person.
    pub(crate) is_held: bool,
}

impl Processor for Verify {
    const NAME: &'static str = "package";
    type Env = Root;
    /// Whether it is trusted: it is intact, and so is all that it depends on.
    type Output = bool;

    async fn process(&self, cx: &mut NodeContext<'_>, root: &Root) -> Result<Processed<bool>, StageError> {
        let mut compared = Vec::new();
        for package in &self.packages {
            let references = cx.scan(REFERENCE, format!("{}/", package.name)).await?;
            let references: Vec<Vec<Reference>> = references.into_iter().map(|(_, chunk)| chunk).collect();
            let root = root.clone();
            let comparison = cx.blocking(move || compare(&root.0, &references.concat()));
            // What cannot be read may be readable in a moment.
            compared.push(comparison.await?.map_err(StageError::retry)?);
        }
        let wrong = compared.iter().flat_map(|one| &one.wrong);
        let is_intact = wrong.clone().next().is_none();
        if self.is_held && !is_intact {
            let first = wrong.clone().next().cloned().unwrap_or_default();
            let why = match wrong.count() {
                1 => format!("not as installed: {first}"),
                files => format!("{files} files are not as installed, the first: {first}"),
            };
            return Err(StageError::fail(why));
        }
        let is_trusted = is_intact && needs_are_trusted(cx).await?;
        for (package, one) in self.packages.iter().zip(&compared) {
            let checked = Checked::new(one, is_trusted);
            append_line(cx, package, checked.to_string()).await?;
            cx.put(CHECKED, &package.name, &checked)?;
            put_list(cx, WRONG, &package.name, &one.wrong)?;
        }
        Ok(Processed::Done(is_trusted))
    }
}

/// Returns `true` if all that the node's packages depend on is trusted.
async fn needs_are_trusted(cx: &NodeContext<'_>) -> Result<bool, StageError> {
    for parent in cx.parents().await? {
        if parent.name() == SNAPSHOT {
            continue;
        }
        match parent.output::<bool>().await {
            Ok(true) => {}
            // A person has given it up, or has not said that it is trusted.
            Ok(false) | Err(ParentError::NoOutput { .. }) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(true)
}

/// What became of a package.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Checked {
    pub(crate) files: u64,
    pub(crate) changed: u64,
    pub(crate) missing: u64,
    pub(crate) is_trusted: bool,
}

impl Checked {
    fn new(compared: &Compared, is_trusted: bool) -> Self {
        Self {
            files: compared.files,
            changed: compared.changed,
            missing: compared.missing,
            is_trusted,
        }
    }
}

impl fmt::Display for Checked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.is_trusted { "trusted" } else { "untrusted" };
        let (files, changed, missing) = (self.files, self.changed, self.missing);
        write!(f, "{files} files, {changed} changed, {missing} missing, {word}")
    }
}

/// Appends the line of a package to the stream of its section, in the node's own commit: it is there once.
async fn append_line(cx: &mut NodeContext<'_>, package: &Listed, said: String) -> Result<(), StageError> {
    let line = Line {
        section: package.section.clone(),
        text: format!("{} {}: {said}\n", package.name, package.version),
    };
    append(cx, &package.section, Node::new(&package.name, line)).await
}

async fn append(cx: &mut NodeContext<'_>, section: &str, node: Node) -> Result<(), StageError> {
    let stream = StreamName::new(SCENE, section).map_err(StageError::fail)?;
    Ok(cx.append(&stream, node).await?)
}

/// Where the report is written.
#[derive(Clone, Debug)]
pub(crate) struct ReportDirectory(pub(crate) PathBuf);

impl ReportDirectory {
    fn section(&self, section: &str) -> PathBuf {
        self.0.join(format!("{section}.txt"))
    }
}

/// Ends the report: the lines of packages about which a person has decided, and all files that are wrong.
#[derive(Serialize, Deserialize)]
pub(crate) struct Report {
    /// Each package, with the name of its node.
    pub(crate) packages: Vec<(String, Listed)>,
}

impl Processor for Report {
    const NAME: &'static str = "report";
    type Env = ReportDirectory;
    type Output = ();

    async fn process(&self, cx: &mut NodeContext<'_>, to: &ReportDirectory) -> Result<Processed<()>, StageError> {
        self.append_settled(cx).await?;
        let sections: BTreeSet<&str> = self
            .packages
            .iter()
            .map(|(_, package)| package.section.as_str())
            .collect();
        for section in sections {
            // Behind all lines of the section: those of packages were appended before this node began.
            let sort = Sort {
                section: section.to_owned(),
            };
            append(cx, section, Node::new(SORT, sort)).await?;
        }
        let wrong: Vec<(_, Vec<String>)> = cx.scan(WRONG, "").await?;
        let mut wrong: Vec<String> = wrong.into_iter().flat_map(|(_, lines)| lines).collect();
        wrong.sort_unstable();
        let to = to.clone();
        let written = cx.blocking(move || {
            let text: String = wrong.iter().flat_map(|line| [line, "\n"]).collect();
            let path = to.0.join(WRONG_FILES);
            create_directory(&path)?;
            replace(&path, &text)
        });
        written.await?.map_err(again)?;
        Ok(Processed::Done(()))
    }
}

impl Report {
    /// Appends the lines of packages that a person has settled: no call of theirs has left one.
    async fn append_settled(&self, cx: &mut NodeContext<'_>) -> Result<(), StageError> {
        let checked: Vec<(Vec<u8>, Checked)> = cx.scan(CHECKED, "").await?;
        let checked: BTreeSet<&[u8]> = checked.iter().map(|(name, _)| name.as_slice()).collect();
        let accepted: BTreeSet<String> = cx
            .parents()
            .await?
            .iter()
            .filter(|parent| parent.state() == NodeState::Success)
            .map(|parent| parent.name().to_owned())
            .collect();
        for (node, package) in &self.packages {
            if !checked.contains(package.name.as_bytes()) {
                let said = match accepted.contains(node) {
                    true => "accepted by a person",
                    false => "given up by a person, untrusted",
                };
                append_line(cx, package, said.to_owned()).await?;
            }
        }
        Ok(())
    }
}

/// Writes a line of a section's file, behind the line before it.
#[derive(Serialize, Deserialize)]
pub(crate) struct Line {
    section: String,
    text: String,
}

impl Processor for Line {
    const NAME: &'static str = "line";
    type Env = ReportDirectory;
    /// Where the line ends.
    type Output = u64;

    async fn process(&self, cx: &mut NodeContext<'_>, to: &ReportDirectory) -> Result<Processed<u64>, StageError> {
        let begin = match cx.parents().await?.first() {
            Some(before) => before.output::<u64>().await?,
            None => 0,
        };
        let (path, text) = (to.section(&self.section), self.text.clone());
        let written = cx.blocking(move || append_at(begin, &path, &text));
        Ok(Processed::Done(written.await?.map_err(again)?))
    }
}

/// Writes a line where the one before it ends, and returns where this one does.
pub(crate) fn append_at(begin: u64, path: &Path, text: &str) -> io::Result<u64> {
    if begin == 0 {
        create_directory(path)?;
    }
    let mut file = File::options().create(true).truncate(false).write(true).open(path)?;
    let length = file.metadata()?.len();
    if length < begin {
        let path = path.display();
        return Err(io::Error::other(format!(
            "{path} has {length} bytes, but {begin} were written: restore it, or audit again with an empty --data"
        )));
    }
    // A crash may have left a part of this line there, or all of it.
    file.set_len(begin)?;
    file.seek(SeekFrom::Start(begin))?;
    file.write_all(text.as_bytes())?;
    file.sync_data()?;
    if begin == 0 {
        sync_directory(path)?;
    }
    file.stream_position()
}

fn create_directory(of: &Path) -> io::Result<()> {
    let Some(directory) = of.parent() else { return Ok(()) };
    fs::create_dir_all(directory)?;
    sync_directory(directory)
}

/// Makes sure that a new name in a directory outlives a loss of power.
fn sync_directory(of: &Path) -> io::Result<()> {
    of.parent()
        .map_or(Ok(()), |directory| File::open(directory)?.sync_all())
}

/// Sorts the lines of a section: they were written as packages happened to end.
#[derive(Serialize, Deserialize)]
pub(crate) struct Sort {
    section: String,
}

/// Name of the node that sorts.
const SORT: &str = "the order";

impl Processor for Sort {
    const NAME: &'static str = "sort";
    type Env = ReportDirectory;
    type Output = ();

    async fn process(&self, cx: &mut NodeContext<'_>, to: &ReportDirectory) -> Result<Processed<()>, StageError> {
        let path = to.section(&self.section);
        let sorted = cx.blocking(move || {
            let text = fs::read_to_string(&path)?;
            let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
            lines.sort_unstable();
            replace(&path, &lines.concat())
        });
        sorted.await?.map_err(again)?;
        Ok(Processed::Done(()))
    }
}

/// What cannot be written may be written in a moment.
fn again(error: io::Error) -> StageError {
    StageError::retry(error.to_string())
}

/// The file of the report that lists what is wrong, as `dpkg --verify` prints it, sorted.
pub(crate) const WRONG_FILES: &str = "files-that-differ";

/// Writes a file whole, or not at all: a crash may cut this off anywhere.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let new = path.with_added_extension("new");
    fs::write(&new, text)?;
    File::open(&new)?.sync_all()?;
    fs::rename(&new, path)?;
    sync_directory(path)
}
