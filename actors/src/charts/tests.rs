//! Percentiles against exact ones, what a restart keeps, and every bound.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use procession_kernel::{Kind, Timestamp};
use proptest::prelude::*;

use super::book::KINDS_MAX;
use super::durations::{Durations, LONGEST};
use super::saved::{BYTES_MAX, Saved};
use super::{Charts, Keeper, MINUTE, Sample};
use crate::clock::Clock;
use crate::view::{Chart, ChartFigures, ChartOf, ChartSpan};

/// A Monday at noon, in minutes; the begin of a quarter of an hour.
const NOON: u64 = 29_539_440;
/// The store of the tests.
const STORE: u64 = 7;

const fn at(minute: u64) -> Timestamp {
    Timestamp(minute * MINUTE)
}

fn kinds(count: usize) -> Vec<Kind> {
    (0..count).map(|kind| Kind::from(format!("kind-{kind:04}"))).collect()
}

const fn ended(place: usize, took_ms: u64) -> Sample {
    Sample::Ended {
        place,
        is_root: true,
        has_failed: false,
        took: Duration::from_millis(took_ms),
    }
}

fn count(charts: &Charts, minute: u64, samples: &[Sample]) {
    charts.count(samples.iter().copied(), at(minute));
}

fn roots(charts: &Charts, span: ChartSpan, minute: u64) -> Chart {
    charts.chart(None, span, at(minute)).expect("roots always have a chart")
}

/// The figures of a bucket that begins with this minute.
fn bucket(chart: &Chart, minute: u64) -> Option<ChartFigures> {
    let found = chart.buckets.iter().find(|bucket| bucket.from == at(minute));
    found.expect("it is in the chart").figures
}

fn ended_in(chart: &Chart, minute: u64) -> Option<u64> {
    bucket(chart, minute).map(|figures| figures.ended)
}

/// A clock that a test sets, and at which nobody waits.
#[derive(Default)]
struct Set(AtomicU64);

impl Clock for Set {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::SeqCst))
    }

    fn sleep_until(&self, _: Timestamp) -> BoxFuture<'static, ()> {
        futures::future::ready(()).boxed()
    }
}

/// An engine's figures and their file, from this minute on.
fn life(path: &Path, minute: u64) -> (Charts, Keeper, Arc<Set>) {
    let clock = Arc::new(Set::default());
    clock.0.store(at(minute).0, Ordering::SeqCst);
    let charts = Charts::new(&kinds(2), at(minute));
    let keeper = Keeper::new(path.to_owned(), STORE, &charts, clock.clone());
    (charts, keeper, clock)
}

proptest! {
    #[test]
    fn percentiles_are_within_four_percent_of_the_exact_ones(
        mut times in prop::collection::vec(prop_oneof![0_u64..50, 0_u64..5_000_000, 0_u64..LONGEST], 1..400),
    ) {
        let mut durations = Durations::default();
        for micros in &times {
            durations.note(Duration::from_micros(*micros));
        }
        times.sort_unstable();
        let found = durations.times().expect("there are some");
        prop_assert_eq!(found.count, times.len() as u64);
        for (of_100, found) in [(50, found.p50), (99, found.p99)] {
            let exact = times[(times.len() * of_100).div_ceil(100) - 1] as f64;
            let found = found.as_micros() as f64;
            prop_assert!((found - exact).abs() <= exact * 0.04 + 1.0, "{} instead of {}", found, exact);
        }
    }

    #[test]
    fn merged_and_saved_histograms_say_what_one_says(
        one in prop::collection::vec(0_u64..LONGEST, 0..100),
        other in prop::collection::vec(0_u64..LONGEST, 0..100),
    ) {
        let [mut whole, mut left, mut right] = [(); 3].map(|()| Durations::default());
        for micros in &one {
            left.note(Duration::from_micros(*micros));
            whole.note(Duration::from_micros(*micros));
        }
        for micros in &other {
            right.note(Duration::from_micros(*micros));
            whole.note(Duration::from_micros(*micros));
        }
        let mut read = Durations::of_saved(&left.saved());
        read.add(&right);
        prop_assert_eq!(read.times(), whole.times());
        prop_assert_eq!(read.saved(), whole.saved());
    }

    #[test]
    fn no_end_is_lost_or_counted_twice(
        ends in prop::collection::vec((0_u64..3, any::<bool>(), any::<bool>()), 1..200),
        restart in 0_usize..200,
    ) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("charts");
        let (mut charts, mut keeper, mut clock) = life(&path, NOON);
        let (mut minute, mut whole, mut failures) = (NOON, 0, 0);
        for (number, (step, is_root, has_failed)) in ends.into_iter().enumerate() {
            minute += step;
            clock.0.store(at(minute).0, Ordering::SeqCst);
            if number == restart {
                keeper.end();
                (charts, keeper, clock) = life(&path, minute);
                // What is counted before the file is read is added to it.
            }
            count(&charts, minute, &[Sample::Ended { place: 1, is_root, has_failed, took: Duration::from_millis(3) }]);
            if number == restart {
                keeper.keep();
            }
            (whole, failures) = (whole + 1, failures + u64::from(has_failed));
        }
        let kind = Kind::from("kind-0001".to_owned());
        let chart = charts.chart(Some(&kind), ChartSpan::Day, at(minute)).expect("it is registered");
        let sum = |of: fn(ChartFigures) -> u64| chart.buckets.iter().filter_map(|bucket| bucket.figures).map(of).sum::<u64>();
        prop_assert_eq!((sum(|figures| figures.ended), sum(|figures| figures.failed)), (whole, failures));
        prop_assert_eq!(sum(|figures| figures.took.map_or(0, |took| took.count)), whole);
    }
}

