//! Places the actors and starts them: store, recovery, arbiters.

mod shutdown;

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use actix::dev::ToEnvelope;
use actix::prelude::*;
use futures::FutureExt;
use procession_kernel::{Admissions, Blob, Bounds, Kernel, Kind, Limit, LimitKey, Rules, SentSignal, Seq, Verb};

use crate::accepts::SignalRules;
use crate::actor_loop::{start_ending, start_restarting};
use crate::charts::{Charts, Keeper};
use crate::clock::{Clock, SystemClock};
use crate::context::Host;
use crate::error::{AskError, CodecError, StartError, SubmitError};
use crate::journal::{IN_FLIGHT_MAX, Journal, JournalStore, Reader};
use crate::limiter::Limiter;
use crate::procedure::Procedure;
use crate::queues::{CountedAddr, CountedMessage, Ordered};
use crate::read::{CommittedReader, Quarantined};
use crate::registry::Registry;
use crate::signal::SendSignal;
use crate::submit::Submit;
use crate::supervisor::dispatch::workers::Workers;
use crate::supervisor::failure::{Broken, Failure};
use crate::supervisor::lifecycle::Open;
use crate::supervisor::lifecycle::recovery::{self, Code, Loaded};
use crate::supervisor::metrics::mailboxes::{Depths, MailboxGauges};
use crate::supervisor::pipeline::in_place::InPlace;
use crate::supervisor::{Parts, Supervisor};
use crate::telemetry::{LimiterMetrics, Telemetry};
use crate::threads::Threads;
use crate::thresholds::Thresholds;
use crate::view::{Chart, ChartSpan, Mailboxes, ShutdownReport};
use shutdown::Ending;

/// Where the actors run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// The supervisor and the limiter share one thread, the journal has another, and this many workers each have a
    /// thread of their own.
    Threads(usize),
    /// All actors run on the current thread: for simulation.
    Inline,
}

/// The settings of an engine.
#[derive(Clone)]
pub struct Settings {
    /// Where the actors run. Default: one worker for each two processors, at least one.
    pub placement: Placement,
    /// The engine's clock. Default: the system's clock.
    pub clock: Arc<dyn Clock>,
    /// Bounds on what one caller may request.
    pub bounds: Bounds,
    /// What limits allow. What was set at run time overrides this.
    pub limits: Vec<(LimitKey, Limit)>,
    /// How long a result is kept after the procedure's end.
    pub keep_after_end: Duration,
    /// How long a result is kept after it was acknowledged.
    pub keep_after_acknowledgement: Duration,
    /// How long the result of a root that failed or was rolled back is kept after its end. Default: 14 days.
    pub keep_after_failure: Duration,
    /// The number of requests that may wait for their commit; any further request is answered with `Busy`. Default
    /// 10,000: a second of a slow disk, and a few megabytes.
    pub queued: usize,
    /// The number of families up to which submissions are accepted; any further submission is answered with `Busy`.
    /// Families that have ended do not count. Families that only wait for a time or an event do not count either: they
    /// take a twentieth of the memory. Default 200,000. At 5.4 kB each that is a gibibyte, and more than an engine gets
    /// through in a second.
    pub awake: usize,
    /// The number of batches that may be handed to the journal and not be answered yet, 1 to 32. Default: one more than
    /// the store prefers to have under way, so 2 for the embedded store. One batch is synced while the next is handed
    /// over.
    pub in_flight: Option<usize>,
    /// The maximum number of commits merged into one batch. Default 4,096.
    pub merge: usize,
    /// Runs pure stages before the stages before them are on disk: see [`Procedure::is_pure`](crate::Procedure::is_pure).
    /// Default: `true`.
    pub speculation: bool,
    /// The number of pure stages that a worker runs one after the other before it reports them; more than 64 counts as 64.
    /// With 1 or 0 each is reported alone. Default 64.
    pub run_length: u32,
    /// The seed for the jitter of backoffs. 0 uses the store's own number.
    pub seed: u64,
    /// Refuses to start if a live procedure has no code, instead of quarantining its family.
    pub strict: bool,
    /// How long user code may hold its worker before the worker counts as blocked. Default 5 s: longer than any pause
    /// of a healthy stage, and soon enough for the calls that wait.
    pub blocked_after: Duration,
    /// How long a worker that was added in place of blocked workers stays once it is no longer needed. Default 60 s, so
    /// that workers are not started and stopped all the time.
    pub worker_keep_alive: Duration,
    /// The maximum number of workers, including added ones. Default: four times the number of configured workers.
    pub max_workers: Option<usize>,
    /// The interval between health checks, on the engine's clock. With `None` a check runs only on request. Default 10
    /// s. Checks take at most a twentieth of the supervisor's time.
    pub health_check_every: Option<Duration>,
    /// The thresholds from which a condition is reported.
    pub thresholds: Thresholds,
    /// The file in which the figures of charts outlive the engine; no other engine may have it. Default: none, and charts
    /// begin anew at each start.
    pub charts: Option<PathBuf>,
    /// Intercepts calls between the engine and user code, in tests of procedures. With an interceptor, blocking work
    /// runs on the thread that requests it. Default: none.
    #[cfg(feature = "testkit")]
    pub interceptor: Option<Arc<dyn crate::fault_injection::seen::StageInterceptor>>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            placement: Placement::Threads(processors().div_ceil(2).max(1)),
            clock: Arc::new(SystemClock),
            bounds: Bounds::default(),
            limits: Vec::new(),
            keep_after_end: Duration::from_mins(15),
            keep_after_acknowledgement: Duration::from_mins(5),
            keep_after_failure: Duration::from_hours(14 * 24),
            queued: 10_000,
            awake: 200_000,
            in_flight: None,
            merge: 4_096,
            speculation: true,
            run_length: 64,
            seed: 0,
            strict: false,
            blocked_after: Duration::from_secs(5),
            worker_keep_alive: Duration::from_mins(1),
            max_workers: None,
            health_check_every: Some(Duration::from_secs(10)),
            thresholds: Thresholds::default(),
            charts: None,
            #[cfg(feature = "testkit")]
            interceptor: None,
        }
    }
}

