//! Processes that try many states or cases each. One that is killed by what it
//! tries, or hangs, is replaced, and what it tried counts as wrong.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::cuts::{Cuts, now};
use super::damage::Damage;
use super::failing::Failing;
use crate::Outcome;
use crate::other::Other;

const JOB: &str = "TRIAL_JOB";
/// Wrong ones that are shown.
const SHOWN: usize = 5;

/// What is tried.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Trial {
    Cuts(Cuts),
    Failing(Failing),
    Damage(Damage),
}

/// A trial, and those of its states or cases that one process is to try.
#[derive(Debug, Serialize, Deserialize)]
struct Job {
    trial: Trial,
    numbers: Vec<usize>,
    place: PathBuf,
}

/// What came of a trial.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) tried: usize,
    pub(crate) wrong: BTreeMap<usize, String>,
    /// How often something was said of a sound one.
    pub(crate) said: BTreeMap<String, usize>,
    seconds: f64,
}

impl Report {
    fn take(&mut self, line: &str) -> Option<()> {
        let (word, rest) = line.split_once(' ')?;
        let (number, what) = rest.split_once(' ').unwrap_or((rest, ""));
        let number = number.parse().ok()?;
        match word {
            "sound" => *self.said.entry(what.to_owned()).or_default() += 1,
            "wrong" => {
                self.wrong.insert(number, what.to_owned());
            }
            _ => return None,
        }
        self.tried += 1;
        Some(())
    }

    fn add(&mut self, other: Self) {
        self.tried += other.tried;
        self.wrong.extend(other.wrong);
        for (what, count) in other.said {
            *self.said.entry(what).or_default() += count;
        }
    }

    /// Says on standard error, past the harness, what was done.
    pub(crate) fn tell(&self, test: &str, seed: u64) -> Outcome {
        let Self {
            tried,
            wrong,
            seconds,
            said,
        } = self;
        let wrong = wrong.len();
        let rate = *tried as f64 / seconds.max(0.001);
        writeln!(
            std::io::stderr(),
            "{test}: {tried} tried in {seconds:.1} s ({rate:.0} a second), {wrong} wrong, TRIAL_SEED={seed} {said:?}"
        )?;
        Ok(())
    }
}

/// Tries them all, on two processors. Those that are wrong are kept, and the error says how to try one again.
pub(crate) fn all_are_sound(test: &str, trial: &Trial, count: usize, seed: u64) -> Outcome<Report> {
    let report = run(trial, count)?;
    report.tell(test, seed)?;
    let Some(first) = report.wrong.keys().next() else {
        return Ok(report);
    };
    let shown: Vec<String> = report
        .wrong
        .iter()
        .take(SHOWN)
        .map(|(at, why)| format!("{at}: {why}"))
        .collect();
    let kept = keep(test, trial, *first)?;
    Err(format!(
        "{} of {} are wrong, TRIAL_SEED={seed}:\n{}\nthe first one again: {JOB}={} cargo test --test faults tries_in_another_process -- --nocapture",
        report.wrong.len(),
        report.tried,
        shown.join("\n"),
        kept.display()
    )
    .into())
}

/// Tries them all, and counts.
pub(crate) fn run(trial: &Trial, count: usize) -> Outcome<Report> {
    const PROCESSES: usize = 2;
    let begun = now();
    let report = Mutex::new(Report::default());
    let place = tempfile::Builder::new().prefix("states").tempdir_in(trial.place())?;
    std::thread::scope(|scope| -> Outcome {
        let threads: Vec<_> = (0..PROCESSES)
            .map(|first| {
                let numbers: Vec<usize> = (first..count).step_by(PROCESSES).collect();
                let place = place.path().join(first.to_string());
                let report = &report;
                scope.spawn(move || {
                    let own = try_numbers(trial, numbers, &place).map_err(|error| error.to_string())?;
                    report.lock().unwrap_or_else(PoisonError::into_inner).add(own);
                    Ok::<(), String>(())
                })
            })
            .collect();
        for thread in threads {
            thread.join().map_err(|_| "a thread of the trial panicked")??;
        }
        Ok(())
    })?;
    let mut report = report.into_inner().unwrap_or_else(PoisonError::into_inner);
    report.seconds = begun.elapsed().as_secs_f64();
    if report.tried == count {
        return Ok(report);
    }
    Err(format!("{} of {count} were tried", report.tried).into())
}

