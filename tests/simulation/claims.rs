//! Permits and locks: what the limiter says is what the rows say, nobody who
//! has ended holds any, and none is given beyond a capacity.

use std::collections::{BTreeMap, BTreeSet};

use procession::ProcedureId;
use procession::limits::{LimitUse, LockView};
use procession::testkit::{Run, Trouble};
use procession_kernel::{Kernel, LimitKey, LockMode, LockPath, Row, WaitReason};

use super::story::Story;

impl Story {
    /// Of those that are put aside, the rows that can be read keep what they hold.
    pub(crate) async fn claims(&mut self, run: &Run, kernel: &Kernel, aside: &[Row]) -> Result<(), Trouble> {
        let limits = run.executor.limits().await?;
        let locks = run.executor.locks().await?;
        let holders: Vec<&Row> = members(kernel).chain(aside).collect();
        permits(&holders, &limits)?;
        held(&holders, &locks)?;
        waiting(kernel, &limits, &locks)?;
        excluded(&holders)?;
        self.never_over(&limits)
    }

    /// Somebody asks for another capacity: until nothing moves, the widest one counts.
    pub(crate) fn may_widen(&mut self, key: &str, limit: Option<u32>) {
        let built = self.settings.limits.iter().find(|(name, _)| *name == key);
        let built = built.map(|(_, limit)| *limit);
        let (_, widest) = self.used.entry(key.to_owned()).or_insert((0, built));
        *widest = match (*widest, limit) {
            (Some(one), Some(other)) => Some(one.max(other)),
            _ => None,
        };
    }

    /// Permits in use grow only up to the capacity; a lowered one takes nothing away.
    fn never_over(&mut self, limits: &[LimitUse]) -> Result<(), Trouble> {
        for limit in limits {
            let (before, widest) = self.used.get(limit.key.as_str()).copied().unwrap_or((0, limit.limit));
            let most = match (widest, limit.limit) {
                (Some(one), Some(other)) => one.max(other),
                _ => u32::MAX,
            };
            if limit.used > before.max(most) {
                return Err(format!("{limit:?} was {before} before, and at most {most} are allowed").into());
            }
            self.used.insert(limit.key.to_string(), (limit.used, limit.limit));
        }
        Ok(())
    }
}

fn members(kernel: &Kernel) -> impl Iterator<Item = &Row> {
    kernel
        .families()
        .values()
        .flat_map(|family| family.members.iter().map(|row| &**row))
}

fn permits(holders: &[&Row], limits: &[LimitUse]) -> Result<(), Trouble> {
    let mut used: BTreeMap<&LimitKey, u32> = BTreeMap::new();
    for row in holders.iter().filter(|row| row.holds) {
        row.limits.iter().for_each(|key| *used.entry(key).or_default() += 1);
    }
    for limit in limits {
        let by_rows = used.remove(&limit.key).unwrap_or(0);
        if by_rows != limit.used {
            return Err(format!("by the rows {by_rows} hold a permit of {limit:?}").into());
        }
    }
    match used.first_key_value() {
        // A limit that has no capacity is not counted.
        Some((key, used)) if limits.iter().any(|limit| limit.key == **key) => {
            Err(format!("{used} hold a permit of {key}, and nobody counts them").into())
        }
        Some(_) | None => Ok(()),
    }
}

fn held(holders: &[&Row], locks: &[LockView]) -> Result<(), Trouble> {
    type Held = BTreeSet<(LockPath, ProcedureId, bool)>;
    let exclusive = |mode: LockMode| mode == LockMode::Exclusive;
    let by_rows: Held = holders
        .iter()
        .flat_map(|row| {
            let locked = row.locked.iter();
            locked.map(|lock| (lock.path.clone(), row.id, exclusive(lock.mode)))
        })
        .collect();
    let by_limiter: Held = locks
        .iter()
        .flat_map(|lock| {
            let holders = lock.holders.iter();
            holders.map(|(id, mode)| (lock.path.clone(), *id, exclusive(*mode)))
        })
        .collect();
    if by_rows == by_limiter {
        return Ok(());
    }
    Err(format!("by the rows these are locked: {by_rows:?}, by the limiter {by_limiter:?}").into())
}

/// Who waits for a lock or a permit is in a queue for it.
fn waiting(kernel: &Kernel, limits: &[LimitUse], locks: &[LockView]) -> Result<(), Trouble> {
    for row in members(kernel).filter(|row| !kernel.is_stopped(row.id)) {
        let queued = match &row.wait {
            Some(WaitReason::Lock(path)) => locks
                .iter()
                .any(|lock| lock.path == *path && lock.waiting.contains(&row.id)),
            Some(WaitReason::Permit(key)) => limits.iter().any(|limit| limit.key == *key && limit.waiting > 0),
            Some(_) | None => true,
        };
        if !queued {
            return Err(format!("{} is in no queue, and waits for {:?}", row.id, row.wait).into());
        }
    }
    Ok(())
}

/// No two of different families hold what excludes each other.
fn excluded(holders: &[&Row]) -> Result<(), Trouble> {
    for (place, one) in holders.iter().enumerate() {
        for other in holders.iter().skip(place + 1) {
            let mut clashes = one
                .locked
                .iter()
                .filter(|lock| other.locked.iter().any(|held| held.conflicts(lock)));
            if one.id.family != other.id.family
                && let Some(lock) = clashes.next()
            {
                return Err(format!("{} and {} both hold {lock}", one.id, other.id).into());
            }
        }
    }
    Ok(())
}
