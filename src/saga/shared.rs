//! What all machines of an engine share: definitions, services, settings.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use procession_actors::{CallTelemetry, CodecError};
use procession_kernel::RetryPolicy;
use procession_saga_language::definition::{Call as Calls, Definition, RecoverStrategy, State};
use procession_saga_language::{Digest, Source};

use super::bundle::Bundle;
use super::machine::{Birth, Machine};
use super::service::{Classes, Services};
use super::status::SagaStatus;

/// What a host sets for one machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MachineSettings {
    /// How many sagas of it run at once; none is no limit. One that rests does not count.
    pub limit: Option<u32>,
    /// How long a saga may take from its start to its success, rests included; none is for ever. The definition's
    /// `RecoverStrategy` says what happens then.
    pub timeout: Option<Duration>,
    /// How long a saga that succeeded can still be compensated. It ends after that time. None unless said.
    pub compensable: Duration,
    /// What a saga does that rests. By default it waits for a person.
    pub on_rest: OnRest,
    /// How often a compensator is tried, and with which backoff: 3 times, after 1 s and 2 s, unless said. Then the
    /// compensation waits for a person.
    pub compensation_tries: Option<RetryPolicy>,
}

impl MachineSettings {
    /// Sets [`limit`](Self#structfield.limit).
    #[must_use]
    pub const fn limit(mut self, limit: u32) -> Self {
        self.limit = Some(limit);
        self
    }

    /// Sets [`timeout`](Self#structfield.timeout).
    #[must_use]
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sets [`compensable`](Self#structfield.compensable).
    #[must_use]
    pub const fn compensable(mut self, time: Duration) -> Self {
        self.compensable = time;
        self
    }

    /// Sets [`on_rest`](Self#structfield.on_rest).
    #[must_use]
    pub const fn on_rest(mut self, on_rest: OnRest) -> Self {
        self.on_rest = on_rest;
        self
    }

    /// Sets [`compensation_tries`](Self#structfield.compensation_tries).
    #[must_use]
    pub const fn compensation_tries(mut self, policy: RetryPolicy) -> Self {
        self.compensation_tries = Some(policy);
        self
    }
}

/// What a saga does that rests: that has failed at a state and caught nothing, or ended in doubt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnRest {
    /// It waits for a person.
    #[default]
    Stay,
    /// It goes forward by itself, after a backoff, until the policy's attempts are used up. Then it waits for a person.
    Forward(RetryPolicy),
    /// It waits for a person this long, and then is compensated.
    Compensate {
        /// How long.
        after: Duration,
    },
}

/// What machines need of the host: the environment of their kinds. [`Builder::sagas`](crate::Builder::sagas) makes it.
#[derive(Clone)]
pub struct SagaEnv(Arc<Shared>);

impl SagaEnv {
    pub(super) fn new(shared: &Arc<Shared>) -> Self {
        Self(Arc::clone(shared))
    }

    pub(super) fn shared(&self) -> &Shared {
        &self.0
    }
}

/// What all machines of one engine share: what the host registered, and the definitions that the engine's store has.
pub(super) struct Shared {
    registered: Arc<Registered>,
    /// The bundle of each machine that new sagas go by.
    current: BTreeMap<Named, Digest>,
    bundles: BTreeMap<Digest, Entry>,
    /// Why a bundle of the store cannot be used.
    unreadable: BTreeMap<Digest, String>,
    calls: CallTelemetry,
}

/// A machine by name and version; without a version it is the one that was registered last.
pub(super) type Named = (String, Option<String>);

/// What a host has registered.
pub(super) struct Registered {
    pub(super) services: Services,
    pub(super) settings: BTreeMap<String, MachineSettings>,
    pub(super) machines: BTreeMap<Named, Arc<Source>>,
}

impl Registered {
    /// Returns what sagas of a machine need at their birth. Returns `None` if it is not registered.
    pub(super) fn birth(&self, named: &Named) -> Option<Birth> {
        let definition = &self.machines.get(named)?.definition;
        let settings = self.settings.get(&named.0).copied().unwrap_or_default();
        let start = definition.state(definition.start);
        Some(Birth {
            start: start.map_or(String::new(), |state| state.name.clone()),
            timeout: settings.timeout,
            goes_on: definition.recover == RecoverStrategy::Forward,
        })
    }
}

/// One version of a machine.
#[cfg(feature = "dashboard")]
pub(crate) struct MachineVersion {
    /// The `Version` of its file, if that has one.
    pub(crate) version: Option<String>,
    /// New sagas go by it, unless another one is asked for.
    pub(crate) is_started: bool,
}

/// A bundle, with what it calls that is not registered.
struct Entry {
    bundle: Arc<Bundle>,
    missing: Option<String>,
}

impl Shared {
    pub(super) fn new(registered: Arc<Registered>) -> Result<Self, CodecError> {
        let mut shared = Self {
            registered,
            current: BTreeMap::new(),
            bundles: BTreeMap::new(),
            unreadable: BTreeMap::new(),
            calls: CallTelemetry::default(),
        };
        let registered = Arc::clone(&shared.registered);
        let newest = |name: &str| registered.machines.get(&(name.to_owned(), None)).cloned();
        for (named, source) in &registered.machines {
            let bundle = Bundle::gather(source, newest)?;
            shared.current.insert(named.clone(), bundle.digest());
            shared.add(bundle);
        }
        Ok(shared)
    }

