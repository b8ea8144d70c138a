//! The verbs that look into a closed journal: what each prints, its exit code, and that
//! it leaves no trace in the directory.

mod golden;
mod journal;
mod refused;
mod run;

/// Tests pass errors up; the harness prints them.
type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;
