//! Where a run can be watched, and whether it stays to be watched after its end: options that all stories share.

use std::io::{IsTerminal, stderr, stdout};

use clap::Args;

/// Options of the dashboard.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct WatchArgs {
    /// Print one closing line of JSON in place of the summary.
    #[arg(long)]
    pub(crate) json: bool,
    /// Keep the dashboard after the end, with a little going on for whoever watches, until Ctrl-C.
    /// On a terminal this is so without being asked for.
    #[arg(long, overrides_with = "no_serve")]
    serve: bool,
    /// End as soon as the story has.
    #[arg(long)]
    no_serve: bool,
    /// Port of the dashboard, on this machine's loopback address; 0 for any that is free
    /// [default: 8077, or any if that is taken].
    #[arg(long, value_name = "PORT", conflicts_with = "no_dashboard")]
    port: Option<u16>,
    /// Serve no dashboard.
    #[arg(long, conflicts_with = "serve")]
    no_dashboard: bool,
}

/// Whether and where a run can be watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    /// On a page of this machine; without a port, on the usual one or any that is free.
    Served {
        /// The port; 0 for any.
        port: Option<u16>,
    },
    /// Not at all.
    None,
}

impl WatchArgs {
    /// Returns where the run can be watched.
    pub(crate) const fn view(&self) -> View {
        if self.no_dashboard {
            View::None
        } else {
            View::Served { port: self.port }
        }
    }

    /// Returns `true` if the dashboard stays after the end. Somebody at a terminal has just been told where to look, and
    /// would find nothing there.
    pub(crate) fn stays(&self) -> bool {
        let somebody_is_there = || stdout().is_terminal() && stderr().is_terminal() && !self.json;
        self.serve || (!self.no_serve && !self.no_dashboard && somebody_is_there())
    }
}
