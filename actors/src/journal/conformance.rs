//! The promises that every journal store must keep, as a suite for authors of stores.
//!
//! Each check receives an *opener*, which opens the same place each time it is called, after the previous store has
//! been dropped, as after a restart.

use futures::executor::block_on;
use futures::future::join_all;
use procession_kernel::{Epoch, Key, Receipt, Seq};

use super::batch::Batch;
use super::keys::Space;
use super::store::{AppendError, Entries, Head, JournalStore, RECENT_BYTES, Scan};
use crate::error::StoreError;

mod close;

pub use close::check_close;

/// A promise that a store does not keep.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the store breaks a promise: {0}")]
pub struct BrokenPromise(String);

impl From<StoreError> for BrokenPromise {
    fn from(error: StoreError) -> Self {
        Self(format!("a healthy store can be opened and read, but {error}"))
    }
}

impl From<AppendError> for BrokenPromise {
    fn from(error: AppendError) -> Self {
        Self(format!("a batch of the owner is committed, but {error}"))
    }
}

/// The result of checking a promise.
pub type Checked = Result<(), BrokenPromise>;

/// Checks every promise except the one that needs a fault. `place` creates a new, empty place each time it is called,
/// and returns its opener.
///
/// # Errors
///
/// [`BrokenPromise`] with the first promise that is not kept.
pub fn check<S, O>(mut place: impl FnMut() -> O) -> Checked
where
    S: JournalStore,
    O: Fn() -> Result<S, StoreError>,
{
    check_batches_last(&place())?;
    check_order(&place())?;
    check_failure_under_way(&place())?;
    check_reads(&place())?;
    check_overwrites(&place())?;
    check_recent_writes(&place())?;
    check_user_spaces(&place())?;
    check_epochs(&place())?;
    check_fencing(&place())?;
    check_skipped_epochs(&place())?;
    check_head(&place())?;
    check_close(&place())
}

/// Checks that a batch over several keyspaces is there as a whole after a restart, and that `size_bytes` can be
/// called.
///
/// # Errors
///
/// [`BrokenPromise`] if it is not kept.
pub fn check_batches_last<S: JournalStore>(open: &impl Fn() -> Result<S, StoreError>) -> Checked {
    let store = open()?;
    let epoch = take(&store)?;
    for number in 1..=20 {
        let receipt = commit(&store, epoch, number, |batch| {
            batch.put(Space::Procedures, &number.to_be_bytes(), &[1; 300]);
            batch.put(Space::History, &number.to_be_bytes(), &[]);
            batch.put(user("ledger"), &number.to_be_bytes(), b"paid");
        })?;
        hold(
            receipt == Receipt::new(epoch, Seq(number)),
            "a receipt names the epoch and the number of its batch",
        )?;
    }
    // It may return `None`, but must not panic.
    store.size_bytes();
    drop(store);
    let store = open()?;
    for space in [Space::Procedures, Space::History, user("ledger")] {
        hold(
            all(&store, space)?.len() == 20,
            "each batch with a receipt is there as a whole after a restart",
        )?;
    }
    let value = block_on(store.get(Space::Procedures, 7_u64.to_be_bytes().to_vec()))?;
    hold(
        value.as_deref() == Some(&[1; 300][..]),
        "a value comes back as it was written",
    )?;
    let empty = block_on(store.get(Space::History, 7_u64.to_be_bytes().to_vec()))?;
    hold(
        empty.as_deref() == Some(&[][..]),
        "an empty value is a value, and no delete",
    )
}