#[test]
fn minutes_and_quarters_are_those_of_the_clock() {
    let charts = Charts::new(&kinds(1), at(NOON));
    count(&charts, NOON, &[ended(0, 10), ended(0, 30)]);
    count(&charts, NOON + 14, &[ended(0, 20)]);
    count(
        &charts,
        NOON + 15,
        &[Sample::Queued {
            place: 0,
            time: Duration::from_millis(5),
        }],
    );
    let hour = roots(&charts, ChartSpan::Hour, NOON + 16);
    assert_eq!(hour.buckets.len(), 61);
    assert_eq!(
        [NOON - 1, NOON, NOON + 1, NOON + 14, NOON + 16].map(|minute| ended_in(&hour, minute)),
        [None, Some(2), Some(0), Some(1), Some(0)],
        "before the start nothing is known"
    );
    let queued = bucket(&hour, NOON + 15)
        .and_then(|figures| figures.queued)
        .expect("one stage waited");
    assert!(queued.count == 1 && queued.p50.abs_diff(Duration::from_millis(5)) < Duration::from_micros(200));
    let day = roots(&charts, ChartSpan::Day, NOON + 16);
    assert_eq!(day.buckets.len(), 97);
    assert_eq!(ended_in(&day, NOON), Some(3));
    let open = day
        .buckets
        .last()
        .and_then(|bucket| bucket.figures)
        .expect("it is open");
    assert_eq!((open.ended, open.queued.map(|queued| queued.count)), (0, Some(1)));
    // A day later nothing of it is left.
    let later = roots(&charts, ChartSpan::Day, NOON + 24 * 60 + 15);
    assert_eq!(
        later
            .buckets
            .iter()
            .filter_map(|bucket| bucket.figures)
            .map(|figures| figures.ended)
            .sum::<u64>(),
        0
    );
}

#[test]
fn children_count_for_their_kind_and_not_for_the_roots() {
    let charts = Charts::new(&kinds(2), at(NOON));
    let child = Sample::Ended {
        place: 1,
        is_root: false,
        has_failed: true,
        took: Duration::from_secs(1),
    };
    count(&charts, NOON, &[ended(0, 5), child]);
    let of = |kind: Option<&Kind>| {
        let chart = charts.chart(kind, ChartSpan::Hour, at(NOON)).expect("it is registered");
        let open = chart
            .buckets
            .last()
            .and_then(|bucket| bucket.figures)
            .expect("it is open");
        (chart.of, open.ended, open.failed)
    };
    let kinds = kinds(2);
    assert_eq!(of(None), (ChartOf::Roots, 1, 0));
    assert_eq!(of(kinds.first()), (ChartOf::Kind(kinds[0].clone()), 1, 0));
    assert_eq!(of(kinds.last()), (ChartOf::Kind(kinds[1].clone()), 1, 1));
    assert_eq!(
        charts.chart(Some(&Kind::from("other".to_owned())), ChartSpan::Hour, at(NOON)),
        None
    );
}

#[test]
fn kinds_beyond_the_bound_share_a_chart() {
    let kinds = kinds(KINDS_MAX + 3);
    let charts = Charts::new(&kinds, at(NOON));
    for place in 0..kinds.len() {
        count(&charts, NOON, &[ended(place, 1)]);
    }
    let of = |place: usize| {
        charts
            .chart(kinds.get(place), ChartSpan::Hour, at(NOON))
            .expect("it is registered")
    };
    assert_eq!(of(KINDS_MAX - 1).of, ChartOf::Kind(kinds[KINDS_MAX - 1].clone()));
    assert_eq!(of(KINDS_MAX).of, ChartOf::OtherKinds);
    assert_eq!(ended_in(&of(KINDS_MAX + 2), NOON), Some(3));
}