fn try_numbers(trial: &Trial, mut numbers: Vec<usize>, place: &Path) -> Outcome<Report> {
    fs::create_dir_all(place)?;
    let mut report = Report::default();
    while !numbers.is_empty() {
        let job = place.join("job");
        let given = Job {
            trial: trial.clone(),
            numbers: numbers.clone(),
            place: place.to_owned(),
        };
        fs::write(&job, serde_json::to_string(&given)?)?;
        let mut command = Command::new(std::env::current_exe()?);
        command
            .args([
                "--exact",
                "trial::pool::tries_in_another_process",
                "--nocapture",
                "--quiet",
            ])
            .env(JOB, &job);
        let mut other = Other::start(command)?;
        let mut next = None;
        let end = loop {
            match other.line() {
                Ok(Some(line)) => {
                    if let Some(number) = line.strip_prefix("next ") {
                        let number: usize = number.parse()?;
                        numbers.retain(|one| *one != number);
                        next = Some(number);
                    } else if report.take(&line).is_some() {
                        next = None;
                    } else if line.starts_with("error ") {
                        return Err(line.into());
                    }
                }
                Ok(None) => break "the process was killed by it".to_owned(),
                Err(error) => break error.to_string(),
            }
        };
        match next {
            Some(number) => {
                report.take(&format!("wrong {number} {end}"));
            }
            None if numbers.is_empty() => {}
            None => return Err(format!("a process of the trial ended early: {end}").into()),
        }
    }
    Ok(report)
}

/// Keeps what is needed to try one again, where cargo keeps what it builds.
fn keep(test: &str, trial: &Trial, number: usize) -> Outcome<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    let job = Job {
        trial: trial.kept_in(&folder)?,
        numbers: vec![number],
        place: folder.join("states"),
    };
    let path = folder.join("job");
    fs::write(&path, serde_json::to_string(&job)?)?;
    Ok(path)
}

impl Trial {
    fn place(&self) -> &Path {
        match self {
            Self::Cuts(cuts) => cuts.record.parent(),
            Self::Failing(failing) => Some(failing.place.as_path()),
            Self::Damage(damage) => Some(damage.place.as_path()),
        }
        .unwrap_or(Path::new("."))
    }

    /// Copies what it needs into a directory; gives it as it is from there.
    fn kept_in(&self, folder: &Path) -> Outcome<Self> {
        let base = |from: &Option<PathBuf>| -> Outcome<Option<PathBuf>> {
            let Some(from) = from else { return Ok(None) };
            super::life::copy(from, &folder.join("base"))?;
            Ok(Some(folder.join("base")))
        };
        Ok(match self {
            Self::Cuts(cuts) => {
                let record = folder.join("record");
                fs::copy(&cuts.record, &record)?;
                Self::Cuts(Cuts {
                    record,
                    base: base(&cuts.base)?,
                    ..cuts.clone()
                })
            }
            Self::Failing(failing) => Self::Failing(Failing {
                base: base(&failing.base)?,
                place: folder.to_owned(),
                ..failing.clone()
            }),
            Self::Damage(damage) => Self::Damage(Damage {
                base: base(&damage.base)?,
                place: folder.to_owned(),
                ..damage.clone()
            }),
        })
    }
}

fn say(line: &str) -> Outcome {
    let mut out = std::io::stdout();
    writeln!(out, "{}", line.replace('\n', " "))?;
    Ok(out.flush()?)
}

/// Does nothing unless another test, or somebody who wants to see a failure again, gives it a job.
#[test]
fn tries_in_another_process() -> Outcome {
    let Some(job) = std::env::var_os(JOB) else {
        return Ok(());
    };
    let job: Job = serde_json::from_str(&fs::read_to_string(job)?)?;
    let tried = match &job.trial {
        Trial::Cuts(cuts) => cuts.try_states(&job.numbers, &job.place, say),
        Trial::Failing(failing) => failing.try_cases(&job.numbers, &job.place, say),
        Trial::Damage(damage) => damage.try_cases(&job.numbers, &job.place, say),
    };
    match tried {
        Ok(()) => Ok(()),
        Err(error) => say(&format!("error {error}")),
    }
}
