//! An export comes from a file that anybody may have made: what no engine would have written
//! is refused, and what an import takes, a start takes.

use procession::errors::ImportError;
use procession::offline::{ExportedEntry, FamilyExport};
use procession::testkit::{FaultPlan, Trouble, World};
use procession_actors::testkit::format;
use procession_kernel::{Blob, Record, SUBMITTED_IN_ENTRY_MAX, SubmittedValue};

use super::{by, dump, import_with, parent, refusal, submit};
use crate::support::{Act, Lab, Planned, Tested, failing, live_in};

/// A live family with children, a signal, a key, and a timer.
fn live() -> Result<FamilyExport, Trouble> {
    live_in(&World::new(), &Lab::default(), async |run| {
        let id = submit(run, parent(Act::Done(9)), "the key").await?;
        let child = procession::ProcedureId::new(id.family, 1);
        run.executor.signal(child, "later", &7_i64).key("k").await?;
        Ok(run.executor.export(id).await?)
    })
}

fn finished() -> Result<FamilyExport, Trouble> {
    live_in(&World::new(), &Lab::default(), async |run| {
        let id = submit(run, Planned(failing("f", 3)), "the key").await?;
        run.wait(run.executor.outcome(id)).await??;
        Ok(run.executor.export(id).await?)
    })
}

/// An entry as JSON has it: an export's own are made by an engine alone.
fn entry(space: &str, key: &[u8], value: &[u8]) -> Result<ExportedEntry, Trouble> {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let json = serde_json::json!({ "space": space, "key": hex(key), "value": hex(value) });
    Ok(serde_json::from_value(json)?)
}

fn in_space<'a>(export: &'a mut FamilyExport, space: &str) -> Result<&'a mut ExportedEntry, Trouble> {
    let mut entries = export.entries.iter_mut().filter(|entry| entry.space == space);
    Ok(entries.next().ok_or("it has such an entry")?)
}

/// Says that the first entry of the history is of this member, and has a first value of this size.
fn with_first_value(export: &mut FamilyExport, member: u32, bytes: usize) -> Tested {
    let stored = in_space(export, "history")?;
    let mut entry = format::history(1, 1, stored.value.as_slice())?;
    let value = Blob::from(vec![1; bytes]);
    entry.member = member;
    entry.submitted = Some(Box::new(SubmittedValue { version: 1, value }));
    let writes = format::writes(&[Record::History(Box::new(entry))])?;
    let write = writes.writes().next().and_then(|write| write.value);
    stored.value = write.ok_or("an entry is written")?.into();
    Ok(())
}

