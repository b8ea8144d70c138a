//! A family as bytes, which take little space for small values and none for absent ones.
//!
//! ```text
//! flags · [event] · since · [until] · kind · version · stage · counts … · [what the flags name]
//! ```
//! Numbers use seven bits per byte, and times are stored as differences. What `rest` refuses is not encoded at all: a
//! family that has it stays awake. The bytes never leave the process, so they have no version.

use std::collections::BTreeMap;
use std::time::Duration;

use super::rest::state_at_rest;
use crate::family::Family;
use crate::id::{Blob, EventName, Key, Kind, LimitKey, ProcedureId, Seq, Timestamp};
use crate::label::{Label, Labels, RowLabels};
use crate::list::List;
use crate::row::{GraphNode, Hold, OnFailure, OnTimeout, Rare, Row};
use crate::wait::{Question, WaitReason};

const EVENT: u64 = 1;
const UNTIL: u64 = 1 << 1;
const DEADLINE: u64 = 1 << 2;
const PRIORITY: u64 = 1 << 3;
const KEY: u64 = 1 << 4;
const LIMITS: u64 = 1 << 5;
const AS_SUBMITTED: u64 = 1 << 6;
const ON_TIMEOUT_EXECUTE: u64 = 1 << 7;
const WHILE_ACTIVE: u64 = 1 << 8;
const LOCKS_FOR_LIFE: u64 = 1 << 9;
const OUT_OF_TIME: u64 = 1 << 10;
const NEXT_IS_NO_RETURN: u64 = 1 << 11;
const PAST_NO_RETURN: u64 = 1 << 12;
const EXPECTED: u64 = 1 << 13;
const COMPENSATE: u64 = 1 << 14;
const TRACE: u64 = 1 << 15;
const AFTER: u64 = 1 << 16;
const WINDOW: u64 = 1 << 17;
const QUESTION: u64 = 1 << 18;
const KEEPS_PLACE: u64 = 1 << 19;
const NAME: u64 = 1 << 20;
const LABELS: u64 = 1 << 21;
const STAGE_LIMITS: u64 = 1 << 22;
const HOLDS: u64 = 1 << 23;
const IS_PURE: u64 = 1 << 24;
/// The flags of what a row has in a box.
const BOXED: u64 = ON_TIMEOUT_EXECUTE | TRACE | PAST_NO_RETURN | NAME;

/// Kinds by number, so that a frozen family need not spell out its own. There are as many as registered kinds.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    kinds: Vec<Kind>,
    places: BTreeMap<Kind, usize>,
}

impl Names {
    fn place(&mut self, kind: &Kind) -> usize {
        if let Some(place) = self.places.get(kind) {
            return *place;
        }
        let place = self.kinds.len();
        self.kinds.push(kind.clone());
        self.places.insert(kind.clone(), place);
        place
    }

    /// Encodes a family that is at rest.
    pub(super) fn freeze(&mut self, family: &Family, pack: &mut Pack) -> Box<[u8]> {
        pack.bytes.clear();
        if let [row] = family.members.as_slice() {
            let kind = self.place(&row.kind);
            pack.row(row, kind);
        }
        pack.number(u64::from(family.history));
        Box::from(pack.bytes.as_slice())
    }

    /// Decodes a frozen family.
    pub(super) fn thaw(&self, number: u64, bytes: &[u8]) -> Box<Family> {
        let mut unpack = Unpack { bytes };
        let thawed = unpack.row(number, self).zip(unpack.count());
        // An invariant of this module: this process wrote the bytes.
        assert!(thawed.is_some(), "the frozen family {number} cannot be decoded");
        let mut family = Box::<Family>::default();
        if let Some((row, history)) = thawed {
            family.history = history;
            family.live = 1;
            family.members = vec![row];
        }
        family
    }
}

/// Buffer that encodes families.
#[derive(Clone, Debug, Default)]
pub(super) struct Pack {
    bytes: Vec<u8>,
}

impl Pack {
    fn number(&mut self, mut number: u64) {
        while let Some(more) = Some(number >> 7).filter(|more| *more > 0) {
            self.bytes.push(number.to_le_bytes()[0] | 0x80);
            number = more;
        }
        self.bytes.push(number.to_le_bytes()[0]);
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
    }

    fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    /// Times are close to each other, so differences are short. A negative difference wraps around and takes ten
    /// bytes.
    fn between(&mut self, from: Timestamp, to: Timestamp) {
        self.number(to.0.wrapping_sub(from.0));
    }

