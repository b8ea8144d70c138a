//! Lines of a picture: what the languages have in common is the order and the frames within frames.

use std::fmt::Write;

use super::{Edge, Node, Picture};
use crate::definition::{RegionIndex, StateIndex};

/// How a language says what is drawn.
pub(super) struct Language {
    /// A state.
    pub(super) node: fn(&Node<'_>) -> String,
    /// A link.
    pub(super) edge: fn(&Edge) -> String,
    /// What begins the frame of a branch with this title: the lines, each with how much deeper than the frame it is.
    pub(super) open: fn(RegionIndex, &str) -> Vec<(usize, String)>,
    /// What ends a frame.
    pub(super) close: &'static str,
}

/// A text that grows by lines.
pub(super) struct Lines {
    pub(super) text: String,
}

impl Lines {
    pub(super) fn add(&mut self, depth: usize, line: &str) {
        // Writing to a string does not fail.
        writeln!(self.text, "{:width$}{line}", "", width = depth * 2).ok();
    }

    /// Draws all states in their frames, and then the links.
    pub(super) fn draw(&mut self, picture: &Picture<'_>, language: &Language) {
        self.frame(picture, language, RegionIndex::OUTSIDE, 1);
        for edge in &picture.edges {
            self.add(1, &(language.edge)(edge));
        }
    }

    /// As deep as Forks may be nested.
    fn frame(&mut self, picture: &Picture<'_>, language: &Language, region: RegionIndex, depth: usize) {
        let Some(frame) = picture.frame(region) else { return };
        for node in &frame.nodes {
            self.add(depth, &(language.node)(node));
        }
        for inner in &frame.inner {
            let title = picture.frame(*inner).and_then(|frame| frame.title.as_deref());
            for (deeper, line) in (language.open)(*inner, title.unwrap_or_default()) {
                self.add(depth + deeper, &line);
            }
            self.frame(picture, language, *inner, depth + 1);
            self.add(depth, language.close);
        }
    }
}

/// Names a state in either language.
pub(super) fn id(state: StateIndex) -> String {
    format!("s{}", state.0)
}
