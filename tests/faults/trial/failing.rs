//! File operations that fail, one in each life of an engine; the journal that is
//! left is judged with nothing in the way.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use serde::{Deserialize, Serialize};

use super::judge::{Ledger, judge};
use super::library::{Between, Fault, How};
use super::life::{Task, copy};
use crate::Outcome;
use crate::other::Other;

/// Lives on what is there, or on nothing, each with another fault.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Failing {
    /// Where the cases may work.
    pub(crate) place: PathBuf,
    /// A directory with a journal and the ledger of its lives, if there is one.
    pub(crate) base: Option<PathBuf>,
    /// What each life does; the paths are those of its case.
    pub(crate) task: Task,
    pub(crate) cases: Vec<Fault>,
}

impl Failing {
    /// Returns each operation that counts in a life without a fault, as its letter and its path.
    pub(crate) fn operations(&self, letters: &str) -> Outcome<Vec<String>> {
        let none = Fault {
            at: 0,
            how: How::Once,
            error: 0,
            letters: letters.to_owned(),
            path: None,
        };
        let place = tempfile::tempdir_in(&self.place)?;
        let case = Case::new(self, place.path())?;
        let (status, lines) = case.live(&none)?;
        if !lines.iter().any(|line| line == "drained") {
            return Err(format!("without a fault: {status} {}", lines.join(" | ")).into());
        }
        case.judge(self.task.filler)?;
        case.operations()
    }

    pub(crate) fn try_cases(&self, numbers: &[usize], place: &Path, mut say: impl FnMut(&str) -> Outcome) -> Outcome {
        for number in numbers {
            let fault = self.cases.get(*number).ok_or("no such case")?;
            say(&format!("next {number}"))?;
            let place = place.join(number.to_string());
            match self.try_case(fault, &place) {
                Ok(end) => say(&format!("sound {number} {end}"))?,
                Err(why) => say(&format!("wrong {number} {why} ({fault:?})"))?,
            }
            fs::remove_dir_all(place).ok();
        }
        Ok(())
    }

    /// Returns what failed and how the life ended.
    fn try_case(&self, fault: &Fault, place: &Path) -> Outcome<String> {
        let case = Case::new(self, place)?;
        let (status, lines) = case.live(fault)?;
        let operations = case.operations()?;
        let struck = operations.get(fault.at - 1);
        let about = struck.map_or("nothing", |one| one.as_str());
        let end = end_of(status, &lines).ok_or_else(|| format!("{about}: {status} {}", lines.join(" | ")))?;
        let is_due = struck.is_some() && fault.how == How::Kill;
        if is_due != (end == "killed") {
            return Err(format!("{about}: it {end}").into());
        }
        let judged = case.judge(self.task.filler);
        judged.map_err(|error| format!("{about}, it {end} ({}): {error}", lines.join(" | ")))?;
        let letter = about.split(' ').next().unwrap_or_default();
        Ok(format!("{letter} {end}"))
    }
}

/// Says in a word how a life ended; none if it should not have ended so.
fn end_of(status: ExitStatus, lines: &[String]) -> Option<&'static str> {
    let said = |word: &str| lines.iter().any(|line| line.starts_with(word));
    match status.code() {
        None => (status.signal() == Some(9)).then_some("killed"),
        Some(0) if said("refused ") => Some("refused"),
        Some(0) if said("failed ") => Some("failed"),
        Some(0) if said("not drained") => Some("was not drained"),
        Some(0) if said("drained") => Some("drained"),
        Some(_) => None,
    }
}

struct Case {
    place: PathBuf,
    task: Task,
}

impl Case {
    fn new(of: &Failing, place: &Path) -> Outcome<Self> {
        fs::create_dir_all(place)?;
        if let Some(base) = &of.base {
            for name in ["disk", "ledger"] {
                copy(&base.join(name), &place.join(name))?;
            }
        } else {
            fs::create_dir(place.join("disk"))?;
        }
        let mut task = of.task.clone();
        task.journal = place.join("disk/journal");
        task.ledger = place.join("ledger");
        Ok(Self {
            place: place.to_owned(),
            task,
        })
    }

    fn list(&self) -> PathBuf {
        self.place.join("list")
    }

    fn live(&self, fault: &Fault) -> Outcome<(ExitStatus, Vec<String>)> {
        let mut command = self.task.command()?;
        let between = Between {
            below: &self.place.join("disk"),
            ledger: Some(&self.task.ledger),
            record: None,
            list: Some(&self.list()),
            fault: Some(fault),
        };
        between.stand(&mut command)?;
        Other::start(command)?.end()
    }

    fn operations(&self) -> Outcome<Vec<String>> {
        Ok(fs::read_to_string(self.list())?.lines().map(str::to_owned).collect())
    }

    fn judge(&self, filler: usize) -> Outcome {
        let ledger = match fs::read_to_string(&self.task.ledger) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error.into()),
        };
        let ledger = Ledger::read(&ledger)?;
        Ok(judge(&self.task.journal, &ledger, filler)?)
    }
}
