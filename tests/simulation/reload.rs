//! What must hold whenever nothing moves: the state in memory is what a start
//! would read from the disk, it agrees with itself, and everybody who was told
//! something still finds it so.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use procession::ProcedureId;
use procession::health::Rule;
use procession::testkit::{Run, Trouble};
use procession_actors::journal::store::{JournalStore, Scan};
use procession_actors::journal::{Space, keys};
use procession_actors::testkit::{Reveal, format, reload};
use procession_kernel::{Family, Kernel, Mark, Row};

use super::story::Story;

/// Reads every row of a keyspace as the engine's readers see it.
pub(crate) async fn scan(run: &Run, space: Space) -> Result<Vec<(Vec<u8>, Vec<u8>)>, Trouble> {
    let (from, to, limit) = (Vec::new(), None, usize::MAX);
    Ok(run.store.scan(Scan { space, from, to, limit }).await?)
}

/// Reads the row of every procedure, but for those of families that are put aside.
pub(crate) async fn rows(run: &Run, aside: &BTreeSet<u64>) -> Result<Vec<Row>, Trouble> {
    let mut entries = scan(run, Space::Procedures).await?;
    entries.retain(|(key, _)| keys::parse_procedure(key).is_none_or(|id| !aside.contains(&id.family)));
    Ok(format::rows(&entries)?)
}

pub(crate) async fn kernel(run: &Run) -> Result<Box<Kernel>, Trouble> {
    Ok(run.executor.supervisor().send(Reveal).await?)
}

impl Story {
    pub(crate) async fn invariants(&mut self, run: &Run) -> Result<(), Trouble> {
        let kernel = kernel(run).await?;
        kernel.validate()?;
        let clock = Arc::new(run.world.clock.clone());
        let loaded = reload(run.store.clone(), kernel.rules().clone(), clock).await?;
        compare(&kernel, &loaded)?;
        self.rules = Some(kernel.rules().clone());
        if kernel.in_flight() + kernel.undoing() > 0 {
            let out = (kernel.in_flight(), kernel.undoing());
            return Err(format!("nothing moves, and stages and undos are out: {out:?}").into());
        }
        let aside = self.put_aside(run).await?;
        self.claims(run, &kernel, &aside).await?;
        self.wakes(run).await?;
        let rows = rows(run, &self.aside).await?;
        self.promises(&rows)?;
        if self.apart.is_some() {
            self.failures_are_listed(run, &rows).await?;
            self.operators_submitted(run, &rows).await?;
        }
        for row in &rows {
            self.cover(&format!("{:?}", row.state));
            if let Some(wait) = &row.wait {
                let wait = format!("{wait:?}");
                self.cover(wait.split('(').next().unwrap_or_default());
            }
        }
        self.seen = rows
            .into_iter()
            .filter(|row| !row.is_over() || row.ended.is_none())
            .map(|row| (row.id, row.wait))
            .collect();
        Ok(())
    }

    /// No wake was lost; what waits is told of without a fault.
    async fn wakes(&mut self, run: &Run) -> Result<(), Trouble> {
        // One that the limiter does not know counts when two health checks in a row find it.
        for _ in 0..2 {
            let verdicts = run.executor.verdicts().await?;
            let lost = verdicts.iter().find(|verdict| verdict.rule == Rule::LostWake);
            if let Some(lost) = lost {
                return Err(format!("a wake was lost: {lost:?}").into());
            }
        }
        match run.executor.snapshot().await?.lost_wakes {
            0 => Ok(()),
            lost => Err(format!("{lost} wakes were lost").into()),
        }
    }

    /// Who was given an id finds it, and what has ended stays as it ended.
    fn promises(&mut self, rows: &[Row]) -> Result<(), Trouble> {
        let found: BTreeMap<ProcedureId, &Row> = rows.iter().map(|row| (row.id, row)).collect();
        let is_kept = |id: &ProcedureId| self.settings.keeps() && !self.spoilt.contains(&id.family);
        if let Some(lost) = self.known.ids.iter().find(|id| is_kept(id) && !found.contains_key(id)) {
            return Err(format!("{lost} was submitted and answered, and is not there").into());
        }
        for row in rows.iter().filter(|row| row.is_ended()) {
            let fate = (row.state, row.rare().cause.as_deref().cloned());
            let before = self.fates.insert(row.id, fate.clone());
            // A child that succeeded may be compensated.
            let compensated = row.parent.is_some() && row.rare().mark != Some(Mark::Bypassed);
            if let Some(before) = before
                && before != fate
                && !compensated
            {
                return Err(format!("{} had ended as {before:?}, and now as {fate:?}", row.id).into());
            }
        }
        Ok(())
    }
}

/// What is only in memory is left out: which undo stacks are at hand.
fn durable(family: &Family) -> Family {
    Family {
        scopes: BTreeMap::new(),
        ..family.clone()
    }
}

fn compare(living: &Kernel, loaded: &Kernel) -> Result<(), Trouble> {
    let numbers = |kernel: &Kernel| kernel.families().keys().collect::<Vec<_>>();
    if numbers(living) != numbers(loaded) {
        let (memory, disk) = (numbers(living), numbers(loaded));
        return Err(format!("memory has the families {memory:?}, the disk {disk:?}").into());
    }
    if living.limits() != loaded.limits() || living.pauses() != loaded.pauses() {
        return Err("memory and disk differ in limits or pauses".into());
    }
    if living.audited() != loaded.audited() {
        return Err("memory and disk differ in what operators did".into());
    }
    for (number, family) in living.families() {
        let disk = loaded.families().get(&number).map(durable);
        let memory = durable(family);
        if disk.as_ref() != Some(&memory) {
            return Err(format!("family {number} differs.\n memory {memory:#?}\n   disk {disk:#?}").into());
        }
    }
    Ok(())
}
