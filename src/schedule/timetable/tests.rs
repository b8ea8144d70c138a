//! Rules of `timetable`: days on which clocks change, and a comparison with jiff, minute by minute.

use std::collections::BTreeSet;

use jiff::ToSpan;
use jiff::tz::Disambiguation;
use proptest::prelude::*;

use super::*;

const MINUTE: u64 = 60_000_000;

fn instant(text: &str) -> Timestamp {
    let instant: jiff::Timestamp = text.parse().expect("an instant");
    timestamp(instant).expect("it is after 1970")
}

fn ticks(expression: &str, zone: &str) -> Ticks {
    let (expression, zone) = (expression.to_owned(), zone.to_owned());
    Timetable::Cron { expression, zone }.ticks().expect("it can be read")
}

/// The next ticks after an instant, in UTC.
fn next(expression: &str, zone: &str, from: &str, most: usize) -> Vec<String> {
    let ticks = ticks(expression, zone);
    let all = std::iter::successors(ticks.after(instant(from)), |at| ticks.after(*at));
    all.take(most).map(|at| at.to_string()).collect()
}

#[test]
fn a_time_of_day_that_is_skipped_is_due_at_the_end_of_the_gap() {
    let due = next("30 2 * * *", "Europe/Berlin", "2026-03-28T00:00:00Z", 3);
    assert_eq!(
        due,
        ["2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"]
    );
}

#[test]
fn several_times_of_a_skipped_hour_are_one_tick() {
    let due = next("0,20,40 2,3 * * *", "Europe/Berlin", "2026-03-29T00:00:00Z", 4);
    let gap_and_three = ["2026-03-29T01:00:00Z", "2026-03-29T01:20:00Z", "2026-03-29T01:40:00Z"];
    assert_eq!(due[..3], gap_and_three);
    assert_eq!(due[3], "2026-03-30T00:00:00Z");
}

#[test]
fn a_time_of_day_that_is_shown_twice_is_due_once_at_the_first() {
    let due = next("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", 2);
    assert_eq!(due, ["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"]);
    // Also asked in the second of the two hours.
    assert_eq!(
        next("30 2 * * *", "Europe/Berlin", "2026-10-25T01:10:00Z", 1),
        ["2026-10-26T01:30:00Z"]
    );
}

#[test]
fn a_rhythm_goes_on_in_elapsed_time() {
    let due = next("*/30 * * * *", "Europe/Berlin", "2026-03-29T00:10:00Z", 3);
    assert_eq!(
        due,
        ["2026-03-29T00:30:00Z", "2026-03-29T01:00:00Z", "2026-03-29T01:30:00Z"]
    );
    let due = next("*/30 * * * *", "Europe/Berlin", "2026-10-25T00:10:00Z", 4);
    let two_hours = [
        "2026-10-25T00:30:00Z",
        "2026-10-25T01:00:00Z",
        "2026-10-25T01:30:00Z",
        "2026-10-25T02:00:00Z",
    ];
    assert_eq!(due, two_hours);
}

#[test]
fn hourly_is_a_rhythm_and_runs_in_both_hours_that_the_clock_shows_twice() {
    let four = [
        "2026-10-24T23:00:00Z",
        "2026-10-25T00:00:00Z",
        "2026-10-25T01:00:00Z",
        "2026-10-25T02:00:00Z",
    ];
    for expression in ["@hourly", " @Hourly ", "0 * * * *"] {
        assert_eq!(next(expression, "Europe/Berlin", "2026-10-24T22:30:00Z", 4), four);
        let (from, upto) = (instant("2026-10-24T22:30:00Z"), instant("2026-10-25T02:00:00Z"));
        let newest = ticks(expression, "Europe/Berlin").newest(from, upto, 9);
        assert_eq!(newest, four.map(instant), "{expression}");
    }
}

#[test]
fn a_change_of_half_an_hour_and_a_skipped_day_follow_the_same_rules() {
    // Lord Howe sets its clocks from 02:00 to 02:30.
    let due = next("15 2 * * *", "Australia/Lord_Howe", "2026-10-03T14:00:00Z", 2);
    assert_eq!(due, ["2026-10-03T15:30:00Z", "2026-10-04T15:15:00Z"]);
    // Samoa had no 30 December 2011.
    let due = next("0 12 * * *", "Pacific/Apia", "2011-12-29T12:00:00Z", 3);
    assert_eq!(
        due,
        ["2011-12-29T22:00:00Z", "2011-12-30T10:00:00Z", "2011-12-30T22:00:00Z"]
    );
}

#[test]
fn the_last_day_of_december_is_the_last_of_its_month() {
    let due = next("0 6 L * *", "UTC", "2026-11-30T12:00:00Z", 2);
    assert_eq!(due, ["2026-12-31T06:00:00Z", "2027-01-31T06:00:00Z"]);
}

#[test]
fn what_cannot_be_read_says_what_to_write() {
    let wrong = |expression: &str, zone: &str| {
        let (expression, zone) = (expression.to_owned(), zone.to_owned());
        let timetable = Timetable::Cron { expression, zone };
        timetable
            .ticks()
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default()
    };
    for expression in ["", "61 * * * *", "* * * *", "0 0 30 2 *", "1 2 3 4 5 6", "nightly"] {
        let text = wrong(expression, "UTC");
        assert!(text.contains("such as \"30 2 * * *\""), "{expression}: {text:?}");
    }
    assert!(wrong("30 2 * * *", "Europe/Bärlin").contains("IANA"));
    for interval in [
        Duration::ZERO,
        Duration::from_millis(10),
        Duration::from_hours(24 * 367),
    ] {
        assert!(Timetable::every(interval).is_err(), "{interval:?}");
    }
}

