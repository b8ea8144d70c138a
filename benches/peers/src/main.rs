//! The same workloads on procession and on its peers, in one run.
//!
//! ```console
//! cargo run --release --manifest-path benches/peers/Cargo.toml -- --rounds 3 --seconds 5
//! ```
//! Every measurement has a process and a directory of its own, so that no engine
//! inherits another's memory or files. The engines take turns within a round, and
//! the median round is shown. Timed: a window after a warm-up. Not timed: the
//! start of an engine, and what is under way when the window closes. Times of a
//! processor are of all threads of that process within the window, the submitter's too.

mod group_store;
mod memable_peer;
mod ours;
mod steno_peer;
mod table;
mod workload;

use std::path::Path;
use std::process::{Command, ExitCode};

use workload::{Engine, Load, Rate, Workload};

/// One allocator for all of them: the one that the `procession` binary has, which asks it for no huge pages; here
/// it is as it comes.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Anything that ends a run.
type Failed = Box<dyn std::error::Error + Send + Sync>;

const USAGE: &str = "options: --rounds N (default 3), --seconds N for each measurement (default 5), \
                     --children N of the fan-out (default 1000), --data DIRECTORY (default the system's temporary one)";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.split_first() {
        Some((verb, rest)) if verb == "measure" => measure(rest),
        _ => Options::read(&arguments).and_then(|options| compare(&options)),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("procession-peers: {why}");
            ExitCode::FAILURE
        }
    }
}

/// What the user asked for.
struct Options {
    rounds: usize,
    seconds: u32,
    children: u32,
    data: std::path::PathBuf,
}

impl Options {
    fn read(arguments: &[String]) -> Result<Self, Failed> {
        let mut options = Self {
            rounds: 3,
            seconds: 5,
            children: 1_000,
            data: std::env::temp_dir(),
        };
        let mut rest = arguments.iter();
        while let Some(name) = rest.next() {
            let value = rest.next().ok_or(USAGE)?;
            let number = || match value.parse::<u32>() {
                Ok(number @ 1..=100_000) => Ok(number),
                _ => Err(format!("{name} takes a number from 1 to 100000, not {value}; {USAGE}")),
            };
            match name.as_str() {
                "--rounds" => options.rounds = usize::try_from(number()?)?,
                "--seconds" => options.seconds = number()?,
                "--children" => options.children = number()?,
                "--data" => options.data = value.into(),
                _ => return Err(format!("{name} is no option; {USAGE}").into()),
            }
        }
        Ok(options)
    }
}

/// Measures everything in turn, and prints the table.
fn compare(options: &Options) -> Result<(), Failed> {
    let loads = Load::all(options.children);
    let mut rates = table::Rates::default();
    for round in 1..=options.rounds {
        for load in &loads {
            for engine in Engine::ALL {
                if engine.lacks(load.workload).is_none() {
                    eprintln!("round {round} of {}: {load} on {engine}", options.rounds);
                    rates.add(*load, engine, measure_apart(engine, *load, options)?);
                }
            }
        }
    }
    table::print(&loads, &rates, options.rounds);
    Ok(())
}

/// Measures in a process of its own.
fn measure_apart(engine: Engine, load: Load, options: &Options) -> Result<Rate, Failed> {
    let directory = tempfile::tempdir_in(&options.data)?;
    let output = Command::new(std::env::current_exe()?)
        .args(["measure", engine.name(), load.workload.name()])
        .args([load.concurrency.to_string(), load.children.to_string()])
        .arg(options.seconds.to_string())
        .arg(directory.path())
        .stderr(std::process::Stdio::inherit())
        .output()?;
    let text = String::from_utf8(output.stdout)?;
    let rate = text.parse::<Rate>();
    rate.map_err(|_| format!("{load} on {engine} gave no rate: {}", output.status).into())
}

/// What the process of one measurement does: prints its rate.
fn measure(arguments: &[String]) -> Result<(), Failed> {
    let [engine, workload, concurrency, children, seconds, directory] = arguments else {
        return Err("measure: it is called by this program alone".into());
    };
    let load = Load {
        workload: Workload::named(workload)?,
        concurrency: concurrency.parse()?,
        children: children.parse()?,
    };
    let window = std::time::Duration::from_secs(seconds.parse()?);
    let directory = Path::new(directory);
    let rate = match Engine::named(engine)? {
        Engine::Ours => ours::measure(load, window, directory, false)?,
        Engine::Pure => ours::measure(load, window, directory, true)?,
        Engine::Steno => steno_peer::measure(load, window, directory)?,
        Engine::Memable => memable_peer::measure(load, window, directory)?,
    };
    println!("{rate}");
    Ok(())
}