/// Returns how many processors this process may use. The system answers from the files of a control group, so it is asked
/// once: simulations make thousands of settings.
fn processors() -> usize {
    static PROCESSORS: OnceLock<usize> = OnceLock::new();
    *PROCESSORS.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// A running engine: sends messages to the supervisor, and reads committed state.
#[derive(Clone)]
pub struct Engine {
    supervisor: Addr<Supervisor>,
    registry: Arc<Registry>,
    signal_rules: SignalRules,
    max_payload: usize,
    reader: Reader,
    clock: Arc<dyn Clock>,
    depths: Depths,
    charts: Charts,
    failure: Failure,
    ending: Ending,
    store_number: u64,
}

impl Engine {
    /// Takes the store, recovers its contents, and accepts messages. Must be called inside an actix system.
    ///
    /// Metrics go to the recorder of the `metrics` crate that is installed at this moment. A recorder that is installed
    /// later receives nothing from this engine.
    ///
    /// # Errors
    ///
    /// [`StartError`] if the store cannot be taken or read, or if its contents forbid the start. Nothing of the engine
    /// is left then, and the store is closed.
    pub async fn start(
        store: Arc<dyn JournalStore>,
        registry: Registry,
        settings: Settings,
    ) -> Result<Self, StartError> {
        let started = Self::start_on(Arc::clone(&store), registry, settings).await;
        if started.is_err() {
            shutdown::close(store).await;
        }
        started
    }

    async fn start_on(
        store: Arc<dyn JournalStore>,
        registry: Registry,
        settings: Settings,
    ) -> Result<Self, StartError> {
        registry.check_kinds(settings.bounds.name)?;
        check_limits(&settings)?;
        let rules = Rules {
            kinds: registry.rules(),
            bounds: settings.bounds,
            keep_after_end: settings.keep_after_end,
            keep_after_acknowledgement: settings.keep_after_acknowledgement,
            keep_after_failure: settings.keep_after_failure,
            seed: settings.seed,
            speculation: settings.speculation,
            run_length: settings.run_length,
        };
        let loaded = recovery::load(Arc::clone(&store), rules, Code::Registered, Arc::clone(&settings.clock)).await?;
        if settings.strict && !loaded.report.quarantined.is_empty() {
            let families = loaded
                .report
                .quarantined
                .iter()
                .map(|(family, why)| format!("{family} ({why})"))
                .collect();
            return Err(StartError::NoCode { families });
        }
        let store_number = loaded.store.0;
        let reader = Reader::new(&store);
        let clock = Arc::clone(&settings.clock);
        let registry = Arc::new(registry);
        let failure = Failure::default();
        let placed = place(
            store,
            loaded,
            Arc::clone(&registry),
            &settings,
            reader.clone(),
            failure.clone(),
        )?;
        let Placed {
            supervisor,
            depths,
            charts,
            ending,
        } = placed;
        let started = ending.unless_started();
        let opened = match supervisor.send(Open).await {
            Ok(opened) => opened,
            Err(_) => Err(StartError::Journal(
                failure
                    .why()
                    .unwrap_or_else(|| "the engine stopped while it started".to_owned()),
            )),
        };
        if let Err(error) = opened {
            ending.now(&supervisor).await;
            return Err(error);
        }
        started.started();
        Ok(Self {
            supervisor,
            signal_rules: registry.signal_rules(),
            max_payload: settings.bounds.payload,
            registry,
            reader,
            clock,
            depths,
            charts,
            failure,
            ending,
            store_number,
        })
    }

    /// Ends the engine at once, whatever its state: its threads, its store, and every wait for an answer. This takes a
    /// few seconds at most. The report says what could not be ended by then.
    pub async fn shutdown(&self) -> ShutdownReport {
        self.ending.now(&self.supervisor).await
    }

    /// Waits until nothing is left of an engine that has drained, for a few seconds at most.
    pub async fn drained(&self) -> ShutdownReport {
        self.ending.after_drain().await
    }

    /// Returns `true` if the engine is being ended, or has ended.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        self.ending.has_begun() || !self.supervisor.connected()
    }

    /// Returns the error for a request that the engine never answered, whether it accepted the request or not.
    #[must_use]
    pub fn unanswered(&self) -> AskError {
        self.failure.unanswered()
    }

    /// Returns the error for a submission that was left unanswered.
    #[must_use]
    pub fn unsubmitted(&self) -> SubmitError {
        self.failure.unsubmitted()
    }

    /// Sends a message to the supervisor and waits for the answer. The message counts as waiting until the supervisor
    /// takes it.
    ///
    /// # Errors
    ///
    /// [`MailboxError`] if the engine has stopped.
    pub async fn ask<M>(&self, message: M) -> Result<M::Result, MailboxError>
    where
        M: Message + Send + 'static,
        M::Result: Send,
        Supervisor: Handler<CountedMessage<M>>,
        Context<Supervisor>: ToEnvelope<Supervisor, CountedMessage<M>>,
    {
        self.supervisor.send(self.depths.counted(message)).await
    }

    /// Returns the newest commit on disk, without entering a mailbox. After an answer was received, this is at least
    /// the commit that the answer rests on.
    #[must_use]
    pub fn durable(&self) -> Seq {
        self.depths.durable()
    }

    /// Returns how many messages wait in the engine's mailboxes. It reads counters, and enters no mailbox.
    #[must_use]
    pub fn mailboxes(&self) -> Mailboxes {
        self.depths.read()
    }

    /// Returns a chart of all roots, or of the procedures of one kind. It enters no mailbox. `None` if the kind is not
    /// registered, and nothing is known of it.
    #[must_use]
    pub fn chart(&self, kind: Option<&Kind>, span: ChartSpan) -> Option<Chart> {
        self.charts.chart(kind, span, self.clock.now())
    }

    /// Returns how many procedures, children included, failed or were rolled back in the last 24 hours, to a quarter of
    /// an hour. It enters no mailbox, and does not depend on how long ends are kept. A crash loses what was counted in
    /// the half minute before it.
    #[must_use]
    pub fn failed_in_a_day(&self) -> u64 {
        self.charts.failed_in_a_day(self.clock.now())
    }

    /// Checks whether a procedure can run here, before it is submitted.
    ///
    /// # Errors
    ///
    /// [`SubmitError::Unsupported`] with the error that the procedure's [`check`](Procedure::check) returns, or if its
    /// kind is registered with another type.
    pub fn check<P: Procedure>(&self, procedure: &P) -> Result<(), SubmitError> {
        self.registry
            .check(procedure)
            .map_err(|why| SubmitError::Unsupported { why })
    }

    /// Asks the kinds of the receivers whether they take these signals, before they are sent.
    ///
    /// # Errors
    ///
    /// [`AskError::NotAccepted`] for the first signal that is refused; [`AskError::Read`] if its receiver cannot be read.
    pub async fn admit_signals(&self, signals: &[SendSignal]) -> Result<(), AskError> {
        let signals: Vec<&SentSignal> = signals.iter().map(|SendSignal(signal)| signal).collect();
        self.signal_rules.admit(&self.reader, &signals).await
    }

    /// Asks one kind whether it takes these signals, for senders that know the kind of the receiver. Unlike
    /// [`admit_signals`](Self::admit_signals) it reads nothing.
    ///
    /// # Errors
    ///
    /// [`AskError::NotAccepted`] for the first signal that is refused.
    pub fn admit_signals_of(&self, kind: &Kind, signals: &[SendSignal]) -> Result<(), AskError> {
        self.signal_rules.admit_of(kind, signals)
    }

    /// Asks the kind of the receiver, if the verb is a signal, as [`admit_signals`](Self::admit_signals) does.
    ///
    /// # Errors
    ///
    /// As [`admit_signals`](Self::admit_signals).
    pub async fn admit_verb(&self, verb: &Verb) -> Result<(), AskError> {
        let Verb::Signal(to, name, payload) = verb else {
            return Ok(());
        };
        let signal = SentSignal {
            to: *to,
            name: name.clone(),
            payload: payload.clone(),
            key: None,
            last: false,
        };
        self.signal_rules.admit(&self.reader, &[&signal]).await
    }

    /// Returns the message that submits an encoded value as a procedure of a registered kind. The value's own code runs on
    /// this thread.
    ///
    /// # Errors
    ///
    /// [`SubmitError::UnknownKind`]; [`SubmitError::Unsupported`] if the value is none of the kind, or cannot run here.
    pub fn submission_of(&self, kind: &Kind, value: &Blob) -> Result<Submit, SubmitError> {
        Ok(Submit::of(self.registry.birth(kind, value)?))
    }

    /// Checks that an encoded output has the kind's own type, before it replaces another output. If the kind is not
    /// registered here, the output cannot be checked and is accepted.
    ///
    /// # Errors
    ///
    /// [`CodecError`] if the output is of another type.
    pub fn check_output(&self, kind: &Kind, output: &Blob) -> Result<(), CodecError> {
        self.registry.check_output(kind, output)
    }

    /// Returns the most bytes that a payload, a value or an output may have when it is encoded.
    #[must_use]
    pub const fn max_payload(&self) -> usize {
        self.max_payload
    }

    /// Returns the address of the supervisor, which accepts every message.
    #[must_use]
    pub fn supervisor(&self) -> &Addr<Supervisor> {
        &self.supervisor
    }

    /// Waits for this long on the engine's clock.
    pub async fn sleep(&self, time: Duration) {
        self.clock.sleep_until(self.clock.now().after(time)).await;
    }

    /// Returns the store's own number, which was drawn when the store was made. Spans of calls carry it as `store`.
    #[must_use]
    pub const fn store_number(&self) -> u64 {
        self.store_number
    }

    /// Returns the engine's clock.
    #[must_use]
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// Returns the registered kinds, by name.
    pub fn kinds(&self) -> impl Iterator<Item = &Kind> {
        self.registry.kinds()
    }

    /// Returns the environment with which a kind is registered; none if the kind is not, or has another environment.
    #[must_use]
    pub fn env<P: Procedure>(&self, kind: &Kind) -> Option<&P::Env> {
        self.registry.env::<P>(kind)
    }

    /// Returns a reader of committed state that does not ask the engine. It does not know which families are
    /// quarantined.
    #[must_use]
    pub fn committed(&self) -> CommittedReader {
        CommittedReader::new(self.reader.clone(), Quarantined::default())
    }

    /// Returns the reader of the store's keyspaces.
    #[must_use]
    pub fn reader(&self) -> &Reader {
        &self.reader
    }
}

