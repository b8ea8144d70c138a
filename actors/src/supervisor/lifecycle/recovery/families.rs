//! The live families of a start: each is checked, then taken into the kernel or quarantined. If reads may block,
//! three threads share the task. One reads, one decodes and checks, and one takes the results into the kernel, in the
//! order of the families.

use std::sync::mpsc;
use std::thread;

use procession_kernel::{HistoryEntry, settle_standing};

use super::checked::{Checked, Checker, Faulty, Sound};
use super::ranges::{Stored, read_live};
use super::{Loaded, scan};
use crate::error::{StartError, StoreError};
use crate::journal::reader::decode_entry;
use crate::journal::{JournalStore, Space, keys};
use crate::supervisor::admission::requests::is_holder;

/// Groups of families that are read or checked ahead. They are enough that neither side waits for the other at each
/// group, and few enough that their memory does not matter.
const AHEAD: usize = 4;

/// Reads the live families in order.
pub(super) async fn read_families(store: &dyn JournalStore, loaded: &mut Loaded) -> Result<(), StartError> {
    let checker = Checker {
        code: loaded.code,
        kinds: loaded.kernel.rules().kinds.clone(),
    };
    let mut failing = Vec::new();
    if store.reads_block() {
        failing = read_beside(store, &checker, loaded)?;
    } else {
        let take = |some: Vec<Stored>| {
            let checked = some.iter().map(|stored| checker.check(stored));
            failing.extend(checked.filter_map(|checked| take_family(loaded, checked)));
            true
        };
        read_live(store, take).await?;
    }
    for family in failing {
        let stack = read_stack(store, family).await?;
        loaded.stacks.insert(family, stack);
    }
    Ok(())
}

/// Reads and checks on separate threads, while this one takes the families in.
fn read_beside(store: &dyn JournalStore, checker: &Checker, loaded: &mut Loaded) -> Result<Vec<u64>, StartError> {
    let (give, given) = mpsc::sync_channel::<Vec<Stored>>(AHEAD);
    let (pass, passed) = mpsc::sync_channel::<Vec<Checked>>(AHEAD);
    let read = move || futures::executor::block_on(read_live(store, |some| give.send(some).is_ok()));
    let check = move || {
        for some in given {
            if pass
                .send(some.iter().map(|stored| checker.check(stored)).collect())
                .is_err()
            {
                return;
            }
        }
    };
    thread::scope(|scope| {
        let refused = |error: std::io::Error| StartError::Thread(error.to_string());
        let start = || thread::Builder::new().name("procession-start".to_owned());
        let reading = start().spawn_scoped(scope, read).map_err(refused)?;
        let checking = start().spawn_scoped(scope, check).map_err(refused)?;
        let mut failing = Vec::new();
        for some in passed {
            failing.extend(some.into_iter().filter_map(|checked| take_family(loaded, checked)));
        }
        let panicked = |what: &str| StartError::Thread(format!("{what} the live rows panicked"));
        checking.join().map_err(|_| panicked("checking"))?;
        let read = reading.join().map_err(|_| panicked("reading"))?;
        read.map(|()| failing).map_err(StartError::from)
    })
}

/// Takes a family into the kernel, or quarantines it. Returns its number if it rolls back.
fn take_family(loaded: &mut Loaded, checked: Checked) -> Option<u64> {
    let family = checked.family;
    match checked.found.and_then(|sound| take_in(loaded, family, sound)) {
        Ok(rolls_back) => rolls_back.then_some(family),
        Err(Faulty { why, holders }) => {
            let why = loaded.kernel.pass_over(family).err().unwrap_or(why);
            tracing::warn!(family, why, "the family is quarantined");
            loaded.report.quarantined.push((family, why));
            loaded.quarantined_holders.extend(holders);
            None
        }
    }
}

/// Takes a sound family into the kernel. Returns `true` if some of it rolls back.
fn take_in(loaded: &mut Loaded, family: u64, sound: Sound) -> Result<bool, Faulty> {
    let rolls_back = sound.rows.iter().any(|row| row.is_failing());
    let taken = loaded.kernel.take_in(family, sound.rows, &sound.signals);
    taken.map_err(|rejected| {
        let holders = rejected.rows.into_iter().filter(|row| is_holder(row));
        let holders = holders.map(|row| (row.id, *row)).collect();
        Faulty {
            why: rejected.why,
            holders,
        }
    })?;
    if let Some(taken) = loaded.kernel.families().get(&family) {
        loaded.report.families += 1;
        for row in &taken.members {
            loaded.survey.note(row);
            loaded.report.procedures += usize::from(!row.is_ended());
        }
    }
    loaded.kernel.freeze(family);
    Ok(rolls_back)
}

/// Reads the history of a family that rolls back. Unreadable entries are missed once the rollback needs them: the
/// family parks there.
async fn read_stack(store: &dyn JournalStore, family: u64) -> Result<Vec<HistoryEntry>, StoreError> {
    let prefix = keys::family(family).to_vec();
    let to = keys::after_prefix(&prefix);
    let history = scan(store, Space::History, prefix, to, usize::MAX).await?;
    let mut history = decode_history(&history).unwrap_or_else(|error| {
        tracing::warn!(family, %error, "the history of a family is damaged");
        Vec::new()
    });
    settle_standing(&mut history);
    Ok(history)
}

fn decode_history(entries: &[(Vec<u8>, Vec<u8>)]) -> Result<Vec<HistoryEntry>, crate::error::CodecError> {
    entries
        .iter()
        .filter_map(|(key, value)| decode_entry(key, value).transpose())
        .collect()
}
