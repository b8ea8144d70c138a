//! How an engine is set up: a place for the journal, kinds, limits, bounds.

#[cfg(any(feature = "flow", feature = "saga"))]
use std::any::Any;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

#[cfg(any(feature = "flow", feature = "saga"))]
use futures::future::BoxFuture;
use procession_actors::clock::Clock;
use procession_actors::journal::{EmbeddedStore, JournalStore, SyncMode};
use procession_actors::offline::{Importer, Offline};
use procession_actors::{
    Engine, GLOBAL_LIMIT, KindSettings, Placement, Procedure, Registry, Settings, StartError, StoreError, Thresholds,
};
use procession_kernel::{Kind, Limit, LimitKey};

use super::{EngineLink, Executor, JournalPlace};
use crate::bulk::{Bulk, BulkEngine};

/// The file of the charts in a journal's directory.
const CHARTS: &str = "charts";

/// What a module above the builder does at the start: it registers kinds whose environment is known only then.
#[cfg(any(feature = "flow", feature = "saga"))]
pub(crate) trait AtStart: Any + Send {
    /// Reads what it needs of the store, before there is an engine.
    fn open<'a>(&'a mut self, store: &'a dyn JournalStore) -> BoxFuture<'a, Result<(), StoreError>> {
        let _ = store;
        Box::pin(async { Ok(()) })
    }

    /// Registers kinds. Values may have this many bytes.
    fn register(&mut self, registry: &mut Registry, link: EngineLink, max_payload: usize);

    /// Does what is to be done before anybody has the executor.
    fn started<'a>(&'a self, executor: &'a Executor) -> BoxFuture<'a, ()> {
        let _ = executor;
        Box::pin(async {})
    }
}

/// Settings of an engine that is not started yet.
pub struct Builder {
    place: JournalPlace,
    sync: SyncMode,
    checkpoint_bytes: usize,
    registry: Registry,
    settings: Settings,
    /// The way to the engine, for kinds that need it.
    link: EngineLink,
    /// What is registered at the start, when all is known.
    #[cfg(any(feature = "flow", feature = "saga"))]
    at_start: Vec<Box<dyn AtStart>>,
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("journal", &self.place)
            .field("sync", &self.sync)
            .field("placement", &self.settings.placement)
            .field("limits", &self.settings.limits)
            .finish_non_exhaustive()
    }
}

impl Builder {
    pub(super) fn new(place: JournalPlace) -> Self {
        Self {
            place,
            sync: SyncMode::Data,
            checkpoint_bytes: EmbeddedStore::CHECKPOINT_BYTES,
            registry: Registry::default(),
            settings: Settings::default(),
            link: EngineLink::default(),
            #[cfg(any(feature = "flow", feature = "saga"))]
            at_start: Vec::new(),
        }
    }

    #[cfg(feature = "flow")]
    pub(crate) fn link(&self) -> EngineLink {
        self.link.clone()
    }

    /// Changes what a module above keeps here until the start.
    #[cfg(any(feature = "flow", feature = "saga"))]
    pub(crate) fn at_start<T: AtStart + Default>(&mut self, change: impl FnOnce(&mut T)) {
        let mut kept = self.at_start.iter_mut().filter_map(|kept| {
            let kept: &mut dyn Any = &mut **kept;
            kept.downcast_mut::<T>()
        });
        if let Some(kept) = kept.next() {
            return change(kept);
        }
        let mut kept = T::default();
        change(&mut kept);
        self.at_start.push(Box::new(kept));
    }

    /// Registers a kind, with the environment that its stages get.
    #[must_use]
    pub fn register<P: Procedure>(mut self, env: P::Env) -> Self {
        self.registry.register::<P>(env);
        self
    }

