//! A journal in which a row is damaged, or a block of a table: what can be read of it is told all the same.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use futures::executor::block_on;
use procession::provider::{Batch, JournalStore, Seq, Space};
use procession_actors::journal::{EmbeddedStore, SyncMode, keys};
use procession_kernel::ProcedureId;
use serde_json::Value;

use crate::Outcome;
use crate::golden::{Place, made};
use crate::journal::{Does, Running, of_each, of_sets};
use crate::run::{Said, look};

/// Makes a row one that cannot be read.
fn damage(place: &Place, id: ProcedureId) -> Outcome {
    let store = EmbeddedStore::open(&place.journal, SyncMode::Data)?;
    let mut batch = Batch::new(block_on(store.acquire())?);
    batch.put(Space::Procedures, &keys::procedure(id), b"\x01no row");
    block_on(store.append(batch))?;
    Ok(())
}

#[test]
fn a_damaged_set_is_named_and_the_others_are_listed() -> Outcome {
    let place = made(of_sets)?;
    damage(&place, ProcedureId::new(1, 2))?;
    let said = look("flows", &place.journal)?;
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    assert!(said.err.contains("1.0 cannot be read"), "{}", said.err);
    assert!(
        said.out.contains("invoices:customer-17") && !said.out.contains("album"),
        "{}",
        said.out
    );
    Ok(())
}

/// Families of the journal whose rows fill several blocks.
const FAMILIES: u64 = 60;

/// Many that have ended, and one that waits.
fn of_many_blocks(place: &Path) -> Outcome {
    actix_rt::System::new().block_on(async {
        let running = Running::start(place).await?;
        for number in 1..FAMILIES {
            running.submit(None, Does::Ends, &format!("req-{number}")).await?;
        }
        running.submit(None, Does::Waits("go".into()), "waits").await?;
        running.leave().await
    })
}

/// Puts what the journal has into tables, and returns their files, without those of the store itself.
fn tables(journal: &Path) -> Outcome<Vec<PathBuf>> {
    let store = EmbeddedStore::open(journal, SyncMode::Data)?.checkpoint_at(1);
    let head = block_on(store.head())?.ok_or("it has commits")?;
    let epoch = block_on(store.acquire())?;
    for number in 1..=8 {
        let mut batch = Batch::new(epoch);
        batch.advance_to(Seq(head.seq.0 + number));
        batch.put(Space::History, &keys::history(u64::MAX, 1), b"no entry");
        batch.delete(Space::History, &keys::history(u64::MAX, 1));
        block_on(store.append(batch))?;
    }
    drop(store);
    let mut tables = Vec::new();
    for keyspace in fs::read_dir(journal.join("store/keyspaces"))? {
        let keyspace = keyspace?;
        if keyspace.file_name() == "0" {
            continue;
        }
        for table in fs::read_dir(keyspace.path().join("tables"))? {
            tables.push(table?.path());
        }
    }
    Ok(tables)
}

/// Looks at the journal once for each of its tables, while the first block of that is damaged.
fn with_each_damaged(journal: &Path, arguments: &str, judge: &mut dyn FnMut(&Path, Said) -> Outcome) -> Outcome {
    let tables = tables(journal)?;
    assert!(tables.len() > 3, "{tables:?}");
    for table in tables {
        let whole = fs::read(&table)?;
        let mut changed = whole.clone();
        // Behind the header of the block. Opening a table reads its end alone.
        *changed.get_mut(60).ok_or("a table is larger")? ^= 8;
        fs::write(&table, &changed)?;
        judge(&table, look(arguments, journal)?)?;
        fs::write(&table, &whole)?;
    }
    Ok(())
}