/// The started actors.
struct Placed {
    supervisor: Addr<Supervisor>,
    depths: Depths,
    charts: Charts,
    ending: Ending,
}

/// Where each actor runs.
struct Places {
    home: ArbiterHandle,
    journal: ArbiterHandle,
    workers: Workers,
}

impl Places {
    fn new(threads: &Threads, settings: &Settings) -> std::io::Result<Self> {
        let Placement::Threads(workers) = settings.placement else {
            let here = Arbiter::current();
            return Ok(Self {
                home: here.clone(),
                journal: here.clone(),
                workers: Workers::borrowed(here),
            });
        };
        let workers: Vec<ArbiterHandle> = (0..workers.max(1)).map(|_| threads.start()).collect::<Result<_, _>>()?;
        Ok(Self {
            home: threads.start()?,
            journal: threads.start()?,
            workers: Workers::owned(workers, threads.clone(), settings),
        })
    }
}

fn place(
    store: Arc<dyn JournalStore>,
    mut loaded: Loaded,
    registry: Arc<Registry>,
    settings: &Settings,
    reader: Reader,
    failure: Failure,
) -> Result<Placed, StartError> {
    let threads = Threads::default();
    let places = Places::new(&threads, settings);
    let Places { home, journal, workers } = places.map_err(|error| {
        threads.stop();
        StartError::Thread(error.to_string())
    })?;
    let charts = Charts::new(registry.kinds(), settings.clock.now());
    let keeper = keep_charts(&charts, settings, loaded.store.0, &home);
    let ending = Ending::new(
        threads.clone(),
        workers.heartbeats(),
        &store,
        settings.placement,
        keeper,
    );
    let in_place = InPlace::new(&store);
    let owned = (loaded.epoch, loaded.lease);
    let in_flight = settings.in_flight.unwrap_or(store.under_way().saturating_add(1));
    let in_flight = in_flight.clamp(1, IN_FLIGHT_MAX);
    let settings = settings.clone();
    // Looks up the recorder on the caller's thread, because that thread may have a recorder of its own.
    let telemetry = Telemetry::new(registry.kinds());
    loaded.kernel.set_limits(settings.limits.iter().cloned());
    let admissions = admissions(&settings, &loaded.kernel);
    let usage = admissions.usage();
    let limits = LimiterMetrics::new(&usage);
    let limited = usage.into_iter().map(|usage| usage.key).collect();
    let depths = Depths::new(workers.heartbeats(), reader.clone());
    let host = Arc::new(Host {
        clock: Arc::clone(&settings.clock),
        reader,
        max_payload: loaded.kernel.rules().bounds.payload,
        max_depth: loaded.kernel.rules().bounds.depth,
        max_children: loaded.kernel.rules().bounds.children,
        signal_rules: registry.signal_rules(),
        kinds: registry.kinds().cloned().collect(),
        #[cfg(feature = "testkit")]
        interceptor: settings.interceptor.clone(),
    });
    let (told, counted) = (depths.clone(), charts.clone());
    let supervisor = start_restarting(&home, move |ctx: &mut Context<Supervisor>, panics| {
        let (mailboxes, me) = (MailboxGauges::new(depths.clone()), ctx.address());
        let served = mailboxes.outbox(me.clone().recipient());
        let clock = Arc::clone(&settings.clock);
        let limiter = Limiter::new(admissions, limits, served, Arc::clone(&depths.limiter), clock);
        let broken = me.clone();
        let limiter = start_ending(limiter, move |text| {
            let why = format!("the limiter panicked, which is a defect of the engine: {text}");
            actix_rt::spawn(broken.send(Broken(why)).map(|_| ()));
        });
        let reports = Arc::new(mailboxes.inbox(me.clone().recipient()));
        let (owner, taken) = (mailboxes.outbox(me.recipient()), Arc::clone(&depths.journal));
        let journal = start_restarting(&journal, move |_, panics| {
            Journal::new(store, owned, owner, taken, panics)
        });
        let limiter = Ordered::new(limiter, depths.limiter);
        let journal = CountedAddr::new(journal, depths.journal);
        Supervisor::new(Parts {
            loaded,
            limited,
            limiter,
            journal,
            mailboxes,
            reports,
            registry,
            workers,
            threads,
            failure,
            panics,
            settings,
            host,
            in_place,
            in_flight,
            telemetry,
            charts: counted,
        })
    });
    Ok(Placed {
        supervisor,
        depths: told,
        charts,
        ending,
    })
}

