//! What is done before a signal ends the program: copies of journals are removed, and commands of services killed.

#[cfg(unix)]
pub(super) use unix::before_the_end;

/// Without signals there is nothing to wait for.
#[cfg(not(unix))]
pub(super) fn before_the_end(_: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    Ok(())
}

#[cfg(unix)]
mod unix {
    use std::future::poll_fn;
    use std::io;
    use std::process;
    use std::task::Poll;

    use tokio::runtime::{Builder, Runtime};
    use tokio::signal::unix::{Signal, SignalKind, signal};

    /// What shells add to the number of a signal that ended a program.
    const ENDED_BY_SIGNAL: i32 = 128;

    /// Runs this on the first signal that would end the program, and then ends it. A thread of its own waits: the program
    /// may be busy.
    pub(in super::super) fn before_the_end(clean: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let mut signals = listen(&runtime)?;
        let wait = move || {
            let number = runtime.block_on(poll_fn(|context| {
                let came =
                    |(number, signal): &mut (i32, Signal)| signal.poll_recv(context).is_ready().then_some(*number);
                signals.iter_mut().find_map(came).map_or(Poll::Pending, Poll::Ready)
            }));
            clean();
            end(number);
        };
        std::thread::Builder::new()
            .name("signals".to_owned())
            .spawn(wait)
            .map(drop)
    }

    /// Listens to what ends a program. A signal that is ignored, as under `nohup`, stays so.
    fn listen(runtime: &Runtime) -> io::Result<Vec<(i32, Signal)>> {
        let _in = runtime.enter();
        let kinds = [SignalKind::hangup(), SignalKind::interrupt(), SignalKind::terminate()];
        let ignored = ignored();
        let heard = kinds
            .into_iter()
            .filter(|kind| ignored >> (kind.as_raw_value() - 1) & 1 == 0);
        heard.map(|kind| Ok((kind.as_raw_value(), signal(kind)?))).collect()
    }

    /// Returns the signals that this program was started to ignore, a bit each, where the system tells.
    fn ignored() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
            .unwrap_or_default()
    }

    #[expect(
        clippy::exit,
        reason = "the thread that works may be anywhere, and the signal has ended the program"
    )]
    fn end(number: i32) -> ! {
        process::exit(ENDED_BY_SIGNAL + number)
    }
}