/// Checks that batches take effect in the order of the calls, in whatever order their answers are polled.
///
/// # Errors
///
/// [`BrokenPromise`] if it is not kept.
pub fn check_order<S: JournalStore>(open: &impl Fn() -> Result<S, StoreError>) -> Checked {
    let store = open()?;
    let epoch = take(&store)?;
    let mut under_way = Vec::new();
    for number in 1..=8_u64 {
        let mut batch = batch(epoch, number);
        batch.put(Space::Meta, b"last", &number.to_be_bytes());
        batch.put(Space::Live, &number.to_be_bytes(), &[]);
        under_way.push(store.append(batch));
    }
    under_way.reverse();
    let answers = block_on(join_all(under_way));
    for (answer, number) in answers.into_iter().zip((1..=8).rev()) {
        hold(
            answer?.seq() == Seq(number),
            "each of several appends under way gets the receipt of its own batch",
        )?;
    }
    let check_last = |store: &S| {
        let last = block_on(store.get(Space::Meta, b"last".to_vec()))?;
        hold(
            last.as_deref() == Some(&8_u64.to_be_bytes()[..]),
            "batches take effect in the order in which append was called",
        )
    };
    check_last(&store)?;
    // Once behind the receipts and once more, as an engine may.
    store.settle();
    store.settle();
    check_last(&store)?;
    drop(store);
    let store = open()?;
    hold(
        all(&store, Space::Live)?.len() == 8,
        "each of several appends under way lasts",
    )?;
    check_last(&store)
}

/// Checks what happens when the store refuses one of several appends under way. Earlier ones take effect, and all
/// later ones fail, although they were handed over before the failure was known.
///
/// # Errors
///
/// [`BrokenPromise`] if it is not kept.
pub fn check_failure_under_way<S: JournalStore>(open: &impl Fn() -> Result<S, StoreError>) -> Checked {
    let store = open()?;
    hold(store.under_way() > 0, "a store takes at least one append at a time")?;
    let epoch = take(&store)?;
    let too_long = vec![b'k'; store.bounds().key + 1];
    let mut under_way = Vec::new();
    for number in 1..=5_u64 {
        let mut batch = batch(epoch, number);
        batch.put(Space::Live, &number.to_be_bytes(), &[]);
        if number == 3 {
            batch.put(Space::Keys, &too_long, b"refused");
        }
        under_way.push(store.append(batch));
    }
    let answers = block_on(join_all(under_way));
    for (answer, number) in answers.into_iter().zip(1..) {
        let is_kept = match answer {
            Ok(receipt) => number < 3 && receipt.seq() == Seq(number),
            Err(AppendError::Failed(_) | AppendError::Unknown(_)) => number >= 3,
            Err(AppendError::Fenced { .. }) => false,
        };
        hold(
            is_kept,
            "of several appends under way those before the failed one get their receipts, and all later ones fail",
        )?;
    }
    let late = block_on(store.append(batch(epoch, 6)));
    hold(
        late.is_err(),
        "after a failed append, no later one of the same epoch succeeds",
    )?;
    drop(store);
    let keys: Vec<Vec<u8>> = all(&open()?, Space::Live)?.into_iter().map(|(key, _)| key).collect();
    hold(
        keys == [1_u64.to_be_bytes().to_vec(), 2_u64.to_be_bytes().to_vec()],
        "of several appends under way those before the failed one last, and nothing of the others",
    )
}

