//! Sagas: machines in the state language of Seata, run by the engine. Names of tests carry the number of their scenario;
//! those of the language alone stand with its package, in `src/saga/language/tests/`.

mod bounds;
mod calls;
mod cases;
mod checked;
mod counted;
mod decisions;
mod http;
mod killed;
mod kit;
mod lists;
mod orders;
mod pinned;
mod random;
mod refused;
mod runner;
mod server;

/// The folder of the repository.
pub(crate) const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

pub(crate) type Tested = Result<(), Box<dyn std::error::Error>>;
