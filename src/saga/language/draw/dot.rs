//! The language of Graphviz.

use super::lines::{Language, Lines, id};
use super::{Edge, EdgeKind, Node, Picture, Shape};
use crate::definition::{Definition, RegionIndex};

const DOT: Language = Language {
    node: shape,
    edge,
    open,
    close: "}",
};

/// Draws a machine for Graphviz.
pub(crate) fn dot(definition: &Definition) -> String {
    let picture = Picture::of(definition);
    let mut lines = Lines {
        text: format!("digraph \"{}\" {{\n", escaped(&definition.name)),
    };
    lines.add(1, "node [shape=box];");
    lines.add(1, "start [shape=circle, label=\"\"];");
    lines.add(1, &format!("start -> {};", id(picture.start)));
    lines.draw(&picture, &DOT);
    lines.add(0, "}");
    lines.text
}

fn edge(edge: &Edge) -> String {
    let label = edge
        .label
        .as_deref()
        .map(|label| format!("label=\"{}\"", escaped(label)));
    let style = (edge.kind == EdgeKind::Undo).then(|| "style=dashed".to_owned());
    let attributes: Vec<String> = label.into_iter().chain(style).collect();
    let attributes = match attributes.is_empty() {
        true => String::new(),
        false => format!(" [{}]", attributes.join(", ")),
    };
    format!("{} -> {}{attributes};", id(edge.from), id(edge.to))
}

fn open(region: RegionIndex, title: &str) -> Vec<(usize, String)> {
    vec![
        (0, format!("subgraph cluster_{} {{", region.0)),
        (1, format!("label=\"{}\";", escaped(title))),
    ]
}

fn shape(node: &Node<'_>) -> String {
    let mut label = escaped(node.name);
    if let Some(detail) = &node.detail {
        label = format!("{label}\\n{}", escaped(detail));
    }
    let shape = match node.shape {
        Shape::Task => "box",
        Shape::Machine => "box3d",
        Shape::Choice => "diamond",
        Shape::Trigger => "hexagon",
        Shape::Fork => "trapezium",
        Shape::Join => "invtrapezium",
        Shape::End => "oval",
    };
    format!("{} [shape={shape}, label=\"{label}\"];", id(node.index))
}

/// Control characters are shown as escapes.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '"' => escaped.push_str("\\\""),
            '\\' => escaped.push_str("\\\\"),
            other if other.is_control() => {
                for part in other.escape_debug() {
                    if part == '\\' {
                        escaped.push('\\');
                    }
                    escaped.push(part);
                }
            }
            other => escaped.push(other),
        }
    }
    escaped
}
