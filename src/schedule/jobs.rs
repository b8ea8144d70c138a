//! What schedules submit: functions from a tick to a procedure, by name.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use procession_actors::journal::codec;
use procession_actors::messages::Submit;
use procession_actors::{CodecError, Procedure, ScheduleTelemetry, StageError};
use procession_kernel::{Blob, Timestamp};
use serde::de::DeserializeOwned;

use super::policy::Overlap;
use super::progress::Due;
use super::timetable::{Timetable, zoned};

/// One run that is due, as its job sees it.
pub struct Tick<'a> {
    pub(super) name: &'a str,
    pub(super) due: Due,
    pub(super) timetable: &'a Timetable,
    pub(super) input: &'a Blob,
}

impl Tick<'_> {
    /// Returns the name of the schedule.
    #[must_use]
    pub fn name(&self) -> &str {
        self.name
    }

    /// Returns the instant at which the run was due, which may be long before now. Of a run that somebody asked for,
    /// when the schedule took it.
    #[must_use]
    pub fn at(&self) -> Timestamp {
        self.due.at
    }

    /// Returns `true` if somebody asked for this run; it is no tick of the timetable.
    #[must_use]
    pub fn asked(&self) -> bool {
        self.due.asked
    }

    /// Returns the date of [`at`](Self::at) in the schedule's time zone, as `2026-11-25`; of an interval, in UTC.
    #[must_use]
    pub fn date(&self) -> String {
        let zoned = zoned(self.due.at, &self.timetable.zone());
        zoned.map(|zoned| zoned.date().to_string()).unwrap_or_default()
    }

    /// Returns [`at`](Self::at) with date, time, offset and time zone, as
    /// `2026-11-25T03:00:00+01:00[Europe/Berlin]`.
    #[must_use]
    pub fn local(&self) -> String {
        let zoned = zoned(self.due.at, &self.timetable.zone());
        zoned.map(|zoned| zoned.to_string()).unwrap_or_default()
    }

    /// Returns what [`Schedule::with_input`](super::Schedule::with_input) gave the schedule.
    ///
    /// # Errors
    ///
    /// [`CodecError`] if it is not of this type, or there is none.
    pub fn input<T: DeserializeOwned>(&self) -> Result<T, CodecError> {
        codec::decode_user(self.input.as_slice())
    }
}

impl fmt::Debug for Tick<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tick")
            .field("name", &self.name)
            .field("at", &self.due.at)
            .field("asked", &self.due.asked)
            .finish_non_exhaustive()
    }
}

type Make = Box<dyn Fn(&Tick<'_>) -> Result<Submit, StageError> + Send + Sync>;

/// The jobs that a process knows: the environment of a [`Schedule`](super::Schedule). Cheap to clone.
#[derive(Clone, Default)]
pub struct Jobs {
    makes: Arc<BTreeMap<String, Arc<Make>>>,
    /// The handles are requested in the first turn of a schedule.
    telemetry: Arc<OnceLock<ScheduleTelemetry>>,
}

impl Jobs {
    /// Starts with no job.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a job: a function that makes the procedure for a tick. Its kind must be registered as well. Of two jobs
    /// with one name the later counts. A name is on disk as long as a schedule with it lives.
    ///
    /// The function may be called again for the same tick, after a crash or an error, and only one of the procedures is
    /// submitted. It decides by the tick alone, and at once: what takes time belongs into the procedure.
    ///
    /// If it fails, the tick is not lost. The function is called again after a backoff of up to a minute, for as long as
    /// it fails, whatever kind of error it returns.
    #[must_use]
    pub fn job<P, F>(mut self, name: &str, make: F) -> Self
    where
        P: Procedure,
        F: Fn(&Tick<'_>) -> Result<P, StageError> + Send + Sync + 'static,
    {
        let make: Make = Box::new(move |tick| Ok(Submit::new(&make(tick)?)?));
        Arc::make_mut(&mut self.makes).insert(name.to_owned(), Arc::new(make));
        self
    }

    /// Counts ticks that are known to be on disk as skipped, if there are any.
    pub(super) fn count_skipped(&self, skipped: Option<(Overlap, u64)>) {
        let telemetry = self.telemetry.get_or_init(ScheduleTelemetry::default);
        if let Some((overlap, ticks)) = skipped {
            telemetry.skipped(overlap.word(), ticks);
        }
    }

    pub(super) fn knows(&self, job: &str) -> bool {
        self.makes.contains_key(job)
    }

    /// Makes what a tick submits.
    pub(super) fn make(&self, job: &str, tick: &Tick<'_>) -> Result<Submit, StageError> {
        let make = self.makes.get(job);
        let make = make.ok_or_else(|| StageError::retry(unknown(job, self)))?;
        make(tick)
    }
}

impl fmt::Debug for Jobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Jobs").field(&self.makes.keys()).finish()
    }
}

/// Says that a job is missing, and which there are.
pub(super) fn unknown(job: &str, jobs: &Jobs) -> String {
    let known: Vec<&str> = jobs.makes.keys().map(String::as_str).collect();
    format!(
        "no job is registered with the name \"{job}\"; registered are \"{}\"",
        known.join("\", \"")
    )
}
