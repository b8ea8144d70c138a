//! Classes of faults: which lies below which, and which one an error of Rust has.

use std::any::{TypeId, type_name};
use std::borrow::Cow;
use std::collections::HashMap;
use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::arguments::BAD_ARGUMENTS;
use super::fault::{Fault, Network, Origin, chain, network_of};
use super::record::{BAD_RESULT, CLASS_MAX, FaultRecord, PANIC, TIMEOUT};

/// The class above all others.
const THROWABLE: &str = "java.lang.Throwable";
/// The class above every class that is registered nowhere.
const RUNTIME: &str = "java.lang.RuntimeException";
const CONNECT: &str = "java.net.ConnectException";
const SOCKET_TIMEOUT: &str = "java.net.SocketTimeoutException";

/// What is known without being registered, each with the class above it.
const KNOWN: [(&str, &str); 12] = [
    ("java.lang.Exception", THROWABLE),
    ("java.lang.Error", THROWABLE),
    (RUNTIME, "java.lang.Exception"),
    ("java.io.IOException", "java.lang.Exception"),
    (CONNECT, "java.io.IOException"),
    (SOCKET_TIMEOUT, "java.io.IOException"),
    (PANIC, "java.lang.Error"),
    (TIMEOUT, RUNTIME),
    (BAD_ARGUMENTS, RUNTIME),
    (BAD_RESULT, RUNTIME),
    ("org.apache.seata.common.exception.FrameworkException", RUNTIME),
    (
        "org.apache.seata.saga.engine.exception.EngineExecutionException",
        "org.apache.seata.common.exception.FrameworkException",
    ),
];

/// Most classes that are looked at above one. It ends a walk whatever was registered.
const LEVELS_MAX: usize = 64;

/// The classes that a definition may name.
pub(in crate::saga) struct Classes {
    /// The class above each, both by their names at Apache.
    parents: HashMap<String, String>,
    types: Vec<ErrorType>,
}

/// A type of errors that has a class.
struct ErrorType {
    id: TypeId,
    is: fn(&(dyn Error + 'static)) -> bool,
    class: String,
}

impl Default for Classes {
    fn default() -> Self {
        let known = KNOWN.map(|(class, parent)| (class.to_owned(), parent.to_owned()));
        Self {
            parents: known.into(),
            types: Vec::new(),
        }
    }
}

impl Classes {
    /// Registers a class for errors of a type, with the class above it.
    ///
    /// # Errors
    ///
    /// A sentence, if that contradicts what was said before.
    pub(super) fn register<E: Error + 'static>(&mut self, class: &str, parent: &str) -> Result<(), String> {
        if class.is_empty() || class.len() > CLASS_MAX {
            let (bytes, name) = (class.len(), type_name::<E>());
            return Err(format!(
                "the class of [{name}] has {bytes} bytes; give it from 1 to {CLASS_MAX}"
            ));
        }
        let id = TypeId::of::<E>();
        if let Some(earlier) = self.types.iter().find(|known| known.id == id) {
            let (name, earlier) = (type_name::<E>(), &earlier.class);
            return Err(format!(
                "error type [{name}] is registered as [{earlier}] and as [{class}]; keep one"
            ));
        }
        self.put_below(class, parent)?;
        self.types.push(ErrorType {
            id,
            is: |error| error.is::<E>(),
            class: class.to_owned(),
        });
        Ok(())
    }

    fn put_below(&mut self, class: &str, parent: &str) -> Result<(), String> {
        let (own, above) = (apache(class), apache(parent));
        if let Some(earlier) = self.parents.get(&*own).filter(|earlier| **earlier != above) {
            return Err(format!(
                "class [{class}] is registered below [{parent}], and it is below [{earlier}]; give both the same parent"
            ));
        }
        if self.is(&above, &own) {
            return Err(format!(
                "class [{class}] is registered below [{parent}], which is below it; name another parent"
            ));
        }
        self.parents.insert(own.into_owned(), above.into_owned());
        Ok(())
    }

    /// Returns whether a class is this other one, or below it.
    pub(in crate::saga) fn is(&self, class: &str, other: &str) -> bool {
        let (class, other) = (apache(class), apache(other));
        let above = std::iter::successors(Some(&*class), |class| self.parent(class));
        above.take(LEVELS_MAX).any(|class| class == other)
    }

    fn parent(&self, class: &str) -> Option<&str> {
        match class {
            THROWABLE => None,
            _ => Some(self.parents.get(class).map_or(RUNTIME, String::as_str)),
        }
    }

    /// Returns whether anything says what the class is: one of those that are known anyway, a registered one, or the
    /// parent of one.
    pub(in crate::saga) fn knows(&self, class: &str) -> bool {
        let class = apache(class);
        self.parents.contains_key(&*class) || self.parents.values().any(|parent| *parent == class)
    }

    /// Turns a fault into plain data, and drops it. Both run code of the user's error, so a panic there is caught as well.
    pub(super) fn record(&self, fault: Fault) -> FaultRecord {
        let recorded = catch_unwind(AssertUnwindSafe(move || {
            FaultRecord::new(self.class_of(&fault), fault.message(), fault.network_failure())
        }));
        recorded.unwrap_or_else(|panic| FaultRecord::panicked("its error", &*panic))
    }

    fn class_of<'a>(&'a self, fault: &'a Fault) -> &'a str {
        let (error, name) = match fault.origin() {
            Origin::Class(class) => return class,
            Origin::Error { error, type_name } => (&**error, *type_name),
        };
        let registered = chain(error).find_map(|error| self.registered(error));
        let network = chain(error).find_map(network_of).map(class_of_network);
        match (registered, network) {
            // Whoever registers `io::Error` as an `IOException` does not lose what is below that.
            (Some(registered), Some(network)) if self.is(network, registered) => network,
            (Some(class), _) | (None, Some(class)) => class,
            (None, None) => name,
        }
    }

    fn registered(&self, error: &(dyn Error + 'static)) -> Option<&str> {
        let known = self.types.iter().find(|known| (known.is)(error));
        known.map(|known| known.class.as_str())
    }
}

const fn class_of_network(network: Network) -> &'static str {
    match network {
        Network::Refused => CONNECT,
        Network::ConnectTimeout | Network::ReadTimeout => SOCKET_TIMEOUT,
    }
}

/// Returns the name that a class of Seata has since it is at Apache.
fn apache(class: &str) -> Cow<'_, str> {
    match class.strip_prefix("io.seata.") {
        Some(rest) => Cow::Owned(format!("org.apache.seata.{rest}")),
        None => Cow::Borrowed(class),
    }
}