    /// Registers a type under another name than its [`KIND`](Procedure::KIND), with settings and an environment of that
    /// kind's own. Values run as the kind that their [`Procedure::kind`] returns, so one type serves several kinds,
    /// each with its own limit, pause, metrics and policies. At most 1,000 kinds may be registered.
    ///
    /// ```
    /// # use procession::procedure::{Kind, KindSettings, RetryPolicy};
    /// # use procession::{Executor, Procedure, StageContext, StageError, Step};
    /// # use serde::{Deserialize, Serialize};
    /// # #[derive(Serialize, Deserialize)]
    /// # struct Export { tenant: String }
    /// # impl Procedure for Export {
    /// #     const KIND: &'static str = "export";
    /// #     type Stage = ();
    /// #     type Env = ();
    /// #     type Output = ();
    /// #     fn kind(&self) -> Kind { Kind::from(format!("export.{}", self.tenant)) }
    /// #     fn first(&self) {}
    /// #     async fn execute(&mut self, _: (), _: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
    /// #         Ok(Step::Done(()))
    /// #     }
    /// # }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("journal");
    /// # actix_rt::System::new().block_on(async {
    /// let patient = KindSettings::default().retry(RetryPolicy::default().attempts(10));
    /// let executor = Executor::builder(path)
    ///     .register_as::<Export>("export.small", KindSettings::default(), ())
    ///     .register_as::<Export>("export.large", patient, ())
    ///     .limit("export.large", 2)
    ///     .start()
    ///     .await?;
    /// executor.submit(Export { tenant: "large".to_owned() }).await?.await?;
    /// // Its kind is not registered.
    /// assert!(executor.submit(Export { tenant: "other".to_owned() }).await.is_err());
    /// # Ok(())
    /// # })
    /// # }
    /// ```
    #[must_use]
    pub fn register_as<P: Procedure>(mut self, kind: impl Into<Kind>, settings: KindSettings, env: P::Env) -> Self {
        self.registry.register_as::<P>(kind.into(), settings, env);
        self
    }

    /// Limits what has this name: procedures of a kind, procedures that name it with
    /// [`Procedure::limit`](crate::Procedure::limit), and stages that name it with
    /// [`Procedure::limits`](crate::Procedure::limits). A number lets at most so many run at once;
    /// [`Limit::per`] lets at most so many begin in a time. What was set at run time outlives this.
    ///
    /// A rate counts begins: admissions of procedures, and attempts of stages and undos. What began counts after a restart
    /// too. A period of less than 1 ms refuses to start.
    ///
    /// ```
    /// # use procession::limits::Limit;
    /// # use procession::Executor;
    /// # use std::time::Duration;
    /// # fn set_up(builder: procession::Builder) -> procession::Builder {
    /// builder
    ///     .limit("exports", 2)
    ///     .limit("mails", Limit::per(100, Duration::from_secs(60)))
    ///     .limit("cards", Limit::per(10, Duration::from_secs(1)).and_at_once(4))
    /// # }
    /// ```
    #[must_use]
    pub fn limit(mut self, key: &str, limit: impl Into<Limit>) -> Self {
        self.settings.limits.push((LimitKey::from(key), limit.into()));
        self
    }

    /// Lets at most this many procedures of all kinds together run at once,
    /// children that need no permit not counted.
    #[must_use]
    pub fn global_limit(self, limit: impl Into<Limit>) -> Self {
        self.limit(GLOBAL_LIMIT, limit)
    }

