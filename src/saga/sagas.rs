//! `Sagas`: the machines and services of a host, checked before anything runs.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use procession_saga_language::DefinitionErrors;
use procession_saga_language::definition::Files;
use serde::Serialize;
use serde_json::{Map, Value};

use super::build;
use super::machine::{Birth, Machine};
#[cfg(feature = "saga-http")]
use super::service::Endpoint;
use super::service::{Arguments, Call, Fault, Service, Services};
use super::shared::{MachineSettings, Registered};

/// The machines that a host can run, with what they call. Cheap to clone.
///
/// [`Builder::sagas`](crate::Builder::sagas) lets an engine run them.
#[derive(Clone)]
pub struct Sagas(Arc<Registered>);

impl fmt::Debug for Sagas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Sagas").field(&self.0.machines.keys()).finish()
    }
}

impl Sagas {
    /// Begins without a definition.
    pub fn builder() -> SagasBuilder {
        SagasBuilder::default()
    }

    /// Returns a saga to submit: the machine of this name, in the version that was registered last.
    ///
    /// # Errors
    ///
    /// [`UnknownMachine`] if none has this name.
    pub fn machine(&self, name: &str) -> Result<Machine, UnknownMachine> {
        Ok(Machine::new(name, self.birth(name, None)?))
    }

    /// Returns a saga to submit, of the machine with this `Version`.
    ///
    /// # Errors
    ///
    /// [`UnknownMachine`] if none has this name and version.
    pub fn machine_version(&self, name: &str, version: &str) -> Result<Machine, UnknownMachine> {
        let birth = self.birth(name, Some(version))?;
        Ok(Machine::new(name, birth).of_version(version))
    }

    fn birth(&self, name: &str, version: Option<&str>) -> Result<Birth, UnknownMachine> {
        let named = (name.to_owned(), version.map(str::to_owned));
        self.0.birth(&named).ok_or_else(|| UnknownMachine {
            name: name.to_owned(),
            version: version.map(str::to_owned),
        })
    }

    pub(super) fn registered(&self) -> Arc<Registered> {
        Arc::clone(&self.0)
    }
}

/// No machine of this name, or version, is registered.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnknownMachine {
    /// The name.
    pub name: String,
    /// The version, if one was asked for.
    pub version: Option<String>,
}

impl fmt::Display for UnknownMachine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no machine [{}]", self.name)?;
        if let Some(version) = &self.version {
            write!(f, " of version {version}")?;
        }
        f.write_str(" is registered; add its file to Sagas::builder()")
    }
}

impl Error for UnknownMachine {}

/// Collects definitions, services and settings. [`build`](Self::build) checks them all.
#[derive(Default)]
#[must_use = "nothing is registered before `build`"]
pub struct SagasBuilder {
    pub(super) services: Services,
    pub(super) settings: BTreeMap<String, MachineSettings>,
    pub(super) files: Files,
    pub(super) is_strict: bool,
}

impl fmt::Debug for SagasBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SagasBuilder")
            .field("files", &self.files)
            .finish_non_exhaustive()
    }
}

impl SagasBuilder {
    /// Registers a closure as one method of a service. Its second argument takes the state's `Input`: see [`Arguments`].
    pub fn method<A, R, F>(mut self, service: &str, method: &str, call: F) -> Self
    where
        A: Arguments + 'static,
        R: Serialize + 'static,
        F: AsyncFn(Call, A) -> Result<R, Fault> + Send + Sync + 'static,
    {
        self.services.method(service, method, call);
        self
    }

    /// Registers a service with all its methods.
    pub fn service(mut self, name: &str, service: impl Service) -> Self {
        self.services.service(name, service);
        self
    }

    /// Registers a service that is reached over HTTP. It has every method that a definition names.
    #[cfg(feature = "saga-http")]
    pub fn http(mut self, service: &str, endpoint: Endpoint) -> Self {
        self.services.http(service, endpoint);
        self
    }

    /// Registers what a ScriptTask runs, in place of the text in its definition. It gets the keys of the state's first
    /// `Input` as variables.
    pub fn script<F>(mut self, machine: &str, state: &str, run: F) -> Self
    where
        F: Fn(&Map<String, Value>) -> Result<Value, Fault> + Send + Sync + 'static,
    {
        self.services.script(machine, state, run);
        self
    }

    /// Registers a class for errors of a type, by which definitions know them, with the class above it.
    pub fn fault<E: Error + 'static>(mut self, class: &str, parent: &str) -> Self {
        self.services.fault::<E>(class, parent);
        self
    }

    /// Limits how long a call of a service may take. What takes longer is a fault of class `procession.Timeout`, and a
    /// call for an update is then in doubt. By default nothing is limited.
    pub fn call_timeout(mut self, service: &str, time: Duration) -> Self {
        self.services.call_timeout(service, time);
        self
    }

    /// Sets what holds for one machine.
    pub fn set(mut self, machine: &str, settings: MachineSettings) -> Self {
        self.settings.insert(machine.to_owned(), settings);
        self
    }

    /// Adds the text of a definition, at most 512 KiB. Problems name the file as it is named here.
    pub fn json(mut self, name: &str, text: impl AsRef<[u8]>) -> Self {
        self.files.add_text(name, text.as_ref());
        self
    }

    /// Adds a file.
    pub fn file(mut self, path: impl AsRef<Path>) -> Self {
        self.files.add_file(path.as_ref());
        self
    }

    /// Adds all files of a directory whose names end in `.json`, by name. Directories in it are not read.
    pub fn dir(mut self, path: impl AsRef<Path>) -> Self {
        build::add_directory(&mut self.files, path.as_ref());
        self
    }

    /// Makes each warning an error. By default warnings refuse nothing, because Seata's own files have some.
    pub fn strict(mut self, is_strict: bool) -> Self {
        self.is_strict = is_strict;
        self
    }

    /// Reads all files, and checks them against each other and against the services.
    ///
    /// # Errors
    ///
    /// [`DefinitionErrors`] has every problem of every file.
    pub fn build(self) -> Result<Sagas, DefinitionErrors> {
        build::build(self).map(|registered| Sagas(Arc::new(registered)))
    }
}
