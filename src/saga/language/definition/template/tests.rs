//! What a value of a file comes to, for a root.

use serde_json::{Value, json};

use super::super::json;
use super::super::path::Path;
use super::super::problem::Problems;
use super::{Template, Types};
use crate::expression::{Steps, Visit};

struct Visited;

impl Visit for Visited {
    fn has_fault_of(&self, class: &str) -> bool {
        class == "x.Boom"
    }

    fn sequence(&self, entity: &str, rule: &str) -> String {
        format!("{entity}-{rule}-1")
    }
}

/// Compiles a value, and returns it with the lines of its problems.
fn compiled(text: &str, types: Types) -> (Template, Vec<String>) {
    let mut problems = Problems::new("m.json");
    let json = json::read(text.as_bytes(), &mut problems).expect("it is JSON");
    let path = Path::DOCUMENT;
    let template = Template::compile(&json, types, &path.key("Input"), Some("A"), &mut problems);
    let lines = problems.into_found().iter().map(ToString::to_string).collect();
    (template, lines)
}

fn value(text: &str, types: Types) -> Result<Value, String> {
    let (template, lines) = compiled(text, types);
    assert_eq!(lines, [""; 0]);
    let root = json!({ "a": 2, "list": [1, null], "o": { "n": null }, "people": { "name": "lilei", "age": 18 } });
    template
        .evaluate(&root, &Visited, &mut Steps::new())
        .map_err(|failed| failed.to_string())
}

#[test]
fn texts_behind_a_dollar_are_expressions_at_any_depth() {
    let text = r#"[1, -0.5, true, null, "[a]", "$.[a]", {"x": {"y": ["$.[a] + 1", "$Sequence.ORDER|SIMPLE"]}, "$.[a]": "$Exception{x.Boom}"}]"#;
    let expected = json!([1, -0.5, true, null, "[a]", 2, {"x": {"y": [3, "ORDER-SIMPLE-1"]}, "$.[a]": true}]);
    assert_eq!(value(text, Types::None), Ok(expected));
}

/// A null out of an expression is one as a literal null is; what an expression gives as a whole is not looked into.
#[test]
fn nulls_stay_in_lists_and_leave_objects() {
    let text =
        r#"{"literal": null, "missing": "$.[b]", "list": [null, "$.[b]"], "whole": "$.[o]", "in": {"n": "$.[b]"}}"#;
    let expected = json!({"list": [null, null], "whole": {"n": null}, "in": {}});
    assert_eq!(value(text, Types::None), Ok(expected));
}

/// With `ParameterTypes` classes of Java are taken away, so that types of Rust decode what is left.
#[test]
fn g_026_classes_of_java_are_taken_away_if_there_are_types() {
    let text = r#"{
        "@type": "x.People", "name": "$.[people].name", "@types": 1,
        "array": ["[Lx.DemoService$People;", [{"@type": "x.People", "age": "$.[people].age"}]],
        "ints": ["[[I", [[1]]], "list": ["java.util.ArrayList", [["java.util.List", []], "java.util.List"]],
        "no classes": [["plain", [1]], ["a.1", [1]], ["$.[a]", [1]], ["[Lx;", [1]], ["[", [1]], ["x.Y", 1], ["x.Y", [1], 2]]
    }"#;
    let expected = json!({
        "name": "lilei", "@types": 1, "array": [{"age": 18}], "ints": [[1]], "list": [[], "java.util.List"],
        "no classes": [["plain", [1]], ["a.1", [1]], [2, [1]], ["[Lx;", [1]], ["[", [1]], ["x.Y", 1], ["x.Y", [1], 2]],
    });
    assert_eq!(value(text, Types::OfJava), Ok(expected));
    let kept = r#"[{"@type": "x.People"}, ["java.util.ArrayList", [1]]]"#;
    assert_eq!(
        value(kept, Types::None),
        Ok(json!([{"@type": "x.People"}, ["java.util.ArrayList", [1]]]))
    );
}

#[test]
fn every_text_that_cannot_be_compiled_is_told_of_at_its_place() {
    let text = r#"["$.[a", {"x/y": ["$.a = 1"], "ok": "$.[a]", "class": ["x.Y", ["$abc"]]}, "$exception{x.Boom}"]"#;
    let (_, lines) = compiled(text, Types::OfJava);
    assert_eq!(
        lines,
        [
            "m.json#/Input/0: state [A]: column 5: an operator or \"]\" is missing before the end; \
             write an expression, for instance $.[a], or a text that does not begin with $",
            "m.json#/Input/1/x~1y/0: state [A]: column 5: \"=\" sets a value, and an expression changes nothing; \
             write == to compare",
            "m.json#/Input/1/class/1/0: state [A]: column 1: a text that begins with $ is $.expression, \
             $Exception{class} or $Sequence.entity|rule; write an expression, for instance $.[a], or a text that does \
             not begin with $",
            "m.json#/Input/2: state [A]: \"$exception{..}\" has the unknown type [exception]; did you mean $Exception?",
        ]
    );
}

#[test]
fn an_error_says_in_which_expression_it_is() {
    let failed = value(r#"{"x": ["$.[a]", "$.[b].c"]}"#, Types::None);
    assert_eq!(failed, Err("column 6: null has no key \"c\" in \"$.[b].c\"".to_owned()));
}

/// A file of half a MiB may name a large value forty thousand times: its copies have one bound.
#[test]
fn expressions_of_one_value_share_their_steps() {
    let root = Value::String("x".repeat(80_000));
    let many = |count: usize| {
        let list = format!("[{}]", vec!["\"$.#root\""; count].join(","));
        compiled(&list, Types::None)
            .0
            .evaluate(&root, &Visited, &mut Steps::new())
    };
    assert!(many(100).is_ok());
    let failed = many(101).map_err(|failed| failed.text);
    assert_eq!(
        failed,
        Err("the evaluation takes more than 1000000 steps in \"$.#root\"".to_owned())
    );
}
