//! The past, when all have ended: what the history says was done was done, no
//! oftener than crashes explain; undone in the reverse order; and what stages
//! wrote is there exactly once.

use std::borrow::Cow;
use std::collections::BTreeMap;

use procession::ProcedureId;
use procession::status::{Ending, HistoryEntry, ProcedureState};
use procession::testkit::{Run, Trouble};
use procession_actors::journal::{Space, codec, keys};
use procession_actors::testkit::format;
use procession_kernel::Row;

use super::reload::{rows, scan};
use super::story::Story;
use super::support::{Act, Plan, UndoAct};

/// Bodies that ran, by name, stage, attempt, and whether it was an undo.
type Calls = BTreeMap<(String, u32, u32, bool), u32>;

impl Story {
    pub(crate) async fn past(&mut self, run: &Run) -> Result<(), Trouble> {
        let plans = plans(run).await?;
        let rows = rows(run, &self.aside).await?;
        let families = history(run).await?;
        for entries in families.values() {
            in_reverse(entries, &rows)?;
        }
        self.values(run, &rows, &families).await?;
        let entries: Vec<&HistoryEntry> = families.values().flatten().collect();
        self.called(&entries, &plans)?;
        if self.keeps() {
            self.written(run, &entries, &plans).await?;
        }
        Ok(())
    }

    /// Every entry stands for a call, and every life adds one at most that left no entry.
    fn called(&self, entries: &[&HistoryEntry], plans: &BTreeMap<ProcedureId, Plan>) -> Result<(), Trouble> {
        let mut calls = Calls::new();
        for call in self.lab.calls() {
            *calls
                .entry((call.name, call.stage, call.attempt, call.undo))
                .or_default() += 1;
        }
        let mut recorded = Calls::new();
        for entry in entries {
            // Of one that was out when the process died nobody knows whether its body had begun.
            let is_cut_off = entry.error.as_deref() == Some("the process died while it ran");
            if entry.ending == Ending::UndoSkipped || is_cut_off {
                continue;
            }
            let plan = plan_of(entry, plans)?;
            let undo = matches!(entry.ending, Ending::Undone | Ending::UndoFailed);
            let key = (plan.name.clone(), stage_of(entry)?, entry.attempt, undo);
            *recorded.entry(key).or_default() += 1;
        }
        for (key, times) in &recorded {
            let ran = calls.get(key).copied().unwrap_or(0);
            if ran < *times {
                return Err(format!("{key:?} is recorded {times} times, and ran {ran} times").into());
            }
            let plan = plans.values().find(|plan| plan.name == key.0);
            let act = plan.and_then(|plan| plan.acts.get(key.1 as usize - 1));
            // A result that is gone may be asked for once more, and its entries are gone as well.
            let runs_twice = |act: &Act| act.yields() || self.speculates && act.asks_the_store();
            // The stages of a run that ends before one that fails have run before.
            let bounded = self.keeps() && !self.runs && !act.is_some_and(runs_twice);
            // One that runs again has the same name, and each of them is cut off once a life at most.
            let named = plans.values().filter(|plan| plan.name == key.0).count();
            let cut_off = self.lives * u32::try_from(named).unwrap_or(u32::MAX);
            if bounded && ran > times + cut_off {
                return Err(format!("{key:?} is recorded {times} times, and ran {ran} times").into());
            }
        }
        Ok(())
    }

    /// What committed stages and undos wrote is there, once.
    async fn written(
        &self,
        run: &Run,
        entries: &[&HistoryEntry],
        plans: &BTreeMap<ProcedureId, Plan>,
    ) -> Result<(), Trouble> {
        let mut expected: BTreeMap<Cow<'_, str>, i64> = BTreeMap::new();
        for entry in entries {
            let plan = plan_of(entry, plans)?;
            let stage = stage_of(entry)?;
            let added = match entry.ending {
                Ending::Next | Ending::Done | Ending::Spawn | Ending::Sleep | Ending::Wait | Ending::Asked => {
                    plan.acts.get(stage as usize - 1).map_or(0, Act::adds)
                }
                Ending::Undone => match plan.undos.get(&stage) {
                    Some(UndoAct::Add(_, amount) | UndoAct::AddOwn(amount)) => *amount,
                    _ => 0,
                },
                Ending::Fail if plan.keeps_failed(stage) => plan.acts.get(stage as usize - 1).map_or(0, Act::adds),
                Ending::Retry | Ending::Fail | Ending::Panic | Ending::UndoFailed | Ending::UndoSkipped => 0,
                _ => 0,
            };
            let row = match self.apart {
                Some(_) => Cow::Owned(ProcedureId::new(entry.family, entry.member).to_string()),
                None => Cow::Borrowed(plan.name.as_str()),
            };
            *expected.entry(row).or_default() += added;
        }
        for (name, sum) in expected {
            let found = run.executor.get::<i64>("rows", &*name).await?.unwrap_or(0);
            if found != sum {
                return Err(format!("{name} wrote {sum} in all, and {found} is there").into());
            }
        }
        Ok(())
    }
}

