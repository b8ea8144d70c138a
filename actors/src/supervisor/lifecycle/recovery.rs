//! The start, in order:
//!
//! - take the store and its epoch,
//! - read the numbers that must not be reused,
//! - read the live rows,
//! - check every tree,
//! - quarantine what cannot be loaded.
//!
//! Rows go through the same `evolve` as live ones.

mod checked;
mod families;
mod ranges;

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{Either, select};
use procession_kernel::{
    AuditEntry, Broadcast, Epoch, HistoryEntry, Kernel, Kind, Limit, LimitKey, NUMBER_MAX, PauseScope, ProcedureId,
    ProcedureState, RateWindow, Record, Row, Rules, Seq, Timestamp,
};

use crate::clock::Clock;
use crate::error::{StartError, StoreError};
use crate::journal::encode::{
    LastLook, META_BROADCAST, META_CLOCK, META_FAMILIES, META_LIMIT, META_PAUSE, META_RATE, META_STARTED, META_STOPPED,
    META_STORE, Started,
};
use crate::journal::lease::{self, Lease};
use crate::journal::store::Scan;
use crate::journal::{JournalStore, Space, codec, keys};
use crate::supervisor::admission::requests::claims;
use crate::supervisor::failure::FailureCause;
use crate::view::Recovered;
pub(crate) use checked::{row_of, signal_of};

/// How long no stage runs ahead of the disk after a start that found a death. Whatever killed the process is marked on disk
/// before it runs again, if it comes back within this time.
const SPECULATION_REST: Duration = Duration::from_mins(1);

/// Which procedures' rows are loaded.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Code {
    /// Procedures whose code is registered, in a version that it can read.
    Registered,
    /// All procedures: none of them is to run.
    Any,
}

/// Everything that a start has read.
pub(crate) struct Loaded {
    pub(crate) kernel: Kernel,
    pub(crate) epoch: Epoch,
    /// The ownership with this epoch, if it lapses. From here on the caller must have it renewed.
    pub(crate) lease: Option<Lease>,
    code: Code,
    /// The store's own number, and whether it was drawn just now.
    pub(crate) store: (u64, bool),
    /// History of the families that roll back.
    pub(crate) stacks: BTreeMap<u64, Vec<HistoryEntry>>,
    /// When the first result falls due.
    pub(crate) next_due: Option<Timestamp>,
    /// The last look at the clocks.
    pub(crate) last_look: Option<LastLook>,
    /// Rows of quarantined families that hold permits or locks. They keep them.
    pub(crate) quarantined_holders: Vec<(ProcedureId, Row)>,
    pub(crate) report: Recovered,
    pub(crate) survey: Survey,
}

/// What a start must know of all rows together. It is recorded while each row is at hand, because a second pass over
/// all rows takes as long as much of the start.
#[derive(Default)]
pub(crate) struct Survey {
    /// Numbers of unfinished procedures, by kind and state.
    pub(crate) unfinished: BTreeMap<(Kind, ProcedureState), u64>,
    /// Procedures that hold a permit or a lock, or wait for one, in order.
    pub(crate) claimants: Vec<ProcedureId>,
}

impl Survey {
    fn note(&mut self, row: &Row) {
        if !row.is_ended() {
            *self.unfinished.entry((row.kind.clone(), row.state)).or_default() += 1;
        }
        if claims(row) {
            self.claimants.push(row.id);
        }
    }
}

/// Takes the store and reads it, outside the arbiters if that may block. Ownership with a lease is renewed meanwhile, since
/// reading may take longer than a lease lasts.
pub(crate) async fn load(
    store: Arc<dyn JournalStore>,
    rules: Rules,
    code: Code,
    clock: Arc<dyn Clock>,
) -> Result<Loaded, StartError> {
    let blocks = store.reads_block();
    let taken = Arc::clone(&store);
    let epoch = run(blocks, move || async move { Ok(taken.acquire().await?) }).await?;
    let lease = Lease::begin(&*store);
    let read_by = Arc::clone(&store);
    let reading = run(blocks, move || async move {
        read(&*read_by, epoch, rules, code, &*clock).await
    });
    match lease {
        Some(lease) => read_and_renew(store, epoch, lease, reading).await,
        None => reading.await,
    }
}

/// Reads the store as a start would, and takes no epoch: its owner goes on, and what was read must not be written.
pub(crate) async fn look(
    store: Arc<dyn JournalStore>,
    rules: Rules,
    code: Code,
    clock: Arc<dyn Clock>,
) -> Result<Loaded, StartError> {
    run(store.reads_block(), move || async move {
        let head = store.head().await?;
        let epoch = head.map_or_else(Epoch::default, |head| head.epoch);
        read(&*store, epoch, rules, code, &*clock).await
    })
    .await
}

