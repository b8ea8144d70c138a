//! When a schedule is due: a cron expression in a time zone, or a fixed interval. Pure arithmetic over instants; the
//! rules for days on which clocks change are here, and nowhere else.

use std::time::Duration;

use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{SignedDuration, Zoned};
use procession_kernel::Timestamp;
use serde::{Deserialize, Serialize};

use super::BadSchedule;

/// Shortest interval. Each tick is a commit of the schedule and a submission; what is due more often is a loop.
const INTERVAL_MIN: Duration = Duration::from_secs(1);
/// Longest interval. A longer one is usually a wrong unit.
const INTERVAL_MAX: Duration = Duration::from_hours(24 * 366);
/// No zone has set its clocks back by more than this.
const FOLD_MAX: SignedDuration = SignedDuration::from_hours(24);
/// Matches of the wall clock that are passed over because they lie behind: those of a repeated day at a minute each.
const PASSED_MAX: usize = 24 * 60;

/// When ticks are due, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Timetable {
    /// A cron expression of five fields, read in this time zone.
    Cron { expression: String, zone: String },
    /// Every multiple of this many microseconds since 1970.
    Every { micros: u64 },
}

impl Timetable {
    pub(super) fn every(interval: Duration) -> Result<Self, BadSchedule> {
        if !(INTERVAL_MIN..=INTERVAL_MAX).contains(&interval) {
            return Err(BadSchedule::Interval { interval });
        }
        let micros = u64::try_from(interval.as_micros()).map_err(|_| BadSchedule::Interval { interval })?;
        Ok(Self::Every { micros })
    }

    /// Reads what is stored. The time zone is looked up anew each time, so that a newer database counts.
    pub(super) fn ticks(&self) -> Result<Ticks, BadSchedule> {
        match self {
            Self::Every { micros } => {
                Self::every(Duration::from_micros(*micros))?;
                Ok(Ticks::Every(*micros))
            }
            Self::Cron { expression, zone } => {
                let cron = parse(expression)?;
                let zone = zone_of(zone)?;
                let ticks = if follows_elapsed_time(expression) {
                    Ticks::Elapsed(Box::new(cron), zone)
                } else {
                    Ticks::Wall(Box::new(cron), zone)
                };
                // Such as 30 February.
                if ticks.after(Timestamp(0)).is_none() {
                    let why = "no day matches it".to_owned();
                    return Err(BadSchedule::expression(expression, why));
                }
                Ok(ticks)
            }
        }
    }

    /// Returns the time zone whose date a tick has.
    pub(super) fn zone(&self) -> TimeZone {
        match self {
            Self::Cron { zone, .. } => zone_of(zone).unwrap_or(TimeZone::UTC),
            Self::Every { .. } => TimeZone::UTC,
        }
    }
}

impl std::fmt::Display for Timetable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Cron { expression, zone } => write!(f, "{expression} {zone}"),
            Self::Every { micros } => write!(f, "every {:?}", Duration::from_micros(*micros)),
        }
    }
}

fn parse(expression: &str) -> Result<Cron, BadSchedule> {
    let parser = CronParser::builder()
        .seconds(Seconds::Disallowed)
        .year(Year::Disallowed)
        .build();
    let parsed = parser.parse(expression);
    parsed.map_err(|error| BadSchedule::expression(expression, error.to_string()))
}

fn zone_of(name: &str) -> Result<TimeZone, BadSchedule> {
    TimeZone::get(name).map_err(|error| BadSchedule::Zone {
        zone: name.to_owned(),
        why: error.to_string(),
    })
}

/// Returns `true` if the hours are not named, so that the expression means a rhythm and no times of day.
fn follows_elapsed_time(expression: &str) -> bool {
    // The parser reads it as `0 * * * *`. The other names stand for midnights.
    if expression.trim().eq_ignore_ascii_case("@hourly") {
        return true;
    }
    let hours = expression.split_whitespace().nth(1);
    hours.is_some_and(|hours| hours.starts_with('*'))
}

/// When ticks are due, read and ready to be asked.
pub(super) enum Ticks {
    /// Multiples of this many microseconds.
    Every(u64),
    /// A rhythm such as `*/15 * * * *`: whatever the clock shows, no hour has more or fewer ticks than another.
    Elapsed(Box<Cron>, TimeZone),
    /// Times of day such as `30 2 * * *`: each is one tick on each day.
    Wall(Box<Cron>, TimeZone),
}