/// Checks that reads see what was committed, in key order and within their bounds.
///
/// # Errors
///
/// [`BrokenPromise`] if it is not kept.
pub fn check_reads<S: JournalStore>(open: &impl Fn() -> Result<S, StoreError>) -> Checked {
    let store = open()?;
    let epoch = take(&store)?;
    let keys: [&[u8]; 6] = [&[255, 255], &[0], &[1, 0], &[1], &[9], &[255]];
    commit(&store, epoch, 1, |batch| {
        for key in keys {
            batch.put(Space::Keys, key, key);
        }
        batch.put(Space::Live, &[1], b"elsewhere");
    })?;
    let cases: [ScanCase<'_>; 8] = [
        (&[], None, 100, &[&[0], &[1], &[1, 0], &[9], &[255], &[255, 255]]),
        (&[1], None, 100, &[&[1], &[1, 0], &[9], &[255], &[255, 255]]),
        (&[1], Some(&[9]), 100, &[&[1], &[1, 0]]),
        (&[1, 0, 0], Some(&[255]), 100, &[&[9]]),
        (&[], None, 2, &[&[0], &[1]]),
        (&[], None, 0, &[]),
        (&[9], Some(&[9]), 100, &[]),
        (&[9], Some(&[1]), 100, &[]),
    ];
    for (from, to, limit, expected) in cases {
        let found = scan(&store, Space::Keys, from, to, limit)?;
        let is_as_expected = found.iter().map(|(key, _)| key.as_slice()).eq(expected.iter().copied());
        hold(
            is_as_expected,
            &format!("a scan from {from:?} to {to:?} with limit {limit} gives {expected:?} in order"),
        )?;
        hold(
            found.iter().all(|(key, value)| key == value),
            "a scan gives each key its own value",
        )?;
    }
    let missing = block_on(store.get(Space::Keys, vec![2]))?;
    hold(missing.is_none(), "a key that was never written has no value")?;
    let other = block_on(store.get(Space::History, vec![1]))?;
    hold(other.is_none(), "keyspaces are apart")
}

/// Checks that the last write of a key counts, between batches and within one, and that deletes delete.
///
/// # Errors
///
/// [`BrokenPromise`] if it is not kept.
pub fn check_overwrites<S: JournalStore>(open: &impl Fn() -> Result<S, StoreError>) -> Checked {
    let store = open()?;
    let epoch = take(&store)?;
    commit(&store, epoch, 1, |batch| {
        batch.put(Space::Keys, b"gone", b"1");
        batch.put(Space::Keys, b"new", b"1");
        batch.put(Space::Keys, b"new", b"2");
        batch.put(Space::Keys, b"short", b"1");
        batch.delete(Space::Keys, b"short");
        batch.delete(Space::Keys, b"back");
        batch.put(Space::Keys, b"back", b"1");
        batch.delete(Space::Keys, b"never");
    })?;
    commit(&store, epoch, 2, |batch| {
        batch.delete(Space::Keys, b"gone");
        batch.put(Space::Keys, b"new", b"3");
    })?;
    let expected: Entries = vec![(b"back".to_vec(), b"1".to_vec()), (b"new".to_vec(), b"3".to_vec())];
    hold(
        all(&store, Space::Keys)? == expected,
        "the last write of a key counts, in one batch as between two",
    )?;
    drop(store);
    hold(
        all(&open()?, Space::Keys)? == expected,
        "the last write of a key counts after a restart",
    )
}

/// Checks what the store tells of recent writes, if it tells anything: they are the newest, in order and within the bounds
/// of the scan, and a failed batch is not among them.
///
/// # Errors
///
/// [`BrokenPromise`] if it is not kept.
pub fn check_recent_writes<S: JournalStore>(open: &impl Fn() -> Result<S, StoreError>) -> Checked {
    let store = open()?;
    let epoch = take(&store)?;
    let spaces = [Space::History, Space::Procedures, Space::Keys, user("ledger")];
    for number in 1..=6_u8 {
        commit(&store, epoch, number.into(), |batch| {
            for space in &spaces {
                batch.put(space.clone(), &[number], &[number]);
                batch.put(space.clone(), &[number, 0], b"1");
                batch.put(space.clone(), &[number, 0], &[number]);
                batch.put(space.clone(), &[9], &[number]);
                batch.delete(space.clone(), &[number - 1, 0]);
            }
        })?;
        spaces.iter().try_for_each(|space| check_recent(&store, space))?;
    }
    let large = vec![7; RECENT_BYTES / 3];
    for number in 7..=10_u8 {
        commit(&store, epoch, number.into(), |batch| {
            batch.put(Space::History, &[number], &large);
        })?;
        check_recent(&store, &Space::History)?;
    }
    let mut refused = batch(epoch, 11);
    refused.put(Space::History, &[1], b"refused");
    refused.delete(Space::History, &[2]);
    refused.put(Space::Keys, &vec![b'k'; store.bounds().key + 1], b"refused");
    hold(
        block_on(store.append(refused)).is_err(),
        "a batch with a key over the bound is refused",
    )?;
    spaces.iter().try_for_each(|space| check_recent(&store, space))?;
    drop(store);
    let store = open()?;
    spaces.iter().try_for_each(|space| check_recent(&store, space))
}

