//! What the scenarios of locks share: looking at owners, and clients that are told apart.

use std::future::IntoFuture;

use procession::status::{Epoch, Status, WaitReason};
use procession::testkit::{Run, Trouble};
use procession::{Handle, Procedure, ProcedureId};

use crate::support::{Act, Call, Lab, Plan, Tested, is_pure_here};

/// Submits with a key: the same handle after every restart.
pub(crate) async fn submit<P: Procedure>(run: &Run, procedure: P, key: &str) -> Result<Handle<P>, Trouble> {
    Ok(run
        .wait(run.executor.submit(procedure).key(key).into_future())
        .await??)
}

/// Waits, in its body, until the gate of this name is open; then does the other.
pub(crate) fn held(gate: &str, then: Act) -> Act {
    Act::Held(gate.to_owned(), Box::new(then))
}

/// Tells whether no crash came before.
pub(crate) async fn is_first_life(run: &Run) -> Result<bool, Trouble> {
    Ok(run.executor.snapshot().await?.epoch == Epoch(1))
}

pub(crate) async fn at_rest(run: &Run, id: ProcedureId) -> Result<Status, Trouble> {
    run.settle().await;
    Ok(run.executor.status(id).await?)
}

/// Returns those who hold this very path, by id.
pub(crate) async fn owners(run: &Run, path: &str) -> Result<Vec<ProcedureId>, Trouble> {
    let locks = run.executor.locks().await?;
    let of_path = locks.into_iter().filter(|lock| lock.path.as_str() == path);
    Ok(of_path.flat_map(|lock| lock.holders).map(|(id, _)| id).collect())
}

/// Returns those who wait for this very path, in the order of service.
pub(crate) async fn waiters(run: &Run, path: &str) -> Result<Vec<ProcedureId>, Trouble> {
    let locks = run.executor.locks().await?;
    let of_path = locks.into_iter().filter(|lock| lock.path.as_str() == path);
    Ok(of_path.flat_map(|lock| lock.waiting).collect())
}

/// The reason of one that waits for this path.
pub(crate) fn for_lock(path: &str) -> Option<WaitReason> {
    Some(WaitReason::Lock(procession::limits::LockPath::parse(path)))
}

/// Nothing is held, nobody waits, nothing was lost on the way.
pub(crate) async fn nothing_is_left(run: &Run) -> Tested {
    run.settle().await;
    let locks = run.executor.locks().await?;
    assert!(locks.is_empty(), "{locks:?}");
    for limit in run.executor.limits().await? {
        assert_eq!((limit.used, limit.waiting), (0, 0), "{limit:?}");
    }
    let snapshot = run.executor.snapshot().await?;
    assert_eq!((snapshot.live_families, snapshot.lost_wakes), (0, 0));
    Ok(())
}

/// Returns the place of the first call of a body, and of its last.
fn span(calls: &[Call], body: &str) -> Option<(usize, usize)> {
    let first = calls.iter().position(|call| call.short() == body)?;
    let last = calls.iter().rposition(|call| call.short() == body)?;
    Some((first, last))
}

/// No call of the second came before the last of the first. Where stages run ahead of the disk, a crash takes back both,
/// so this holds of each life by itself.
pub(crate) fn is_after(lab: &Lab, first: &str, second: &str) {
    let calls = lab.calls();
    let (Some(ended), Some(begun)) = (span(&calls, first), span(&calls, second)) else {
        panic!("{first} and {second} both ran: {}", lab.line());
    };
    let ((_, mut last), (mut begun, _)) = (ended, begun);
    if is_pure_here() {
        let of_life = lab.calls_of_life();
        let (Some(ended), Some(begins)) = (span(&of_life, first), span(&of_life, second)) else {
            return;
        };
        (last, begun) = (ended.1, begins.0);
    }
    assert!(last < begun, "{second} came before the end of {first}: {}", lab.line());
}

/// One stage, exclusive on this path, held open by the gate of its name.
pub(crate) fn holder(name: &str, path: &str) -> Plan {
    crate::support::plan(name, [held(name, Act::Done(7))]).exclusive(path)
}
