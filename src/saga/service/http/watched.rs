//! Connections that tell when the other side has closed them. The client does not: to it, a body in chunks that is cut and one
//! that is complete end in the same way.

use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use actix_rt::net::{ActixStream, Ready, TcpStream};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

thread_local! {
    /// A connection of this thread was read to its end.
    static CLOSED: Cell<bool> = const { Cell::new(false) };
}

/// Polls a body, and returns whether its connection was read to its end meanwhile. A client reads a connection only where the
/// body that needs it is polled, so no other connection can be meant.
pub(super) fn closes<T>(poll: impl FnOnce() -> T) -> (T, bool) {
    CLOSED.set(false);
    let polled = poll();
    (polled, CLOSED.get())
}

/// A connection that is watched.
#[derive(Debug)]
pub(super) struct Watched(pub(super) TcpStream);

impl AsyncRead for Watched {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let (before, room) = (buffer.filled().len(), buffer.remaining());
        let polled = Pin::new(&mut self.get_mut().0).poll_read(cx, buffer);
        if matches!(polled, Poll::Ready(Ok(()))) && room > 0 && buffer.filled().len() == before {
            CLOSED.set(true);
        }
        polled
    }
}

impl AsyncWrite for Watched {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().0).poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().0).poll_write_vectored(cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }
}

impl ActixStream for Watched {
    fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<Ready>> {
        ActixStream::poll_read_ready(&self.0, cx)
    }

    fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<Ready>> {
        ActixStream::poll_write_ready(&self.0, cx)
    }
}
