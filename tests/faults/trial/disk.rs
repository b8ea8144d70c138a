//! A disk rebuilt from a record: which names and bytes are on it for sure at an
//! instant, and what a power cut at that instant may leave of the rest.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use procession_cli::demo::draw::Draw;

use super::file::{Change, Content, File, Unsynced};
use super::record::{Operation, Record};
use crate::Outcome;

/// How a file system keeps names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Names {
    /// As POSIX has it: each name by itself, and for sure only once its directory was synced.
    Strict,
    /// As ext4 and xfs keep them: in the order of the changes. A sync brings those up to the last one of what it syncs.
    Ordered,
}

/// What becomes of names that were not synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unnamed {
    Lost,
    Kept,
    Drawn,
}

/// What a power cut does with what was not synced.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cut {
    pub(crate) names: Unnamed,
    pub(crate) bytes: Unsynced,
}

/// What a name stands for: places in the lists of a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Node {
    Directory(usize),
    File(usize),
}

type Folder = BTreeMap<String, Node>;

#[derive(Debug, Clone, Default)]
struct Directory {
    kept: Folder,
    now: Folder,
}

/// One name in a directory stands for something else, or for nothing, from then on.
#[derive(Debug, Clone)]
struct Entry {
    directory: usize,
    name: String,
    node: Option<Node>,
}

/// Entries that change in one operation.
#[derive(Debug, Clone)]
struct NameChange {
    number: usize,
    entries: Vec<Entry>,
}

/// A disk, as the operations so far have left it.
pub(crate) struct Disk {
    root: PathBuf,
    names: Names,
    /// The control: no sync is worth anything.
    ignores_syncs: bool,
    directories: Vec<Directory>,
    files: Vec<File>,
    /// The system's number of a file → its place.
    open: BTreeMap<u64, usize>,
    /// Names that are not on disk for sure, in order.
    pending: Vec<NameChange>,
    /// Numbers of the last change of a node's names.
    changed: BTreeMap<(bool, usize), usize>,
    changes: usize,
}

/// What is left after a power cut: directories, and files with their content, below the root.
pub(crate) struct Left {
    pub(crate) directories: Vec<PathBuf>,
    pub(crate) files: Vec<(PathBuf, Content)>,
}

impl Disk {
    /// Starts with an empty directory.
    pub(crate) fn new(root: &Path, names: Names) -> Self {
        Self {
            root: root.to_owned(),
            names,
            ignores_syncs: false,
            directories: vec![Directory::default()],
            files: Vec::new(),
            open: BTreeMap::new(),
            pending: Vec::new(),
            changed: BTreeMap::new(),
            changes: 0,
        }
    }

    /// Takes no sync for one from now on.
    pub(crate) const fn without_syncs(mut self) -> Self {
        self.ignores_syncs = true;
        self
    }

    /// Starts with what is in a directory, all of it synced.
    pub(crate) fn holding(root: &Path, names: Names, base: &Path) -> Outcome<Self> {
        let mut disk = Self::new(root, names);
        disk.load(0, base)?;
        for directory in &mut disk.directories {
            directory.kept.clone_from(&directory.now);
        }
        Ok(disk)
    }

