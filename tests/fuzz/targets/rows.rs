//! Journals whose values all decode and are wrong: rows and entries of history of a
//! real world, edited field by field, entries lost and moved.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;
use std::time::Duration;

use procession::ProcedureId;
use procession::limits::LockNeed;
use procession::offline::FamilyExport;
use procession::procedure::{JoinPolicy, OnFailure, OnTimeout, Timestamp};
use procession::provider::Space;
use procession::status::{Mark, ProcedureState, WaitReason};
use procession::testkit::Trouble;
use procession_actors::journal::keys;
use procession_actors::testkit::format;
use procession_kernel::{
    Blob, Ending, FailureStreak, Gate, GraphNode, Hold, InFlight, Label, Labels, Question, Record, Round, Row,
    RowLabels, Seq, Wake,
};

use serde_json::json;

use super::recovery::{self, Entry};
use super::{Checked, export, seeds};

/// Edits of one input at most.
const EDITS_MAX: usize = 12;

/// What is read off the input, byte by byte; zeros behind its end.
struct Feed<'a>(&'a [u8]);

impl Feed<'_> {
    fn byte(&mut self) -> u8 {
        let Some((byte, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        *byte
    }

    /// A number: most are small, some are at a limit.
    fn number(&mut self) -> u64 {
        match self.byte() {
            small @ 0..=199 => u64::from(small % 20),
            limit @ 200..=219 => (1 << (limit % 64)) - 1,
            limit @ 220..=239 => u64::from(u32::MAX) - u64::from(limit % 4),
            limit => u64::MAX - u64::from(limit % 4),
        }
    }

    fn count(&mut self) -> u32 {
        u32::try_from(self.number()).unwrap_or(u32::MAX)
    }

    /// Chooses one of these; the other, if there is none.
    fn one_of<T: Copy>(&mut self, of: &[T], other: T) -> T {
        let place = usize::from(self.byte()) % (of.len() + 1);
        of.get(place).copied().unwrap_or(other)
    }

    fn name(&mut self) -> &'static str {
        self.one_of(&["plain", "stuck"], "other")
    }

    fn time(&mut self) -> Timestamp {
        Timestamp(self.number().saturating_mul(1_000_000))
    }

    fn maybe<T>(&mut self, give: impl FnOnce(&mut Self) -> T) -> Option<T> {
        let is_there = !self.byte().is_multiple_of(4);
        is_there.then(|| give(self))
    }

    fn few<T>(&mut self, mut give: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let count = self.byte() % 4;
        (0..count).map(|_| give(self)).collect()
    }
}

/// The first byte chooses the world, the rest edits it.
pub(crate) fn check(bytes: &[u8]) -> Checked {
    let mut feed = Feed(bytes);
    let worlds = worlds()?;
    let Some(world) = worlds.get(usize::from(feed.byte()) % worlds.len().max(1)) else {
        return Ok(());
    };
    let mut entries = world.clone();
    for _ in 0..EDITS_MAX {
        if feed.0.is_empty() {
            break;
        }
        edit(&mut entries, &mut feed);
    }
    check_imports(world, &entries)?;
    recovery::start(entries)
}

/// Imports each family that was edited.
fn check_imports(before: &[Entry], after: &[Entry]) -> Checked {
    let edited: Vec<Entry> = after.iter().filter(|entry| !before.contains(entry)).cloned().collect();
    let families = edited
        .iter()
        .filter_map(|(_, key, _)| Some(keys::parse_procedure(key)?.family));
    for family in families.collect::<BTreeSet<u64>>() {
        if let Some(export) = exported(family, after)? {
            export::check_import(&export)?;
        }
    }
    Ok(())
}

/// Makes an export of what a journal has of a family, as a file says it.
fn exported(family: u64, entries: &[Entry]) -> Result<Option<FamilyExport>, Trouble> {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let is_of = |space: &Space, key: &[u8], value: &[u8]| match space {
        Space::Keys => format::key_entry(value).is_ok_and(|entry| entry.id.family == family),
        Space::Finished => keys::parse_finished(key)
            .or_else(|| keys::parse_failure(key))
            .is_some_and(|(_, of)| of == family),
        Space::Meta | Space::Audit | Space::Archive | Space::User(_) => false,
        Space::Procedures | Space::Payloads | Space::History | Space::Signals | Space::Live => {
            key.starts_with(&keys::family(family))
        }
    };
    // Of two with one key the later counts.
    let own: BTreeMap<_, _> = entries
        .iter()
        .filter(|(space, key, value)| is_of(space, key, value))
        .map(|(space, key, value)| ((space, key), value))
        .collect();
    if own.is_empty() || family == recovery::SOUND {
        return Ok(None);
    }
    let own: Vec<_> = own
        .into_iter()
        .map(|((space, key), value)| json!({ "space": space.name(), "key": hex(key), "value": hex(value) }))
        .collect();
    let export = json!({
        "format": 1, "family": family, "whole": true, "procedures": [], "stages": [], "entries": own,
    });
    Ok(Some(serde_json::from_value(export)?))
}

