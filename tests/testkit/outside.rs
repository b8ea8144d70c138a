//! What lies outside the engine: files, an account, a callee that deduplicates.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use procession::procedure::Token;
use procession::testkit::{Effects, Trouble};
use tempfile::TempDir;

/// What survives the crashes of one run.
#[derive(Clone)]
pub(crate) struct Outside {
    directory: Arc<TempDir>,
    pub(crate) effects: Effects,
    account: Arc<Mutex<Account>>,
    log: Arc<Mutex<Vec<String>>>,
}

#[derive(Default)]
struct Account {
    balance: i64,
    seen: BTreeSet<String>,
}

/// What can be seen of it.
#[derive(Debug)]
pub(crate) struct Picture {
    #[expect(dead_code, reason = "it is compared as its Debug shows it")]
    files: BTreeMap<String, String>,
    #[expect(dead_code, reason = "it is compared as its Debug shows it")]
    balance: i64,
}

impl Outside {
    pub(crate) fn new() -> Result<Self, Trouble> {
        Ok(Self {
            directory: Arc::new(tempfile::tempdir()?),
            effects: Effects::new(),
            account: Arc::default(),
            log: Arc::default(),
        })
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn picture(&self) -> Result<Picture, Trouble> {
        let mut files = BTreeMap::new();
        for file in fs::read_dir(self.path())? {
            let file = file?;
            let name = file.file_name().to_string_lossy().into_owned();
            files.insert(name, fs::read_to_string(file.path())?);
        }
        let balance = self.account().balance;
        Ok(Picture { files, balance })
    }

    fn account(&self) -> MutexGuard<'_, Account> {
        self.account.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Pays once for each token.
    pub(crate) fn pay(&self, token: Token) {
        let mut account = self.account();
        if account.seen.insert(token.to_string()) {
            account.balance -= 10;
        }
    }

    /// Pays back, if it was paid; again and again, if `again`.
    pub(crate) fn pay_back(&self, token: Token, again: bool) {
        let mut account = self.account();
        let seen = account.seen.contains(&token.to_string());
        if seen {
            account.balance += 10;
        }
        if !again {
            account.seen.remove(&token.to_string());
        }
    }

    pub(crate) fn log(&self, text: impl Into<String>) {
        self.log
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(text.into());
    }

    pub(crate) fn logged(&self) -> Vec<String> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Removes a file that may be gone already.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}