    fn load(&mut self, directory: usize, from: &Path) -> Outcome {
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let node = if entry.file_type()?.is_dir() {
                self.directories.push(Directory::default());
                let place = self.directories.len() - 1;
                self.load(place, &entry.path())?;
                Node::Directory(place)
            } else {
                self.files.push(File::synced(content_of(&entry.path())?));
                Node::File(self.files.len() - 1)
            };
            self.directories[directory].now.insert(name, node);
        }
        Ok(())
    }

    /// Does what the system did.
    pub(crate) fn follow(&mut self, record: &Record, operation: &Operation) -> Outcome {
        match operation {
            Operation::Opened { file, path } => match self.node(path) {
                Some(Node::File(place)) => {
                    self.open.insert(*file, place);
                }
                _ => return Err(format!("{} was opened, and is not there", path.display()).into()),
            },
            Operation::Created { file, path } => {
                self.files.push(File::default());
                let place = self.files.len() - 1;
                self.open.insert(*file, place);
                self.name(path, Some(Node::File(place)))?;
            }
            Operation::Written { file, at, bytes } => {
                let bytes = record.bytes(bytes).into();
                self.file(*file)?.change(Change::Write { at: *at, bytes });
            }
            Operation::Truncated { file, length } => self.file(*file)?.change(Change::Length(*length)),
            Operation::Synced { file } if !self.ignores_syncs => self.sync_file(*file)?,
            Operation::DirectorySynced { path } if !self.ignores_syncs => self.sync_directory(path)?,
            Operation::SyncFailed { file } => self.file(*file)?.fail_to_sync(),
            Operation::Renamed { from, to } => self.rename(from, to)?,
            Operation::Unlinked { path } | Operation::DirectoryRemoved { path } => self.name(path, None)?,
            Operation::DirectoryMade { path } => {
                self.directories.push(Directory::default());
                self.name(path, Some(Node::Directory(self.directories.len() - 1)))?;
            }
            Operation::Synced { .. }
            | Operation::DirectorySynced { .. }
            | Operation::DirectorySyncFailed { .. }
            | Operation::Noted { .. } => {}
        }
        Ok(())
    }

    fn file(&mut self, number: u64) -> Outcome<&mut File> {
        let place = self.place(number)?;
        Ok(&mut self.files[place])
    }

    fn place(&self, number: u64) -> Outcome<usize> {
        let place = self.open.get(&number).copied();
        Ok(place.ok_or_else(|| format!("file {number} was never opened"))?)
    }

    fn node(&self, path: &Path) -> Option<Node> {
        let mut node = Node::Directory(0);
        for part in path.strip_prefix(&self.root).ok()? {
            let Node::Directory(place) = node else { return None };
            node = *self.directories[place].now.get(&*part.to_string_lossy())?;
        }
        Some(node)
    }

    fn directory(&self, path: &Path) -> Outcome<usize> {
        match self.node(path) {
            Some(Node::Directory(place)) => Ok(place),
            _ => Err(format!("{} is no directory", path.display()).into()),
        }
    }

    /// A name as an entry that is to change.
    fn entry(&self, path: &Path, node: Option<Node>) -> Outcome<Entry> {
        let (parent, name) = path.parent().zip(path.file_name()).ok_or("a path without a name")?;
        let name = name.to_string_lossy().into_owned();
        let directory = self.directory(parent)?;
        Ok(Entry { directory, name, node })
    }

    fn name(&mut self, path: &Path, node: Option<Node>) -> Outcome {
        let about = node.or_else(|| self.node(path));
        let entry = self.entry(path, node)?;
        self.change_names(about, vec![entry]);
        Ok(())
    }

    fn rename(&mut self, from: &Path, to: &Path) -> Outcome {
        let node = self.node(from);
        let node = node.ok_or_else(|| format!("{} was renamed, and is not there", from.display()))?;
        let entries = vec![self.entry(from, None)?, self.entry(to, Some(node))?];
        self.change_names(Some(node), entries);
        Ok(())
    }

    fn change_names(&mut self, about: Option<Node>, entries: Vec<Entry>) {
        self.changes += 1;
        let number = self.changes;
        if let Some(node) = about {
            self.changed.insert(key(node), number);
        }
        for entry in &entries {
            self.changed.insert((true, entry.directory), number);
            set(&mut self.directories[entry.directory].now, entry);
        }
        self.pending.push(NameChange { number, entries });
    }

    fn sync_file(&mut self, number: u64) -> Outcome {
        let place = self.place(number)?;
        self.files[place].sync();
        if self.names == Names::Ordered {
            self.bring_names((false, place));
        }
        Ok(())
    }

    fn sync_directory(&mut self, path: &Path) -> Outcome {
        let place = self.directory(path)?;
        if self.names == Names::Ordered {
            self.bring_names((true, place));
            return Ok(());
        }
        let directory = &mut self.directories[place];
        directory.kept.clone_from(&directory.now);
        for change in &mut self.pending {
            change.entries.retain(|entry| entry.directory != place);
        }
        self.pending.retain(|change| !change.entries.is_empty());
        Ok(())
    }

    /// A log of a file system is written from its beginning: all changes up to the last one of this.
    fn bring_names(&mut self, of: (bool, usize)) {
        let newest = self.changed.get(&of).copied().unwrap_or(0);
        let count = self.pending.iter().take_while(|change| change.number <= newest).count();
        for change in self.pending.drain(..count) {
            for entry in change.entries {
                set(&mut self.directories[entry.directory].kept, &entry);
            }
        }
    }

    /// Returns what is left if the power is cut now.
    pub(crate) fn cut(&self, cut: Cut, draw: &mut Draw) -> Left {
        let mut folders: Vec<Folder> = self.directories.iter().map(|one| one.kept.clone()).collect();
        for entry in self.kept_entries(cut.names, draw) {
            set(&mut folders[entry.directory], entry);
        }
        self.collect(&folders, &mut |file| file.cut(cut.bytes, draw))
    }

    /// Returns what the system has in memory: the whole record, followed.
    pub(crate) fn now(&self) -> Left {
        let folders: Vec<Folder> = self.directories.iter().map(|one| one.now.clone()).collect();
        self.collect(&folders, &mut |file| file.now().clone())
    }

    /// Returns the changes of names that reached the disk although nobody waited for them.
    fn kept_entries(&self, unnamed: Unnamed, draw: &mut Draw) -> Vec<&Entry> {
        let all = self.pending.iter().flat_map(|change| &change.entries);
        match (unnamed, self.names) {
            (Unnamed::Lost, _) => Vec::new(),
            (Unnamed::Kept, _) => all.collect(),
            (Unnamed::Drawn, Names::Ordered) => {
                let count = draw.below(self.pending.len() + 1);
                let first = self.pending.iter().take(count);
                first.flat_map(|change| &change.entries).collect()
            }
            (Unnamed::Drawn, Names::Strict) => {
                let mut versions: BTreeMap<(usize, &str), Vec<&Entry>> = BTreeMap::new();
                for entry in all {
                    versions.entry((entry.directory, &entry.name)).or_default().push(entry);
                }
                let mut kept = Vec::new();
                for versions in versions.into_values() {
                    let drawn = draw.below(versions.len() + 1);
                    kept.extend(drawn.checked_sub(1).map(|at| versions[at]));
                }
                kept
            }
        }
    }

    fn collect(&self, folders: &[Folder], content: &mut dyn FnMut(&File) -> Content) -> Left {
        let mut left = Left {
            directories: Vec::new(),
            files: Vec::new(),
        };
        let mut open = vec![(0, PathBuf::new())];
        while let Some((place, path)) = open.pop() {
            for (name, node) in &folders[place] {
                match node {
                    Node::Directory(place) => open.push((*place, path.join(name))),
                    Node::File(place) => left.files.push((path.join(name), content(&self.files[*place]))),
                }
            }
            left.directories.push(path);
        }
        left.files.sort_by(|one, other| one.0.cmp(&other.0));
        left
    }
}

