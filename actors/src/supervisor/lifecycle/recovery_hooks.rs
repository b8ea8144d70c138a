//! Recovery hooks: `before_recover` and `after_recover` of each unfinished procedure whose kind has them. They are
//! user code, so they run on the workers, a bounded number at once. All of them run before the first stage or undo.
//! If a hook fails, its procedure's family is quarantined for this start; the others continue.

use std::sync::Arc;

use actix::ArbiterHandle;
use futures::{StreamExt, TryStreamExt};
use procession_kernel::{Blob, Kernel, Kind, ProcedureId};
use tokio::sync::oneshot;

use crate::error::StoreError;
use crate::hooks::HookPoint;
use crate::journal::Reader;
use crate::journal::keys::PAYLOAD;
use crate::registry::Registry;

/// Hooks under way at once, as many as revivals.
const AT_ONCE: usize = 32;

/// A procedure whose hooks are called.
pub(in crate::supervisor) struct Hooked {
    id: ProcedureId,
    kind: Kind,
    version: u16,
}

/// Families to quarantine, each with its reason.
pub(in crate::supervisor) type Failed = Vec<(u64, String)>;

/// Why a hook failed, or the start as a whole.
enum HookError {
    /// The store did not return the procedure's value, which says nothing about the procedure.
    Store(StoreError),
    /// The family cannot continue in this start.
    Family(String),
}

impl From<String> for HookError {
    fn from(why: String) -> Self {
        Self::Family(why)
    }
}

impl From<StoreError> for HookError {
    fn from(error: StoreError) -> Self {
        if error.may_pass() {
            Self::Store(error)
        } else {
            Self::Family(error.to_string())
        }
    }
}

/// Returns the unfinished procedures of kinds that have a hook at this point. If no kind has any, no row is looked at.
pub(in crate::supervisor) fn wanted(kernel: &Kernel, registry: &Registry, point: HookPoint) -> Vec<Hooked> {
    let mut wanted = Vec::new();
    if !registry.has_recovery_hooks(point) {
        return wanted;
    }
    for (_, family) in kernel.families().iter() {
        let members = family.members.iter();
        let hooked = members.filter(|row| !row.is_ended() && registry.hooks(&row.kind).recovers(point));
        wanted.extend(hooked.map(|row| Hooked {
            id: row.id,
            kind: row.kind.clone(),
            version: row.version,
        }));
    }
    wanted
}

/// Calls the hooks of this point, each on the worker given with it. Returns the families with a failed hook.
///
/// # Errors
///
/// [`StoreError`] if the store did not answer, which says nothing about any family.
pub(in crate::supervisor) fn call_all(
    calls: Vec<(Hooked, Option<ArbiterHandle>)>,
    point: HookPoint,
    reader: Reader,
    registry: Arc<Registry>,
) -> impl Future<Output = Result<Failed, StoreError>> {
    let call = move |(hooked, worker): (Hooked, Option<ArbiterHandle>)| {
        let (reader, registry) = (reader.clone(), Arc::clone(&registry));
        async move {
            let family = hooked.id.family;
            let named = format!("{} of {}", point.hook(), hooked.id);
            match call(reader, registry, worker, hooked, point).await {
                Ok(()) => Ok(None),
                Err(HookError::Family(why)) => Ok(Some((family, format!("{named}: {why}")))),
                Err(HookError::Store(error)) => Err(error),
            }
        }
    };
    futures::stream::iter(calls)
        .map(call)
        .buffer_unordered(AT_ONCE)
        .try_filter_map(|failed| std::future::ready(Ok(failed)))
        .try_collect()
}

async fn call(
    reader: Reader,
    registry: Arc<Registry>,
    worker: Option<ArbiterHandle>,
    hooked: Hooked,
    point: HookPoint,
) -> Result<(), HookError> {
    let payload = reader
        .payload(hooked.id, PAYLOAD)
        .await?
        .map(Blob::from)
        .ok_or_else(|| "its payload is missing".to_owned())?;
    let (sender, receiver) = oneshot::channel();
    let work = move || {
        actix_rt::spawn(async move {
            let called = match registry.revive(&hooked.kind, &payload, hooked.version) {
                Ok(mut revived) => revived.recover(point).await,
                Err(why) => Err(why),
            };
            // The start that asked may have been abandoned.
            sender.send(called).ok();
        });
    };
    if !worker.is_some_and(|worker| worker.spawn_fn(work)) {
        return Err("there is no worker to run it".to_owned().into());
    }
    let called = receiver.await;
    Ok(called.unwrap_or_else(|_| Err("the worker ended while it ran".to_owned()))?)
}