impl Ticks {
    /// Returns the first tick after this instant; `None` if the calendar ends before one.
    pub(super) fn after(&self, at: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Every(micros) => {
                at.0.checked_div(*micros)?
                    .checked_add(1)?
                    .checked_mul(*micros)
                    .map(Timestamp)
            }
            Self::Elapsed(cron, zone) => {
                let next = cron.find_next_occurrence(&zoned(at, zone)?, false).ok()?;
                instant_of(&next)
            }
            Self::Wall(cron, zone) => {
                // No civil time before this one is an instant after it.
                let civil = whole_second(zoned(at, zone)?.datetime())?;
                let before = civil.checked_sub(SignedDuration::from_secs(1)).ok()?;
                let matches = cron.iter_after(before).take(PASSED_MAX);
                matches.filter_map(|civil| tick_of(civil, zone)).find(|tick| *tick > at)
            }
        }
    }

    /// Returns the newest ticks after one instant and up to another, at most this many, the oldest first. The cost
    /// follows their number, and not the time between.
    pub(super) fn newest(&self, after: Timestamp, upto: Timestamp, most: usize) -> Vec<Timestamp> {
        let mut ticks = self.backwards(upto, after, most);
        ticks.reverse();
        ticks
    }

    fn backwards(&self, upto: Timestamp, after: Timestamp, most: usize) -> Vec<Timestamp> {
        match self {
            Self::Every(micros) => {
                let last = upto
                    .0
                    .checked_div(*micros)
                    .and_then(|number| number.checked_mul(*micros));
                let ticks = std::iter::successors(last, |tick| tick.checked_sub(*micros));
                ticks
                    .map(Timestamp)
                    .take_while(|tick| *tick > after)
                    .take(most)
                    .collect()
            }
            Self::Elapsed(cron, zone) => {
                let Some(mut at) = zoned(upto, zone) else {
                    return Vec::new();
                };
                let mut ticks = Vec::new();
                let mut is_inclusive = true;
                while ticks.len() < most
                    && let Ok(tick) = cron.find_previous_occurrence(&at, is_inclusive)
                    && let Some(instant) = instant_of(&tick).filter(|instant| *instant > after)
                {
                    ticks.push(instant);
                    (at, is_inclusive) = (tick, false);
                }
                ticks
            }
            Self::Wall(cron, zone) => {
                // The civil times of a repeated hour that come later have instants before this one.
                let civil = zoned(upto, zone).and_then(|zoned| whole_second(zoned.datetime()));
                let Some(civil) = civil.and_then(|civil| civil.checked_add(FOLD_MAX).ok()) else {
                    return Vec::new();
                };
                // The first that is before 1970 ends it: all others are, too.
                let ticks = cron.iter_before(civil).map_while(|civil| tick_of(civil, zone));
                let ticks = ticks.skip_while(|tick| *tick > upto).take_while(|tick| *tick > after);
                distinct(ticks, most)
            }
        }
    }
}

/// Takes ticks that differ from the one before, at most this many: several times of a skipped hour are one.
fn distinct(all: impl Iterator<Item = Timestamp>, most: usize) -> Vec<Timestamp> {
    let mut ticks: Vec<Timestamp> = Vec::new();
    for tick in all {
        if ticks.last() == Some(&tick) {
            continue;
        }
        if ticks.len() == most {
            break;
        }
        ticks.push(tick);
    }
    ticks
}

/// Returns the instant of a time of day: the first of two where the clock is set back, and the end of the gap where the
/// clock is set forward over it.
fn tick_of(civil: DateTime, zone: &TimeZone) -> Option<Timestamp> {
    let ambiguous = zone.to_ambiguous_timestamp(civil);
    let instant = match ambiguous.offset() {
        AmbiguousOffset::Unambiguous { offset } => offset.to_timestamp(civil).ok()?,
        AmbiguousOffset::Fold { before, .. } => before.to_timestamp(civil).ok()?,
        AmbiguousOffset::Gap { before, .. } => {
            // The time that the old clock would show lies at or behind the change.
            let behind = before.to_timestamp(civil).ok()?;
            let behind = behind.checked_add(SignedDuration::from_secs(1)).ok()?;
            zone.preceding(behind).next()?.timestamp()
        }
    };
    timestamp(instant)
}

pub(super) fn zoned(at: Timestamp, zone: &TimeZone) -> Option<Zoned> {
    let micros = i64::try_from(at.0).ok()?;
    let instant = jiff::Timestamp::from_microsecond(micros).ok()?;
    Some(instant.to_zoned(zone.clone()))
}

fn instant_of(zoned: &Zoned) -> Option<Timestamp> {
    timestamp(zoned.timestamp())
}

/// The engine's instants begin in 1970.
fn timestamp(instant: jiff::Timestamp) -> Option<Timestamp> {
    u64::try_from(instant.as_microsecond()).ok().map(Timestamp)
}

fn whole_second(civil: DateTime) -> Option<DateTime> {
    civil.with().subsec_nanosecond(0).build().ok()
}

#[cfg(test)]
mod tests;