    /// Draws the jitter of backoffs from this number; by default from the store's own.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.settings.seed = seed;
        self
    }

    /// Lets pure stages run before the stages before them are on disk, as [`Procedure::is_pure`](crate::Procedure::is_pure)
    /// says. With `false` they wait for the disk as all others do, for example to find out whether something that a stage
    /// does is to blame. Default `true`.
    #[must_use]
    pub fn speculation(mut self, allowed: bool) -> Self {
        self.settings.speculation = allowed;
        self
    }

    /// Lets a worker run this many pure stages of a procedure one after the other before it reports them together, for a
    /// millisecond and the stage that it is in. They are one commit, so a crash takes back all of them. With 1 or 0 each stage
    /// is reported alone; more than 64 counts as 64. Default 64.
    #[must_use]
    pub fn run_length(mut self, stages: u32) -> Self {
        self.settings.run_length = stages;
        self
    }

    /// Runs user code on this many threads. Default: half of the processors.
    #[must_use]
    pub fn workers(mut self, workers: usize) -> Self {
        self.settings.placement = Placement::Threads(workers);
        self
    }

    /// Counts a worker as blocked once one call of user code has held its thread this long without awaiting. When half
    /// of the workers are blocked, one is added, and calls that have not begun move there. Default 5 s. The machine's time counts,
    /// not the engine's clock.
    #[must_use]
    pub fn blocked_after(mut self, time: Duration) -> Self {
        self.settings.blocked_after = time;
        self
    }

    /// Keeps a worker that was added for blocked ones this long after it is no longer needed. Default 60 s.
    #[must_use]
    pub fn worker_keep_alive(mut self, time: Duration) -> Self {
        self.settings.worker_keep_alive = time;
        self
    }

    /// Adds workers for blocked ones, up to this many in all. Default four times as many as
    /// [`workers`](Self::workers); as many as those add none.
    #[must_use]
    pub fn max_workers(mut self, workers: usize) -> Self {
        self.settings.max_workers = Some(workers);
        self
    }

    /// Sets how often a health check looks for what is stuck, on the engine's clock. With `None` one runs only when
    /// asked for. Default 10 s.
    #[must_use]
    pub fn health_check_every(mut self, time: Option<Duration>) -> Self {
        self.settings.health_check_every = time;
        self
    }

    /// Sets from when on a health check reports something as stuck. A kind has its own thresholds where
    /// [`Procedure::thresholds`] sets them.
    #[must_use]
    pub fn thresholds(mut self, thresholds: Thresholds) -> Self {
        self.settings.thresholds = thresholds;
        self
    }

    /// Keeps results this long after the end, and after they were acknowledged. Default 15 and 5 minutes, as HBase does;
    /// whichever comes first counts. Failures are kept longer: [`keep_failures`](Self::keep_failures). What has gone is unknown to every question: its output, its cause, its history, and
    /// its idempotency key, unless [`key_for`](super::Submission::key_for) keeps that longer. A kind may say otherwise:
    /// [`Procedure::keep_after_end`]. Copy what must outlast this into user data, in a stage.
    #[must_use]
    pub fn retention(mut self, after_end: Duration, after_acknowledgement: Duration) -> Self {
        self.settings.keep_after_end = after_end;
        self.settings.keep_after_acknowledgement = after_acknowledgement;
        self
    }

    /// Keeps the result of a root that failed or was rolled back this long after its end, so that people find it. Default
    /// 14 days. Acknowledging it takes it off the list of failures, and does not let it go sooner. A kind may say
    /// otherwise: [`Procedure::keep_after_failure`].
    #[must_use]
    pub fn keep_failures(mut self, after_end: Duration) -> Self {
        self.settings.keep_after_failure = after_end;
        self
    }

    /// Refuses payloads, outputs and signals over this many bytes. Default 1 MiB.
    #[must_use]
    pub fn max_payload(mut self, bytes: usize) -> Self {
        self.settings.bounds.payload = bytes;
        self
    }

    /// Refuses more children than this in one `Spawn`. Default 100,000.
    #[must_use]
    pub fn max_children(mut self, children: usize) -> Self {
        self.settings.bounds.children = children;
        self
    }

    /// Refuses families with more levels than this, the root included. Default 32.
    #[must_use]
    pub fn max_depth(mut self, depth: usize) -> Self {
        self.settings.bounds.depth = depth;
        self
    }

    /// Refuses signals to a procedure for which this many wait. Default 10,000.
    #[must_use]
    pub fn max_signals(mut self, signals: usize) -> Self {
        self.settings.bounds.signals = signals;
        self
    }

    /// Fails a stage, or an undo, that makes more writes of user data than this. Default 10,000.
    #[must_use]
    pub fn max_writes(mut self, writes: usize) -> Self {
        self.settings.bounds.writes = writes;
        self
    }

    /// Fails a stage, or an undo, that writes more bytes of user data than this, keys included. Default 32 MiB.
    #[must_use]
    pub fn max_write_bytes(mut self, bytes: usize) -> Self {
        self.settings.bounds.write_bytes = bytes;
        self
    }

    /// Fails a stage, or an undo, that writes to a new keyspace of user data when the store has this many. Default
    /// 256: each is a tree with files and memory of its own, so one for each tenant is one too many sooner or later;
    /// put the tenant into the key. Those that are there can be written whatever the bound.
    #[must_use]
    pub fn max_keyspaces(mut self, keyspaces: usize) -> Self {
        self.settings.bounds.keyspaces = keyspaces;
        self
    }

    /// Wakes at most this many waiters of a broadcast with one commit, and the others with later commits. Default 512:
    /// deciding on them takes a millisecond or two, during which everything else waits.
    #[must_use]
    pub fn wake_at_once(mut self, waiters: usize) -> Self {
        self.settings.bounds.wave = waiters;
        self
    }

    /// Answers `Busy` when this many requests wait for their commit. Default 10,000.
    #[must_use]
    pub fn max_queued(mut self, requests: usize) -> Self {
        self.settings.queued = requests;
        self
    }

    /// Answers `Busy` to submissions while this many procedures are awake. Default 200,000: at some 5.4 kB each
    /// that is a gibibyte.
    ///
    /// Awake are all that have not ended and do not wait for a time or an event alone; a family counts once,
    /// whatever it has below it. Those that wait alone take a twentieth of the memory, and any number of them may
    /// be parked. What is there already is never refused: a start, a broadcast and stages that have children or
    /// submit may bring more awake, and then submissions wait until enough has ended. One batch may go over it.
    #[must_use]
    pub fn max_awake(mut self, procedures: usize) -> Self {
        self.settings.awake = procedures;
        self
    }

    /// Refuses to start if a live procedure has no code, instead of quarantining its family. Default false.
    #[must_use]
    pub fn strict(mut self, strict: bool) -> Self {
        self.settings.strict = strict;
        self
    }

    /// Chooses when the journal in a directory syncs; a store of your own does so by itself. Default [`SyncMode::Data`]; anything less
    /// gives up durability, and is for measurements.
    #[must_use]
    pub fn sync(mut self, sync: SyncMode) -> Self {
        self.sync = sync;
        self
    }

    /// Sets at how many bytes of commits, their index in memory included, the journal puts the newest version of
    /// what they wrote into tables. Default 24 MiB; a store of your own has its own way. Fewer bytes take less memory and
    /// make a start faster. With more bytes, more values are overwritten before they are written out. Up to three times
    /// as many are kept meanwhile; then commits wait.
    #[must_use]
    pub fn checkpoint_at(mut self, bytes: usize) -> Self {
        self.checkpoint_bytes = bytes;
        self
    }

    /// Returns `true` if the engine will use this very store.
    #[cfg(feature = "testkit")]
    pub(crate) fn uses_store(&self, store: &Arc<dyn JournalStore>) -> bool {
        match &self.place {
            JournalPlace::Store(own) => std::ptr::addr_eq(Arc::as_ptr(own), Arc::as_ptr(store)),
            JournalPlace::Directory(_) => false,
        }
    }

    /// Keeps the figures of the charts in this file, so that they outlive the engine. Each engine needs a file of its own.
    /// Default: the file `charts` in the journal's directory; with a store of your own there is none, and the charts
    /// begin anew at each start.
    #[must_use]
    pub fn charts_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.settings.charts = Some(path.into());
        self
    }

    /// Uses this clock instead of the system's.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.settings.clock = clock;
        self
    }

    /// Runs all actors on the current thread, one commit a batch, without health checks
    /// of its own, so that simulated time comes to rest: for simulation.
    #[must_use]
    pub fn inline(mut self) -> Self {
        self.settings.placement = Placement::Inline;
        self.settings.health_check_every = None;
        self.settings.merge = 1;
        self.settings.in_flight = Some(1);
        self
    }

    /// Lets a test intercept the calls between the engine and user code.
    #[cfg(feature = "testkit")]
    pub(crate) fn interceptor(mut self, interceptor: Arc<dyn procession_actors::testkit::StageInterceptor>) -> Self {
        self.settings.interceptor = Some(interceptor);
        self
    }

    /// Merges at most this many commits into one batch. Default 4,096.
    #[must_use]
    pub fn merge(mut self, commits: usize) -> Self {
        self.settings.merge = commits;
        self
    }

    /// Hands at most this many batches to the journal before one is answered, 1 to 32. Default one more than the store
    /// likes to have under way, so 2 for the embedded store.
    #[must_use]
    pub fn in_flight(mut self, batches: usize) -> Self {
        self.settings.in_flight = Some(batches);
        self
    }

    /// Takes the journal, recovers what is in it, and starts the engine. Must be
    /// called inside an actix system, as `#[actix_rt::main]` makes one. The executor that it
    /// returns may go to any thread and any runtime, so a program on tokio alone gives the
    /// engine a thread of its own:
    ///
    /// ```
    /// use procession::procedure::Noop;
    /// use procession::Executor;
    /// use std::time::Duration;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    /// # let directory = tempfile::tempdir()?;
    /// let journal = directory.path().join("journal");
    /// let (started, executor) = std::sync::mpsc::channel();
    /// let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    /// let engine = std::thread::spawn(move || {
    ///     actix_rt::System::new().block_on(async move {
    ///         let builder = Executor::builder(journal).register::<Noop>(());
    ///         drop(started.send(builder.start().await));
    ///         stopped.await
    ///     })
    /// });
    /// let executor = executor.recv()??;
    /// let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    /// tokio.block_on(async {
    ///     executor.submit(Noop).await?.await?;
    ///     executor.drain(Duration::from_secs(10)).await?;
    ///     Ok::<_, Box<dyn std::error::Error + Send + Sync>>(())
    /// })?;
    /// stop.send(()).ok();
    /// engine.join().ok();
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`StartError`] if the journal is held by another engine, damaged, or
    /// written by a newer release, or if there is no actix system here; each says what to do.
    pub async fn start(mut self) -> Result<Executor, StartError> {
        if actix_rt::System::try_current().is_none() {
            return Err(StartError::NoSystem);
        }
        let store = match self.place {
            JournalPlace::Store(store) => store,
            JournalPlace::Directory(directory) => {
                let charts = directory.join(CHARTS);
                self.settings.charts.get_or_insert(charts);
                open(directory, self.sync, self.checkpoint_bytes).await?
            }
        };
        self.registry.register::<Bulk>(BulkEngine::new(self.link.clone()));
        #[cfg(any(feature = "flow", feature = "saga"))]
        for at_start in &mut self.at_start {
            at_start.open(&*store).await?;
            at_start.register(&mut self.registry, self.link.clone(), self.settings.bounds.payload);
        }
        let engine = Engine::start(store, self.registry, self.settings).await?;
        self.link.open(engine.supervisor());
        let executor = Executor::new(engine);
        #[cfg(any(feature = "flow", feature = "saga"))]
        for at_start in &self.at_start {
            at_start.started(&executor).await;
        }
        Ok(executor)
    }

    /// Opens the journal of an engine that does not run, for reading. It is held
    /// while it is read, and no epoch is taken.
    ///
    /// # Errors
    ///
    /// [`StartError`] if an engine holds it, if it is damaged or missing, or if it is in a store of your own: only the
    /// embedded journal is read offline.
    pub async fn offline(self) -> Result<Offline, StartError> {
        let JournalPlace::Directory(directory) = self.place else {
            let (place, why) = (
                "a store of your own",
                "only the embedded journal, in a directory, is read offline",
            );
            return Err(StartError::Store(StoreError::Io {
                place: place.to_owned(),
                why: why.to_owned(),
            }));
        };
        let opened = actix_rt::task::spawn_blocking(move || Offline::open(&directory)).await;
        Ok(opened.map_err(|error| StartError::Thread(error.to_string()))??)
    }

    /// Opens the journal of an engine that does not run, to put families into it that were
    /// exported. It is held until the value is dropped.
    ///
    /// ```
    /// use procession::operate::{OperatorRequest, PauseScope};
    /// use procession::Executor;
    /// # use procession::{Procedure, StageContext, StageError, Step};
    /// # use serde::{Deserialize, Serialize};
    /// # use std::time::Duration;
    /// # #[derive(Serialize, Deserialize)]
    /// # struct Greet(String);
    /// # impl Procedure for Greet {
    /// #     const KIND: &'static str = "greet";
    /// #     type Stage = bool;
    /// #     type Env = ();
    /// #     type Output = String;
    /// #     fn first(&self) -> bool { false }
    /// #     async fn execute(&mut self, late: bool, _: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
    /// #         if late { return Ok(Step::Done(format!("hello, {}", self.0))); }
    /// #         Ok(Step::Wait { event: "go".to_owned(), timeout: None, then: true })
    /// #     }
    /// # }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let root = tempfile::tempdir()?;
    /// # let (there, here) = (root.path().join("there"), root.path().join("here"));
    /// # actix_rt::System::new().block_on(async move {
    /// # let executor = Executor::builder(&there).register::<Greet>(()).start().await?;
    /// # let id = executor.submit(Greet("ann".into())).await?.id();
    /// # executor.drain(Duration::from_secs(10)).await?;
    /// # drop(executor);
    /// # Executor::builder(&here).start().await?.drain(Duration::from_secs(10)).await?;
    /// // Where it was.
    /// let export = Executor::builder(&there).offline().await?.export(id).await?.ok_or("it is there")?;
    ///
    /// // Where it is to be.
    /// let importer = Executor::builder(&here).importer().await?;
    /// let by = OperatorRequest::new("ann", "to look at it, see incident 17");
    /// let planned = importer.import(&export, &by.clone().dry_run()).await?;
    /// assert!(planned.live && planned.number.is_none());
    /// importer.import(&export, &by).await?;
    /// drop(importer); // From here on an engine may have the journal.
    ///
    /// let executor = Executor::builder(&here).register::<Greet>(()).start().await?;
    /// assert!(executor.status(id).await?.paused);
    /// executor.resume(PauseScope::One(id), by).await?;
    /// executor.signal(id, "go", &()).await?;
    /// assert_eq!(executor.handle::<Greet>(id).await?, "hello, ann");
    /// # Ok(()) })
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`StartError`] if an engine holds it, or if it is damaged or missing.
    pub async fn importer(self) -> Result<Importer, StartError> {
        let directory = match self.place {
            JournalPlace::Store(store) => return Ok(Importer::on(store, self.settings.clock)),
            JournalPlace::Directory(directory) => directory,
        };
        let opened = actix_rt::task::spawn_blocking(move || Importer::open(&directory)).await;
        Ok(opened.map_err(|error| StartError::Thread(error.to_string()))??)
    }
}

async fn open(directory: PathBuf, sync: SyncMode, checkpoint: usize) -> Result<Arc<dyn JournalStore>, StartError> {
    let opened = actix_rt::task::spawn_blocking(move || EmbeddedStore::open(&directory, sync)).await;
    let store = opened.map_err(|error| StartError::Thread(error.to_string()))??;
    Ok(Arc::new(store.checkpoint_at(checkpoint)))
}
