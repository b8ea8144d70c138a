//! `--watch`: what a verb shows is drawn again and again, on a terminal.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use clap::Args;
use procession::provider::{Clock, SystemClock};

use super::exit::{Exit, Failure};
use super::place::Place;
use super::source::Source;
use super::{pager, print};

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
            return once(place, verb).await;
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

/// Carries a verb out once. On a terminal what does not fit is shown by the user's pager.
pub(super) async fn once(place: &Place, verb: impl AsyncFn(&Source) -> Result<Exit, Failure>) -> Result<Exit, Failure> {
    let source = place.open().await?;
    if place.json || !io::stdout().is_terminal() {
        return verb(&source).await;
    }
    print::hold();
    let done = verb(&source).await;
    pager::show(&print::release())?;
    done
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

/// Puts a picture in the place of the one before. What does not fit on the screen is left out at its end, so that the
/// headings stay.
fn draw(picture: &str) -> Result<(), Failure> {
    let picture = match pager::rows() {
        Some(rows) => head_of(picture, rows),
        None => picture.to_owned(),
    };
    let mut out = io::stdout().lock();
    let drawn = out
        .write_all(CLEAR.as_bytes())
        .and_then(|()| out.write_all(picture.as_bytes()));
    drawn.and_then(|()| out.flush()).map_err(Failure::new)
}

/// Returns as much of a picture as a screen of so many rows holds, with a word on how much more there is.
fn head_of(picture: &str, rows: usize) -> String {
    let lines = picture.lines().count();
    // The cursor stands below the last line.
    if lines < rows {
        return picture.to_owned();
    }
    let shown = rows.saturating_sub(2).max(1);
    let mut head: String = picture.lines().take(shown).flat_map(|line| [line, "\n"]).collect();
    head.push_str(&format!(
        "… {} more lines; a larger window shows them\n",
        lines.saturating_sub(shown)
    ));
    head
}

#[cfg(test)]
mod tests {
    use super::head_of;

    #[test]
    fn the_head_of_a_picture_stays() {
        let picture = "ID\n1\n2\n3\n4\n";
        assert_eq!(head_of(picture, 6), picture);
        assert_eq!(
            head_of(picture, 4),
            "ID\n1\n… 3 more lines; a larger window shows them\n"
        );
    }
}