/// Compares recent writes of some ranges with what reads say, several times, since a store may be unable to tell each time.
fn check_recent<S: JournalStore>(store: &S, space: &Space) -> Checked {
    let ranges: [Range<'_>; 7] = [
        (&[], None, usize::MAX),
        (&[2], Some(&[4]), usize::MAX),
        (&[2, 0], None, 2),
        (&[], Some(&[3]), 4),
        (&[], None, 0),
        (&[4], Some(&[4]), 8),
        (&[4], Some(&[2]), 8),
    ];
    for (from, to, limit) in ranges.into_iter().cycle().take(8 * ranges.len()) {
        let scan = Scan {
            space: space.clone(),
            from: from.to_vec(),
            to: to.map(<[u8]>::to_vec),
            limit,
        };
        let Some(writes) = store.recent_writes(&scan) else {
            continue;
        };
        hold(
            writes.is_sorted_by(|(one, _), (next, _)| one < next),
            "recent writes are in the order of the keys, each key once",
        )?;
        let is_within = |key: &[u8]| key >= from && to.is_none_or(|to| key < to);
        hold(
            writes.len() <= limit && writes.iter().all(|(key, _)| is_within(key)),
            "recent writes are within the range, and no more than the limit",
        )?;
        let sizes = writes
            .iter()
            .map(|(key, value)| key.len() + value.as_ref().map_or(0, Vec::len));
        hold(
            sizes.sum::<usize>() <= RECENT_BYTES,
            "recent writes have no more bytes than a store may return",
        )?;
        for (key, value) in writes {
            let read = block_on(store.get(space.clone(), key))?;
            hold(
                read == value,
                "a recent write is the newest of its key with a receipt, and without a value it is a delete",
            )?;
        }
    }
    Ok(())
}

/// Checks that user keyspaces are created by their first write, under any name of up to 100 bytes.
///
/// # Errors
///
/// [`BrokenPromise`] if it is not kept.
pub fn check_user_spaces<S: JournalStore>(open: &impl Fn() -> Result<S, StoreError>) -> Checked {
    let long = "n".repeat(100);
    let names = [
        "a",
        "meta",
        "user.a",
        "with space/and\\slash",
        "../up",
        "żółw",
        long.as_str(),
    ];
    let store = open()?;
    let epoch = take(&store)?;
    for name in names {
        hold(
            all(&store, user(name))?.is_empty(),
            "a user keyspace that was never written is empty",
        )?;
        let found = block_on(store.get(user(name), b"k".to_vec()))?;
        hold(found.is_none(), "a user keyspace that was never written has no values")?;
    }
    for (name, number) in names.into_iter().zip(1..) {
        commit(&store, epoch, number, |batch| {
            batch.put(user(name), b"k", name.as_bytes());
            batch.put(user(name), &number.to_be_bytes(), &[]);
        })?;
    }
    let check_names = |store: &S| -> Checked {
        for name in names {
            let value = block_on(store.get(user(name), b"k".to_vec()))?;
            hold(
                value.as_deref() == Some(name.as_bytes()),
                &format!("the user keyspace \"{name}\" keeps its own values"),
            )?;
            hold(
                all(store, user(name))?.len() == 2,
                &format!("the user keyspace \"{name}\" is apart from all others"),
            )?;
        }
        Ok(())
    };
    check_names(&store)?;
    drop(store);
    check_names(&open()?)
}

