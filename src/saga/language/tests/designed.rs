//! What the designer's form alone can get wrong.

use super::lines;

const START: &str =
    r#"{"id": "start", "stateType": "Start", "stateId": "Start", "stateProps": {"StateMachine": {"Name": "m"}}}"#;

/// A document of these nodes and edges, besides a Start and what it leads to.
fn design(nodes: &[&str], edges: &[String]) -> String {
    let first = r#"{"source": "start", "target": "first"}"#.to_owned();
    let edges: Vec<String> = std::iter::once(first).chain(edges.iter().cloned()).collect();
    format!(
        r#"{{"nodes": [{START}, {}], "edges": [{}]}}"#,
        nodes.join(","),
        edges.join(",")
    )
}

const TASK: &str = r#"{"id": "first", "stateType": "ServiceTask", "stateId": "A", "x": 0, "y": 0, "size": "10*10",
    "stateProps": {"ServiceName": "s", "ServiceMethod": "m"}}"#;

#[test]
fn g_034_a_document_has_one_start() {
    let again = START.replace("\"id\": \"start\"", "\"id\": \"again\"");
    let line = "m.json#/nodes/2/stateType: Start is there twice; remove one of them: a file has one machine";
    assert_eq!(lines(&design(&[TASK, &again], &[])), [line]);
    let same = START;
    let line_of_id = "m.json#/nodes/2/id: node \"start\" is there twice; give each node an id of its own";
    assert_eq!(lines(&design(&[TASK, same], &[])), [line, line_of_id]);
    assert_eq!(lines(&design(&[TASK], &[])), [""; 0]);
}

#[test]
fn bounds_of_lists_that_edges_make_are_told_of_once() {
    let choice = r#"{"id": "first", "stateType": "Choice", "stateId": "C"}"#;
    let end = r#"{"id": "end", "stateType": "Succeed", "stateId": "E"}"#;
    let edge = r#"{"source": "first", "target": "end", "stateProps": {"Expression": "[a] == 1"}}"#.to_owned();
    assert_eq!(lines(&design(&[choice, end], &vec![edge.clone(); 256])), [""; 0]);
    let line = "m.json#/edges/257: Choices has more than 256 entries; lead some of them to a Choice of their own";
    assert_eq!(lines(&design(&[choice, end], &vec![edge; 300])), [line]);
    let catch = r#"{"id": "catch", "stateType": "Catch", "stateId": "T", "x": 5, "y": 5, "size": "4*4"}"#;
    let edge = r#"{"source": "catch", "target": "end", "stateProps": {"Exceptions": ["x.Boom"]}}"#.to_owned();
    let line = "m.json#/edges/65: Catch has more than 64 entries; put classes together";
    assert_eq!(lines(&design(&[TASK, catch, end], &vec![edge; 70])), [line]);
}

/// An empty Expression is none: an edge that is not the Default needs one, and one that is a Default needs none.
#[test]
fn g_035_expressions_of_edges_are_compiled() {
    let choice = r#"{"id": "first", "stateType": "Choice", "stateId": "C"}"#;
    let end = r#"{"id": "end", "stateType": "Succeed", "stateId": "E"}"#;
    let edge = |props: &str| format!(r#"{{"source": "first", "target": "end", "stateProps": {{{props}}}}}"#);
    let edges = [
        r#""Expression": "", "Default": true"#,
        r#""Expression": """#,
        r#""Expression": "[a] = 1""#,
        r#""Expression": 1"#,
        "",
    ];
    let none = "an edge of Choice [C] has no Expression; say when it is taken, or make it the Default";
    assert_eq!(
        lines(&design(&[choice, end], &edges.map(edge))),
        [
            format!("m.json#/edges/2: {none}"),
            "m.json#/edges/3/stateProps/Expression: column 5: \"=\" sets a value, and an expression changes nothing; \
             write == to compare"
                .to_owned(),
            "m.json#/edges/4/stateProps/Expression: Expression is 1, a number; write a string".to_owned(),
            format!("m.json#/edges/5: {none}"),
        ]
    );
}
