//! `--watch`: what a verb shows is drawn again and again, on a terminal.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use clap::Args;
use procession::provider::{Clock, SystemClock};

use super::exit::{Exit, Failure};
use super::place::Place;
use super::print;
use super::source::Source;

/// How long one picture stands.
const EVERY: Duration = Duration::from_secs(2);
/// To the upper left corner, and all that is there away; what was scrolled out stays.
const CLEAR: &str = "\u{1b}[H\u{1b}[2J";

/// Whether to draw more than once.
#[derive(Debug, Clone, Args)]
pub(super) struct Watch {
    /// Draw it anew every 2 seconds, until Ctrl-C; of a dashboard, on a terminal.
    #[arg(long, conflicts_with_all = ["data", "json"])]
    watch: bool,
}

impl Watch {
    /// Carries a verb out, once or until Ctrl-C.
    pub(super) async fn run(
        &self,
        place: &Place,
        verb: impl AsyncFn(&Source) -> Result<Exit, Failure>,
    ) -> Result<Exit, Failure> {
        if !self.watch {
            return verb(&place.open().await?).await;
        }
        if place.is_closed() || !io::stdout().is_terminal() {
            return Err(Failure::usage(
                "--watch draws on a terminal, of a dashboard that runs; leave it out, or see \"procession tail\"",
            ));
        }
        let source = place.open().await?;
        tokio::select! {
            biased;
            interrupted = tokio::signal::ctrl_c() => {
                interrupted.map_err(Failure::new)?;
                Ok(Exit::Done)
            }
            failure = again_and_again(&source, verb) => Err(failure),
        }
    }
}

/// Draws until it is refused: a dashboard that does not answer now may do so later.
async fn again_and_again(source: &Source, verb: impl AsyncFn(&Source) -> Result<Exit, Failure>) -> Failure {
    loop {
        print::hold();
        let drawn = verb(source).await;
        let picture = print::release();
        if let Err(failure) = draw(&picture) {
            return failure;
        }
        if let Err(failure) = drawn {
            print::notice(&failure.text);
            if let Err(refused) = failure.stop_if_refused() {
                return refused;
            }
        }
        SystemClock.sleep_until(SystemClock.now().after(EVERY)).await;
    }
}

/// Puts a picture in the place of the one before.
fn draw(picture: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    let drawn = out
        .write_all(CLEAR.as_bytes())
        .and_then(|()| out.write_all(picture.as_bytes()));
    drawn.and_then(|()| out.flush()).map_err(Failure::new)
}
