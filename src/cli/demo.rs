//! The demo: stories that can be killed at any time and go on, on the public API alone.
//!
//! ```text
//! shop       orders, stock, payments, shipping: what `procession demo` tells
//! tablets    a control plane in the manner of Tera's master, whose tablets are files
//! trouble    a shop in which everything is the matter, for whoever wants to act
//! ```
//! Each is told in a directory of its own, with the engine's store in `journal/`. That of the shop is described in
//! [`shop`], that of trouble has no more. The tablet master's:
//!
//! ```text
//! DIR/journal/        the engine's store; in it, as user data, the meta table
//! DIR/servers/s1/…    a tablet server: the files of the tablets it has loaded
//! DIR/shared/         the files of tablets that no server has loaded
//! DIR/workload.json   what this directory was begun with
//! ```
//! A tablet is a plain file of sorted rows, one a line. Its row in the meta
//! table is committed with the stage that moved or wrote the file, so that a
//! crash between the two leaves the stage to run again, and it finds its work done.
//!
//! Built for the `procession demo` command; not an interface to build upon.

pub(crate) mod command;
pub mod console;
pub mod draw;
pub mod dump;
pub mod engine;
pub mod error;
pub mod faults;
pub mod files;
pub mod input;
pub mod master;
pub mod meta;
pub mod pace;
pub mod procedures;
pub mod progress;
pub mod record;
pub mod report;
pub mod rows;
pub mod run;
pub mod shop;
pub mod site;
pub mod story;
pub mod verify;
pub mod watch;
pub mod workload;

mod stage;
mod trouble;

pub use error::DemoError;
