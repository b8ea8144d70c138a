//! `procession graph`: the members of a family that run after one another, as a table or for Graphviz.

use std::collections::BTreeMap;

use clap::Args;

use super::super::exit::{Exit, Failure};
use super::super::named::Named;
use super::super::place::Place;
use super::super::source::Source;
use super::super::watch::Watch;
use super::super::{moment, print};
use super::why;
use procession::views::{GraphView, NodeView};

/// Names of the nodes before one that a cell shows.
const NAMES: usize = 6;

#[derive(Debug, Clone, Args)]
pub(crate) struct GraphArgs {
    #[command(flatten)]
    pub(super) place: Place,
    #[command(flatten)]
    pub(super) watch: Watch,
    /// The family: a set, or any procedure whose children run after one another.
    #[arg(value_name = "ID")]
    id: Named,
    /// Print it in the language of Graphviz: `procession graph 42 --dot | dot -Tsvg`.
    #[arg(long, conflicts_with = "json")]
    dot: bool,
}

pub(super) async fn run(source: &Source, args: &GraphArgs) -> Result<Exit, Failure> {
    let document = source.graph(source.resolve(&args.id).await?).await?;
    if args.place.prints(&document)? {
        return Ok(Exit::Done);
    }
    let graph: GraphView = document.read()?;
    match args.dot {
        true => draw(&graph),
        false => show(&graph),
    }
    if let Some(members) = graph.of_first {
        print::notice(&format!("the family has more members: this is of its first {members}"));
    }
    if graph.truncated {
        print::notice(&format!("only the first {} nodes are shown", graph.items.len()));
    }
    Ok(Exit::Done)
}

fn show(graph: &GraphView) {
    let names = names_of(graph);
    let rows = graph.items.iter().map(|node| row(node, &names));
    print::table(["LAYER", "ID", "NAME", "KIND", "STATE", "SINCE", "AFTER", "WHY"], rows);
    let counts = graph
        .counts
        .iter()
        .map(|(standing, count)| format!("{count} {standing}"));
    let counts: Vec<String> = counts.collect();
    print::notice(&match counts.is_empty() {
        true => "no member of this family runs after another".to_owned(),
        false => format!(
            "{}: {}",
            print::counted(graph.total, "node", "nodes"),
            counts.join(", ")
        ),
    });
}

fn names_of(graph: &GraphView) -> BTreeMap<&str, &str> {
    let nodes = graph.items.iter().map(|node| &node.procedure);
    nodes
        .map(|node| (node.id.as_str(), node.name.as_deref().unwrap_or(&node.id)))
        .collect()
}

fn row(node: &NodeView, names: &BTreeMap<&str, &str>) -> [String; 8] {
    let procedure = &node.procedure;
    [
        node.layer.to_string(),
        procedure.id.clone(),
        print::or_dash(procedure.name.as_deref()),
        print::plain(&procedure.kind),
        match &node.node {
            Some(state) => state.clone(),
            None => print::standing(procedure),
        },
        moment::when(&procedure.since),
        after(node, names),
        print::or_dash(reason(node).as_deref()),
    ]
}

/// Names the nodes before one, and how many of them it waits for.
fn after(node: &NodeView, names: &BTreeMap<&str, &str>) -> String {
    let before = &node.procedure.before;
    if before.is_empty() {
        return "-".to_owned();
    }
    let some = before
        .iter()
        .take(NAMES)
        .map(|id| names.get(id.as_str()).copied().unwrap_or(id));
    let mut text = some.collect::<Vec<&str>>().join(", ");
    if before.len() > NAMES {
        text.push_str(&format!(", and {} more", before.len() - NAMES));
    }
    match node.opens.as_deref() {
        None | Some("all_succeeded") => text,
        Some(policy) => format!("{text} ({policy})"),
    }
}

/// Says what a node asks, or why it does not run, or why it failed.
fn reason(node: &NodeView) -> Option<String> {
    if node.node.is_none() {
        return node.procedure.question.clone().or_else(|| why(&node.procedure));
    }
    let cause = node.procedure.cause.as_ref().map(|cause| cause.text.clone());
    node.procedure.question.clone().or_else(|| node.why.clone()).or(cause)
}

/// Prints the graph for Graphviz. Names are quoted, so nothing of them is read as its language.
fn draw(graph: &GraphView) {
    print::line("digraph family {");
    print::line("  rankdir=LR; node [shape=box, style=rounded, fontname=\"sans-serif\"];");
    for node in &graph.items {
        let procedure = &node.procedure;
        let name = procedure.name.as_deref().unwrap_or(&procedure.id);
        let standing = node.standing();
        print::line(&format!(
            "  {} [label={}, color={}];",
            quoted(&procedure.id),
            label(name, &standing),
            colour_of(&standing),
        ));
    }
    for node in &graph.items {
        for before in &node.procedure.before {
            print::line(&format!("  {} -> {};", quoted(before), quoted(&node.procedure.id)));
        }
    }
    print::line("}");
}

/// Writes two lines into a node.
fn label(name: &str, standing: &str) -> String {
    format!("\"{}\\n{}\"", escaped(name), escaped(standing))
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", escaped(text))
}

/// Escapes what a quoted text may not have as it is. No line begins within it, whatever the text says.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}

fn colour_of(standing: &str) -> &'static str {
    match standing.split(" · ").next() {
        Some("SUCCESS" | "success") => "darkgreen",
        Some("PENDING" | "ERROR" | "failed" | "asks") => "red",
        Some("RUNNING" | "running") => "blue",
        Some("CANCELLED" | "rolled back" | "rolling back") => "orange",
        _ => "gray",
    }
}

#[cfg(test)]
mod tests {
    //! Names in the language of Graphviz.

    use super::label;

    #[test]
    fn a_backslash_in_a_name_begins_no_line() {
        assert_eq!(label(r"c:\new", "SUCCESS"), r#""c:\\new\nSUCCESS""#);
        assert_eq!(label("a \"b\"", "READY"), r#""a \"b\"\nREADY""#);
    }
}
