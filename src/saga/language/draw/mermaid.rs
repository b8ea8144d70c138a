//! Mermaid's flowcharts.

use super::lines::{Language, Lines, id};
use super::{Edge, EdgeKind, Node, Picture, Shape};
use crate::definition::{Definition, RegionIndex};

const MERMAID: Language = Language {
    node: shape,
    edge,
    open,
    close: "end",
};

/// Draws a machine as a flowchart of Mermaid.
pub(crate) fn mermaid(definition: &Definition) -> String {
    let picture = Picture::of(definition);
    let mut lines = Lines {
        text: "flowchart TD\n".to_owned(),
    };
    lines.add(1, &format!("start((\" \")) --> {}", id(picture.start)));
    lines.draw(&picture, &MERMAID);
    lines.text
}

fn edge(edge: &Edge) -> String {
    let arrow = if edge.kind == EdgeKind::Undo { "-.->" } else { "-->" };
    let label = edge.label.as_deref().map(|label| format!("|\"{}\"|", escaped(label)));
    let label = label.unwrap_or_default();
    format!("{} {arrow}{label} {}", id(edge.from), id(edge.to))
}

fn open(region: RegionIndex, title: &str) -> Vec<(usize, String)> {
    vec![(0, format!("subgraph r{}[\"{}\"]", region.0, escaped(title)))]
}

fn shape(node: &Node<'_>) -> String {
    let mut label = escaped(node.name);
    if let Some(detail) = &node.detail {
        label = format!("{label}<br>{}", escaped(detail));
    }
    let (open, close) = match node.shape {
        Shape::Task => ("[", "]"),
        Shape::Machine => ("[[", "]]"),
        Shape::Choice => ("{", "}"),
        Shape::Trigger => ("{{", "}}"),
        Shape::Fork => ("[/", "\\]"),
        Shape::Join => ("[\\", "/]"),
        Shape::End => ("([", "])"),
    };
    format!("{}{open}\"{label}\"{close}", id(node.index))
}

/// Entities stand for what Mermaid or HTML would read, and escapes for control characters.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '"' => escaped.push_str("#quot;"),
            '#' => escaped.push_str("#35;"),
            '&' => escaped.push_str("#amp;"),
            '<' => escaped.push_str("#lt;"),
            '>' => escaped.push_str("#gt;"),
            // Mermaid reads a label between backticks as Markdown.
            '`' => escaped.push_str("#96;"),
            other if other.is_control() => escaped.extend(other.escape_debug()),
            other => escaped.push(other),
        }
    }
    escaped
}