/// What must not go through, each with a part of what is said of it.
type Case = (&'static str, fn(&mut FamilyExport) -> Tested);

const CASES: &[Case] = &[
    ("format 7", |export| {
        export.format = 7;
        Ok(())
    }),
    ("pause it", |export| {
        export.whole = false;
        Ok(())
    }),
    ("cannot be read: the row of 1.0", |export| {
        export.unreadable.push("the row of 1.0: it is spoilt".to_owned());
        Ok(())
    }),
    ("is not of this family", |export| {
        export.family = 2;
        Ok(())
    }),
    ("no engine assigns a family the number", |export| {
        export.family = u64::MAX;
        Ok(())
    }),
    ("holds nothing of families", |export| {
        export.entries.push(entry("user.rows", b"k", b"v")?);
        Ok(())
    }),
    ("holds nothing of families", |export| {
        export.entries.push(entry("meta", b"families", &[0; 8])?);
        Ok(())
    }),
    ("holds nothing of families", |export| {
        export.entries.push(entry("no\u{1b}such", b"k", b"v")?);
        Ok(())
    }),
    ("is not of this family", |export| {
        export
            .entries
            .push(entry("history", &[0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 1], &[1])?);
        Ok(())
    }),
    ("is not of this family", |export| {
        export
            .entries
            .push(entry("payloads", &[0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 7], &[1])?);
        Ok(())
    }),
    ("whose row is missing", |export| {
        export
            .entries
            .push(entry("payloads", &[0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 9, 0], &[1])?);
        Ok(())
    }),
    ("to which no row has come", |export| {
        let key = [0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 9, 9];
        let value = in_space(export, "history")?.value.clone();
        export.entries.push(entry("history", &key, value.as_slice())?);
        Ok(())
    }),
    ("the value with which the root was submitted, and may not", |export| {
        with_first_value(export, 1, 5)
    }),
    ("the value with which the root was submitted, and may not", |export| {
        with_first_value(export, 0, SUBMITTED_IN_ENTRY_MAX + 1)
    }),
    ("twice", |export| {
        let again = in_space(export, "procedures")?.clone();
        export.entries.push(again);
        Ok(())
    }),
    ("is missing", |export| {
        export.entries.retain(|entry| entry.space != "procedures");
        Ok(())
    }),
    ("is missing", |export| {
        let root = in_space(export, "procedures")?.clone();
        export.entries.retain(|entry| *entry != root);
        Ok(())
    }),
    ("the row of 1.0", |export| {
        let row = in_space(export, "procedures")?;
        let cut = row.value.as_slice().len() / 2;
        row.value = row.value.as_slice().get(..cut).unwrap_or_default().into();
        Ok(())
    }),
    ("a field \"!\" that this release does not know", |export| {
        let row = in_space(export, "procedures")?;
        // One field more: a map of up to 15 begins with one byte, a longer one with three.
        let mut bytes = match row.value.as_slice() {
            [version, 0xde, high, low, rest @ ..] => [&[*version, 0xde, *high, low + 1], rest].concat(),
            [version, head, rest @ ..] => [&[*version, 0xde, 0, (head & 0x0f) + 1], rest].concat(),
            _ => return Err("it is a map".into()),
        };
        bytes.extend([0xa1, b'!', 0xc0]);
        row.value = bytes.into();
        Ok(())
    }),
    ("the value of 1.", |export| {
        export.entries.retain(|entry| entry.space != "payloads");
        Ok(())
    }),
    ("idempotency key stands for is missing", |export| {
        export.entries.retain(|entry| entry.space != "keys");
        Ok(())
    }),
    ("key that is not its own", |export| {
        in_space(export, "keys")?.key = b"another".as_slice().into();
        Ok(())
    }),
    ("disagree about whether it lives", |export| {
        export
            .entries
            .retain(|entry| entry.space != "live" && entry.space != "finished");
        Ok(())
    }),
    ("over the limit", |export| {
        in_space(export, "payloads")?.value = vec![0; (256 << 20) + 1].into();
        Ok(())
    }),
];

#[test]
fn what_no_engine_would_have_written_is_refused() -> Tested {
    for original in [live()?, finished()?] {
        for (number, (expected, spoil)) in CASES.iter().enumerate() {
            let mut export = original.clone();
            // A family that has ended needs no values.
            if *expected == "the value of 1." && !export.entries.iter().any(|entry| entry.space == "live") {
                continue;
            }
            spoil(&mut export)?;
            let refused = refusal(&World::new(), &export)?;
            assert!(
                matches!(&refused, ImportError::Unusable { .. }),
                "case {number}: {refused}"
            );
            let text = refused.to_string();
            assert!(text.contains(expected), "case {number}: {text}");
            assert!(!text.contains('\u{1b}'), "case {number} steers the terminal");
        }
    }
    Ok(())
}

/// Draws numbers (SplitMix64), so that a failure is the same again.
struct Draw(u64);

impl Draw {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % (end.max(1) as u64)).unwrap_or_default()
    }

    /// Changes a byte, or cuts, in a key or a value.
    fn spoil(&mut self, export: &mut FamilyExport) {
        let place = self.below(export.entries.len());
        let Some(entry) = export.entries.get_mut(place) else {
            return;
        };
        let is_key = self.below(6) == 0;
        let blob = if is_key { &mut entry.key } else { &mut entry.value };
        let mut bytes = blob.as_slice().to_vec();
        let at = self.below(bytes.len());
        match (self.below(8), bytes.get_mut(at)) {
            (0, _) => bytes.truncate(at),
            (1, Some(byte)) => *byte = 0xff,
            (2, Some(byte)) => *byte = 0,
            (_, Some(byte)) => *byte ^= 1 << self.below(8),
            (_, None) => {}
        }
        *blob = bytes.into();
    }
}

#[test]
fn what_an_import_takes_a_start_takes() -> Tested {
    let originals = [live()?, finished()?];
    let (mut taken, mut refused) = (0, 0);
    for seed in 0..600 {
        let mut draw = Draw(seed);
        let mut export = originals[draw.below(2)].clone();
        for _ in 0..=draw.below(2) {
            draw.spoil(&mut export);
        }
        let world = World::new();
        match import_with(&world, FaultPlan::none(), &export, &by())?.done()? {
            Err(_) => {
                refused += 1;
                assert!(dump(&world).is_empty(), "seed {seed}");
            }
            Ok(_) => {
                taken += 1;
                let quarantined = live_in(&world, &Lab::default(), async |run| {
                    run.settle().await;
                    Ok(run.executor.snapshot().await?.quarantined)
                })
                .map_err(|why| format!("seed {seed}: {why}"))?;
                // A kind or a version that nobody has is the start's business.
                let is_damage = |why: &str| !why.contains("no procedure of kind") && !why.contains("version ");
                let damage = quarantined.iter().find(|(_, why)| is_damage(why));
                assert_eq!(damage, None, "seed {seed}");
            }
        }
    }
    assert!(taken > 50 && refused > 50, "{taken} taken, {refused} refused");
    Ok(())
}
