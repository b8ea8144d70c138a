//! Damage between two lives: a family with a row that cannot be read is put aside by the next start. Its other rows
//! keep what they hold until an operator discharges it; nobody else notices.

use std::collections::BTreeSet;

use futures::executor::block_on;
use procession::testkit::{FaultPlan, MemoryStore, Run, Trouble};
use procession_actors::journal::store::JournalStore;
use procession_actors::journal::{Batch, Space, keys};
use procession_actors::testkit::format;
use procession_kernel::Row;

use super::reload::scan;
use super::story::Story;

/// No value begins so.
const GARBAGE: [u8; 1] = [0xc1];

impl Story {
    /// Spoils a row of a live family, sometimes.
    pub(crate) fn damage(&mut self) -> Result<(), Trouble> {
        if !self.is_damaged || !self.damages.percent(50) {
            return Ok(());
        }
        // Behind the families are labels.
        let mut live = self.world.disk.dump(&Space::Live);
        live.retain(|(key, _)| keys::parse_family(key).is_some());
        let Some((family, _)) = self.damages.pick(&live) else {
            return Ok(());
        };
        let rows = self.world.disk.dump(&Space::Procedures);
        let members: Vec<Vec<u8>> = rows
            .into_iter()
            .map(|(key, _)| key)
            .filter(|key| key.starts_with(&family))
            .collect();
        let (Some(row), Some(number)) = (self.damages.pick(&members), keys::parse_family(&family)) else {
            return Err("a live family has no rows".into());
        };
        let store = MemoryStore::open(&self.world.disk, FaultPlan::none())?;
        let mut batch = Batch::new(block_on(store.acquire())?);
        batch.put(Space::Procedures, &row, &GARBAGE);
        block_on(store.append(batch))?;
        self.log.push(format!("--- damage: {:?}", keys::parse_procedure(&row)));
        self.cover("Damage");
        self.spoilt.insert(number);
        Ok(())
    }

    /// What is put aside is what was damaged, and has not been discharged; gives the rows of it that can be read.
    pub(crate) async fn put_aside(&mut self, run: &Run) -> Result<Vec<Row>, Trouble> {
        let live: BTreeSet<u64> = families(run, Space::Live).await?;
        let snapshot = run.executor.snapshot().await?;
        self.aside = snapshot.quarantined.into_iter().map(|(family, _)| family).collect();
        let (gone, expected): (BTreeSet<u64>, _) = self.spoilt.iter().partition(|family| !live.contains(family));
        if self.aside != expected {
            return Err(format!("{expected:?} are damaged, and {:?} are put aside", self.aside).into());
        }
        if families(run, Space::Archive).await? != gone {
            return Err(format!("{gone:?} were discharged, and others are in the archive").into());
        }
        if !gone.is_empty() {
            self.cover("Discharge");
        }
        let mut rows = Vec::new();
        for (key, value) in scan(run, Space::Procedures).await? {
            let id = keys::parse_row(&key).filter(|id| self.aside.contains(&id.family));
            rows.extend(id.and_then(|id| format::row(id, &value).ok()));
        }
        Ok(rows)
    }
}

pub(crate) async fn families(run: &Run, space: Space) -> Result<BTreeSet<u64>, Trouble> {
    let entries = scan(run, space).await?;
    Ok(entries.iter().filter_map(|(key, _)| keys::parse_family(key)).collect())
}
