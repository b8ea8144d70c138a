//! A start on a journal that holds anything, beside one family that is sound: it
//! says what is damaged, or runs with the damaged families put aside, through an
//! operator's day, and once more. The sound family comes to its end.

use std::time::Duration;

use procession::ProcedureId;
use procession::errors::StartError;
use procession::messages::SendSignal;
use procession::offline::FamilyExport;
use procession::operate::OperatorRequest;
use procession::provider::Space;
use procession::status::{ListFilter, ProcedureState, WaitReason};
use procession::testkit::{FaultPlan, Run, Trouble, World};
use procession_kernel::Seq;

use super::{Checked, kinds, seeds};

/// Number of the sound family: far above those of the seeds.
pub(crate) const SOUND: u64 = 77;

/// Families of which everything is asked.
const ASKED: usize = 4;

/// An entry of a journal.
pub(crate) type Entry = (Space, Vec<u8>, Vec<u8>);

/// Reads entries: number of the keyspace, length of the key, key, length of the value (2), value.
pub(crate) fn entries(mut bytes: &[u8]) -> Vec<Entry> {
    let mut entries = Vec::new();
    while let Some(entry) = entry(&mut bytes) {
        entries.push(entry);
    }
    entries
}

fn entry(bytes: &mut &[u8]) -> Option<Entry> {
    let [space, key, ..] = **bytes else { return None };
    let space = Space::ENGINE.get(usize::from(space) % Space::ENGINE.len())?.clone();
    let mut take = |length: usize| {
        let (taken, rest) = bytes.split_at_checked(length)?;
        *bytes = rest;
        Some(taken.to_vec())
    };
    take(2)?;
    let key = take(usize::from(key))?;
    let [low, high] = take(2)?.try_into().ok()?;
    let value = take(usize::from(u16::from_le_bytes([low, high])))?;
    Some((space, key, value))
}

/// Writes entries as [`entries`] reads them; those that are too long are left out.
pub(crate) fn bytes_of(entries: &[Entry]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (space, key, value) in entries {
        let place = Space::ENGINE.iter().position(|known| known == space);
        let numbers = (
            place.map(u8::try_from),
            u8::try_from(key.len()),
            u16::try_from(value.len()),
        );
        if let (Some(Ok(place)), Ok(key_length), Ok(value_length)) = numbers {
            bytes.extend([place, key_length]);
            bytes.extend_from_slice(key);
            bytes.extend(value_length.to_le_bytes());
            bytes.extend_from_slice(value);
        }
    }
    bytes
}

pub(crate) fn check(bytes: &[u8]) -> Checked {
    start(entries(bytes))
}

/// Starts engines on these entries, beside the sound family.
pub(crate) fn start(mut entries: Vec<Entry>) -> Checked {
    let sound = SOUND.to_be_bytes();
    entries.retain(|(_, key, _)| !key.starts_with(&sound));
    entries.extend(seeds::sound()?);
    let world = World::new();
    let borrowed = entries
        .iter()
        .map(|(space, key, value)| (space.clone(), key.as_slice(), value.as_slice()));
    world.disk.import(Seq(9), borrowed);
    match live(&world)? {
        Some(false) => Err("the sound family has not come to its end".into()),
        Some(true) | None => Ok(()),
    }
}

/// Lives two lives in a world, if the first can begin. Tells whether the sound family ended in it.
pub(crate) fn live(world: &World) -> Result<Option<bool>, Trouble> {
    let first = world.run(FaultPlan::none(), kinds::register, day);
    let ended = match first {
        Ok(ended) => Some(ended.done()?),
        Err(error) if error.is::<StartError>() => {
            assert!(!error.to_string().is_empty());
            return Ok(None);
        }
        // Rows that waited for what had come: found, told, and made up for.
        Err(error) if error.to_string().contains("which a health check has found") => None,
        Err(error) => return Err(error),
    };
    // What could be started once can be started again.
    let again = world.run(FaultPlan::none(), kinds::register, async |run| {
        run.settle().await;
        assert_eq!(run.executor.snapshot().await?.poisoned, None);
        Ok(())
    });
    match again {
        Err(error) if error.to_string().contains("which a health check has found") => {}
        Err(error) => return Err(error),
        Ok(again) => again.done()?,
    }
    Ok(ended)
}

/// A day of clients and operators, who ask everything and stop what they can.
async fn day(run: &Run) -> Result<bool, Trouble> {
    let executor = &run.executor;
    let sound = ProcedureId::root(SOUND);
    run.settle().await;
    run.pass(Duration::from_secs(2)).await;
    let ended = match executor.status(sound).await {
        Ok(status) => {
            let held = matches!(status.wait, Some(WaitReason::Permit(_) | WaitReason::Paused));
            status.state == ProcedureState::Success || held
        }
        Err(_) => false,
    };
    let ids = ask(run).await?;
    for id in ids.iter().filter(|id| **id != sound) {
        executor.signal(*id, "go", &7).key("once").await.ok();
        let many = [
            SendSignal::new(*id, "other", &7)?,
            SendSignal::new(*id, "other", &8)?.last(),
        ];
        executor.signal_all(many.to_vec()).await.ok();
        if let Ok(mailbox) = executor.mailbox(*id).await {
            let closed = mailbox.closed.iter().any(|name| name == "other");
            let refused = executor.signal(*id, "other", &9).await;
            assert!(!closed || refused.is_err(), "{id} takes a signal of a closed name");
        }
        executor.acknowledge(*id).await.ok();
    }
    run.pass(Duration::from_secs(10)).await;
    for id in &ids {
        executor.skip_undo(*id, OperatorRequest::new("ann", "fuzz")).await.ok();
        executor.abort(*id, OperatorRequest::new("ann", "fuzz")).await.ok();
    }
    run.pass(Duration::from_secs(3 * 3_600)).await;
    let quarantined = executor.snapshot().await?.quarantined;
    for (family, why) in quarantined.into_iter().take(ASKED) {
        assert!(!why.is_empty() && family != SOUND, "{family}: {why}");
        executor
            .discharge(family, OperatorRequest::new("ann", "fuzz"))
            .await
            .ok();
    }
    run.settle().await;
    let snapshot = executor.snapshot().await?;
    assert_eq!(snapshot.poisoned, None);
    Ok(ended)
}

/// Asks everything there is to ask; gives some ids.
async fn ask(run: &Run) -> Result<Vec<ProcedureId>, Trouble> {
    let executor = &run.executor;
    let page = executor.list(ListFilter::default(), None, 100).await?;
    let live = ListFilter {
        live_only: true,
        kind: Some("plain".into()),
        ..ListFilter::default()
    };
    let some = executor.list(live, page.next, 1).await?;
    assert!(some.items.len() <= 1 && page.items.len() <= 100);
    let found = page.items.iter().map(|status| status.id);
    let ids: Vec<ProcedureId> = found.chain(page.unreadable.iter().copied()).take(ASKED).collect();
    for id in &ids {
        executor.tree(*id).await.ok();
        executor.history(*id).await.ok();
        let explained = executor.explain(*id).await.map(|explained| format!("{explained:?}"));
        assert!(!explained.is_ok_and(|text| text.is_empty()));
        if let Ok(export) = executor.export(*id).await {
            let bytes = export.to_bytes()?;
            assert_eq!(FamilyExport::from_bytes(&bytes)?, export);
        }
    }
    executor.locks().await?;
    executor.limits().await?;
    executor.verdicts().await?;
    executor.audit(None, 10).await.ok();
    executor.archive().await.ok();
    Ok(ids)
}
