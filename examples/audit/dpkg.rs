//! What dpkg knows of a root: its packages, what they depend on, and which files they have brought.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use md5::{Digest, Md5};
use serde::{Deserialize, Serialize};

/// Directory of dpkg's records, below the root.
const RECORDS: &str = "var/lib/dpkg";
/// Length of a checksum as text.
const CHECKSUM: usize = 32;

/// Why something of dpkg, or one of its files, cannot be used. The text says what to do.
#[derive(Debug)]
pub(crate) struct Trouble(pub(crate) String);

impl Trouble {
    fn reading(path: &Path, error: &io::Error) -> Self {
        Self(format!("{} cannot be read: {error}", path.display()))
    }
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Trouble {}

/// A package that is installed, or has left its configuration.
#[derive(Clone, Debug, Default)]
pub(crate) struct Package {
    /// As dpkg names its records: with the architecture, if several may be installed side by side.
    pub(crate) name: String,
    pub(crate) section: String,
    pub(crate) version: String,
    bare_name: String,
    architecture: String,
    is_installed: bool,
    /// All must be there; of each, one of several.
    depends: Vec<Vec<String>>,
    provides: Vec<String>,
    /// Path and checksum of its configuration.
    conffiles: Vec<(String, String)>,
}

/// Where a package's file lies, and what it should be.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Reference {
    pub(crate) path: String,
    /// Directories and links have none, and neither has a file that another package has moved away: dpkg only looks whether
    /// it is there.
    pub(crate) checksum: Option<String>,
    pub(crate) is_conffile: bool,
}

/// The packages of a root, at one moment: dpkg replaces this file as a whole.
pub(crate) struct Installed {
    pub(crate) packages: Vec<Package>,
    /// Checksum of the file that they were read from.
    pub(crate) checksum: String,
}

impl Installed {
    pub(crate) fn read(root: &Path) -> Result<Self, Trouble> {
        let records = root.join(RECORDS);
        if !records.is_dir() {
            let records = records.display();
            return Err(Trouble(format!(
                "{records} is no directory: --root names the root of a Debian system"
            )));
        }
        let path = records.join("status");
        let text = read_text(&path)?;
        let packages = text.split("\n\n").filter(|stanza| !stanza.trim().is_empty());
        let packages = packages
            .map(|stanza| read_package(stanza, &path))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            packages: packages.into_iter().flatten().collect(),
            checksum: hex(&Md5::digest(text.as_bytes())),
        })
    }

    /// Returns what each package depends on, as places in the list: of several that would do, the first that is there.
    pub(crate) fn dependencies(&self) -> Vec<Vec<usize>> {
        let mut by_name: HashMap<&str, Vec<usize>> = HashMap::new();
        let mut by_provided: HashMap<&str, Vec<usize>> = HashMap::new();
        for (place, package) in self
            .packages
            .iter()
            .enumerate()
            .filter(|(_, package)| package.is_installed)
        {
            by_name.entry(&package.bare_name).or_default().push(place);
            for provided in &package.provides {
                by_provided.entry(provided).or_default().push(place);
            }
        }
        let of_architecture = |places: &Vec<usize>, architecture: &str| {
            let is_same = |place: &&usize| {
                self.packages
                    .get(**place)
                    .is_some_and(|one| one.architecture == architecture)
            };
            places.iter().find(is_same).or_else(|| places.first()).copied()
        };
        let find = |name: &String, architecture: &str| {
            let places = by_name.get(name.as_str()).or_else(|| by_provided.get(name.as_str()));
            places.and_then(|places| of_architecture(places, architecture))
        };
        let needs = |package: &Package| {
            let one_of = |names: &Vec<String>| names.iter().find_map(|name| find(name, &package.architecture));
            package.depends.iter().filter_map(one_of).collect()
        };
        self.packages.iter().map(needs).collect()
    }

    /// Reads what each package has brought, in the order of the packages.
    pub(crate) fn references(&self, root: &Path) -> Result<Vec<Vec<Reference>>, Trouble> {
        let diversions = read_diversions(&root.join(RECORDS).join("diversions"))?;
        let of = |package| references_of(package, &root.join(RECORDS).join("info"), &diversions);
        self.packages.iter().map(of).collect()
    }
}

