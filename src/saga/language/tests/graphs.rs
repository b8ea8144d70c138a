//! Forks and Joins: what pairs, and each text of what does not.

use proptest::prelude::*;

use super::{Tested, errors, machine, task};

const DONE: (&str, &str) = ("Z", r#""Type": "Succeed""#);
const FAIL: (&str, &str) = ("E", r#""Type": "Fail", "ErrorCode": "E""#);
const TRIGGER: (&str, &str) = ("T", r#""Type": "CompensationTrigger", "Next": "E""#);

fn fork(branches: &[&str]) -> String {
    let branches: Vec<String> = branches.iter().map(|branch| format!("\"{branch}\"")).collect();
    format!(r#""Type": "Fork", "Branches": [{}]"#, branches.join(", "))
}

fn join(next: &str) -> String {
    match next {
        "" => r#""Type": "Join""#.to_owned(),
        next => format!(r#""Type": "Join", "Next": "{next}""#),
    }
}

fn choice(one: &str, default: &str) -> String {
    format!(r#""Type": "Choice", "Choices": [{{"Expression": "[a] == 1", "Next": "{one}"}}], "Default": "{default}""#)
}

/// A machine by the letters of its states: `F` and `G` are Forks, `J`, `K` and `L` Joins, `C` and `D` Choices, the rest
/// tasks. Succeed `Z`, Fail `E` and trigger `T` are always there, and something leads to them.
struct Letters {
    states: Vec<(String, String)>,
}

impl Letters {
    fn of(states: &[(&str, String)]) -> Self {
        let states = states.iter().map(|(name, state)| ((*name).to_owned(), state.clone()));
        Self {
            states: states.collect(),
        }
    }

    /// The states in the order that the numbers give, the first one as the start.
    fn text(&self, order: &[usize]) -> String {
        let start = self.states.first().map_or("", |(name, _)| name);
        let ends = [DONE, FAIL, TRIGGER].map(|(name, state)| (name.to_owned(), state.to_owned()));
        let all: Vec<(String, String)> = self.states.iter().cloned().chain(ends).collect();
        let mut at: Vec<usize> = (0..all.len()).collect();
        at.sort_by_key(|index| order.get(*index).copied().unwrap_or(*index));
        let ordered = at.iter().filter_map(|index| all.get(*index));
        let states: Vec<String> = ordered
            .map(|(name, state)| format!("\"{name}\": {{{state}}}"))
            .collect();
        format!(
            r#"{{"Name": "m", "StartState": "{start}", "States": {{{}}}}}"#,
            states.join(",\n")
        )
    }
}

/// A definition for each text of a graph that is refused.
fn refused() -> Vec<(Letters, Vec<&'static str>)> {
    let s = |states: &[(&str, String)]| Letters::of(states);
    vec![
        (
            s(&[
                ("S", task("F")),
                ("F", fork(&["A", "B"])),
                ("A", task("X")),
                ("B", task("X")),
                ("X", task("J")),
                ("J", join("Z")),
            ]),
            vec!["state [X] belongs to branches [A] and [B] of Fork [F]; branches must be disjoint"],
        ),
        (
            s(&[
                ("S", task("F")),
                ("F", fork(&["A", "B"])),
                ("A", task("")),
                ("B", task("")),
            ]),
            vec!["Fork [F] has no paired Join"],
        ),
        (
            s(&[
                ("F", fork(&["A", "B"])),
                ("A", task("J")),
                ("B", task("K")),
                ("J", join("Z")),
                ("K", join("Z")),
            ]),
            vec!["Fork [F] reaches two Joins: [J] and [K] (branch [B])"],
        ),
        (
            s(&[("S", task("J")), ("J", join("Z"))]),
            vec!["Join [J] is not paired with any Fork"],
        ),
        (
            s(&[("S", task("Z")), ("J", join("Z"))]),
            vec!["Join [J] is not paired with any Fork"],
        ),
        (
            s(&[
                ("C", choice("F", "G")),
                ("F", fork(&["A", "B"])),
                ("G", fork(&["X", "Y"])),
                ("A", task("J")),
                ("B", task("J")),
                ("X", task("J")),
                ("Y", task("J")),
                ("J", join("Z")),
            ]),
            vec!["Join [J] ends both Fork [F] and Fork [G]; each Fork needs a Join of its own"],
        ),
        (
            s(&[
                ("F", fork(&["A", "B"])),
                ("A", task("Z")),
                ("B", task("J")),
                ("J", join("Z")),
            ]),
            vec!["branch [A] of Fork [F] can end at [Z] without reaching a Join"],
        ),
        (
            s(&[
                ("F", fork(&["A", "B"])),
                ("A", task("")),
                ("B", task("J")),
                ("J", join("Z")),
            ]),
            vec!["branch [A] of Fork [F] can end at [A] without reaching a Join"],
        ),
        (
            s(&[
                ("F", fork(&["C", "B"])),
                ("C", choice("J", "Z")),
                ("B", task("J")),
                ("J", join("Z")),
            ]),
            vec!["branch [C] of Fork [F] can end at [Z] without reaching a Join"],
        ),
        (
            s(&[
                ("C", choice("F", "A")),
                ("F", fork(&["A", "B"])),
                ("A", task("J")),
                ("B", task("J")),
                ("J", join("Z")),
            ]),
            vec!["state [C] enters branch [A] of Fork [F] from outside"],
        ),
        (
            s(&[
                ("C", choice("F", "X")),
                ("F", fork(&["A", "B"])),
                ("A", task("Y")),
                ("Y", task("X")),
                ("X", task("J")),
                ("B", task("J")),
                ("J", join("Z")),
            ]),
            vec![
                "state [X] is reached both from inside branch [A] of Fork [F] (from [Y]) and from outside it (from [C])",
                "Join [J] of Fork [F] is reached from outside it (from [X])",
            ],
        ),
        (
            s(&[
                ("F", fork(&["C", "B"])),
                ("C", choice("A", "X")),
                ("A", task("J")),
                ("B", task("J")),
                ("J", join("Y")),
                ("Y", task("X")),
                ("X", task("Z")),
            ]),
            vec![
                "state [X] is reached both from inside branch [C] of Fork [F] (from [C]) and from outside it (from [Y])",
            ],
        ),
        (
            s(&[
                ("F", fork(&["G", "B"])),
                ("G", fork(&["X", "Y"])),
                ("X", task("K")),
                ("Y", task("J")),
                ("K", join("A")),
                ("A", task("J")),
                ("B", task("J")),
                ("J", join("Z")),
            ]),
            vec!["Fork [G] reaches two Joins: [K] and [J] (branch [Y])"],
        ),
        (
            s(&[
                ("F", fork(&["C", "B"])),
                ("C", choice("G", "K")),
                ("G", fork(&["X", "Y"])),
                ("X", task("K")),
                ("Y", task("K")),
                ("K", join("A")),
                ("A", task("J")),
                ("B", task("J")),
                ("J", join("Z")),
            ]),
            vec!["Join [K] of Fork [G] is reached from outside it (from [C])"],
        ),
        (
            s(&[
                ("F", fork(&["A", "B"])),
                ("A", task("J")),
                ("B", task("J")),
                ("C", choice("F", "J")),
                ("J", join("Z")),
            ])
            .starting_with("C"),
            vec!["Join [J] of Fork [F] is reached from outside it (from [C])"],
        ),
        (
            s(&[
                ("S", task("F")),
                ("F", fork(&["A", "B"])),
                ("A", task("F")),
                ("B", task("J")),
                ("J", join("Z")),
            ]),
            vec!["Fork [F] is contained in its own branch [A]"],
        ),
        (
            s(&[
                ("S", task("A")),
                ("A", task("F")),
                ("F", fork(&["A", "B"])),
                ("B", task("J")),
                ("J", join("Z")),
            ]),
            vec!["Fork [F] is contained in its own branch [A]"],
        ),
        (
            s(&[("F", fork(&["A", "E"])), ("A", task("J")), ("J", join("Z"))]),
            vec!["branch [E] of Fork [F] never reaches Join [J]"],
        ),
        (
            s(&[
                ("F", fork(&["A", "B"])),
                ("A", task("J")),
                ("B", task("T")),
                ("J", join("Z")),
            ]),
            vec!["branch [B] of Fork [F] never reaches Join [J]"],
        ),
        (s(&[("F", fork(&[]))]), vec!["Fork [F]: Branches is empty"]),
        (
            s(&[
                ("F", fork(&["A", "B", "A"])),
                ("A", task("J")),
                ("B", task("J")),
                ("J", join("Z")),
            ]),
            vec!["Fork [F]: branch [A] is listed twice"],
        ),
        (
            s(&[
                ("F", fork(&["A", "B", "Q"])),
                ("A", task("J")),
                ("B", task("J")),
                ("J", join("Z")),
            ]),
            vec!["Fork [F]: branch [Q] does not exist"],
        ),
        (
            s(&[("F", fork(&["A", "F"])), ("A", task("J")), ("J", join("Z"))]),
            vec!["Fork [F] is contained in its own branch [F]"],
        ),
    ]
}

impl Letters {
    fn starting_with(mut self, name: &str) -> Self {
        self.states.sort_by_key(|(other, _)| other != name);
        self
    }
}

#[test]
fn g_064_each_graph_that_is_refused_has_its_text() {
    for (letters, texts) in refused() {
        let text = letters.text(&[]);
        assert_eq!(errors(&text), texts, "{text}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn g_064_the_order_of_states_in_the_file_changes_no_text(order in proptest::collection::vec(0..1_000_usize, 16)) {
        for (letters, texts) in refused() {
            prop_assert_eq!(errors(&letters.text(&order)), texts);
        }
    }

    /// Whatever leads where, the checks come to an end, and say the same again.
    #[test]
    fn g_064_any_graph_is_read_or_refused(links in proptest::collection::vec((0..5_u8, 0..12_usize, 0..12_usize), 12)) {
        let name = |index: usize| format!("s{index}");
        let states = links.iter().enumerate().map(|(index, (kind, one, other))| {
            let (one, other) = (name(*one), name(*other));
            let state = match kind {
                0 => task(&one),
                1 => choice(&one, &other),
                2 => fork(&[&one, &other]),
                3 => join(&one),
                _ => r#""Type": "Succeed""#.to_owned(),
            };
            (name(index), state)
        });
        let states: Vec<(String, String)> = states.collect();
        let borrowed: Vec<(&str, &str)> = states.iter().map(|(name, state)| (name.as_str(), state.as_str())).collect();
        let text = machine(&borrowed);
        prop_assert_eq!(errors(&text), errors(&text));
    }
}

#[test]
fn g_064_branches_may_share_a_fail_and_a_trigger() {
    let letters = Letters::of(&[
        ("S", task("F")),
        ("F", fork(&["C", "D"])),
        ("C", choice("E", "A")),
        ("D", choice("T", "B")),
        (
            "A",
            format!(r#"{}, "Catch": [{{"Exceptions": ["x"], "Next": "T"}}]"#, task("J")),
        ),
        (
            "B",
            format!(r#"{}, "Catch": [{{"Exceptions": ["x"], "Next": "E"}}]"#, task("J")),
        ),
        ("J", join("Z")),
    ]);
    assert_eq!(errors(&letters.text(&[])), [""; 0]);
}

#[test]
fn g_046_a_fork_may_come_first_a_join_last_and_a_branch_be_empty() {
    for states in [
        vec![
            ("F", fork(&["A", "B"])),
            ("A", task("J")),
            ("B", task("J")),
            ("J", join("")),
        ],
        vec![("F", fork(&["A", "J"])), ("A", task("J")), ("J", join("Z"))],
    ] {
        assert_eq!(errors(&Letters::of(&states).text(&[])), [""; 0]);
    }
}

/// Two mistakes in two Forks that lie side by side are both told.
#[test]
fn g_064_mistakes_in_two_forks_are_told_at_once() {
    let letters = Letters::of(&[
        ("F", fork(&["A", "B"])),
        ("A", task("Z")),
        ("B", task("J")),
        ("J", join("G")),
        ("G", fork(&["X", "Y"])),
        ("X", task("W")),
        ("Y", task("W")),
        ("W", task("K")),
        ("K", join("Z")),
    ]);
    let mut found = errors(&letters.text(&[]));
    found.sort();
    assert_eq!(
        found,
        [
            "branch [A] of Fork [F] can end at [Z] without reaching a Join",
            "state [W] belongs to branches [X] and [Y] of Fork [G]; branches must be disjoint",
        ]
    );
}

#[test]
fn g_041_values_of_parallel_and_timeout() -> Tested {
    let with = |attributes: &str| {
        let fork = format!("{}, {attributes}", fork(&["A", "B"]));
        super::lines(&machine(&[
            ("F", &fork),
            ("A", &task("J")),
            ("B", &task("J")),
            ("J", &join("")),
        ]))
    };
    for right in [
        r#""Parallel": 0"#,
        r#""Parallel": 100"#,
        r#""Timeout": 0"#,
        r#""Parallel": 2.0"#,
    ] {
        assert_eq!(with(right), [""; 0], "{right}");
    }
    for (wrong, line) in [
        (
            r#""Parallel": -1"#,
            "m.json#/States/F/Parallel: Fork [F]: Parallel must be >= 0; it is -1: write 0 for no limit",
        ),
        (
            r#""Parallel": "2""#,
            "m.json#/States/F/Parallel: state [F]: Parallel is \"2\", a string; write 2",
        ),
        (
            r#""Parallel": 1.5"#,
            "m.json#/States/F/Parallel: Fork [F]: Parallel is 1.5; write a whole number",
        ),
        (
            r#""Timeout": -1"#,
            "m.json#/States/F/Timeout: Fork [F]: Timeout must be >= 0; it is -1: write 0 for none",
        ),
        (
            r#""Timeout": 31622400001"#,
            "m.json#/States/F/Timeout: Fork [F]: Timeout is 31622400001; write 31622400000 or less",
        ),
    ] {
        assert_eq!(with(wrong), [line]);
    }
    Ok(())
}