/// Checks that each owner gets a higher epoch than any before, also after a restart; the first batch may be empty.
///
/// # Errors
///
/// [`BrokenPromise`] if it is not kept.
pub fn check_epochs<S: JournalStore>(open: &impl Fn() -> Result<S, StoreError>) -> Checked {
    let mut last = Epoch::default();
    for _ in 0..3 {
        let store = open()?;
        let epoch = block_on(store.acquire())?;
        hold(epoch > last, "each owner gets a higher epoch than those before it")?;
        commit(&store, epoch, 0, |_| {})?;
        block_on(store.renew(epoch))?;
        block_on(store.release(epoch))?;
        last = epoch;
    }
    Ok(())
}

/// Checks that once a newer epoch was acquired, an older one is fenced and leaves nothing.
///
/// # Errors
///
/// [`BrokenPromise`] if it is not kept.
pub fn check_fencing<S: JournalStore>(open: &impl Fn() -> Result<S, StoreError>) -> Checked {
    let store = open()?;
    let old = take(&store)?;
    commit(&store, old, 1, |batch| batch.put(Space::Keys, b"old", b"1"))?;
    let new = block_on(store.acquire())?;
    hold(new > old, "a new owner gets a higher epoch than the previous one")?;
    // The old owner must be fenced before the new owner has written anything.
    check_fenced(&store, old, new)?;
    commit(&store, new, 2, |batch| batch.put(Space::Keys, b"new", b"1"))?;
    check_fenced(&store, old, new)?;
    let renewed = block_on(store.renew(old));
    hold(
        matches!(renewed, Err(AppendError::Fenced { .. })),
        "an owner that was followed cannot renew",
    )?;
    commit(&store, new, 3, |batch| batch.put(Space::Keys, b"new", b"2"))?;
    drop(store);
    let keys: Vec<Vec<u8>> = all(&open()?, Space::Keys)?.into_iter().map(|(key, _)| key).collect();
    hold(
        keys == [b"new".to_vec(), b"old".to_vec()],
        "a fenced batch leaves nothing",
    )
}

fn check_fenced<S: JournalStore>(store: &S, old: Epoch, new: Epoch) -> Checked {
    let mut late = batch(old, 3);
    late.put(Space::Keys, b"late", b"1");
    let answer = block_on(store.append(late));
    hold(
        matches!(answer, Err(AppendError::Fenced { newer }) if newer == new),
        "a batch of an older epoch is answered Fenced with the newer one, from its acquire on",
    )
}

/// Checks that epochs may be skipped, since an owner may die before it writes. The next owner continues behind the
/// newest batch.
///
/// # Errors
///
/// [`BrokenPromise`] if it is not kept.
pub fn check_skipped_epochs<S: JournalStore>(open: &impl Fn() -> Result<S, StoreError>) -> Checked {
    let store = open()?;
    let first = take(&store)?;
    commit(&store, first, 7, |batch| batch.put(Space::Keys, b"k", b"v"))?;
    let silent = block_on(store.acquire())?;
    let head = Some(Head {
        epoch: first,
        seq: Seq(7),
    });
    hold(
        block_on(store.head())? == head,
        "an owner that has not written is not where the journal stands",
    )?;
    let next = block_on(store.acquire())?;
    hold(next > silent, "an epoch that never wrote is not given out twice")?;
    commit(&store, next, 8, |batch| batch.put(Space::Keys, b"k", b"w"))?;
    drop(store);
    let store = open()?;
    let head = Some(Head {
        epoch: next,
        seq: Seq(8),
    });
    hold(
        block_on(store.head())? == head,
        "the owner after a skipped epoch continues behind the newest batch",
    )?;
    hold(
        block_on(store.acquire())? > next,
        "each owner gets a higher epoch than those before it",
    )
}