fn read_package(stanza: &str, path: &Path) -> Result<Option<Package>, Trouble> {
    let mut fields: HashMap<&str, Vec<&str>> = HashMap::new();
    let mut field = "";
    for line in stanza.lines() {
        let value = match line.split_once(':') {
            Some((name, value)) if !line.starts_with(' ') => {
                field = name;
                value
            }
            _ => line,
        };
        fields.entry(field).or_default().push(value.trim());
    }
    let get = |name| {
        fields
            .get(name)
            .and_then(|lines| lines.first().copied())
            .filter(|value| !value.is_empty())
    };
    let (Some(bare_name), Some(status)) = (get("Package"), get("Status")) else {
        let (path, begin) = (path.display(), stanza.lines().next().unwrap_or_default());
        return Err(Trouble(format!(
            "{path} cannot be understood: no package or no status at \"{begin}\""
        )));
    };
    let state = status.rsplit(' ').next().unwrap_or_default();
    if state == "not-installed" {
        return Ok(None);
    }
    let architecture = get("Architecture").unwrap_or_default();
    let name = match get("Multi-Arch") {
        Some("same") => format!("{bare_name}:{architecture}"),
        Some(_) | None => bare_name.to_owned(),
    };
    let depends = ["Pre-Depends", "Depends"].into_iter().filter_map(get);
    let conffiles = fields
        .get("Conffiles")
        .into_iter()
        .flatten()
        .filter(|line| !line.is_empty());
    Ok(Some(Package {
        name,
        section: get("Section").unwrap_or("unknown").replace('/', "-"),
        version: get("Version").unwrap_or_default().to_owned(),
        bare_name: bare_name.to_owned(),
        architecture: architecture.to_owned(),
        is_installed: state == "installed",
        depends: depends
            .flat_map(|list| list.split(','))
            .map(|one_of| names(one_of, '|'))
            .collect(),
        provides: get("Provides").map(|list| names(list, ',')).unwrap_or_default(),
        conffiles: conffiles
            .map(|line| read_conffile(line, path))
            .collect::<Result<_, _>>()?,
    }))
}

/// Returns names without versions and architectures: `libc6:any (>= 2.36)` is `libc6`.
fn names(list: &str, between: char) -> Vec<String> {
    let names = list
        .split(between)
        .filter_map(|name| name.trim().split([' ', '(', ':']).next());
    names.map(str::to_owned).collect()
}

/// What stands for the checksum of configuration that dpkg has not installed yet. dpkg compares it as if it were one.
const NEW: &str = "newconffile";

/// Reads `/etc/adduser.conf cc3493ecd2d09837ffdcc3e25fdfff18 obsolete`.
fn read_conffile(line: &str, status: &Path) -> Result<(String, String), Trouble> {
    let line = line
        .trim_end_matches(" remove-on-upgrade")
        .trim_end_matches(" obsolete");
    match line.rsplit_once(' ') {
        Some((path, checksum)) if checksum == NEW || is_checksum(checksum) => {
            Ok((path.to_owned(), checksum.to_owned()))
        }
        Some(_) | None => Err(unknown_checksum(status, line)),
    }
}

/// Where files lie that another package has moved away.
type Diversions = HashMap<String, (String, String)>;

fn read_diversions(path: &Path) -> Result<Diversions, Trouble> {
    let text = read_optional(path)?;
    let mut lines = text.lines();
    let mut diversions = Diversions::new();
    while let (Some(from), Some(to), Some(by)) = (lines.next(), lines.next(), lines.next()) {
        diversions.insert(from.to_owned(), (to.to_owned(), by.to_owned()));
    }
    Ok(diversions)
}

