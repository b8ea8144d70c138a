//! The promises of a closed store.

use futures::executor::block_on;
use procession_kernel::Epoch;

use super::{Checked, all, batch, commit, hold, take};
use crate::error::StoreError;
use crate::journal::keys::Space;
use crate::journal::store::{JournalStore, Scan};

/// Checks that a closed store answers everything with an error that says so. Its place can be opened again while
/// references to the closed store exist.
///
/// # Errors
///
/// [`BrokenPromise`](super::BrokenPromise) if it is not kept.
pub fn check_close<S: JournalStore>(open: &impl Fn() -> Result<S, StoreError>) -> Checked {
    // A store that was never acquired can be closed, too.
    let idle = open()?;
    block_on(idle.close());
    let store = open()?;
    let epoch = take(&store)?;
    commit(&store, epoch, 1, |batch| batch.put(Space::Keys, b"kept", b"1"))?;
    let mut under_way = batch(epoch, 2);
    under_way.put(Space::Keys, b"late", b"1");
    let under_way = store.append(under_way);
    block_on(store.close());
    block_on(store.close());
    let is_committed = block_on(under_way).is_ok();
    check_closed(&store, epoch)?;
    let next = open()?;
    let keys = all(&next, Space::Keys)?.into_iter().map(|(key, _)| key);
    let expected = [Some(b"kept".to_vec()), is_committed.then(|| b"late".to_vec())];
    hold(
        keys.eq(expected.into_iter().flatten()),
        "what was acknowledged before a close is there, and nothing of what was refused",
    )?;
    take(&next)?;
    drop((idle, store));
    let key = block_on(next.get(Space::Keys, b"kept".to_vec()))?;
    hold(
        key.is_some(),
        "a store that was closed before leaves the next one alone when it is dropped",
    )
}

fn check_closed<S: JournalStore>(store: &S, epoch: Epoch) -> Checked {
    let mut late = batch(epoch, 3);
    late.put(Space::Keys, b"later", b"1");
    let whole = Scan {
        space: Space::Keys,
        from: Vec::new(),
        to: None,
        limit: 1,
    };
    hold(
        store.recent_writes(&whole).is_none(),
        "a closed store reports no recent writes",
    )?;
    let answers = [
        ("acquire", block_on(store.acquire()).map(drop).map_err(text)),
        ("renew", block_on(store.renew(epoch)).map_err(text)),
        ("release", block_on(store.release(epoch)).map_err(text)),
        ("append", block_on(store.append(late)).map(drop).map_err(text)),
        ("head", block_on(store.head()).map(drop).map_err(text)),
        (
            "get",
            block_on(store.get(Space::Keys, b"kept".to_vec()))
                .map(drop)
                .map_err(text),
        ),
        ("scan", block_on(store.scan(whole)).map(drop).map_err(text)),
    ];
    for (call, answer) in answers {
        hold(
            answer.as_ref().is_err_and(|why| why.contains("closed")),
            &format!("after a close, {call} is answered with an error that says so, not with {answer:?}"),
        )?;
    }
    // They may do nothing or return `None`, but must not panic.
    store.settle();
    store.size_bytes();
    store.disk_room();
    store.sync_times();
    Ok(())
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