/// Checks that the head is the last batch with a receipt, and that reading it neither writes nor takes ownership.
///
/// # Errors
///
/// [`BrokenPromise`] if it is not kept.
pub fn check_head<S: JournalStore>(open: &impl Fn() -> Result<S, StoreError>) -> Checked {
    let store = open()?;
    hold(block_on(store.head())?.is_none(), "a new journal has no head")?;
    let epoch = block_on(store.acquire())?;
    hold(
        block_on(store.head())?.is_none(),
        "an epoch that never wrote is no head",
    )?;
    for number in [3, 4, 9] {
        commit(&store, epoch, number, |batch| batch.put(Space::Keys, b"k", b"v"))?;
        let seq = Seq(number);
        hold(
            block_on(store.head())? == Some(Head { epoch, seq }),
            "the head is the last batch with a receipt",
        )?;
    }
    drop(store);
    let seq = Seq(9);
    hold(
        block_on(open()?.head())? == Some(Head { epoch, seq }),
        "the head is known after a restart",
    )
}

/// Checks that after a failed append no other succeeds, and that acknowledged data can still be read. The store must
/// be one whose second commit fails.
///
/// # Errors
///
/// [`BrokenPromise`] if it is not kept.
pub fn check_failure_is_final<S: JournalStore>(store: &S) -> Checked {
    let epoch = block_on(store.acquire())?;
    commit(store, epoch, 1, |batch| batch.put(Space::Keys, b"kept", b"1"))?;
    for number in 2..=4 {
        let mut batch = batch(epoch, number);
        batch.put(Space::Keys, b"lost", b"1");
        let answer = block_on(store.append(batch));
        let has_failed = matches!(answer, Err(AppendError::Failed(_) | AppendError::Unknown(_)));
        hold(
            has_failed,
            "after a failed append, no later one of the same epoch succeeds",
        )?;
    }
    let head = block_on(store.head());
    hold(
        !matches!(head, Ok(Some(Head { seq, .. })) if seq > Seq(1)),
        "a failed batch is not given as the last one",
    )?;
    let keys: Vec<Vec<u8>> = all(store, Space::Keys)?.into_iter().map(|(key, _)| key).collect();
    hold(
        keys == [b"kept".to_vec()],
        "reads show what was acknowledged, and nothing of what failed",
    )
}

/// First key, end, and limit.
type Range<'a> = (&'a [u8], Option<&'a [u8]>, usize);

/// First key, end, limit, and the keys expected.
type ScanCase<'a> = (&'a [u8], Option<&'a [u8]>, usize, &'a [&'a [u8]]);

fn hold(is_kept: bool, promise: &str) -> Checked {
    if is_kept {
        Ok(())
    } else {
        Err(BrokenPromise(promise.to_owned()))
    }
}

fn user(name: &str) -> Space {
    Space::User(Key::from(name))
}

fn batch(epoch: Epoch, number: u64) -> Batch {
    let mut batch = Batch::new(epoch);
    batch.advance_to(Seq(number));
    batch
}

fn take<S: JournalStore>(store: &S) -> Result<Epoch, BrokenPromise> {
    let epoch = block_on(store.acquire())?;
    commit(store, epoch, 0, |_| {})?;
    Ok(epoch)
}

fn commit<S: JournalStore>(
    store: &S,
    epoch: Epoch,
    number: u64,
    fill: impl FnOnce(&mut Batch),
) -> Result<Receipt, BrokenPromise> {
    let mut batch = batch(epoch, number);
    fill(&mut batch);
    Ok(block_on(store.append(batch))?)
}

fn scan<S: JournalStore>(
    store: &S,
    space: Space,
    from: &[u8],
    to: Option<&[u8]>,
    limit: usize,
) -> Result<Entries, BrokenPromise> {
    let scan = Scan {
        space,
        from: from.to_vec(),
        to: to.map(<[u8]>::to_vec),
        limit,
    };
    Ok(block_on(store.scan(scan))?)
}

fn all<S: JournalStore>(store: &S, space: Space) -> Result<Entries, BrokenPromise> {
    scan(store, space, &[], None, usize::MAX)
}