    fn row(&mut self, row: &Row, kind: usize) {
        self.number(flags(row));
        if let Some(WaitReason::Event(name, _)) = &row.wait {
            self.text(name.as_str());
        }
        if let Some(question) = row.wait.as_ref().and_then(WaitReason::question) {
            self.text(&question.text);
        }
        self.number(row.since.0);
        if let Some(until) = row.wait.as_ref().and_then(WaitReason::deadline) {
            self.between(row.since, until);
        }
        self.number(kind as u64);
        self.number(u64::from(row.version));
        self.bytes(row.stage.as_slice());
        self.number(row.revision.0);
        self.between(row.submitted, row.since);
        for count in [row.visit, row.history, row.standing, row.same_stage, row.signals] {
            self.number(u64::from(count));
        }
        self.rare(row);
    }

    fn rare(&mut self, row: &Row) {
        if let Some(deadline) = row.deadline {
            self.between(row.since, deadline);
        }
        if row.priority != 0 {
            self.bytes.extend_from_slice(&row.priority.to_le_bytes());
        }
        if let Some(key) = &row.key {
            self.text(key.as_str());
        }
        for limits in [&row.limits, &row.stage_limits] {
            if !limits.is_empty() {
                self.number(limits.len() as u64);
                limits.iter().for_each(|limit| self.text(limit.as_str()));
            }
        }
        if let Some(name) = &row.next_is_no_return {
            self.text(name);
        }
        if let Some(expected) = row.expected {
            self.number(expected.as_secs());
            self.number(u64::from(expected.subsec_nanos()));
        }
        if row.waits_after != Seq::default() {
            self.number(row.waits_after.0);
        }
        if row.history_from > 0 {
            self.number(u64::from(row.history_from));
        }
        if !row.labels.is_empty() {
            self.number(row.labels.entry().map_or(0, |member| u64::from(member) + 1));
            self.number(row.labels.len() as u64);
            for label in row.labels.iter() {
                self.text(label.name());
                self.text(label.value());
            }
        }
        self.boxed(row.rare(), row.name());
    }

    /// Encodes what the row has in a box.
    fn boxed(&mut self, rare: &Rare, name: Option<&str>) {
        if let Some(trace) = &rare.trace {
            self.text(&trace.to_string());
        }
        if let Some(stage) = &rare.past_no_return {
            self.text(stage);
        }
        if let Some(name) = name {
            self.text(name);
        }
    }
}

fn flags(row: &Row) -> u64 {
    let question = row.wait.as_ref().and_then(WaitReason::question);
    let rare = row.rare();
    let flags = [
        (EVENT, matches!(row.wait, Some(WaitReason::Event(..)))),
        (QUESTION, question.is_some()),
        (KEEPS_PLACE, question.is_some_and(|question| question.keeps_place)),
        (UNTIL, row.wait.as_ref().is_some_and(|wait| wait.deadline().is_some())),
        (DEADLINE, row.deadline.is_some()),
        (PRIORITY, row.priority != 0),
        (KEY, row.key.is_some()),
        (AS_SUBMITTED, row.as_submitted),
        (TRACE, rare.trace.is_some()),
        (AFTER, row.waits_after != Seq::default()),
        (LIMITS, !row.limits.is_empty()),
        (STAGE_LIMITS, !row.stage_limits.is_empty()),
        (HOLDS, row.holds),
        (IS_PURE, row.is_pure),
        (ON_TIMEOUT_EXECUTE, rare.on_timeout == OnTimeout::Execute),
        (WHILE_ACTIVE, row.hold == Hold::WhileActive),
        (LOCKS_FOR_LIFE, row.locks_for_life),
        (OUT_OF_TIME, row.out_of_time),
        (NEXT_IS_NO_RETURN, row.next_is_no_return.is_some()),
        (PAST_NO_RETURN, rare.past_no_return.is_some()),
        (EXPECTED, row.expected.is_some()),
        (WINDOW, row.history_from > 0),
        (NAME, row.name().is_some()),
        (LABELS, !row.labels.is_empty()),
        (COMPENSATE, row.on_failure == OnFailure::Compensate),
    ];
    let set = flags.into_iter().filter(|(_, is_set)| *is_set);
    set.map(|(flag, _)| flag).sum()
}

struct Unpack<'a> {
    bytes: &'a [u8],
}