    /// Counts a call that has ended.
    pub(super) fn called(&self, machine: &str, state: &str, status: SagaStatus, took: Duration) {
        self.calls.called(machine, state, status.word(), took);
    }

    /// Adds a bundle. One of the store takes the place of its like.
    pub(super) fn add(&mut self, bundle: Bundle) {
        let missing = bundle.definitions().find_map(|definition| self.missing(definition));
        let (digest, bundle) = (bundle.digest(), Arc::new(bundle));
        let entry = Entry { bundle, missing };
        if entry.bundle.is_stored() || !self.bundles.contains_key(&digest) {
            self.bundles.insert(digest, entry);
        }
    }

    pub(super) fn add_unreadable(&mut self, digest: Digest, why: String) {
        self.unreadable.insert(digest, why);
    }

    pub(super) fn services(&self) -> &Services {
        &self.registered.services
    }

    pub(super) fn classes(&self) -> &Classes {
        self.services().classes()
    }

    pub(super) fn settings(&self, machine: &str) -> MachineSettings {
        self.registered.settings.get(machine).copied().unwrap_or_default()
    }

    /// Returns what a saga needs that is submitted. Returns `None` if its machine is not registered.
    pub(super) fn birth(&self, machine: &Machine) -> Option<Birth> {
        self.registered.birth(&named(machine))
    }

    /// Returns a saga to submit, of the machine that was registered last with this name. Returns `None` if none was.
    #[cfg(feature = "dashboard")]
    pub(super) fn machine(&self, name: &str) -> Option<Machine> {
        let birth = self.registered.birth(&(name.to_owned(), None))?;
        Some(Machine::new(name, birth))
    }

    /// Returns the names of all machines that sagas may go by.
    pub(super) fn machines(&self) -> BTreeSet<String> {
        let definitions = self.bundles.values().flat_map(|entry| entry.bundle.definitions());
        definitions.map(|definition| definition.name.clone()).collect()
    }

    /// Returns the versions of a machine that this engine knows, by name: those of its files, and those of earlier ones that
    /// the store has kept.
    #[cfg(feature = "dashboard")]
    pub(super) fn versions(&self, name: &str) -> Vec<MachineVersion> {
        let started = self.registered.machines.get(&(name.to_owned(), None));
        let started = started.map(|source| &source.definition.version);
        let is_it = |bundle: &&Arc<Bundle>| bundle.listing().machine == name;
        let bundles = self.bundles.values().map(|entry| &entry.bundle).filter(is_it);
        let found = bundles.filter_map(|bundle| bundle.definition(name).ok());
        let versions: BTreeSet<Option<String>> = found.map(|definition| definition.version.clone()).collect();
        let said = versions.into_iter().map(|version| MachineVersion {
            is_started: started == Some(&version),
            version,
        });
        said.collect()
    }

    /// Returns the bundles that the store does not have.
    pub(super) fn unstored(&self) -> impl Iterator<Item = &Bundle> {
        let bundles = self.bundles.values().map(|entry| &*entry.bundle);
        bundles.filter(|bundle| !bundle.is_stored())
    }

    /// Returns the bundle by which a saga goes, or will.
    pub(super) fn bundle_of(&self, machine: &Machine) -> Result<Arc<Bundle>, String> {
        Ok(Arc::clone(&self.found(machine)?.bundle))
    }

    /// Returns why a saga cannot run here, if it cannot.
    pub(super) fn check(&self, machine: &Machine) -> Result<(), String> {
        match &self.found(machine)?.missing {
            Some(missing) => Err(missing.clone()),
            None => Ok(()),
        }
    }

    fn found(&self, machine: &Machine) -> Result<&Entry, String> {
        let digest = match machine.pinned() {
            Some(digest) => digest,
            None => self.newest(machine)?,
        };
        match (self.bundles.get(&digest), self.unreadable.get(&digest)) {
            (Some(entry), _) => Ok(entry),
            (None, Some(why)) => Err(why.clone()),
            (None, None) => Err(format!(
                "the store has no definition {digest} of machine [{}]",
                machine.name()
            )),
        }
    }

    fn newest(&self, machine: &Machine) -> Result<Digest, String> {
        let digest = self.current.get(&named(machine)).copied();
        digest.ok_or_else(|| format!("machine [{}] is not registered", machine.name()))
    }

    /// Returns the first thing that a definition calls and this process lacks.
    fn missing(&self, definition: &Definition) -> Option<String> {
        let states = definition.states.iter();
        let mut calls = states.filter_map(|state| Some((state, &state.task()?.call)));
        calls.find_map(|(state, call)| self.missing_of(&definition.name, state, call))
    }

    fn missing_of(&self, machine: &str, state: &State, call: &Calls) -> Option<String> {
        let name = &state.name;
        match call {
            Calls::Service { service, method, .. } => {
                let missing = self.services().find(service, method).err()?;
                Some(format!("state [{name}]: {missing}"))
            }
            Calls::Script { .. } if !self.services().has_script(machine, name) => {
                Some(format!("state [{name}]: no script is registered for it"))
            }
            Calls::Script { .. } | Calls::Machine { .. } | Calls::CompensateMachine => None,
        }
    }
}

fn named(machine: &Machine) -> Named {
    (machine.name().to_owned(), machine.version_asked().map(str::to_owned))
}
