//! One file of a closed journal is damaged at a time: all that was told is there,
//! or an engine or `doctor` says what is wrong. What neither sees is a silent loss.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use procession_cli::demo::draw::Draw;
use serde::{Deserialize, Serialize};

use super::ground::{Place, seed};
use super::judge::{Ledger, judge};
use super::life::copy;
use super::pool::{Trial, all_are_sound};
use crate::Outcome;
use crate::check::files;

/// Damages of each run where `TRIAL_DAMAGES` says nothing.
const DAMAGES: usize = 60;

/// What is done to a file; places are thousandths of what it holds.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) enum Harm {
    Remove,
    Empty,
    Cut(usize),
    Flip { at: usize, bit: u8 },
    Zeros(usize),
    Append,
}

/// A journal, and one harm in each case.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Damage {
    pub(crate) place: PathBuf,
    pub(crate) base: Option<PathBuf>,
    pub(crate) cases: Vec<(PathBuf, Harm)>,
}

impl Harm {
    fn drawn(draw: &mut Draw) -> Self {
        let at = draw.below(1_000);
        let bit = 1 << draw.below(8);
        match draw.below(9) {
            0 => Self::Remove,
            1 => Self::Empty,
            2 => Self::Cut(at),
            3 => Self::Zeros(at),
            4 => Self::Append,
            _ => Self::Flip { at, bit },
        }
    }

    fn strike(self, path: &Path) -> Outcome {
        if matches!(self, Self::Remove) {
            return Ok(fs::remove_file(path)?);
        }
        let mut bytes = fs::read(path)?;
        // A log is mostly zeros behind its end: harm there is none.
        let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        match self {
            Self::Remove => {}
            Self::Empty => bytes.clear(),
            Self::Cut(at) => bytes.truncate(used * at / 1_000),
            Self::Append => bytes.extend_from_slice(&[0xA5; 100]),
            Self::Flip { at, bit } => {
                if let Some(byte) = bytes.get_mut(used * at / 1_000) {
                    *byte ^= bit;
                }
            }
            Self::Zeros(at) => bytes
                .iter_mut()
                .skip(used * at / 1_000)
                .take(512)
                .for_each(|byte| *byte = 0),
        }
        Ok(fs::write(path, bytes)?)
    }
}

impl Damage {
    pub(crate) fn try_cases(&self, numbers: &[usize], place: &Path, mut say: impl FnMut(&str) -> Outcome) -> Outcome {
        for number in numbers {
            let (path, harm) = self.cases.get(*number).ok_or("no such case")?;
            say(&format!("next {number}"))?;
            let place = place.join(number.to_string());
            match self.try_case(path, *harm, &place)? {
                Ok(end) => say(&format!("sound {number} {end}"))?,
                Err(why) => say(&format!("wrong {number} {}, {harm:?}: {why}", path.display()))?,
            }
            fs::remove_dir_all(place).ok();
        }
        Ok(())
    }

    fn try_case(&self, path: &Path, harm: Harm, place: &Path) -> Outcome<Result<&'static str, String>> {
        let base = self.base.as_ref().ok_or("there is no journal")?;
        let journal = place.join("journal");
        copy(&base.join("disk/journal"), &journal)?;
        harm.strike(&journal.join(path))?;
        let doctor = Command::new(env!("CARGO_BIN_EXE_procession"))
            .args(["doctor", "--data"])
            .arg(&journal)
            .output()?;
        let is_told = !doctor.status.success();
        if doctor.status.code().is_none() {
            return Ok(Err(format!("doctor died: {}", doctor.status)));
        }
        let ledger = Ledger::read(&fs::read_to_string(base.join("ledger"))?)?;
        Ok(match (judge(&journal, &ledger, 0), is_told) {
            (Ok(()), false) => Ok("harmless"),
            (Ok(()), true) => Ok("told, and bearable"),
            (Err(_), true) => Ok("told"),
            (Err(why), false) => Err(format!("doctor calls it well: {why}")),
        })
    }
}

#[test]
fn whatever_file_is_damaged_is_told_or_harmless() -> Outcome {
    let seed = seed();
    let mut draw = Draw::new(seed);
    let place = Place::new("journal")?;
    let mut task = place.task(0, 15);
    task.checkpoint = 3_000;
    place.live_well(&task)?;
    let mut found = Vec::new();
    for (path, bytes) in files(&place.journal())? {
        if bytes.iter().any(|byte| *byte != 0) {
            found.push(path.strip_prefix(place.journal())?.to_owned());
        }
    }
    let given = std::env::var("TRIAL_DAMAGES").ok().and_then(|text| text.parse().ok());
    let count = given.unwrap_or(DAMAGES);
    let mut cases = Vec::new();
    for _ in 0..count {
        let path = draw.one(&found).ok_or("the journal is empty")?;
        cases.push((path.clone(), Harm::drawn(&mut draw)));
    }
    let damage = Damage {
        place: place.path().to_owned(),
        base: Some(place.path().to_owned()),
        cases,
    };
    all_are_sound("damage", &Trial::Damage(damage), count, seed)?;
    Ok(())
}
