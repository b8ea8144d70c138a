//! What a program prints, against what a page shows of it.

use std::io::{self, BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use crate::project::LEFT_OUT;

/// A program that prints nothing for so long hangs.
const SILENCE: Duration = Duration::from_secs(120);

/// How often it is looked whether a program is at rest.
const LOOK: Duration = Duration::from_millis(10);

/// How a program ended, and all that it printed.
pub(crate) struct Printed {
    pub(crate) lines: Vec<String>,
    pub(crate) succeeded: bool,
}

/// When a program is killed: it has printed this, and it is at rest.
pub(crate) struct Kill<'a> {
    pub(crate) printed: &'a [String],
    pub(crate) is_at_rest: &'a dyn Fn() -> bool,
}

/// Runs a program to its end, or until it is killed.
pub(crate) fn run(command: &mut Command, kill: Option<&Kill<'_>>) -> Result<Printed, String> {
    let told = |error: io::Error| error.to_string();
    let (reader, writer) = io::pipe().map_err(told)?;
    command.stdin(Stdio::null());
    command.stdout(writer.try_clone().map_err(told)?).stderr(writer);
    let mut child = command.spawn().map_err(told)?;
    // Its ends of the pipe; the last one to be closed ends the reader.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let (to, lines) = channel();
    thread::spawn(move || {
        for line in BufReader::new(reader).lines().map_while(Result::ok) {
            if to.send(line.trim_end().to_owned()).is_err() {
                return;
            }
        }
    });
    let printed = follow(&mut child, &lines, kill);
    let end = child.wait().map_err(told)?;
    printed.map(|lines| Printed {
        lines,
        succeeded: end.success(),
    })
}

fn follow(child: &mut Child, lines: &Receiver<String>, kill: Option<&Kill<'_>>) -> Result<Vec<String>, String> {
    let mut printed = Vec::new();
    loop {
        if let Some(kill) = kill.filter(|kill| is_shown(kill.printed, &printed)) {
            let is_at_rest = rest(lines, kill, &mut printed);
            child.kill().map_err(|error| error.to_string())?;
            return is_at_rest.map(|()| printed);
        }
        match lines.recv_timeout(SILENCE) {
            Ok(line) => printed.push(line),
            // Every end of the pipe is closed: it has ended.
            Err(RecvTimeoutError::Disconnected) => return Ok(printed),
            Err(RecvTimeoutError::Timeout) => {
                child.kill().map_err(|error| error.to_string())?;
                return Err(format!("it hangs after it has printed:\n{}", printed.join("\n")));
            }
        }
    }
}

/// Waits until a program is at rest, for a time that is bounded. It may print on.
fn rest(lines: &Receiver<String>, kill: &Kill<'_>, printed: &mut Vec<String>) -> Result<(), String> {
    for _ in 0..SILENCE.as_millis() / LOOK.as_millis() {
        if (kill.is_at_rest)() {
            return Ok(());
        }
        match lines.recv_timeout(LOOK) {
            Ok(line) => printed.push(line),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err("it ends before it can be killed".to_owned()),
        }
    }
    Err("it comes to no rest in which it can be killed".to_owned())
}

/// Says whether a page shows these lines. [`LEFT_OUT`] stands for any lines, or any part of a line.
pub(crate) fn is_shown(shown: &[String], printed: &[String]) -> bool {
    match (shown, printed) {
        ([], []) => true,
        ([first, rest @ ..], _) if first.trim() == LEFT_OUT => {
            let mut tails = (0..=printed.len()).filter_map(|skipped| printed.get(skipped..));
            tails.any(|tail| is_shown(rest, tail))
        }
        ([first, rest @ ..], [line, others @ ..]) => is_line(first, line) && is_shown(rest, others),
        ([], [_, ..]) | ([_, ..], []) => false,
    }
}

fn is_line(shown: &str, printed: &str) -> bool {
    let mut parts = shown.split(LEFT_OUT);
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = printed.strip_prefix(first) else {
        return false;
    };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else {
        return rest.is_empty();
    };
    for part in middle {
        match rest.split_once(part) {
            Some((_, behind)) => rest = behind,
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::is_shown;

    fn shows(shown: &str, printed: &str) -> bool {
        let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
        is_shown(&lines(shown), &lines(printed))
    }

    #[test]
    fn what_is_shown_is_what_is_printed_but_for_what_is_left_out() {
        assert!(shows("a\nb", "a\nb") && shows("", ""));
        assert!(!shows("a", "a\nb") && !shows("a\nb", "a"));
        assert!(shows("a\n…\nd", "a\nb\nc\nd") && shows("…\nd", "d"));
        assert!(shows("took … ms of … s", "took 3 ms of 4 s"));
        assert!(!shows("took … ms", "took 3 s") && !shows("a … b c", "a b"));
    }
}