/// Keeps charts in their file, on the supervisor's thread and the threads for its blocking work. An engine on the
/// caller's own thread reads and writes there.
fn keep_charts(charts: &Charts, settings: &Settings, store: u64, home: &ArbiterHandle) -> Option<Arc<Keeper>> {
    let path = settings.charts.clone()?;
    let keeper = Arc::new(Keeper::new(path, store, charts, Arc::clone(&settings.clock)));
    let blocks = settings.placement != Placement::Inline;
    // A thread that has ended already is found out by whoever needs it more.
    home.spawn(Arc::clone(&keeper).run(blocks));
    Some(keeper)
}

fn check_limits(settings: &Settings) -> Result<(), StartError> {
    settings.limits.iter().try_for_each(|(key, limit)| {
        let key = key.clone();
        limit.check().map_err(|why| StartError::BadLimit { key, why })
    })
}

/// Creates the admissions with the limits from the settings, overridden by those that were set at run time, and with the
/// begins that still count.
fn admissions(settings: &Settings, kernel: &Kernel) -> Admissions {
    let stored = kernel.limits().iter().map(|(key, limit)| (key.clone(), *limit));
    let mut admissions = Admissions::new(settings.limits.iter().cloned().chain(stored));
    if admissions.has_rates() {
        admissions.move_to(settings.clock.now());
        for (key, window) in kernel.rates().windows() {
            admissions.restore_window(key, window.clone());
        }
    }
    admissions
}
