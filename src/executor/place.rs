//! Where the journal of an engine is.

use std::ffi::OsStr;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use procession_actors::journal::JournalStore;

/// Where the journal of an engine is: what [`Executor::builder`](super::Executor::builder) takes. Paths and stores
/// convert into it.
#[derive(Clone)]
pub enum JournalPlace {
    /// The embedded journal in this directory, which is made if it is not there. One engine at a time has it.
    Directory(PathBuf),
    /// A store of your own. The engine closes it when it ends, also in a start that is refused.
    Store(Arc<dyn JournalStore>),
}

impl fmt::Debug for JournalPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory(directory) => f.debug_tuple("Directory").field(directory).finish(),
            Self::Store(_) => f.debug_tuple("Store").finish_non_exhaustive(),
        }
    }
}

impl<T: AsRef<OsStr> + ?Sized> From<&T> for JournalPlace {
    fn from(directory: &T) -> Self {
        Self::Directory(PathBuf::from(directory))
    }
}

impl From<String> for JournalPlace {
    fn from(directory: String) -> Self {
        Self::Directory(directory.into())
    }
}

impl From<PathBuf> for JournalPlace {
    fn from(directory: PathBuf) -> Self {
        Self::Directory(directory)
    }
}

impl<S: JournalStore> From<Arc<S>> for JournalPlace {
    fn from(store: Arc<S>) -> Self {
        Self::Store(store)
    }
}

impl From<Arc<dyn JournalStore>> for JournalPlace {
    fn from(store: Arc<dyn JournalStore>) -> Self {
        Self::Store(store)
    }
}
