//! What the process has: its threads and its open descriptors, as the system lists them.

use std::collections::BTreeMap;
use std::future::Future;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use procession::provider::{Clock, SystemClock};

use crate::Outcome;

/// How long what has ended may take to leave the system's lists. Only a failing test waits so long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

static ALONE: Mutex<()> = Mutex::new(());

/// Lets one test at a time count.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a test in a system whose runtime keeps no idle thread: what is left is the engine's.
pub(crate) fn in_system<T>(test: impl Future<Output = Outcome<T>>) -> Outcome<T> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder
        .enable_all()
        .thread_keep_alive(Duration::from_millis(1))
        .build()?;
    actix_rt::System::with_tokio_rt(|| runtime).block_on(test)
}

/// What there is of the process at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Census {
    pub(crate) threads: BTreeMap<String, usize>,
    descriptors: BTreeMap<String, usize>,
}

impl Census {
    pub(crate) fn take() -> Outcome<Self> {
        let (mut threads, mut descriptors) = (BTreeMap::new(), BTreeMap::new());
        for task in std::fs::read_dir("/proc/self/task")? {
            // One that ends between the list and the look has ended.
            let name = std::fs::read_to_string(task?.path().join("comm")).unwrap_or_default();
            // The harness names a thread after the test that waits for its turn on it.
            if !name.is_empty() && !name.contains("::") {
                *threads.entry(name.trim().to_owned()).or_default() += 1;
            }
        }
        for entry in std::fs::read_dir("/proc/self/fd")? {
            let target = std::fs::read_link(entry?.path()).unwrap_or_else(|_| PathBuf::new());
            // The list itself, and files by name: numbers of pipes and sockets differ.
            let target = target.to_string_lossy().into_owned();
            let target = target.split(':').next().unwrap_or_default().to_owned();
            if !target.is_empty() && !target.ends_with("/fd") {
                *descriptors.entry(target).or_default() += 1;
            }
        }
        Ok(Self { threads, descriptors })
    }

    /// Waits until nothing is there that was not there at this census.
    pub(crate) async fn is_all_there_is(&self) -> Outcome {
        self.until(Self::is_within).await
    }

    /// Waits until it is so of what there is, beside this census.
    pub(crate) async fn until(&self, is_within: impl Fn(&Self, &Self) -> bool) -> Outcome {
        let clock = SystemClock;
        let is_so = async {
            while !is_within(&Self::take()?, self) {
                clock.sleep_until(clock.now().after(Duration::from_millis(1))).await;
            }
            Ok(())
        };
        match tokio::time::timeout(PATIENCE, is_so).await {
            Ok(is_so) => is_so,
            Err(_) => Err(format!(
                "more is left than there was.\nbefore {self:?}\n   now {:?}",
                Self::take()?
            )
            .into()),
        }
    }

    pub(crate) fn is_within(&self, before: &Self) -> bool {
        let within = |now: &BTreeMap<String, usize>, before: &BTreeMap<String, usize>| {
            now.iter()
                .all(|(name, count)| *count <= before.get(name).copied().unwrap_or_default())
        };
        within(&self.threads, &before.threads) && within(&self.descriptors, &before.descriptors)
    }
}