/// Awaits a read while ownership is renewed, on the caller's thread. It stops waiting once ownership is lost: what blocks
/// on a thread of its own ends there when the caller closes the store.
async fn read_and_renew(
    store: Arc<dyn JournalStore>,
    epoch: Epoch,
    mut lease: Lease,
    reading: impl Future<Output = Result<Loaded, StartError>>,
) -> Result<Loaded, StartError> {
    let loaded = {
        let (reading, renewing) = (pin!(reading), pin!(lease::keep(store, epoch, &mut lease)));
        match select(reading, renewing).await {
            Either::Left((loaded, _)) => loaded?,
            Either::Right((lost, _)) => return Err(FailureCause::of(&lost).unstarted()),
        }
    };
    let lease = Some(lease);
    Ok(Loaded { lease, ..loaded })
}

/// Runs work on a store, on a thread of its own if that may block.
async fn run<T, F>(blocks: bool, work: impl FnOnce() -> F + Send + 'static) -> Result<T, StartError>
where
    T: Send + 'static,
    F: Future<Output = Result<T, StartError>>,
{
    if !blocks {
        return work().await;
    }
    let done = actix_rt::task::spawn_blocking(move || futures::executor::block_on(work()));
    done.await.map_err(|error| StartError::Thread(error.to_string()))?
}

/// Reads the store when its owner with this epoch begins.
pub(in crate::supervisor) async fn read(
    store: &dyn JournalStore,
    epoch: Epoch,
    rules: Rules,
    code: Code,
    clock: &dyn Clock,
) -> Result<Loaded, StartError> {
    let begun = clock.now();
    let (deaths, has_died) = deaths(store).await?;
    let mut kernel = Kernel::new(rules, epoch, deaths);
    if has_died {
        kernel.hold_speculation_until(begun.after(SPECULATION_REST));
    }
    let mut loaded = Loaded {
        kernel,
        epoch,
        lease: None,
        code,
        store: store_number(store).await?,
        stacks: BTreeMap::new(),
        next_due: None,
        last_look: last_look(store).await?,
        quarantined_holders: Vec::new(),
        report: Recovered::default(),
        survey: Survey::default(),
    };
    let families = number(META_FAMILIES, meta(store, META_FAMILIES).await?)?;
    loaded.kernel.continue_from(families.unwrap_or(1));
    if let Some(head) = store.head().await? {
        loaded.kernel.continue_after(head.seq);
    }
    for space in store.user_spaces().await? {
        loaded.kernel.note_space(&space);
    }
    read_limits(store, &mut loaded.kernel).await?;
    read_rates(store, &mut loaded.kernel).await?;
    read_pauses(store, &mut loaded.kernel).await?;
    // Before the rows: each row is counted for the broadcast that is to wake it.
    read_broadcasts(store, &mut loaded.kernel).await?;
    read_audit(store, &mut loaded.kernel).await?;
    if loaded.kernel.rules().seed == 0 {
        loaded.kernel.set_seed(loaded.store.0);
    }
    families::read_families(store, &mut loaded).await?;
    if !loaded.report.quarantined.is_empty() {
        loaded.kernel.keep_broadcasts();
    }
    let failures = Some(keys::first_failure().to_vec());
    let first = scan(store, Space::Finished, Vec::new(), failures, 1).await?;
    loaded.next_due = first
        .first()
        .and_then(|(key, _)| keys::parse_finished(key))
        .map(|(due, _)| due);
    loaded.report.took = clock.now().since(begun);
    Ok(loaded)
}

async fn meta(store: &dyn JournalStore, name: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
    store.get(Space::Meta, name.to_vec()).await
}

/// Reads a counter. Bytes that are no number, or a number that no engine reaches, are damage.
fn number(name: &[u8], bytes: Option<Vec<u8>>) -> Result<Option<u64>, StoreError> {
    let Some(bytes) = bytes else { return Ok(None) };
    let number = bytes.try_into().ok().map(u64::from_be_bytes);
    match number.filter(|number| *number <= NUMBER_MAX) {
        Some(number) => Ok(Some(number)),
        None => Err(damaged(format!(
            "\"{}\" is not a number",
            String::from_utf8_lossy(name)
        ))),
    }
}

fn damaged(why: impl ToString) -> StoreError {
    StoreError::Damaged {
        place: "the store".to_owned(),
        why: why.to_string(),
    }
}

/// Returns how often engines of this store have died, including the last one, and whether that one has.
async fn deaths(store: &dyn JournalStore) -> Result<(u32, bool), StartError> {
    let Some(bytes) = meta(store, META_STARTED).await? else {
        return Ok((0, false));
    };
    let started: Started = codec::decode(&bytes).map_err(damaged)?;
    let stopped = number(META_STOPPED, meta(store, META_STOPPED).await?)?;
    let in_order = stopped == Some(started.epoch.0);
    Ok((started.deaths.saturating_add(u32::from(!in_order)), !in_order))
}

/// Reads the last look at the clocks. A store without it was written by an earlier release, or under a clock that
/// does not know the machine's time.
async fn last_look(store: &dyn JournalStore) -> Result<Option<LastLook>, StartError> {
    let bytes = meta(store, META_CLOCK).await?;
    let look = bytes.map(|bytes| codec::decode(&bytes).map_err(damaged)).transpose()?;
    Ok(look)
}

async fn store_number(store: &dyn JournalStore) -> Result<(u64, bool), StartError> {
    let Some(bytes) = meta(store, META_STORE).await? else {
        return Ok((RandomState::new().build_hasher().finish(), true));
    };
    // Any number will do, because it was drawn at random.
    let number = bytes.try_into().map(u64::from_be_bytes);
    Ok((
        number.map_err(|_| damaged("the store's own number is not a number"))?,
        false,
    ))
}

async fn scan(
    store: &dyn JournalStore,
    space: Space,
    from: Vec<u8>,
    to: Option<Vec<u8>>,
    limit: usize,
) -> Result<Vec<(Vec<u8>, Vec<u8>)>, StoreError> {
    store.scan(Scan { space, from, to, limit }).await
}

async fn read_limits(store: &dyn JournalStore, kernel: &mut Kernel) -> Result<(), StartError> {
    let to = keys::after_prefix(META_LIMIT);
    for (key, value) in scan(store, Space::Meta, META_LIMIT.to_vec(), to, usize::MAX).await? {
        let name = key.get(META_LIMIT.len()..).unwrap_or_default();
        let name = String::from_utf8_lossy(name).into_owned();
        let limit: Limit = codec::decode(&value).map_err(damaged)?;
        kernel.evolve(&Record::Limit(LimitKey::from(name), limit));
    }
    Ok(())
}

/// Reads the begins that count for rates.
async fn read_rates(store: &dyn JournalStore, kernel: &mut Kernel) -> Result<(), StartError> {
    let to = keys::after_prefix(META_RATE);
    for (key, value) in scan(store, Space::Meta, META_RATE.to_vec(), to, usize::MAX).await? {
        let name = key.get(META_RATE.len()..).unwrap_or_default();
        let name = String::from_utf8_lossy(name).into_owned();
        let window: RateWindow = codec::decode(&value).map_err(damaged)?;
        kernel.evolve(&Record::RateWindow(LimitKey::from(name), Box::new(window)));
    }
    Ok(())
}

async fn read_pauses(store: &dyn JournalStore, kernel: &mut Kernel) -> Result<(), StartError> {
    let to = keys::after_prefix(META_PAUSE);
    for (_, value) in scan(store, Space::Meta, META_PAUSE.to_vec(), to, usize::MAX).await? {
        let what: PauseScope = codec::decode(&value).map_err(damaged)?;
        kernel.evolve(&Record::Pause(what, true));
    }
    Ok(())
}

/// Reads the broadcasts that have not yet woken all of their waiters.
async fn read_broadcasts(store: &dyn JournalStore, kernel: &mut Kernel) -> Result<(), StartError> {
    let to = keys::after_prefix(META_BROADCAST);
    for (key, value) in scan(store, Space::Meta, META_BROADCAST.to_vec(), to, usize::MAX).await? {
        let seq = key.get(META_BROADCAST.len()..).map(<[u8]>::to_vec);
        let seq = number(b"a broadcast", seq)?.unwrap_or_default();
        let broadcast: Broadcast = codec::decode(&value).map_err(damaged)?;
        kernel.evolve(&Record::Broadcast(Seq(seq), Box::new(broadcast)));
    }
    Ok(())
}

/// Reads the last acts of operators, because a repeated request is recognised by its key.
async fn read_audit(store: &dyn JournalStore, kernel: &mut Kernel) -> Result<(), StartError> {
    for (key, value) in scan(store, Space::Audit, Vec::new(), None, usize::MAX).await? {
        let number = number(b"an entry of the audit log", Some(key))?.unwrap_or_default();
        let entry: AuditEntry = codec::decode(&value).map_err(damaged)?;
        kernel.evolve(&Record::Audit(Box::new(entry.restored(number))));
    }
    Ok(())
}