fn references_of(package: &Package, info: &Path, diversions: &Diversions) -> Result<Vec<Reference>, Trouble> {
    let name = &package.name;
    let mut checksums = HashMap::new();
    let path = info.join(format!("{name}.md5sums"));
    for line in read_optional(&path)?.lines() {
        match line.split_once(' ') {
            Some((checksum, file)) if is_checksum(checksum) => {
                checksums.insert(format!("/{}", file.trim_start()), checksum.to_owned());
            }
            Some(_) | None => return Err(unknown_checksum(&path, line)),
        }
    }
    let conffiles: HashMap<_, _> = package.conffiles.iter().cloned().collect();
    let listed = read_optional(&info.join(format!("{name}.list")))?;
    let reference = |file: &str| {
        let diverted = diversions.get(file).filter(|(_, by)| *by != package.bare_name);
        if let Some((to, _)) = diverted {
            return Reference {
                path: to.clone(),
                checksum: None,
                is_conffile: false,
            };
        }
        let conffile = conffiles.get(file);
        Reference {
            path: file.to_owned(),
            checksum: checksums.remove(file).or_else(|| conffile.cloned()),
            is_conffile: conffile.is_some(),
        }
    };
    Ok(listed.lines().map(reference).collect())
}

fn is_checksum(text: &str) -> bool {
    text.len() == CHECKSUM && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn unknown_checksum(path: &Path, line: &str) -> Trouble {
    let path = path.display();
    Trouble(format!(
        "{path} has an unknown checksum, and only MD5 is known here: \"{line}\""
    ))
}

fn read_text(path: &Path) -> Result<String, Trouble> {
    fs::read_to_string(path).map_err(|error| Trouble::reading(path, &error))
}

/// Reads a file that need not be there.
fn read_optional(path: &Path) -> Result<String, Trouble> {
    match fs::read_to_string(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(String::new()),
        read => read.map_err(|error| Trouble::reading(path, &error)),
    }
}

/// What became of a package's files.
#[derive(Clone, Debug, Default)]
pub(crate) struct Compared {
    /// Files with a checksum.
    pub(crate) files: u64,
    pub(crate) changed: u64,
    pub(crate) missing: u64,
    /// A line for each that is not as it should be, as `dpkg --verify` prints it.
    pub(crate) wrong: Vec<String>,
}

/// Compares files with what they should be. Fails if one is there that cannot be read.
pub(crate) fn compare(root: &Path, references: &[Reference]) -> Result<Compared, Trouble> {
    let mut compared = Compared::default();
    for reference in references {
        compared.files += u64::from(reference.checksum.is_some());
        let (path, mark) = (&reference.path, if reference.is_conffile { 'c' } else { ' ' });
        match compare_one(&root.join(path.trim_start_matches('/')), reference.checksum.as_deref())? {
            Found::Same => {}
            Found::Missing => {
                compared.missing += 1;
                compared.wrong.push(format!("missing   {mark} {path}"));
            }
            Found::Changed { mode, content } => {
                compared.changed += 1;
                compared.wrong.push(format!("?{mode}{content}?????? {mark} {path}"));
            }
        }
    }
    Ok(compared)
}

enum Found {
    Same,
    Missing,
    /// What differs, with dpkg's letters.
    Changed {
        mode: char,
        content: char,
    },
}

fn compare_one(path: &Path, checksum: Option<&str>) -> Result<Found, Trouble> {
    let unreadable = |error: io::Error| Trouble::reading(path, &error);
    let is_file = match fs::symlink_metadata(path) {
        Ok(found) => found.is_file(),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(Found::Missing);
        }
        Err(error) => return Err(unreadable(error)),
    };
    let Some(checksum) = checksum else {
        return Ok(Found::Same);
    };
    // What has a checksum must be a file. A link that leads to one is read all the same, as dpkg does.
    let content = if is_file || path.is_file() {
        match checksum_of(path).map_err(unreadable)? == checksum {
            true => '.',
            false => '5',
        }
    } else {
        '?'
    };
    Ok(match (is_file, content) {
        (true, '.') => Found::Same,
        (true, content) => Found::Changed { mode: '?', content },
        (false, content) => Found::Changed { mode: 'M', content },
    })
}

fn checksum_of(path: &Path) -> io::Result<String> {
    let (mut file, mut digest) = (File::open(path)?, Md5::new());
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hex(&digest.finalize())),
            read => digest.update(buffer.get(..read).unwrap_or_default()),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The root whose files are compared.
#[derive(Clone, Debug)]
pub(crate) struct Root(pub(crate) PathBuf);
