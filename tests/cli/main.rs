//! The verbs that look into a closed journal or through a dashboard, and those that act: what
//! each prints, its exit code, and that a look leaves no trace in the directory.

mod act;
mod copies;
mod damaged;
mod export;
mod golden;
mod history;
mod import;
mod incident;
mod journal;
mod named;
mod online;
mod output;
mod refused;
mod remote;
mod run;
mod saga;
mod saga_run;
#[path = "../saga/server.rs"]
mod server;
mod site;
mod standing;
mod tail;
mod terminal;

/// Tests pass errors up; the harness prints them.
type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;
