//! Every shape of record that came with format 4, as bytes and back.

use std::collections::BTreeSet;

use procession_actors::journal::keys;
use procession_actors::testkit::format;
use procession_kernel::{Act, Record, Verb};

use crate::samples::Sample;
use crate::samples_4 as samples;
use crate::values::{compare, lines, read_rows, value};
use crate::{Line, Tested, golden};

#[test]
fn rows_are_as_in_version_4() -> Tested {
    read_rows("v4/rows.hex", &samples::rows())
}

#[test]
fn a_delay_that_code_chose_and_attempts_that_were_cut_off_are_as_when_they_came() -> Tested {
    read_rows("v4/attempts.hex", &samples::attempts())
}

#[test]
fn a_row_is_as_it_was_when_stages_could_be_pure() -> Tested {
    read_rows("v4/pure.hex", &samples::pure())
}

#[test]
fn a_child_is_as_it_was_when_it_got_a_name_and_a_gate() -> Tested {
    read_rows("v4/graph.hex", &samples::graph())
}

#[test]
fn a_row_is_as_it_was_when_it_got_labels() -> Tested {
    read_rows("v4/labelled.hex", &samples::labelled())
}

/// Entries of this form are read and deleted; new ones have another.
#[test]
fn the_index_of_labels_is_read_as_it_was_when_it_came() -> Tested {
    let golden = golden("v4/label_index.hex", || Err("it was made long ago".into()))?;
    let (put, gone): (Vec<&Line>, Vec<&Line>) = golden.iter().partition(|line| line.name == "labelled");
    let found = put.iter().map(|line| keys::parse_label(&line.key));
    let digests = samples::labels();
    let digests = digests.iter().map(|label| Some((label.long_digest(), 42)));
    assert_eq!(found.collect::<BTreeSet<_>>(), digests.collect());
    // Records of the newest commits take no longer key, and no family has such a number.
    assert!(
        put.iter()
            .all(|line| line.key.len() == 16 && line.key.first().is_some_and(|first| *first >= 0x80))
    );
    let evicted = lines(&samples::label_index())?;
    assert_eq!(
        evicted.iter().collect::<Vec<_>>(),
        gone,
        "an eviction takes out the same bytes"
    );
    assert!(put.iter().all(|line| evicted.iter().any(|gone| gone.key == line.key)));
    Ok(())
}

#[test]
fn a_row_is_as_it_was_when_it_said_since_when_it_fails() -> Tested {
    read_rows("v4/streaks.hex", &samples::streaks())
}

#[test]
fn the_list_of_failures_is_as_it_was_when_it_came() -> Tested {
    let samples = samples::failures();
    let golden = compare("v4/failures.hex", &samples)?;
    let failures: Vec<&Line> = golden.iter().filter(|line| line.key.first() == Some(&0xff)).collect();
    let (listed, taken_off) = failures.split_first().ok_or("none is listed")?;
    assert!(
        taken_off
            .iter()
            .all(|line| line.key == listed.key && line.value.is_none())
    );
    assert_eq!(taken_off.len(), 2, "{golden:?}");
    let entry = format::failure(&listed.key, value(listed)?)?;
    assert_eq!(
        samples.first().map(|(_, record)| record),
        Some(&Record::FailureListed(Box::new(entry)))
    );
    Ok(())
}

#[test]
fn what_runs_a_root_again_is_as_it_was_when_it_came() -> Tested {
    let samples = samples::run_again();
    let golden = compare("v4/again.hex", &samples)?;
    let of = |name: &'static str| golden.iter().filter(move |line| line.name == name);
    let Some((_, Record::Row(row))) = samples.first() else {
        return Err("the first is a row".into());
    };
    let line = of("as-submitted").next().ok_or("no row")?;
    assert_eq!(format::row(row.id, value(line)?)?, **row);
    let kept = of("submitted").next().ok_or("no value")?;
    assert_eq!((value(kept)?, kept.key.last()), (&b"\0\x03value"[..], Some(&2)));
    let gone = of("evicted").any(|line| line.key == kept.key && line.value.is_none());
    assert!(gone, "{golden:?}");
    let Some((_, Record::Audit(entry))) = samples.last() else {
        return Err("the last is an act".into());
    };
    let line = of("run-again").next().ok_or("no act")?;
    assert_eq!(format::audit(entry.number, value(line)?)?, **entry);
    Ok(())
}

#[test]
fn an_act_is_as_it_was_when_operators_could_submit() -> Tested {
    let samples = samples::submitted_by();
    let golden = compare("v4/submit.hex", &samples)?;
    let [(_, Record::Audit(entry))] = samples.as_slice() else {
        return Err("it is an act".into());
    };
    let line = golden.first().ok_or("no act")?;
    assert_eq!(format::audit(entry.number, value(line)?)?, **entry);
    Ok(())
}

#[test]
fn a_row_is_as_it_was_when_names_could_be_closed() -> Tested {
    read_rows("v4/closed.hex", &samples::closed())
}

#[test]
fn a_row_is_as_it_was_when_an_end_could_send_a_signal() -> Tested {
    read_rows("v4/end_signals.hex", &samples::end_signals())
}

