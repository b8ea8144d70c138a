//! What earlier formats left, read and written again: the bytes are the same, so a kind that uses nothing new leaves
//! what it always left.

use procession_actors::testkit::format;
use procession_kernel::{ProcedureId, Record};

use crate::{Line, Tested, golden, hex};

/// Files with rows or history of earlier formats.
const FILES: [&str; 11] = [
    "v1/rows.hex",
    "v1/history.hex",
    "v1/store.hex",
    "v2/rows.hex",
    "v2/history.hex",
    "v2/traces.hex",
    "v2/held.hex",
    "v2/large.hex",
    "v2/said.hex",
    "v2/locks.hex",
    "v2/store.hex",
];

/// A number of a key, from this byte on.
fn number<const N: usize>(key: &[u8], at: usize) -> Result<[u8; N], Box<dyn std::error::Error>> {
    let bytes = key.get(at..at + N).ok_or("the key is too short")?;
    Ok(bytes.try_into()?)
}

/// Reads what a line holds. `None` if it is of another sort, or deletes.
fn read(line: &Line) -> Result<Option<Record>, Box<dyn std::error::Error>> {
    let Some(value) = &line.value else { return Ok(None) };
    let key = &line.key;
    Ok(Some(match line.space.as_str() {
        "procedures" => {
            let id = ProcedureId::new(u64::from_be_bytes(number(key, 0)?), u32::from_be_bytes(number(key, 8)?));
            Record::Row(Box::new(format::row(id, value)?))
        }
        "history" => {
            let (family, entry) = (u64::from_be_bytes(number(key, 0)?), u32::from_be_bytes(number(key, 8)?));
            Record::History(Box::new(format::history(family, entry, value)?))
        }
        _ => return Ok(None),
    }))
}

#[test]
fn g_071_rows_and_history_of_earlier_formats_are_written_again_as_they_were() -> Tested {
    for file in FILES {
        let mut compared = 0;
        for line in golden(file, || Err("it was made long ago".into()))? {
            let Some(record) = read(&line)? else { continue };
            let batch = format::writes(std::slice::from_ref(&record))?;
            let written = batch.writes().find(|write| write.space.name() == line.space);
            let written = written.ok_or_else(|| format!("{file} {}: nothing is written", line.name))?;
            assert_eq!(hex(written.key), hex(&line.key), "{file} {}", line.name);
            let bytes = written.value.map(hex);
            assert_eq!(bytes, line.value.as_deref().map(hex), "{file} {}", line.name);
            compared += 1;
        }
        assert!(compared > 0, "{file} has neither rows nor history");
    }
    Ok(())
}
