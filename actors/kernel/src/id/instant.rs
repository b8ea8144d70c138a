//! Displays instants as date and time in UTC, in the form of RFC 3339.

use std::fmt;

use super::Timestamp;

const MICROS: u64 = 1_000_000;
const SECONDS_A_DAY: u64 = 86_400;
/// Days in 400 years, after which the calendar repeats itself.
const DAYS_OF_400_YEARS: u64 = 146_097;
/// Days from 1 March of the year 0 to 1970. If a year begins in March, its leap day comes last.
const DAYS_BEFORE_1970: u64 = 719_468;

impl fmt::Display for Timestamp {
    /// For instance `2026-11-21T11:18:15.25Z`; a zero fraction is left out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, micros) = (self.0 / MICROS, self.0 % MICROS);
        let (year, month, day) = date(seconds / SECONDS_A_DAY);
        let second = seconds % SECONDS_A_DAY;
        let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")?;
        if micros > 0 {
            let fraction = format!("{micros:06}");
            write!(f, ".{}", fraction.trim_end_matches('0'))?;
        }
        f.write_str("Z")
    }
}

/// Returns year, month and day, given the days since the beginning of 1970.
const fn date(days: u64) -> (u64, u64, u64) {
    let days = days + DAYS_BEFORE_1970;
    let (age, day) = (days / DAYS_OF_400_YEARS, days % DAYS_OF_400_YEARS);
    // Leap days: one in 1,461 days, except every 36,524 days, except the last day of the cycle.
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    // From March on, every five months have 153 days.
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = age * 400 + year;
    (if month <= 2 { year + 1 } else { year }, month, day)
}
