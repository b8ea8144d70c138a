//! Every shape of record, as bytes and back.

use procession_actors::testkit::format;
use procession_kernel::Record;

use crate::samples::{self, Sample};
use crate::{Line, Tested, golden};

pub(crate) fn lines(samples: &[Sample]) -> Result<Vec<Line>, Box<dyn std::error::Error>> {
    let mut lines = Vec::new();
    for (name, record) in samples {
        let batch = format::writes(std::slice::from_ref(record))?;
        lines.extend(batch.writes().map(|write| Line {
            name: name.clone(),
            space: write.space.name(),
            key: write.key.to_vec(),
            value: write.value.map(<[u8]>::to_vec),
        }));
    }
    Ok(lines)
}

/// What this release writes is what stands in the file, byte for byte.
pub(crate) fn compare(file: &str, samples: &[Sample]) -> Result<Vec<Line>, Box<dyn std::error::Error>> {
    let written = lines(samples)?;
    let golden = golden(file, || lines(samples))?;
    for (written, golden) in written.iter().zip(&golden) {
        assert_eq!(written.text(), golden.text(), "{file}: a byte on disk has changed");
    }
    assert_eq!(written.len(), golden.len(), "{file}: a shape is missing");
    Ok(golden)
}

pub(crate) fn value(line: &Line) -> Result<&[u8], String> {
    line.value.as_deref().ok_or_else(|| format!("{} deletes", line.name))
}

/// The rows are as they were, and are read as they are.
pub(crate) fn read_rows(golden: &str, samples: &[Sample]) -> Tested {
    for (line, (name, record)) in compare(golden, samples)?.iter().zip(samples) {
        let Record::Row(row) = record else {
            return Err(format!("{name} is no row").into());
        };
        assert_eq!(format::row(row.id, value(line)?)?, **row, "{name}");
    }
    Ok(())
}

#[test]
fn rows_are_as_in_version_1() -> Tested {
    read_rows("v1/rows.hex", &samples::rows())
}

#[test]
fn history_is_as_in_version_1() -> Tested {
    let samples = samples::history();
    for (line, (name, record)) in compare("v1/history.hex", &samples)?.iter().zip(&samples) {
        let Record::History(entry) = record else {
            return Err(format!("{name} is no entry").into());
        };
        assert_eq!(
            format::history(entry.family, entry.number, value(line)?)?,
            **entry,
            "{name}"
        );
    }
    Ok(())
}

#[test]
fn all_other_records_and_the_layout_of_keys_are_as_in_version_1() -> Tested {
    let samples = samples::others();
    let golden = compare("v1/others.hex", &samples)?;
    for (name, record) in &samples {
        let of_record = golden.iter().filter(|line| line.name == *name).collect::<Vec<_>>();
        let first = of_record.first().ok_or_else(|| format!("{name} leaves nothing"))?;
        match record {
            Record::Signal(_, _, entry, payload) => {
                assert_eq!(
                    format::signal(value(first)?)?,
                    (entry.clone(), payload.clone()),
                    "{name}"
                );
            }
            Record::Key(_, entry) => assert_eq!(format::key_entry(value(first)?)?, *entry, "{name}"),
            Record::Started(epoch, deaths) => assert_eq!(format::started(value(first)?)?, (*epoch, *deaths), "{name}"),
            Record::Limit(_, limit) => assert_eq!(format::limit(value(first)?)?, *limit, "{name}"),
            // Plain bytes, which are compared already.
            _ => {}
        }
    }
    Ok(())
}

#[test]
fn a_value_of_a_newer_version_is_refused_with_both_numbers() -> Tested {
    let error = format::key_entry(&[2, 0x80])
        .err()
        .ok_or("a newer value was read")?
        .to_string();
    assert!(error.contains("version 2") && error.contains("reads 1"), "{error}");
    let error = format::key_entry(&[])
        .err()
        .ok_or("an empty value was read")?
        .to_string();
    assert!(error.contains("empty"), "{error}");
    Ok(())
}