fn worlds() -> Result<&'static Vec<Vec<Entry>>, Trouble> {
    static MADE: OnceLock<Result<Vec<Vec<Entry>>, String>> = OnceLock::new();
    let made = MADE.get_or_init(|| seeds::dumps().map_err(|error| error.to_string()));
    Ok(made.as_ref().map_err(Clone::clone)?)
}

fn edit(entries: &mut Vec<Entry>, feed: &mut Feed<'_>) {
    let at = usize::from(feed.byte()) % entries.len().max(1);
    let Some((space, key, value)) = entries.get(at).cloned() else {
        return;
    };
    let id = keys::parse_procedure(&key);
    let written = match (&space, id, feed.byte() % 8) {
        (_, _, 0) => {
            entries.remove(at);
            return;
        }
        (Space::Procedures, Some(id), 1..4) if keys::parse_labels(&key).is_some() => {
            write(&Record::Labels(id, labels(feed)))
        }
        (Space::Procedures, Some(id), 1) => {
            // Under another member's name, or another family's.
            let other = ProcedureId::new(feed.number(), feed.count());
            Some((space, keys::procedure(other).to_vec(), value)).filter(|_| id != other)
        }
        (Space::Procedures, Some(id), _) => format::row(id, &value).ok().and_then(|mut row| {
            edit_row(&mut row, feed);
            write(&Record::Row(Box::new(row)))
        }),
        (Space::History, Some(id), _) => format::history(id.family, id.member, &value)
            .ok()
            .and_then(|mut entry| {
                match feed.byte() % 7 {
                    0 => entry.member = feed.count(),
                    1 => entry.visit = feed.count(),
                    2 => entry.attempt = feed.count(),
                    3 => entry.number = feed.count(),
                    4 => entry.ending = Ending::Undone,
                    5 => entry.note = feed.maybe(|feed| Blob::from(vec![feed.byte(); 3])),
                    _ => entry.stands = !entry.stands,
                }
                write(&Record::History(Box::new(entry)))
            }),
        (Space::Finished | Space::Live, ..) => {
            let (family, due) = (feed.number(), feed.time());
            let is_live = space == Space::Live;
            let finished = keys::finished(due, family).to_vec();
            let other = if is_live {
                keys::family(family).to_vec()
            } else {
                finished
            };
            Some((space, other, value))
        }
        _ => {
            let mut value = value;
            let at = usize::from(feed.byte()) % value.len().max(1);
            if let Some(byte) = value.get_mut(at) {
                *byte = feed.byte();
            }
            Some((space, key, value))
        }
    };
    entries.extend(written);
}

fn write(record: &Record) -> Option<Entry> {
    let batch = format::writes(std::slice::from_ref(record)).ok()?;
    batch
        .writes()
        .find_map(|write| Some((write.space.clone(), write.key.to_vec(), write.value?.to_vec())))
}

fn labels(feed: &mut Feed<'_>) -> Labels {
    feed.few(|feed| Label::new(feed.name(), "1")).into_iter().collect()
}

