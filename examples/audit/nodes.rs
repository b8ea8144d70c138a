//! What the nodes of the audit do: copy the reference, compare packages with it, report.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use procession::StageError;
use procession::flow::{NodeContext, NodeState, Processed, Processor};
use serde::{Deserialize, Serialize};

use crate::dpkg::{Compared, Installed, Package, Reference, Root, Trouble, compare};

/// Names of the nodes that are no packages: no package has a blank in its name.
pub(crate) const SNAPSHOT: &str = "the snapshot";
pub(crate) const REPORT: &str = "the report";

/// Spaces of user data: what packages should be, what became of them, and each file that is wrong.
const REFERENCE: &str = "reference";
pub(crate) const CHECKED: &str = "checked";
const WRONG: &str = "wrong";
/// The number of packages.
pub(crate) const AUDIT: &str = "audit";
pub(crate) const PACKAGES: &str = "packages";
/// Items of a list that are one value: lists may be long, and a value is at most 1 MiB.
const CHUNK: usize = 1_000;

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
            let (first, others) = (wrong.clone().next().cloned().unwrap_or_default(), wrong.count() - 1);
            let why = format!("not as installed: {first}, and {others} more; reinstall it and retry, or accept it");
            return Err(StageError::fail(why));
        }
        let is_trusted = is_intact && needs_are_trusted(cx).await?;
        for (package, one) in self.packages.iter().zip(&compared) {
            cx.put(CHECKED, &package.name, &Checked::new(package, one, is_trusted))?;
            put_list(cx, WRONG, &package.name, &one.wrong)?;
        }
        Ok(Processed::Done(is_trusted))
    }
}

/// Returns `true` if all that the node's packages depend on is trusted.
async fn needs_are_trusted(cx: &NodeContext<'_>) -> Result<bool, StageError> {
    for parent in cx.parents().await? {
        let is_package = parent.name() != SNAPSHOT;
        if is_package && !(parent.state() == NodeState::Success && parent.output::<bool>().await?) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// What became of a package: its line in the report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Checked {
    section: String,
    name: String,
    version: String,
    pub(crate) files: u64,
    pub(crate) changed: u64,
    pub(crate) missing: u64,
    pub(crate) is_trusted: bool,
}

impl Checked {
    fn new(package: &Listed, compared: &Compared, is_trusted: bool) -> Self {
        Self {
            section: package.section.clone(),
            name: package.name.clone(),
            version: package.version.clone(),
            files: compared.files,
            changed: compared.changed,
            missing: compared.missing,
            is_trusted,
        }
    }

    fn line(&self) -> String {
        let word = if self.is_trusted { "trusted" } else { "untrusted" };
        format!(
            "{} {}: {} files, {} changed, {} missing, {word}\n",
            self.name, self.version, self.files, self.changed, self.missing
        )
    }
}

/// Where the report is written.
#[derive(Clone, Debug)]
pub(crate) struct ReportDirectory(pub(crate) PathBuf);

/// Writes the report: a file for each section with a line for each package, and a file with all that is wrong.
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
        let mut sections: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let checked: Vec<(_, Checked)> = cx.scan(CHECKED, "").await?;
        let known: BTreeSet<&str> = checked.iter().map(|(_, one)| one.name.as_str()).collect();
        for (_, one) in &checked {
            sections.entry(one.section.clone()).or_default().insert(one.line());
        }
        for line in self.settled(cx, &known).await? {
            sections.entry(line.0).or_default().insert(line.1);
        }
        let wrong: Vec<(_, Vec<String>)> = cx.scan(WRONG, "").await?;
        let mut wrong: Vec<String> = wrong.into_iter().flat_map(|(_, lines)| lines).collect();
        wrong.sort_unstable();
        let to = to.clone();
        let written = cx.blocking(move || {
            fs::create_dir_all(&to.0)?;
            for (section, lines) in sections {
                replace(
                    &to.0.join(format!("{section}.txt")),
                    &lines.into_iter().collect::<String>(),
                )?;
            }
            let wrong: String = wrong.iter().flat_map(|line| [line, "\n"]).collect();
            replace(&to.0.join(WRONG_FILES), &wrong)
        });
        written
            .await?
            .map_err(|error: io::Error| StageError::retry(error.to_string()))?;
        Ok(Processed::Done(()))
    }
}

impl Report {
    /// Returns sections and lines of the packages about which a person has decided: no call of theirs has left a line.
    async fn settled(&self, cx: &NodeContext<'_>, known: &BTreeSet<&str>) -> Result<Vec<(String, String)>, StageError> {
        let parents = cx.parents().await?;
        let accepted: BTreeSet<&str> = parents
            .iter()
            .filter(|parent| parent.state() == NodeState::Success)
            .map(|parent| parent.name())
            .collect();
        let others = self
            .packages
            .iter()
            .filter(|(_, package)| !known.contains(package.name.as_str()));
        let lines = others.map(|(node, package)| {
            let word = match accepted.contains(node.as_str()) {
                true => "accepted",
                false => "given up, untrusted",
            };
            (
                package.section.clone(),
                format!("{} {}: {word} by a person\n", package.name, package.version),
            )
        });
        Ok(lines.collect())
    }
}

/// The file of the report that lists what is wrong, as `dpkg --verify` prints it, sorted.
pub(crate) const WRONG_FILES: &str = "files-that-differ";

/// Writes a file whole, or not at all: a crash may cut this off anywhere.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let new = path.with_extension("new");
    fs::write(&new, text)?;
    fs::File::open(&new)?.sync_all()?;
    fs::rename(&new, path)
}
