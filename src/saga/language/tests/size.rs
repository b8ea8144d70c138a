//! Definitions of the largest size that is allowed, and beyond.

use std::fmt::Write;

use super::{Tested, errors, lines, machine, task};
use crate::Definitions;

/// A machine of these states.
#[derive(Default)]
struct Large {
    states: String,
    count: usize,
}

impl Large {
    fn add(&mut self, name: &str, state: &str) {
        let comma = if self.count == 0 { "" } else { ",\n" };
        write!(self.states, "{comma}\"{name}\": {{{state}}}").ok();
        self.count += 1;
    }

    fn text(&self, start: &str) -> String {
        format!(
            r#"{{"Name": "m", "StartState": "{start}", "States": {{{}}}}}"#,
            self.states
        )
    }
}

fn short(next: &str) -> String {
    format!(r#""Type":"ServiceTask","ServiceName":"s","ServiceMethod":"m","Next":"{next}""#)
}

/// Forks nested this deep, in a chain of such nests.
fn nested(states: usize, depth: usize) -> String {
    let mut large = Large::default();
    let nests = states / (depth * 3);
    for nest in 0..nests {
        for level in 0..depth {
            let inner = match level + 1 < depth {
                true => format!("f{nest}_{}", level + 1),
                false => format!("x{nest}"),
            };
            let fork = format!(r#""Type":"Fork","Branches":["{inner}","b{nest}_{level}"]"#);
            large.add(&format!("f{nest}_{level}"), &fork);
            large.add(&format!("b{nest}_{level}"), &short(&format!("j{nest}_{level}")));
            let next = match level {
                0 if nest + 1 < nests => format!(r#","Next":"f{}_0""#, nest + 1),
                0 => String::new(),
                _ => format!(r#","Next":"j{nest}_{}""#, level - 1),
            };
            large.add(&format!("j{nest}_{level}"), &format!(r#""Type":"Join"{next}"#));
        }
        large.add(&format!("x{nest}"), &short(&format!("j{nest}_{}", depth - 1)));
    }
    large.text("f0_0")
}

/// One Fork of branches of one state.
fn wide(branches: usize) -> String {
    let mut large = Large::default();
    let names: Vec<String> = (0..branches).map(|branch| format!("\"b{branch}\"")).collect();
    large.add("f", &format!(r#""Type":"Fork","Branches":[{}]"#, names.join(",")));
    for branch in 0..branches {
        large.add(&format!("b{branch}"), &short("j"));
    }
    large.add("j", r#""Type":"Join""#);
    large.text("f")
}

#[test]
fn bounds_of_a_machine_name_state_limit_and_size() -> Tested {
    let mut large = Large::default();
    for state in 0..=2_000 {
        large.add(&format!("s{state}"), r#""Type":"Succeed""#);
    }
    let line = "m.json#/States: the machine has 2001 states, at most 2000; move states into sub machines";
    assert_eq!(lines(&large.text("s0")), [line]);
    let line = "m.json#/States/f/Branches: Fork [f]: Branches has 1001 branches, at most 1000; \
                use a Loop, or Forks in Forks";
    assert_eq!(lines(&wide(1_001)), [line]);
    assert_eq!(lines(&nested(16 * 3, 16)), [""; 0]);
    let line = "m.json#/States/f0_16: Fork [f0_16] is nested 17 deep, at most 16; move inner Forks into sub machines";
    assert_eq!(lines(&nested(17 * 3, 17)), [line]);
    let entries = vec![r#"{"MaxAttempts": 1}"#; 17].join(",");
    let retry = format!(r#"{}, "Retry": [{entries}]"#, task(""));
    let line = "m.json#/States/A/Retry: state [A]: Retry has 17 entries, at most 16; put classes together";
    assert_eq!(lines(&machine(&[("A", &retry)])), [line]);
    let entries = vec![r#"{"Exceptions": ["x.Boom"], "Next": "A"}"#; 65].join(",");
    let catch = format!(r#"{}, "Catch": [{entries}]"#, task(""));
    let line = "m.json#/States/A/Catch: state [A]: Catch has 65 entries, at most 64; put classes together";
    assert_eq!(lines(&machine(&[("A", &catch)])), [line]);
    let entries = vec![r#"{"Expression": "[a] == 1", "Next": "B"}"#; 257].join(",");
    let choice = format!(r#""Type": "Choice", "Choices": [{entries}], "Default": "B""#);
    let line = "m.json#/States/A/Choices: state [A]: Choices has 257 entries, at most 256; \
                lead some of them to a Choice of their own";
    assert_eq!(lines(&machine(&[("A", &choice), ("B", &task(""))])), [line]);
    let name = "n".repeat(129);
    let line = format!(
        "m.json#/States/{name}: the name of state [{}…] has 129 characters; give it at most 128",
        "n".repeat(128)
    );
    assert_eq!(lines(&machine(&[(&name, &task(""))])), [line]);
    Ok(())
}

/// Names that are as long and as many as a file allows, each of them wrong, cost no more than a large file does.
#[test]
fn hints_for_many_long_names_are_bounded() {
    let mut large = Large::default();
    for state in 0..1_700 {
        let name = format!("{}{state:04}", "x".repeat(120));
        let next = format!("{}{:04}", "x".repeat(120), 9_999 - state);
        large.add(&name, &format!(r#""Type":"Join","Next":"{next}""#));
    }
    let text = large.text("s0");
    assert!(text.len() < 512 << 10);
    assert!(errors(&text).len() > 1_000);
}

/// A state may have as many keys of its author as a file has room for.
#[test]
fn many_keys_that_nothing_reads_are_told_of_in_linear_time() {
    let keys: Vec<String> = (0..40_000).map(|number| format!(r#""k{number}":1"#)).collect();
    let state = format!(r#"{}, {}"#, task(""), keys.join(","));
    let text = machine(&[("A", &state)]);
    assert!(text.len() < 512 << 10);
    assert_eq!(errors(&text), [""; 0]);
    assert_eq!(super::warnings(&text).len(), 1_001);
}

#[test]
fn files_have_bounds_together() -> Tested {
    let mut large = machine(&[("A", &task(""))]);
    large.extend(std::iter::repeat_n(' ', (512 << 10) - large.len()));
    let read = |count: usize| {
        let files = (0..count).fold(Definitions::new(), |files, number| {
            files.json(&format!("{number}.json"), &large)
        });
        files.check().map_err(|errors| errors.to_string())
    };
    assert!(read(32).is_ok());
    let line = "32.json#/: with this file there are 17301504 bytes, at most 16777216; check the files in parts";
    assert_eq!(read(33).err().as_deref(), Some(line));
    let small = machine(&[("A", &task(""))]);
    let files = (0..1_003).fold(Definitions::new(), |files, number| {
        files.json(&format!("{number}.json"), &small)
    });
    let errors = files.check().err().ok_or("they are refused")?;
    assert_eq!(
        errors.to_string(),
        "1000.json#/: 1000 files are before this one; check them in parts"
    );
    Ok(())
}
