//! The walk is linear: counted in looks at states, links and regions, so that no other process disturbs it.

use std::cell::Cell;
use std::fmt::Write;

use super::super::files::Files;

thread_local! {
    pub(super) static LOOKS: Cell<usize> = const { Cell::new(0) };
}

/// States of a machine as they are added.
#[derive(Default)]
struct Large {
    states: String,
    count: usize,
}

impl Large {
    fn add(&mut self, name: &str, state: &str) {
        let comma = if self.count == 0 { "" } else { ",\n" };
        write!(self.states, "{comma}\"{name}\": {{{state}}}").expect("a string takes it");
        self.count += 1;
    }

    fn task(&mut self, name: &str, next: &str) {
        let task = format!(r#""Type":"ServiceTask","ServiceName":"s","ServiceMethod":"m","Next":"{next}""#);
        self.add(name, &task);
    }

    fn fork(&mut self, name: &str, branches: &[String]) {
        self.add(
            name,
            &format!(r#""Type":"Fork","Branches":["{}"]"#, branches.join("\",\"")),
        );
    }

    fn join(&mut self, name: &str, next: Option<&str>) {
        let next = next.map_or_else(String::new, |next| format!(r#","Next":"{next}""#));
        self.add(name, &format!(r#""Type":"Join"{next}"#));
    }

    /// Returns the number of states, and of looks that their check takes.
    fn checked(&self, start: &str) -> (usize, usize) {
        let text = format!(
            r#"{{"Name": "m", "StartState": "{start}", "States": {{{}}}}}"#,
            self.states
        );
        let before = LOOKS.get();
        let mut files = Files::default();
        files.add_text("m.json", text.as_bytes());
        let parsed = files.into_parsed().pop().expect("it is one file");
        assert!(parsed.problems.is_empty(), "{:?}", parsed.problems);
        (self.count, LOOKS.get() - before)
    }
}

/// Forks of eight branches, one behind the other.
fn chain(states: usize) -> (usize, usize) {
    let mut large = Large::default();
    let forks = states / 10;
    for fork in 0..forks {
        let branches: Vec<String> = (0..8).map(|branch| format!("b{fork}_{branch}")).collect();
        large.fork(&format!("f{fork}"), &branches);
        for branch in &branches {
            large.task(branch, &format!("j{fork}"));
        }
        let next = format!("f{}", fork + 1);
        large.join(&format!("j{fork}"), (fork + 1 < forks).then_some(next.as_str()));
    }
    large.checked("f0")
}

/// Forks nested 16 deep, in a chain of such nests.
fn nested(states: usize) -> (usize, usize) {
    const DEPTH: usize = 16;
    let mut large = Large::default();
    let nests = states / (DEPTH * 3 + 1);
    for nest in 0..nests {
        for level in 0..DEPTH {
            let inner = match level + 1 < DEPTH {
                true => format!("f{nest}_{}", level + 1),
                false => format!("x{nest}"),
            };
            let beside = format!("b{nest}_{level}");
            let join = format!("j{nest}_{level}");
            large.fork(&format!("f{nest}_{level}"), &[inner, beside.clone()]);
            large.task(&beside, &join);
            let next = match level {
                0 => (nest + 1 < nests).then(|| format!("f{}_0", nest + 1)),
                _ => Some(format!("j{nest}_{}", level - 1)),
            };
            large.join(&join, next.as_deref());
        }
        large.task(&format!("x{nest}"), &format!("j{nest}_{}", DEPTH - 1));
    }
    large.checked("f0_0")
}

/// Thirty diamonds of Choices in each branch: paths double with each.
fn diamonds(states: usize) -> (usize, usize) {
    let mut large = Large::default();
    let branches = states / 90;
    let firsts: Vec<String> = (0..branches).map(|branch| format!("c{branch}_0")).collect();
    large.fork("f", &firsts);
    for branch in 0..branches {
        for diamond in 0..30 {
            let (left, right) = (format!("l{branch}_{diamond}"), format!("r{branch}_{diamond}"));
            let next = match diamond + 1 < 30 {
                true => format!("c{branch}_{}", diamond + 1),
                false => "j".to_owned(),
            };
            let choice = format!(
                r#""Type":"Choice","Choices":[{{"Expression":"[a] == 1","Next":"{left}"}}],"Default":"{right}""#
            );
            large.add(&format!("c{branch}_{diamond}"), &choice);
            large.task(&left, &next);
            large.task(&right, &next);
        }
    }
    large.join("j", None);
    large.checked("f")
}

/// Half of the states are Forks whose Joins wait, while in one branch beside them, one level deeper, a chain of Forks is
/// gone through.
fn waiting(states: usize) -> (usize, usize) {
    let mut large = Large::default();
    let forks = states / 6;
    let mut firsts: Vec<String> = (0..forks).map(|fork| format!("w{fork}")).collect();
    firsts.push("deep".to_owned());
    large.fork("f", &firsts);
    for fork in 0..forks {
        large.fork(&format!("w{fork}"), &[format!("wb{fork}")]);
        large.task(&format!("wb{fork}"), &format!("wj{fork}"));
        large.join(&format!("wj{fork}"), Some("j"));
    }
    large.fork("deep", &["d0".to_owned()]);
    for fork in 0..forks {
        large.fork(&format!("d{fork}"), &[format!("db{fork}")]);
        large.task(&format!("db{fork}"), &format!("dj{fork}"));
        let next = match fork + 1 < forks {
            true => format!("d{}", fork + 1),
            false => "deepj".to_owned(),
        };
        large.join(&format!("dj{fork}"), Some(&next));
    }
    large.join("deepj", Some("j"));
    large.join("j", None);
    large.checked("f")
}

/// One Fork of branches of one state.
fn wide(states: usize) -> (usize, usize) {
    let mut large = Large::default();
    let branches: Vec<String> = (0..states / 2).map(|branch| format!("b{branch}")).collect();
    large.fork("f", &branches);
    for branch in &branches {
        large.task(branch, "j");
    }
    large.join("j", None);
    large.checked("f")
}

#[test]
fn g_065_the_walk_is_linear() {
    for (name, make) in [
        ("a chain of Forks", chain as fn(usize) -> (usize, usize)),
        ("nested Forks", nested),
        ("diamonds", diamonds),
        ("Joins that wait", waiting),
        ("branches", wide),
    ] {
        let (states, looks) = make(990);
        let (twice_states, twice_looks) = make(1_980);
        // Looks for each state, in thousandths.
        let (one, two) = (looks * 1_000 / states, twice_looks * 1_000 / twice_states);
        assert!(
            two <= one + one / 20,
            "{name}: {one} looks for a thousand states, then {two}"
        );
        assert!(
            (500..=20_000).contains(&two),
            "{name}: {two} looks for a thousand states"
        );
    }
}