#[test]
fn a_clock_that_is_set_back_loses_what_is_later() {
    let charts = Charts::new(&kinds(1), at(NOON));
    count(&charts, NOON, &[ended(0, 1)]);
    count(&charts, NOON + 20, &[ended(0, 1)]);
    // A little: the open minute counts on.
    count(&charts, NOON + 19, &[ended(0, 1)]);
    assert_eq!(
        ended_in(&roots(&charts, ChartSpan::Hour, NOON + 21), NOON + 20),
        Some(2)
    );
    // Much: what was counted later is forgotten, and no minute is there twice.
    count(&charts, NOON + 5, &[ended(0, 1)]);
    let hour = roots(&charts, ChartSpan::Hour, NOON + 30);
    assert_eq!(
        [NOON, NOON + 5, NOON + 20].map(|minute| ended_in(&hour, minute)),
        [Some(1), Some(1), Some(0)]
    );
    // The quarter was over, and had kept its percentiles alone: it begins anew as well.
    assert_eq!(ended_in(&roots(&charts, ChartSpan::Day, NOON + 30), NOON), Some(1));
}

#[test]
fn time_without_an_engine_is_not_known() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("charts");
    let (charts, keeper, clock) = life(&path, NOON);
    count(&charts, NOON, &[ended(0, 8)]);
    clock.0.store(at(NOON + 3).0, Ordering::SeqCst);
    keeper.end();
    let (charts, keeper, _) = life(&path, NOON + 10);
    keeper.keep();
    let hour = roots(&charts, ChartSpan::Hour, NOON + 12);
    let known = [0, 1, 3, 4, 9, 10, 11].map(|minute| ended_in(&hour, NOON + minute));
    assert_eq!(known, [Some(1), Some(0), Some(0), None, None, Some(0), Some(0)]);
    let took = bucket(&hour, NOON).and_then(|figures| figures.took).expect("one ended");
    assert!(
        took.p99.abs_diff(Duration::from_millis(8)) < Duration::from_micros(300),
        "{took:?}"
    );
}

#[test]
fn a_file_that_cannot_be_read_is_set_aside_and_the_charts_begin_anew() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("charts");
    let aside = folder.path().join("charts.unreadable");
    let good = {
        let (charts, keeper, _) = life(&path, NOON);
        count(&charts, NOON, &[ended(0, 8)]);
        keeper.end();
        fs::read(&path).expect("it was written")
    };
    let mut flipped = good.clone();
    *flipped.last_mut().expect("it has bytes") ^= 1;
    let cut = good[..good.len() / 2].to_vec();
    let large = vec![b'p'; BYTES_MAX + 1];
    for bad in [flipped, cut, Vec::new(), b"#!/bin/sh\n".to_vec(), large] {
        fs::write(&path, &bad).expect("it can be written");
        let (charts, keeper, _) = life(&path, NOON + 1);
        keeper.keep();
        assert_eq!(ended_in(&roots(&charts, ChartSpan::Hour, NOON + 1), NOON), None);
        assert!(!path.exists(), "it is out of the way");
        assert_eq!(fs::read(&aside).expect("it is kept"), bad);
        count(&charts, NOON + 1, &[ended(0, 8)]);
        keeper.keep();
        assert!(fs::read(&path).expect("a new one is written").len() > 50);
    }
    // That of another journal is no less foreign.
    fs::write(&path, &good).expect("it can be written");
    let charts = Charts::new(&kinds(2), at(NOON));
    Keeper::new(path.clone(), STORE + 1, &charts, Arc::new(Set::default())).keep();
    assert_eq!(fs::read(&aside).expect("it is kept"), good);
}

#[test]
#[cfg(unix)]
fn a_full_disk_does_no_harm() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("charts");
    let new = folder.path().join("charts.new");
    let (charts, keeper, _) = life(&path, NOON);
    count(&charts, NOON, &[ended(0, 8)]);
    keeper.keep();
    let old = fs::read(&path).expect("it was written");
    // Whatever is written there is refused for want of room.
    std::os::unix::fs::symlink("/dev/full", &new).expect("a link can be made");
    count(&charts, NOON, &[ended(0, 8)]);
    keeper.keep();
    assert_eq!(fs::read(&path).expect("the old one is there"), old);
    assert!(fs::symlink_metadata(&new).is_err(), "nothing half written is left");
    assert_eq!(
        ended_in(&roots(&charts, ChartSpan::Hour, NOON), NOON),
        Some(2),
        "it counts on"
    );
    // Once there is room, what was not written is.
    keeper.keep();
    assert_ne!(fs::read(&path).expect("it was written"), old);
    // After the end another engine may have the file.
    keeper.end();
    fs::remove_file(&path).expect("it is there");
    count(&charts, NOON, &[ended(0, 8)]);
    keeper.keep();
    keeper.end();
    assert!(!path.exists());
}