fn edit_row(row: &mut Row, feed: &mut Feed<'_>) {
    match feed.byte() % 40 {
        0 => row.revision = Seq(feed.number()),
        1 => row.kind = feed.name().into(),
        2 => row.version = u16::from(feed.byte()),
        3 => row.parent = feed.maybe(Feed::count),
        4 => row.on_failure = OnFailure::Compensate,
        5 | 6 => row.state = feed.one_of(&ProcedureState::ALL, ProcedureState::Failed),
        7 | 8 => {
            row.wait = feed.maybe(wait);
            row.rare_mut().retry_after = feed.maybe(|feed| Duration::from_micros(feed.number()));
        }
        9 => row.since = feed.time(),
        10 => row.stage = Blob::from(vec![feed.byte(), feed.byte()]),
        11 => row.visit = feed.count(),
        12 => row.attempt = feed.count(),
        13 | 14 => {
            row.in_flight = feed.maybe(|feed| InFlight {
                run: Seq(feed.number()),
                deaths: feed.count(),
                alone: feed.byte().is_multiple_of(2),
                counted_from: feed.maybe(Feed::count),
            });
            row.repeated = feed.count();
            row.history_from = feed.count();
        }
        15 => row.history = feed.count(),
        16 => row.standing = feed.count(),
        17 => row.rare_mut().attempts_kept = feed.few(Feed::count).into(),
        18 => row.wake = feed.maybe(wake),
        19 | 20 => row.rounds = feed.few(round).into(),
        21 => row.limits = feed.few(|feed| feed.name().into()).into(),
        22 => {
            row.holds = !row.holds;
            row.stage_limits = feed.few(|feed| feed.name().into()).into();
            row.stage_permits = feed.byte().is_multiple_of(2);
        }
        23 => row.hold = Hold::WhileActive,
        24 => row.locks = feed.few(lock).into(),
        25 => row.locked = feed.few(lock).into(),
        26 => row.locks_for_life = !row.locks_for_life,
        27 => row.next_is_no_return = Some("a".into()),
        28 => row.rare_mut().past_no_return = feed.maybe(|_| "a".into()),
        29 => row.same_stage = feed.count(),
        30 => row.expected = Some(Duration::new(feed.number(), 0)),
        31 => {
            row.rare_mut().on_timeout = OnTimeout::Execute;
            row.out_of_time = feed.byte().is_multiple_of(2);
            row.deadline = feed.maybe(Feed::time);
        }
        32 => row.rare_mut().paused = !row.rare().paused,
        33 => row.rare_mut().mark = feed.maybe(|_| Mark::Bypassed),
        34 => row.rare_mut().output = feed.maybe(|feed| Blob::from(vec![feed.byte()])),
        35 => row.rare_mut().cleaning = !row.rare().cleaning,
        36 => {
            row.rare_mut().undo_attempts = feed.count();
            row.rare_mut().failure_streak = feed.maybe(said);
        }
        37 => row.rare_mut().graph = feed.maybe(node),
        38 => {
            let labels = labels(feed);
            row.labels = feed.maybe(|feed| feed.count()).map_or_else(
                || RowLabels::in_row(labels.clone()),
                |member| RowLabels::in_entry(member, labels.clone()),
            );
        }
        _ => {
            row.ended = feed.maybe(Feed::time);
            row.due = feed.maybe(Feed::time);
        }
    }
}

fn said(feed: &mut Feed<'_>) -> Box<FailureStreak> {
    Box::new(FailureStreak {
        print: feed.number(),
        times: feed.count(),
        text: "a".to_owned(),
        first: feed.maybe(Feed::time),
    })
}

fn wait(feed: &mut Feed<'_>) -> WaitReason {
    match feed.byte() % 15 {
        0 => WaitReason::Width,
        1 => WaitReason::Permit("stuck".into()),
        2 => WaitReason::Children,
        3 => WaitReason::Timer(feed.time()),
        4 => WaitReason::Event("go".into(), feed.maybe(Feed::time)),
        5 => WaitReason::Backoff(feed.count(), feed.time()),
        6 => WaitReason::Queue,
        7 => WaitReason::Suspect,
        8 => WaitReason::Poison,
        9 => WaitReason::RollbackFailed,
        10 => WaitReason::Lock("a/b".into()),
        11 => WaitReason::Paused,
        12 => WaitReason::RepeatLimit,
        13 => WaitReason::Gate,
        14 => WaitReason::Decision(Box::new(Question {
            text: "a".to_owned(),
            until: feed.maybe(Feed::time),
            keeps_place: feed.byte().is_multiple_of(2),
        })),
        _ => WaitReason::Quarantined,
    }
}

fn node(feed: &mut Feed<'_>) -> Box<GraphNode> {
    Box::new(GraphNode {
        name: feed.maybe(|_| "a".to_owned()),
        gate: feed.maybe(|feed| Gate {
            after: feed.few(Feed::count),
            opens: policy(feed),
            or_wait: feed.byte().is_multiple_of(2),
        }),
        vital: feed.byte().is_multiple_of(2),
    })
}

fn wake(feed: &mut Feed<'_>) -> Wake {
    match feed.byte() % 4 {
        0 => Wake::Children(feed.count(), feed.count()),
        1 => Wake::Signal("go".into(), feed.count()),
        2 => Wake::Decision(feed.maybe(|feed| Blob::from(vec![feed.byte()]))),
        _ => Wake::Timeout("go".into()),
    }
}

fn round(feed: &mut Feed<'_>) -> Round {
    Round {
        first: feed.count(),
        count: feed.count(),
        join: policy(feed),
        width: feed.count(),
        keep_places: feed.byte() == 1,
    }
}

fn policy(feed: &mut Feed<'_>) -> JoinPolicy {
    match feed.byte() % 5 {
        0 => JoinPolicy::AllSucceeded,
        1 => JoinPolicy::AllFinished,
        2 => JoinPolicy::AtLeast(feed.count()),
        3 => JoinPolicy::Named(feed.few(Feed::count)),
        _ => JoinPolicy::Custom,
    }
}

fn lock(feed: &mut Feed<'_>) -> LockNeed {
    let path = feed.one_of(&["a/b", "a", "c"], "");
    if feed.byte().is_multiple_of(2) {
        LockNeed::shared(path)
    } else {
        LockNeed::exclusive(path)
    }
}
