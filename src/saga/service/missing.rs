//! What a definition calls and nobody has registered.

use std::fmt;

use procession_saga_language::definition::shown;

use super::services::Services;

/// Most methods that a hint lists.
const LISTED: usize = 10;

/// A service or a method that is not there. Its text says which.
pub(in crate::saga) struct Missing<'a> {
    services: &'a Services,
    service: &'a str,
    method: &'a str,
}

impl<'a> Missing<'a> {
    pub(super) const fn new(services: &'a Services, service: &'a str, method: &'a str) -> Self {
        Self {
            services,
            service,
            method,
        }
    }

    /// Returns what to do. `nearest` looks for the name that is nearest to a word, and returns `did you mean [..]?` with
    /// it, or the last argument if none is near.
    pub(in crate::saga) fn hint(
        &self,
        nearest: impl FnOnce(&str, &mut dyn Iterator<Item = &'a str>, &str) -> String,
    ) -> String {
        let Some(methods) = self.services.methods_of(self.service) else {
            return nearest(self.service, &mut self.services.names(), "register it");
        };
        let names: Vec<&str> = methods.collect();
        let listed = names.iter().take(LISTED).copied().collect::<Vec<_>>().join(", ");
        match names.len().saturating_sub(LISTED) {
            0 if names.is_empty() => "it has none".to_owned(),
            0 => format!("it has {listed}"),
            more => format!("it has {listed} and {more} more"),
        }
    }
}

impl fmt::Display for Missing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let service = shown(self.service);
        match self.services.methods_of(self.service) {
            Some(_) => write!(f, "service [{service}] has no method [{}]", shown(self.method)),
            None => write!(f, "service [{service}] is not registered"),
        }
    }
}
