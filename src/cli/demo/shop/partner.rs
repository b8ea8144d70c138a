//! A partner of the shop: the bank, the carrier. They have disks of their own and a bad line, and know nothing of the
//! engine. This one keeps a file for each deal.
//!
//! A call runs at least once: the process may die, or the line drop, after the partner has done its part. So each deal
//! has a token, and a partner that sees the token again does nothing.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Of so many new deals, the answer to one is lost.
const LOST_EVERY: u64 = 8;
/// Ending of a deal that is being written.
const UNFINISHED: &str = ".tmp";

/// What is agreed on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deal {
    /// The number of the order.
    pub order: u64,
    /// How much money, or how many goods.
    pub amount: u32,
    /// Where the customer lives.
    pub town: String,
}

/// What a partner says to a deal. A refusal is an answer, and no error: to ask again would change nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Agreed.
    Agreed,
    /// Refused, for this reason.
    Refused(String),
}

/// Says why a partner refuses a deal, if it does.
pub type Refuses = fn(&Deal) -> Option<String>;

/// Somebody else's system.
#[derive(Debug, Clone)]
pub struct Partner {
    directory: PathBuf,
    pace: Duration,
    refuses: Refuses,
}

impl Partner {
    /// Makes the directory of a partner who takes up to `pace` for an answer.
    ///
    /// # Errors
    ///
    /// Whatever the system says.
    pub fn open(directory: PathBuf, pace: Duration, refuses: Refuses) -> io::Result<Self> {
        fs::create_dir_all(&directory)?;
        Ok(Self {
            directory,
            pace,
            refuses,
        })
    }

    /// Agrees on a deal, once for each token, or refuses it.
    ///
    /// # Errors
    ///
    /// If the line drops, which it also does after the deal was written down.
    pub fn agree(&self, token: &str, deal: &Deal) -> io::Result<Answer> {
        self.take_time(token);
        if let Some(why) = (self.refuses)(deal) {
            return Ok(Answer::Refused(why));
        }
        let place = self.directory.join(token);
        if place.exists() {
            return Ok(Answer::Agreed);
        }
        // A partner that is killed has written a deal down, or has not.
        let unfinished = self.directory.join(format!("{token}{UNFINISHED}"));
        fs::write(&unfinished, serde_json::to_vec(deal)?)?;
        fs::rename(&unfinished, &place)?;
        if luck(token).is_multiple_of(LOST_EVERY) {
            return Err(io::Error::new(
                ErrorKind::ConnectionReset,
                "the line dropped before the answer came",
            ));
        }
        Ok(Answer::Agreed)
    }

    /// Takes a deal back, if there was one.
    ///
    /// # Errors
    ///
    /// If the line drops.
    pub fn take_back(&self, token: &str) -> io::Result<()> {
        self.take_time(token);
        match fs::remove_file(self.directory.join(token)) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Returns all deals that stand, ordered by their orders.
    ///
    /// # Errors
    ///
    /// Whatever the system says.
    pub fn deals(&self) -> io::Result<Vec<Deal>> {
        let mut deals = Vec::new();
        for file in fs::read_dir(&self.directory)? {
            let file = file?;
            if !file.file_name().to_string_lossy().ends_with(UNFINISHED) {
                deals.push(serde_json::from_slice(&fs::read(file.path())?)?);
            }
        }
        deals.sort_by_key(|deal: &Deal| deal.order);
        Ok(deals)
    }

    /// Works on the answer for a while, which is from half the pace to all of it.
    fn take_time(&self, token: &str) {
        let eighths = u32::try_from(4 + luck(token) % 5).unwrap_or(8);
        thread::sleep(self.pace * eighths / 8);
    }
}

/// Returns a number of a token, which is as good as drawn and always the same.
fn luck(token: &str) -> u64 {
    token.bytes().fold(7, |sum, byte| (sum * 31 + u64::from(byte)) % 1_009)
}