#[test]
fn a_row_is_as_it_was_when_a_history_could_have_a_window() -> Tested {
    read_rows("v4/windows.hex", &samples::windows())
}

#[test]
fn a_row_is_as_it_was_when_time_outs_of_stages_got_a_kind() -> Tested {
    read_rows("v4/timed_out.hex", &samples::timed_out())
}

#[test]
fn a_row_is_as_it_was_when_stages_got_limits() -> Tested {
    read_rows("v4/stage_limits.hex", &samples::stage_limits())
}

#[test]
fn a_rate_is_as_it_was_when_rates_came() -> Tested {
    let samples = samples::rates();
    for (line, (name, record)) in compare("v4/rates.hex", &samples)?.iter().zip(&samples) {
        match record {
            Record::Limit(_, limit) => assert_eq!(format::limit(value(line)?)?, *limit, "{name}"),
            Record::RateWindow(_, window) if window.is_empty() => assert_eq!(line.value, None, "{name}"),
            Record::RateWindow(_, window) => assert_eq!(format::rate_window(value(line)?)?, **window, "{name}"),
            Record::Audit(entry) => assert_eq!(format::audit(entry.number, value(line)?)?, **entry, "{name}"),
            other => return Err(format!("{other:?} has no rate").into()),
        }
    }
    Ok(())
}

#[test]
fn a_history_entry_is_as_it_was_when_stages_got_limits() -> Tested {
    read_history("v4/limited.hex", &samples::limited())
}

#[test]
fn a_history_entry_is_as_it_was_when_it_got_a_note() -> Tested {
    read_history("v4/notes.hex", &samples::notes())
}

#[test]
fn a_history_entry_is_as_it_was_when_it_got_values() -> Tested {
    read_history("v4/left_values.hex", &samples::left_values())
}

pub(crate) fn read_history(golden: &str, samples: &[Sample]) -> Tested {
    for (line, (name, record)) in compare(golden, samples)?.iter().zip(samples) {
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
fn a_row_that_asks_is_as_when_questions_came() -> Tested {
    read_rows("v4/questions.hex", &samples::questions())
}

#[test]
fn the_entry_and_the_act_of_a_question_are_as_when_questions_came() -> Tested {
    let samples = samples::asked();
    for (line, (name, record)) in compare("v4/asked.hex", &samples)?.iter().zip(&samples) {
        match record {
            Record::History(entry) => {
                assert_eq!(
                    format::history(entry.family, entry.number, value(line)?)?,
                    **entry,
                    "{name}"
                );
            }
            Record::Audit(entry) => assert_eq!(format::audit(entry.number, value(line)?)?, **entry, "{name}"),
            other => return Err(format!("{other:?} is neither").into()),
        }
    }
    Ok(())
}

#[test]
fn a_signal_is_as_it_was_when_it_got_a_time_and_an_end() -> Tested {
    let samples = samples::signals();
    for (line, (name, record)) in compare("v4/signals.hex", &samples)?.iter().zip(&samples) {
        let Record::Signal(_, _, entry, payload) = record else {
            return Err(format!("{name} is no signal").into());
        };
        assert_eq!(
            format::signal(value(line)?)?,
            (entry.clone(), payload.clone()),
            "{name}"
        );
    }
    Ok(())
}

#[test]
fn all_other_records_and_the_layout_of_keys_are_as_in_version_4() -> Tested {
    let samples = samples::others();
    let golden = compare("v4/others.hex", &samples)?;
    for (line, (name, record)) in golden.iter().zip(&samples) {
        if let Record::Broadcast(_, broadcast) = record {
            assert_eq!(format::broadcast(value(line)?)?, **broadcast, "{name}");
        }
    }
    Ok(())
}

#[test]
fn an_act_of_an_operator_is_as_it_was_when_it_got_a_type() -> Tested {
    let samples = samples::acts();
    for (line, (name, record)) in compare("v4/acts.hex", &samples)?.iter().zip(&samples) {
        let Record::Audit(entry) = record else {
            return Err(format!("{name} is no entry").into());
        };
        assert_eq!(format::audit(entry.number, value(line)?)?, **entry, "{name}");
    }
    Ok(())
}

/// A later release may add acts: this one still reads the entry, and shows its words.
#[test]
fn an_act_that_is_not_known_leaves_the_entry_readable() -> Tested {
    let samples = samples::acts();
    let lines = compare("v4/acts.hex", &samples)?;
    let line = lines
        .iter()
        .find(|line| line.name == "skip-undo")
        .ok_or("no such act")?;
    let known = format::audit(12, value(line)?)?;
    if !matches!(known.act, Some(Act::Operate(Verb::SkipUndo(_)))) {
        return Err("another act".into());
    }
    // The name of the variant, `k`, stands between the maps of the act and of its id.
    let bytes: Vec<u8> = value(line)?.to_vec();
    let name = [0x81, 0xa1, b'k', 0x82];
    let at = bytes.windows(4).position(|part| part == name).ok_or("no such name")?;
    let mut changed = bytes;
    *changed.get_mut(at + 2).ok_or("too short")? = b'Z';
    let unknown = format::audit(12, &changed)?;
    assert_eq!((unknown.act, unknown.target), (None, known.target));
    assert_eq!(unknown.words, known.words);
    Ok(())
}