#[test]
fn a_doctor_tells_of_a_damaged_block_and_of_all_else() -> Outcome {
    let place = made(of_each)?;
    let (mut blind, mut rows) = (0, 0);
    with_each_damaged(&place.journal, "doctor --json", &mut |table, said| {
        assert_eq!(said.code, Some(3), "{}: {}", table.display(), said.err);
        let found: Value = serde_json::from_str(&said.out)?;
        let damaged = found["damaged"].to_string();
        assert!(damaged.contains(&table.display().to_string()), "{damaged}");
        let is_blind = damaged.contains("could not read the live families");
        assert_eq!(found["families"].is_null(), is_blind, "{found}");
        assert_eq!(found["verdicts"] == Value::Array(Vec::new()), is_blind, "{found}");
        assert_eq!(
            found["damages"].as_u64(),
            found["damaged"].as_array().map(|damaged| damaged.len() as u64)
        );
        if is_blind {
            blind += 1;
            let said = look("doctor", &place.journal)?;
            assert_eq!(said.code, Some(3), "{}", said.err);
            assert!(said.out.contains("live families cannot be read"), "{}", said.out);
            let quick = look("doctor --quick", &place.journal)?;
            assert_eq!(quick.code, Some(3), "{}", quick.err);
            rows += u32::from(quick.out.contains("could not read the rows of procedures"));
        }
        Ok(())
    })?;
    assert!(blind > 1 && rows == 1, "{blind} tables, {rows} of rows");
    Ok(())
}

/// Returns the families that have documents of this type.
fn families(out: &str, of_type: &str, field: &str) -> Outcome<BTreeSet<u64>> {
    let mut families = BTreeSet::new();
    for line in out.lines() {
        let document: Value = serde_json::from_str(line)?;
        if document.get("type").is_some_and(|found| found == of_type) {
            let text = document.get(field).map(Value::to_string).unwrap_or_default();
            let family = text.trim_matches('"').split('.').next().unwrap_or_default();
            families.insert(family.parse()?);
        }
    }
    Ok(families)
}

/// Asserts that one of the last lines names these families and no others.
fn names(err: &str, what: &str, families: &BTreeSet<u64>) -> Outcome {
    let Some((counted, named)) = err.lines().rev().take(2).find_map(|line| line.split_once(what)) else {
        assert!(families.is_empty(), "{families:?} are not named: {err}");
        return Ok(());
    };
    assert_eq!(counted.split(' ').next(), Some(&*families.len().to_string()), "{err}");
    let named: BTreeSet<u64> = named.split(", ").map(str::parse).collect::<Result<_, _>>()?;
    assert_eq!(&named, families);
    Ok(())
}

#[test]
fn an_export_of_all_leaves_out_what_it_cannot_read_and_says_so() -> Outcome {
    let place = made(of_many_blocks)?;
    let all: BTreeSet<u64> = (1..=FAMILIES).collect();
    let (mut of_rows, mut of_others) = (0, 0);
    with_each_damaged(&place.journal, "export --all --payload", &mut |table, said| {
        let place = table.display();
        let printed = families(&said.out, "family", "family")?;
        let unreadable = families(&said.out, "unreadable", "family")?;
        assert_eq!(&printed | &unreadable, all, "{place}: {}", said.err);
        assert!(!printed.is_empty(), "{place}: {}", said.err);
        let (left_out, in_part) = (&unreadable - &printed, &unreadable & &printed);
        names(&said.err, " left out: ", &left_out)?;
        names(&said.err, " not exported as a whole: ", &in_part)?;
        for family in &left_out {
            let line = format!("the family of {family}.0 is left out: ");
            assert!(said.err.contains(&line), "{}", said.err);
        }
        for family in &in_part {
            let line = format!("parts of the family of {family}.0 cannot be read: ");
            assert!(said.err.contains(&line), "{}", said.err);
        }
        let by_index = said
            .err
            .contains("the families that the indexes name are tried one by one");
        assert_eq!(by_index, !left_out.is_empty(), "{place}: {}", said.err);
        match unreadable.is_empty() {
            true => assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{place}"),
            false => assert_eq!(said.code, Some(3), "{place}: {}", said.err),
        }
        of_rows += u32::from(by_index);
        of_others += u32::from(!in_part.is_empty());
        Ok(())
    })?;
    assert!(
        of_rows == 1 && of_others > 1,
        "{of_rows} tables of rows, {of_others} others"
    );
    Ok(())
}
