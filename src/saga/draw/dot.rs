//! The language of Graphviz.

use std::fmt::Write;

use super::super::definition::{Definition, RegionIndex, StateIndex};
use super::{Node, Picture, Shape};

/// Draws a machine for Graphviz.
pub(in crate::saga) fn dot(definition: &Definition) -> String {
    let picture = Picture::of(definition);
    let mut lines = Lines {
        text: format!("digraph \"{}\" {{\n", escaped(&definition.name)),
    };
    lines.add(1, "node [shape=box];");
    lines.add(1, "start [shape=circle, label=\"\"];");
    lines.add(1, &format!("start -> {};", id(picture.start)));
    lines.frame(&picture, RegionIndex::OUTSIDE, 1);
    for edge in &picture.edges {
        let label = edge
            .label
            .as_deref()
            .map(|label| format!("label=\"{}\"", escaped(label)));
        let style = edge.is_undo.then(|| "style=dashed".to_owned());
        let attributes: Vec<String> = label.into_iter().chain(style).collect();
        let attributes = match attributes.is_empty() {
            true => String::new(),
            false => format!(" [{}]", attributes.join(", ")),
        };
        lines.add(1, &format!("{} -> {}{attributes};", id(edge.from), id(edge.to)));
    }
    lines.add(0, "}");
    lines.text
}

struct Lines {
    text: String,
}

impl Lines {
    fn add(&mut self, depth: usize, line: &str) {
        // Writing to a string does not fail.
        writeln!(self.text, "{:width$}{line}", "", width = depth * 2).ok();
    }

    /// As deep as Forks may be nested.
    fn frame(&mut self, picture: &Picture<'_>, region: RegionIndex, depth: usize) {
        let Some(frame) = picture.frame(region) else { return };
        for node in &frame.nodes {
            self.add(depth, &shape(node));
        }
        for inner in &frame.inner {
            let title = picture.frame(*inner).and_then(|frame| frame.title.as_deref());
            self.add(depth, &format!("subgraph cluster_{} {{", inner.0));
            self.add(depth + 1, &format!("label=\"{}\";", escaped(title.unwrap_or_default())));
            self.frame(picture, *inner, depth + 1);
            self.add(depth, "}");
        }
    }
}

fn id(state: StateIndex) -> String {
    format!("s{}", state.0)
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
