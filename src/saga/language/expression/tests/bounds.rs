//! No text and no value is too much: length, depth, steps, stack.

use std::thread;

use serde_json::{Value, json};

use super::super::{DEPTH, Expression, LENGTH, STEPS, STEPS_OF_STAGE, Steps};

fn refusal(text: &str) -> String {
    Expression::parse(text).map_or_else(|wrong| wrong.to_string(), |_| "read".to_owned())
}

fn failure(text: &str, root: &Value) -> String {
    let evaluated = Expression::parse(text).map(|expression| expression.evaluate(root, &mut Steps::new()));
    match evaluated {
        Ok(Ok(value)) => value.to_string(),
        Ok(Err(failed)) => failed.text,
        Err(wrong) => wrong.to_string(),
    }
}

#[test]
fn an_expression_has_a_longest_one() {
    let longest = format!("'{}'", "ä".repeat((LENGTH - 2) / 2));
    assert_eq!(longest.len(), LENGTH);
    assert_eq!(refusal(&longest), "read");
    let longer = format!("{longest} ");
    let why = format!("column 2050: it has 4097 bytes, and {LENGTH} are the limit; let a service compute it");
    assert_eq!(refusal(&longer), why);
}

/// Each shape of nesting, around a value.
const NESTED: [(&str, &str); 8] = [
    ("(", ")"),
    ("[list][", "]"),
    ("list.?[", "]"),
    ("list.![", "]"),
    ("list.get(", ")"),
    ("!", ""),
    ("t ? 1 : ", ""),
    ("1 || 1 && 1 == 1 + 1 * (", ")"),
];

/// 64 levels are read, and dropped, with half of the stack of a thread; 65 are refused.
#[test]
fn nesting_has_a_deepest_one() -> Result<(), std::io::Error> {
    let on_little_stack = || {
        for (before, behind) in NESTED {
            let nested = |depth: usize| format!("{}0{}", before.repeat(depth), behind.repeat(depth));
            assert_eq!(refusal(&nested(DEPTH)), "read", "{before}");
            let deeper = refusal(&nested(DEPTH + 1));
            assert!(
                deeper.ends_with(": it is nested more than 64 deep; let a service compute it"),
                "{before}: {deeper}"
            );
            // They are evaluated to some end.
            failure(&nested(DEPTH), &json!({ "list": [0, 1], "t": false }));
        }
        let sums = format!("{}1{}", "1 + (".repeat(DEPTH), ")".repeat(DEPTH));
        assert_eq!(failure(&sums, &Value::Null), (DEPTH + 1).to_string());
        // Whatever has no depth is bounded by the length alone.
        for long in ["1+".repeat(2000) + "1", "a.".repeat(1000) + "a", "[a]".repeat(1000)] {
            assert_eq!(refusal(&long), "read");
        }
        for open in ["(", "[", "!", "-", "a[", "a.?[", "not ", "a?", "a?:", "a.get("] {
            assert_ne!(refusal(&open.repeat(LENGTH / open.len())), "read");
        }
    };
    let thread = thread::Builder::new().stack_size(1 << 20).spawn(on_little_stack)?;
    assert!(thread.join().is_ok());
    Ok(())
}

#[test]
fn an_evaluation_has_a_bound() {
    let why = format!("the evaluation takes more than {STEPS} steps");
    let list = Value::from(Vec::from_iter(0..2000));
    let root = json!({ "list": list, "text": "x".repeat(1 << 19) });
    // Elements: of lists in lists, which are 4,000,000.
    assert_eq!(failure("[list].![#root.list.![#this]]", &root), why);
    assert_eq!(failure("[list].?[#root.list.?[#this == -1].size() == 1]", &root), why);
    assert_eq!(failure("[list].?[#root.list == #root.list]", &root), why);
    assert_eq!(failure("[list].?[#root.list.contains(-1)]", &root), why);
    // Copies of values: the evaluation shares them, and what it gives would be large.
    assert_eq!(failure("[list].![#root]", &root), why);
    assert_eq!(failure("[list].![#root.text]", &root), why);
    // Bytes.
    assert_eq!(failure("[list].?[#root.text == #root.text]", &root), why);
    assert_eq!(failure("[list].?[#root.text < #root.text]", &root), why);
    for call in [
        "contains('y')",
        "toLowerCase()",
        "trim()",
        "length()",
        "startsWith(#root.text)",
    ] {
        assert_eq!(failure(&format!("[list].![#root.text.{call}]"), &root), why, "{call}");
    }
    let joined = vec!["text"; 100].join("+");
    assert_eq!(failure(&joined, &root), why);
    // What is as large as a context may be is not too much.
    assert_eq!(failure("#root.text.length() + [list].![#this].size()", &root), "526288");
}

#[test]
fn the_evaluations_of_a_stage_have_a_bound_together() {
    let root = json!({ "list": Vec::from_iter(0..2000) });
    let expression = Expression::parse("[list].![#root.list.?[#this == -1].size()].size() == 0").expect("it is one");
    let one = Expression::parse("[list].?[#this == -1].size()").expect("it is one");
    let mut steps = Steps::new();
    // Too much for one evaluation, and each of them takes what there is.
    for _ in 0..3 {
        let failed = expression.test(&root, steps.again()).expect_err("it has a bound");
        assert_eq!(failed.text, format!("the evaluation takes more than {STEPS} steps"));
    }
    let mut evaluated = 0;
    let failed = loop {
        match one.evaluate(&root, steps.again()) {
            Ok(_) => evaluated += 1,
            Err(failed) => break failed,
        }
    };
    assert!((100..1_000).contains(&evaluated), "{evaluated}");
    let why = format!("the evaluations of this stage take more than {STEPS_OF_STAGE} steps together");
    assert_eq!(failed.text, why);
}

/// A value as deep as it likes is compared without recursion.
#[test]
fn deep_values_are_compared() {
    let deep = || (0..100_000).fold(Value::Null, |inner, _| Value::Array(vec![inner]));
    let root = Value::Array(vec![deep(), deep()]);
    let expression = Expression::parse("[0] == [1]").expect("it is one");
    assert_eq!(expression.test(&root, &mut Steps::new()), Ok(true));
    dismantle(root);
}

/// Drops a value without recursion.
fn dismantle(value: Value) {
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        if let Value::Array(list) = value {
            open.extend(list);
        }
    }
}
