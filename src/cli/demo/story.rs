//! The stories that the demo tells, and the directory in which one is told: the one that was named, or one of the
//! user's own that each run without `--data` works in, so that a run that was killed goes on, and none leaves anything
//! elsewhere.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use super::console;
use super::error::DemoError;

/// Where the stories are, below the directory in which a user's programs keep their state.
const PREFIX: &str = "procession/demo";
/// Marks a story that has been told to its end.
const ENDED: &str = "ended";
/// Ending of a directory that is being removed.
const OLD: &str = "old";

/// What the demo tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Story {
    /// A shop: orders, stock, payments, shipping.
    Shop,
    /// The tablet master.
    Tablets,
    /// A shop in which everything is the matter.
    Trouble,
}

impl Story {
    const ALL: [Self; 3] = [Self::Shop, Self::Tablets, Self::Trouble];

    /// Returns the file that says what its directory was begun with.
    #[must_use]
    pub const fn file(self) -> &'static str {
        match self {
            Self::Shop => "shop.json",
            Self::Tablets => "workload.json",
            Self::Trouble => "trouble.json",
        }
    }

    /// Returns the name of its directory among those of the user.
    const fn folder(self) -> &'static str {
        match self {
            Self::Shop => "shop",
            Self::Tablets => "tablets",
            Self::Trouble => "trouble",
        }
    }

    /// Returns the command that tells it.
    #[must_use]
    pub const fn command(self) -> &'static str {
        match self {
            Self::Shop => "procession demo",
            Self::Tablets => "procession demo tablets",
            Self::Trouble => "procession demo --trouble",
        }
    }

    /// Returns the command that tells it in this directory.
    #[must_use]
    pub fn command_in(self, root: &Path) -> String {
        format!("{} --data {}", self.command(), root.display())
    }

    /// Returns the story that a directory holds, if it holds one.
    fn of(root: &Path) -> Option<Self> {
        Self::ALL.into_iter().find(|story| root.join(story.file()).exists())
    }

    /// Refuses a directory that holds another story, or anything else.
    ///
    /// # Errors
    ///
    /// [`DemoError`], which says what to do instead.
    pub fn must_fit(self, root: &Path) -> Result<(), DemoError> {
        match Self::of(root) {
            Some(story) if story == self => Ok(()),
            Some(other) => Err(DemoError::Another {
                path: root.to_owned(),
                begun: other.command_in(root),
            }),
            None => self.must_be_empty(root),
        }
    }

    /// A run that was killed before it had begun left the unfinished record alone.
    fn must_be_empty(self, root: &Path) -> Result<(), DemoError> {
        let entries = match fs::read_dir(root) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(DemoError::file(root, &error)),
        };
        let unfinished = format!("{}{}", self.file(), super::files::UNFINISHED);
        let foreign = entries.flatten().any(|entry| entry.file_name() != unfinished.as_str());
        if foreign {
            Err(DemoError::Foreign(root.to_owned()))
        } else {
            Ok(())
        }
    }
}

/// The directory in which a story is told.
#[derive(Debug)]
pub(crate) struct Place {
    /// The directory.
    pub(crate) root: PathBuf,
    /// The story.
    pub(crate) story: Story,
    /// Whether nobody named it.
    is_users: bool,
}

impl Place {
    /// Takes the directory that was named, or the user's own. The latter begins anew if what it holds has ended, and
    /// what became of it is said.
    pub(crate) fn open(named: Option<&Path>, story: Story) -> Result<Self, DemoError> {
        let place = Self::of(named, story)?;
        if place.is_users {
            place.begin_anew_after_the_end()?;
        }
        story.must_fit(&place.root)?;
        Ok(place)
    }

    /// Finds the directory, and changes nothing.
    pub(crate) fn of(named: Option<&Path>, story: Story) -> Result<Self, DemoError> {
        let root = match named {
            Some(root) => root.to_owned(),
            None => users(story)?,
        };
        Ok(Self {
            root,
            story,
            is_users: named.is_none(),
        })
    }

    fn begin_anew_after_the_end(&self) -> Result<(), DemoError> {
        let (root, old) = (&self.root, self.root.with_extension(OLD));
        remove(&old)?;
        let said = if root.join(ENDED).exists() {
            // At one stroke, so that a kill in the middle of the removal leaves no half of a story here.
            fs::rename(root, &old).map_err(|error| DemoError::file(root, &error))?;
            remove(&old)?;
            "the last run had ended, so this one begins anew"
        } else if root.join(self.story.file()).exists() {
            "this run goes on where the last one stopped; remove the directory to begin anew"
        } else {
            "a run that is stopped goes on there when it is started again"
        };
        console::notice(&format!("working in {}: {said}", root.display()));
        Ok(())
    }

    /// Notes that the story has been told, so that the next run in the user's own directory begins anew. Must not be
    /// called before the engine is closed: the directory is the next run's from here on.
    pub(crate) fn end(&self) -> Result<(), DemoError> {
        if !self.is_users {
            return Ok(());
        }
        let mark = self.root.join(ENDED);
        fs::write(&mark, "").map_err(|error| DemoError::file(&mark, &error))
    }

    /// Returns the command that goes on here.
    pub(crate) fn again(&self) -> String {
        if self.is_users {
            self.story.command().to_owned()
        } else {
            self.story.command_in(&self.root)
        }
    }
}

fn users(story: Story) -> Result<PathBuf, DemoError> {
    let state = xdg::BaseDirectories::with_prefix(PREFIX).get_state_home();
    let state = state.ok_or_else(|| {
        DemoError::Argument("this user has no home directory to work in; give a directory with --data".to_owned())
    })?;
    Ok(state.join(story.folder()))
}

fn remove(root: &Path) -> Result<(), DemoError> {
    match fs::remove_dir_all(root) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(DemoError::file(root, &error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Writes the record of a story, before anything else is written to its directory.
pub(crate) fn write_record(root: &Path, story: Story, text: &str) -> Result<(), DemoError> {
    let path = root.join(story.file());
    let unfinished = root.join(format!("{}{}", story.file(), super::files::UNFINISHED));
    let write = || -> io::Result<()> {
        fs::create_dir_all(root)?;
        super::files::write_synced(&unfinished, &format!("{text}\n"))?;
        fs::rename(&unfinished, &path)?;
        super::files::sync_directory(&path)
    };
    write().map_err(|error| DemoError::file(&path, &error))
}

/// Reads the record of a story: `None` if the directory has none.
pub(crate) fn read_record(root: &Path, story: Story) -> Result<Option<String>, DemoError> {
    let path = root.join(story.file());
    match fs::read_to_string(&path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(DemoError::file(&path, &error)),
    }
}