/// Fills every bucket of every series, and returns the figures at the last minute.
fn full() -> (Charts, u64) {
    let kinds = kinds(KINDS_MAX + 1);
    let charts = Charts::new(&kinds, at(NOON));
    let last = NOON + 24 * 60 + 14;
    // One minute fills its quarter; those of the last hour are all there.
    for minute in (NOON..=last).filter(|minute| minute % 15 == 0 || minute + 60 >= last) {
        for place in 0..kinds.len() {
            // Each sample is in a bucket of its own, as far as there are any.
            let all = (0..8_u32).flat_map(|number| {
                let micros = 1_u64 << (number * 5 + u32::try_from(minute % 5).unwrap_or_default());
                [
                    Sample::Ended {
                        place,
                        is_root: true,
                        has_failed: true,
                        took: Duration::from_micros(micros),
                    },
                    Sample::Queued {
                        place,
                        time: Duration::from_micros(micros + micros / 3),
                    },
                ]
            });
            charts.count(all, at(minute));
        }
    }
    (charts, last)
}

#[test]
fn everything_has_a_bound() {
    let (charts, last) = full();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("charts");
    let clock = Arc::new(Set::default());
    clock.0.store(at(last).0, Ordering::SeqCst);
    let keeper = Keeper::new(path.clone(), STORE, &charts, clock.clone());
    keeper.keep();
    let bytes = fs::metadata(&path).expect("it was written").len();
    assert!(bytes < BYTES_MAX as u64 / 6, "{bytes} bytes");
    // Twice as long, and it is as large.
    let again = Charts::new(&kinds(KINDS_MAX + 1), at(last));
    Keeper::new(path, STORE, &again, clock).keep();
    let one = roots(&again, ChartSpan::Day, last);
    assert_eq!(one, roots(&charts, ChartSpan::Day, last), "all of it was read");
    assert!(
        one.buckets
            .iter()
            .all(|bucket| bucket.figures.is_some_and(|figures| figures.ended > 0))
    );
}

fn golden_path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/format/golden/v4/charts.hex")
}

/// The figures that the golden file has.
fn golden_figures() -> (Charts, u64) {
    let charts = Charts::new(&kinds(2), at(NOON));
    for minute in 0..17 {
        let child = Sample::Ended {
            place: 1,
            is_root: false,
            has_failed: minute % 5 == 0,
            took: Duration::from_millis(40 + minute),
        };
        let waited = Sample::Queued {
            place: 0,
            time: Duration::from_micros(700),
        };
        count(&charts, NOON + minute, &[ended(0, 90_000 * minute), child, waited]);
    }
    (charts, NOON + 16)
}

#[test]
fn a_file_of_this_format_is_read_for_ever() {
    let (charts, last) = golden_figures();
    if std::env::var("PROCESSION_GOLDEN").is_ok_and(|word| word == "write") && !golden_path().exists() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("charts");
        charts.0.write(&path, STORE, last).expect("it can be written");
        let bytes = fs::read(path).expect("it was written");
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        fs::write(golden_path(), format!("charts -  ={hex}\n")).expect("it can be written");
    }
    let line = fs::read_to_string(golden_path()).expect("the golden file is there");
    let hex = line.trim().rsplit_once('=').expect("it has a value").1.to_owned();
    let bytes: Vec<u8> = (0..hex.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("it is hexadecimal"))
        .collect();
    let saved = Saved::of_bytes(&bytes, STORE)
        .map_err(|why| why.to_string())
        .expect("it is read");
    let read = Charts::new(&kinds(2), at(last));
    read.0.merge(saved, last);
    for kind in [None].into_iter().chain(kinds(2).iter().map(Some)) {
        for span in [ChartSpan::Hour, ChartSpan::Day] {
            assert_eq!(
                read.chart(kind, span, at(last + 1)),
                charts.chart(kind, span, at(last + 1))
            );
        }
    }
}

#[test]
fn failures_of_a_day_are_those_of_all_kinds() {
    let charts = Charts::new(&kinds(2), at(NOON));
    let failed = |place, is_root| Sample::Ended {
        place,
        is_root,
        has_failed: true,
        took: Duration::from_millis(5),
    };
    // A child counts as well, and a success does not.
    count(&charts, NOON, &[failed(0, true), failed(1, false), ended(0, 7)]);
    count(&charts, NOON + 20, &[failed(1, true)]);
    assert_eq!(charts.failed_in_a_day(at(NOON + 20)), 3);
    let day = 24 * 60;
    assert_eq!(charts.failed_in_a_day(at(NOON + day)), 3);
    assert_eq!(
        charts.failed_in_a_day(at(NOON + day + 15)),
        1,
        "the first quarter is too old"
    );
    assert_eq!(charts.failed_in_a_day(at(NOON + day + 45)), 0);
}