impl<'a> Unpack<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(length)?;
        self.bytes = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u64> {
        let (mut number, mut shift) = (0, 0);
        loop {
            let (byte, rest) = self.bytes.split_first()?;
            self.bytes = rest;
            number |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
    }

    fn count(&mut self) -> Option<u32> {
        self.number()?.try_into().ok()
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.number()?;
        self.take(length.try_into().ok()?)
    }

    fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.bytes()?).ok()
    }

    fn after(&mut self, time: Timestamp) -> Option<Timestamp> {
        Some(Timestamp(time.0.wrapping_add(self.number()?)))
    }

    fn row(&mut self, family: u64, names: &Names) -> Option<Box<Row>> {
        let flags = self.number()?;
        let has = |flag: u64| flags & flag != 0;
        let event = if has(EVENT) {
            Some(EventName::from(self.text()?))
        } else {
            None
        };
        let question = if has(QUESTION) { Some(self.text()?.into()) } else { None };
        let since = Timestamp(self.number()?);
        let until = if has(UNTIL) { Some(self.after(since)?) } else { None };
        let wait = match (event, question, until) {
            (Some(event), _, until) => Some(WaitReason::Event(event, until)),
            (None, Some(text), until) => Some(WaitReason::Decision(Box::new(Question {
                text,
                until,
                keeps_place: has(KEEPS_PLACE),
            }))),
            (None, None, until) => until.map(WaitReason::Timer),
        };
        let kind = names.kinds.get(usize::try_from(self.number()?).ok()?)?.clone();
        let version = self.number()?.try_into().ok()?;
        let stage = Blob::from(self.bytes()?);
        let revision = Seq(self.number()?);
        let submitted = Timestamp(since.0.wrapping_sub(self.number()?));
        Some(Box::new(Row {
            revision,
            on_failure: if has(COMPENSATE) {
                OnFailure::Compensate
            } else {
                OnFailure::Keep
            },
            state: state_at_rest(wait.as_ref()),
            wait,
            since,
            visit: self.count()?,
            history: self.count()?,
            standing: self.count()?,
            same_stage: self.count()?,
            signals: self.count()?,
            deadline: if has(DEADLINE) { Some(self.after(since)?) } else { None },
            priority: if has(PRIORITY) {
                i16::from_le_bytes(self.take(2)?.try_into().ok()?)
            } else {
                0
            },
            key: if has(KEY) { Some(Key::from(self.text()?)) } else { None },
            limits: if has(LIMITS) {
                self.limits()?.into()
            } else {
                List::new()
            },
            stage_limits: if has(STAGE_LIMITS) {
                self.limits()?.into()
            } else {
                List::new()
            },
            as_submitted: has(AS_SUBMITTED),
            holds: has(HOLDS),
            is_pure: has(IS_PURE),
            hold: if has(WHILE_ACTIVE) {
                Hold::WhileActive
            } else {
                Hold::ForLife
            },
            locks_for_life: has(LOCKS_FOR_LIFE),
            next_is_no_return: if has(NEXT_IS_NO_RETURN) {
                Some(self.text()?.into())
            } else {
                None
            },
            expected: if has(EXPECTED) { Some(self.duration()?) } else { None },
            waits_after: if has(AFTER) {
                Seq(self.number()?)
            } else {
                Seq::default()
            },
            history_from: if has(WINDOW) { self.count()? } else { 0 },
            labels: if has(LABELS) {
                self.labels()?
            } else {
                RowLabels::default()
            },
            out_of_time: has(OUT_OF_TIME),
            rare: if flags & BOXED == 0 {
                None
            } else {
                Some(self.boxed(flags)?)
            },
            ..Row::new(ProcedureId::root(family), kind, version, stage, submitted)
        }))
    }

    /// Decodes what the row has in a box.
    fn boxed(&mut self, flags: u64) -> Option<Box<Rare>> {
        let has = |flag: u64| flags & flag != 0;
        let mut rare = Box::new(Rare::new());
        if has(ON_TIMEOUT_EXECUTE) {
            rare.on_timeout = OnTimeout::Execute;
        }
        if has(TRACE) {
            rare.trace = Some(Box::new(self.text()?.parse().ok()?));
        }
        if has(PAST_NO_RETURN) {
            rare.past_no_return = Some(self.text()?.into());
        }
        if has(NAME) {
            rare.graph = Some(self.name()?);
        }
        Some(rare)
    }

    fn name(&mut self) -> Option<Box<GraphNode>> {
        let name = Some(self.text()?.into());
        Some(Box::new(GraphNode {
            name,
            ..GraphNode::default()
        }))
    }

    fn labels(&mut self) -> Option<RowLabels> {
        let entry = self.number()?.checked_sub(1);
        let count = self.number()?;
        let labels = (0..count).map(|_| Some(Label::new(self.text()?, self.text()?)));
        let labels = labels.collect::<Option<Labels>>()?;
        Some(match entry {
            Some(member) => RowLabels::in_entry(u32::try_from(member).ok()?, labels),
            None => RowLabels::in_row(labels),
        })
    }

    fn limits(&mut self) -> Option<Vec<LimitKey>> {
        let count = self.number()?;
        (0..count).map(|_| self.text().map(LimitKey::from)).collect()
    }

    fn duration(&mut self) -> Option<Duration> {
        Some(Duration::new(self.number()?, self.count()?))
    }
}
