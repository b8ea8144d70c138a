//! Mermaid's flowcharts.

use std::fmt::Write;

use super::super::definition::{Definition, RegionIndex, StateIndex};
use super::{Node, Picture, Shape};

/// Draws a machine as a flowchart of Mermaid.
pub(in crate::saga) fn mermaid(definition: &Definition) -> String {
    let picture = Picture::of(definition);
    let mut lines = Lines {
        text: "flowchart TD\n".to_owned(),
    };
    lines.add(1, &format!("start((\" \")) --> {}", id(picture.start)));
    lines.frame(&picture, RegionIndex::OUTSIDE, 1);
    for edge in &picture.edges {
        let arrow = if edge.is_undo { "-.->" } else { "-->" };
        let label = edge.label.as_deref().map(|label| format!("|\"{}\"|", escaped(label)));
        let label = label.unwrap_or_default();
        lines.add(1, &format!("{} {arrow}{label} {}", id(edge.from), id(edge.to)));
    }
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
            self.add(
                depth,
                &format!("subgraph r{}[\"{}\"]", inner.0, escaped(title.unwrap_or_default())),
            );
            self.frame(picture, *inner, depth + 1);
            self.add(depth, "end");
        }
    }
}

fn id(state: StateIndex) -> String {
    format!("s{}", state.0)
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