const fn key(node: Node) -> (bool, usize) {
    match node {
        Node::Directory(place) => (true, place),
        Node::File(place) => (false, place),
    }
}

fn set(folder: &mut Folder, entry: &Entry) {
    match entry.node {
        Some(node) => folder.insert(entry.name.clone(), node),
        None => folder.remove(&entry.name),
    };
}

/// Reads a file without the holes in it: a log is 64 MiB long, and mostly one hole.
fn content_of(path: &Path) -> Outcome<Content> {
    let metadata = fs::metadata(path)?;
    if metadata.blocks() == 0 && metadata.len() > 0 && metadata.len() % 4_096 == 0 {
        return Ok(Content {
            bytes: Vec::new(),
            length: metadata.len(),
        });
    }
    Ok(Content::new(fs::read(path)?))
}

impl Left {
    /// Writes it into a directory, which is emptied before.
    pub(crate) fn write(&self, to: &Path) -> Outcome {
        if to.exists() {
            fs::remove_dir_all(to)?;
        }
        for directory in &self.directories {
            fs::create_dir_all(to.join(directory))?;
        }
        for (path, content) in &self.files {
            fs::write(to.join(path), &content.bytes)?;
            if content.length != content.bytes.len() as u64 {
                let file = fs::OpenOptions::new().write(true).open(to.join(path))?;
                file.set_len(content.length)?;
            }
        }
        Ok(())
    }

    /// Compares it with a directory; an error names the first difference.
    pub(crate) fn is_at(&self, place: &Path) -> Outcome {
        let mut disk = Disk::new(place, Names::Strict);
        disk.load(0, place)?;
        let found = disk.now();
        let sorted = |left: &Self| {
            let mut all = left.directories.clone();
            all.sort();
            all
        };
        if sorted(self) != sorted(&found) {
            return Err(format!("directories {:?} and {:?}", self.directories, found.directories).into());
        }
        let names = |left: &Self| -> Vec<PathBuf> { left.files.iter().map(|(path, _)| path.clone()).collect() };
        if names(self) != names(&found) {
            return Err(format!("files {:?} and {:?}", names(self), names(&found)).into());
        }
        for ((path, followed), (_, there)) in self.files.iter().zip(&found.files) {
            let trimmed = Content::new(followed.bytes.clone());
            if followed.length != there.length || trimmed.bytes != there.bytes {
                return Err(format!(
                    "{} has {} bytes, and {} by the record, or others",
                    path.display(),
                    there.length,
                    followed.length
                )
                .into());
            }
        }
        Ok(())
    }
}