#[test]
fn ticks_of_ten_years_are_not_walked_through() {
    let (from, upto) = (instant("2016-01-01T00:00:00Z"), instant("2026-01-01T00:00:30Z"));
    for table in ["* * * * *", "* 0-23 * * *"] {
        let newest = ticks(table, "Europe/Berlin").newest(from, upto, 2);
        assert_eq!(
            newest,
            [instant("2025-12-31T23:59:00Z"), instant("2026-01-01T00:00:00Z")]
        );
    }
    let every = Timetable::every(Duration::from_secs(1)).and_then(|table| table.ticks());
    let newest = every.expect("a second is possible").newest(from, upto, 1_000);
    assert_eq!((newest.len(), newest.last()), (1_000, Some(&upto)));
}

/// A field, and the values that it admits.
type Field = (&'static str, fn(i8) -> bool);

const MINUTES: [Field; 5] = [
    ("*", |_| true),
    ("*/15", |minute| minute % 15 == 0),
    ("7", |minute| minute == 7),
    ("0,30,59", |minute| [0, 30, 59].contains(&minute)),
    ("10-20/5", |minute| [10, 15, 20].contains(&minute)),
];

const HOURS: [Field; 6] = [
    ("*", |_| true),
    ("*/3", |hour| hour % 3 == 0),
    ("2", |hour| hour == 2),
    ("1-3", |hour| (1..=3).contains(&hour)),
    ("0,23", |hour| [0, 23].contains(&hour)),
    ("0-23", |_| true),
];

const ZONES: [&str; 8] = [
    "Europe/Berlin",
    "America/New_York",
    "America/Santiago",
    "Australia/Lord_Howe",
    "Asia/Kolkata",
    "Pacific/Apia",
    "Africa/Casablanca",
    "UTC",
];

/// All ticks in a range of instants, found by looking at each minute.
fn looked_at(minutes: Field, hours: Field, zone: &TimeZone, from: Timestamp, upto: Timestamp) -> BTreeSet<Timestamp> {
    let shows = |civil: DateTime| minutes.1(civil.minute()) && hours.1(civil.hour());
    let mut found = BTreeSet::new();
    if hours.0.starts_with('*') {
        for at in (from.0 / MINUTE..=upto.0 / MINUTE).map(|minute| Timestamp(minute * MINUTE)) {
            if shows(zoned(at, zone).expect("in range").datetime()) {
                found.insert(at);
            }
        }
    } else {
        let mut civil = zoned(from, zone).expect("in range").datetime() - 2.days();
        let last = zoned(upto, zone).expect("in range").datetime() + 2.days();
        civil = civil.with().second(0).subsec_nanosecond(0).build().expect("a minute");
        while civil <= last {
            if shows(civil) {
                let ambiguous = zone.to_ambiguous_zoned(civil);
                let is_gap = matches!(ambiguous.offset(), AmbiguousOffset::Gap { .. });
                let mut zoned = ambiguous.disambiguate(Disambiguation::Compatible).expect("in range");
                if is_gap {
                    // The later time is behind the gap by as much as the time lies in it; the end is one walk back.
                    while zoned.datetime() - 1.minute() >= civil
                        && (zoned.timestamp() - 1.minute()).to_zoned(zone.clone()).datetime() >= civil
                    {
                        zoned = (zoned.timestamp() - 1.minute()).to_zoned(zone.clone());
                    }
                }
                found.insert(instant_of(&zoned).expect("after 1970"));
            }
            civil += 1.minute();
        }
    }
    found.retain(|at| *at > from && *at <= upto);
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Around a change of the clock, or anywhere where there is none.
    #[test]
    fn ticks_are_those_that_each_minute_shows(
        minutes in prop::sample::select(&MINUTES[..]),
        hours in prop::sample::select(&HOURS[..]),
        zone in prop::sample::select(&ZONES[..]),
        year in 1980_i16..2037,
        day in 1_i16..=365,
        before in 0_u64..2_000,
        seconds in 0_u64..60,
        most in 0_usize..200,
    ) {
        let tz = TimeZone::get(zone).expect("the zone is known");
        let start = jiff::civil::date(year, 1, 1).saturating_add((day - 1).days());
        let start = start.to_zoned(tz.clone()).expect("in range").timestamp();
        let change = tz.following(start).next().map_or(start, |change| change.timestamp());
        let change = timestamp(change).expect("after 1970");
        let from = Timestamp(change.0 - before * MINUTE - seconds * 1_000_000);
        let upto = from.after(Duration::from_hours(60));
        let expected = looked_at(minutes, hours, &tz, from, upto);

        let ticks = ticks(&format!("{} {} * * *", minutes.0, hours.0), zone);
        let one_by_one = std::iter::successors(ticks.after(from), |at| ticks.after(*at));
        let one_by_one: BTreeSet<Timestamp> = one_by_one.take_while(|at| *at <= upto).collect();
        prop_assert_eq!(&one_by_one, &expected);
        let newest: Vec<Timestamp> = expected.iter().copied().rev().take(most).collect();
        let newest: Vec<Timestamp> = newest.into_iter().rev().collect();
        prop_assert_eq!(ticks.newest(from, upto, most), newest);
    }
}
