//! Hooks of recovery: `before_recover` and `after_recover` of each unfinished
//! procedure of a kind that wants them, on the workers, a bounded number at
//! once, all of them before the first stage or undo. A family of which one
//! fails is quarantined for this start; the others go on.

use std::sync::Arc;

use futures::{StreamExt, TryStreamExt};
use procession_kernel::{Blob, Kind, ProcedureId};
use tokio::sync::oneshot;

use super::Supervisor;
use crate::error::StoreError;
use crate::hooks::Moment;
use crate::journal::Reader;
use crate::journal::keys::PAYLOAD;
use crate::registry::Registry;

/// Hooks under way at once, as many as revivals.
const AT_ONCE: usize = 32;

/// Whose hook is called.
struct Hooked {
    id: ProcedureId,
    kind: Kind,
    version: u16,
}

/// Families to quarantine, each with its reason.
pub(super) type Failed = Vec<(u64, String)>;

/// Why a hook counts as failed, or the start as a whole.
enum HookError {
    /// The store did not give the procedure's value; that says nothing about the procedure.
    Store(StoreError),
    /// The family cannot go on in this start.
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

impl Supervisor {
    /// Calls the hooks of this moment. Without a kind that wants them it looks at nothing.
    pub(super) fn call_recovery_hooks(
        &mut self,
        moment: Moment,
    ) -> impl Future<Output = Result<Failed, StoreError>> + use<> {
        let mut calls = Vec::new();
        if self.registry.has_recovery_hooks() {
            let mut hooked = Vec::new();
            for (_, family) in self.kernel.families().iter() {
                let members = family.members.iter();
                let wanted = members.filter(|row| !row.is_ended() && self.registry.wants_recovery_hooks(&row.kind));
                hooked.extend(wanted.map(|row| Hooked {
                    id: row.id,
                    kind: row.kind.clone(),
                    version: row.version,
                }));
            }
            for hooked in hooked {
                let worker = self.dispatch.next_worker().cloned();
                calls.push((hooked, worker));
            }
        }
        let (reader, registry) = (self.reader.clone(), Arc::clone(&self.registry));
        let call = move |(hooked, worker): (Hooked, Option<actix::ArbiterHandle>)| {
            let (reader, registry) = (reader.clone(), Arc::clone(&registry));
            async move {
                let family = hooked.id.family;
                let named = format!("{} of {}", moment.hook(), hooked.id);
                match call(reader, registry, worker, hooked, moment).await {
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

    /// Quarantines families for this start, each once.
    pub(super) fn quarantine_failed(&mut self, failed: Failed) {
        for (family, why) in failed {
            let Some(found) = self.kernel.families().get(&family) else {
                continue;
            };
            let unfinished = found.members.iter().filter(|row| !row.is_ended()).count();
            self.report.families -= 1;
            self.report.procedures -= unfinished;
            self.report.quarantined.push((family, why.clone()));
            self.enter_quarantine(family, why);
        }
    }
}

async fn call(
    reader: Reader,
    registry: Arc<Registry>,
    worker: Option<actix::ArbiterHandle>,
    hooked: Hooked,
    moment: Moment,
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
                Ok(mut revived) => revived.recover(moment).await,
                Err(why) => Err(why),
            };
            // The start that asked may have been given up.
            sender.send(called).ok();
        });
    };
    if !worker.is_some_and(|worker| worker.spawn_fn(work)) {
        return Err("there is no worker to run it".to_owned().into());
    }
    let called = receiver.await;
    Ok(called.unwrap_or_else(|_| Err("the worker ended while it ran".to_owned()))?)
}
