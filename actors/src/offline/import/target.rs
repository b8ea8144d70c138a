//! The journal that receives a family: whether the family's number, key and locks are free, and which number its
//! commit gets.

use std::collections::BTreeMap;
use std::ops::Bound;

use procession_kernel::{Key, KeyEntry, LockMode, LockNeed, LockPath, ProcedureId, Row, Seq, Timestamp};

use super::content::Content;
use super::root;
use crate::error::{ImportError, ReadError};
use crate::journal::encode::META_FAMILIES;
use crate::journal::store::Scan;
use crate::journal::{Reader, Space, keys};
use crate::supervisor::lifecycle::recovery::Loaded;

/// The highest number of a family or a commit to which an import takes a journal, which goes on above it. An engine that
/// commits a hundred thousand times a second gets there in ninety years, so a higher number comes from a file that was
/// changed. All numbers behind it would be as wrong, and other journals would refuse what has them.
const IMPORTED_MAX: u64 = 1 << 48;

/// A closed journal, as a start would read it.
pub(super) struct Target<'a> {
    pub(super) reader: &'a Reader,
    pub(super) loaded: &'a Loaded,
}

/// The holders of each path, and their modes.
type Held = BTreeMap<LockPath, Vec<(ProcedureId, LockMode)>>;

impl Target<'_> {
    /// Refuses a family that conflicts with something in the journal.
    pub(super) async fn check(&self, content: &Content) -> Result<(), ImportError> {
        let family = content.family;
        self.check_numbers(content).await?;
        if let Some(how) = self.how_it_is_here(family).await? {
            return Err(ImportError::Present { family, how });
        }
        if let Some((key, _)) = &content.key {
            let entry = self.key_entry(key).await?;
            if let Some(entry) = entry.filter(|entry| entry.id != root(family)) {
                return Err(ImportError::KeyTaken {
                    key: key.clone(),
                    id: entry.id,
                });
            }
        }
        if content.live {
            self.check_locks(&content.rows)
        } else {
            Ok(())
        }
    }

    /// Refuses numbers that no engine reaches, unless this journal has got there.
    async fn check_numbers(&self, content: &Content) -> Result<(), ImportError> {
        let family = content.family;
        let unusable = |what: String| ImportError::Unusable {
            family,
            why: format!(
                "{what} is a number that no engine reaches, and this journal would go on above it; export the family \
                 again from the journal that it lives in, and import that file as it is"
            ),
        };
        if family > IMPORTED_MAX.max(self.families().await?) {
            return Err(unusable(format!("{family}, the family's,")));
        }
        let newest = self.loaded.kernel.seq().0.max(IMPORTED_MAX);
        match content.rows.iter().find(|row| row.revision.0 > newest) {
            Some(row) => Err(unusable(format!(
                "{}, that of the last commit of {},",
                row.revision, row.id
            ))),
            None => Ok(()),
        }
    }

    /// Returns a number above every number in the journal and the family.
    pub(super) fn next_seq(&self, content: &Content) -> Seq {
        let revisions = content.rows.iter().map(|row| row.revision);
        revisions
            .chain([self.loaded.kernel.seq()])
            .max()
            .unwrap_or_default()
            .next()
    }

    /// Returns the number below which every family's number may have been assigned.
    pub(super) async fn families(&self) -> Result<u64, ReadError> {
        let stored = self.reader.get(Space::Meta, META_FAMILIES.to_vec()).await?;
        let stored = stored.and_then(|bytes| bytes.try_into().ok()).map(u64::from_be_bytes);
        Ok(stored.unwrap_or(1))
    }

    pub(super) async fn key_entry(&self, key: &Key) -> Result<Option<KeyEntry>, ReadError> {
        self.reader.key_entry(key.as_str().as_bytes()).await
    }

    /// Returns the warnings about this journal.
    pub(super) async fn warnings(&self, content: &Content) -> Result<Vec<String>, ImportError> {
        let family = content.family;
        let given = family < self.families().await?;
        let archive = self.reader.scan(family_in(Space::Archive, family)).await;
        if !given || !archive.map_err(ReadError::from)?.is_empty() {
            return Ok(Vec::new());
        }
        Ok(vec![format!(
            "this journal may have had a family {family} of its own: callees of its stages may take this family \
             for it"
        )])
    }

    async fn how_it_is_here(&self, family: u64) -> Result<Option<String>, ReadError> {
        if self
            .loaded
            .report
            .quarantined
            .iter()
            .any(|(number, _)| *number == family)
        {
            return Ok(Some("it is quarantined".to_owned()));
        }
        if self.loaded.kernel.families().contains_key(&family) {
            return Ok(Some("it lives".to_owned()));
        }
        if let Ok(Some(row)) = self.reader.row(root(family)).await {
            let due = row.due.map(|due: Timestamp| format!(", and its result goes at {due}"));
            return Ok(Some(format!("it has ended{}", due.unwrap_or_default())));
        }
        let spaces = [Space::Procedures, Space::Payloads, Space::History, Space::Signals];
        for space in spaces {
            if !self.reader.scan(family_in(space, family)).await?.is_empty() {
                return Ok(Some("parts of it".to_owned()));
            }
        }
        Ok(None)
    }

    fn check_locks(&self, rows: &[Row]) -> Result<(), ImportError> {
        let held = self.held();
        for row in rows {
            for lock in &row.locked {
                if let Some((holder, other)) = in_the_way(&held, lock) {
                    return Err(ImportError::Locked {
                        id: row.id,
                        lock: lock.clone(),
                        holder,
                        held: other,
                    });
                }
            }
        }
        Ok(())
    }

    /// Returns the locks of live families, including quarantined families.
    fn held(&self) -> Held {
        let mut held = Held::new();
        let mut add = |id: ProcedureId, row: &Row| {
            for lock in &row.locked {
                held.entry(lock.path.clone()).or_default().push((id, lock.mode));
            }
        };
        for (_, family) in self.loaded.kernel.families().iter() {
            family.members.iter().for_each(|row| add(row.id, row));
        }
        for (id, row) in &self.loaded.quarantined_holders {
            add(*id, row);
        }
        held
    }
}

/// Finds a procedure with a lock that excludes this one: at its path, above it, or below it.
fn in_the_way(held: &Held, lock: &LockNeed) -> Option<(ProcedureId, LockNeed)> {
    let path = &lock.path;
    let below = held.range::<LockPath, _>((Bound::Included(path), Bound::Unbounded));
    // Paths below a path begin with it, but so do some of its siblings.
    let below = below.take_while(|(other, _)| other.as_str().starts_with(path.as_str()));
    let above = path.ancestors().filter_map(|above| held.get_key_value(&above));
    let mut holders = above
        .chain(below)
        .flat_map(|(path, holders)| holders.iter().map(move |(id, mode)| (path, *id, *mode)));
    holders.find_map(|(path, id, mode)| {
        let path = path.clone();
        let other = LockNeed { path, mode };
        lock.conflicts(&other).then_some((id, other))
    })
}

fn family_in(space: Space, family: u64) -> Scan {
    let from = keys::family(family).to_vec();
    Scan {
        space,
        to: keys::after_prefix(&from),
        from,
        limit: 1,
    }
}