pub(crate) async fn plans(run: &Run) -> Result<BTreeMap<ProcedureId, Plan>, Trouble> {
    let mut plans = BTreeMap::new();
    for (key, value) in scan(run, Space::Payloads).await? {
        if let Some(id) = keys::parse_procedure(&key).filter(|_| key.last() == Some(&keys::PAYLOAD)) {
            plans.insert(id, codec::decode_user::<Plan>(&value)?);
        }
    }
    Ok(plans)
}

async fn history(run: &Run) -> Result<BTreeMap<u64, Vec<HistoryEntry>>, Trouble> {
    let mut families: BTreeMap<u64, Vec<HistoryEntry>> = BTreeMap::new();
    for (key, value) in scan(run, Space::History).await? {
        let id = keys::parse_procedure(&key).ok_or("an entry of the history has a key that names none")?;
        let entry = format::history(id.family, id.member, &value)?;
        families.entry(id.family).or_default().push(entry);
    }
    Ok(families)
}

fn plan_of<'a>(entry: &HistoryEntry, plans: &'a BTreeMap<ProcedureId, Plan>) -> Result<&'a Plan, Trouble> {
    let id = ProcedureId::new(entry.family, entry.member);
    Ok(plans
        .get(&id)
        .ok_or_else(|| format!("{id} has a history and no payload"))?)
}

pub(crate) fn stage_of(entry: &HistoryEntry) -> Result<u32, Trouble> {
    Ok(codec::decode_user(entry.stage.as_slice())?)
}

impl Plan {
    /// Returns `true` if the failure of this stage keeps what the stage did. Past its point of no return it keeps nothing.
    pub(crate) fn keeps_failed(&self, stage: u32) -> bool {
        let act = self.acts.get(stage as usize - 1);
        self.one_way.is_none_or(|first| stage < first) && act.is_some_and(Act::gives_up)
    }
}

/// An undo is of the newest stage that stands of its procedure, and comes after
/// those of all that were rolled back below it since.
fn in_reverse(entries: &[HistoryEntry], rows: &[Row]) -> Result<(), Trouble> {
    // What stands, in the order in which it was committed.
    let mut standing: Vec<(u32, u32)> = Vec::new();
    for entry in entries {
        let visit = (entry.member, entry.visit);
        if !matches!(entry.ending, Ending::Undone | Ending::UndoFailed | Ending::UndoSkipped) {
            // An attempt more of the same visit takes the place of the one before.
            standing.retain(|other| *other != visit);
            standing.push(visit);
            continue;
        }
        if entry.ending == Ending::UndoFailed {
            continue;
        }
        let Some(place) = standing.iter().position(|other| *other == visit) else {
            return Err(format!("{entry:?} undoes what does not stand").into());
        };
        let later = standing.get(place + 1..).unwrap_or_default();
        let early = later
            .iter()
            .find(|(member, _)| *member == visit.0 || is_undone_below(rows, entry.family, visit.0, *member));
        if let Some(early) = early {
            return Err(format!("{entry:?} is undone before {early:?}, which is newer: {entries:#?}").into());
        }
        standing.remove(place);
    }
    Ok(())
}

/// Tells whether a member stands below another, and was rolled back in the end.
fn is_undone_below(rows: &[Row], family: u64, above: u32, member: u32) -> bool {
    let row = |member| rows.iter().find(|row| row.id == ProcedureId::new(family, member));
    let mut parents = std::iter::successors(row(member), |below| row(below.parent?)).skip(1);
    let below = parents.any(|parent| parent.id.member == above);
    below && row(member).is_some_and(|row| row.state == ProcedureState::RolledBack && row.rare().mark.is_none())
}
