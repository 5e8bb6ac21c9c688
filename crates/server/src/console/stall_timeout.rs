//! A client's connection, which ends if the client takes nothing of an answer for long.
//!
//! An answer as text holds its part of what all answers may have together until it is sent: a
//! browser that sleeps would keep all others waiting.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// A connection whose writes fail once nothing of them was taken for a time.
pub(super) struct StallTimeout<S> {
    stream: S,
    time_max: Duration,
    /// Ends the write that waits; `None`: none does.
    ends: Option<Pin<Box<Sleep>>>,
}

impl<S> StallTimeout<S> {
    /// A connection that gives each write so much time to begin.
    pub fn new(stream: S, time_max: Duration) -> StallTimeout<S> {
        StallTimeout { stream, time_max, ends: None }
    }

    /// Passes on the result of a write, unless it waits for too long.
    fn within_time<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.ends = None;
            return written;
        }
        let time_max = self.time_max;
        let ends = self.ends.get_or_insert_with(|| Box::pin(sleep(time_max)));
        ready!(ends.as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client takes nothing")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for StallTimeout<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for StallTimeout<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.within_time(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.within_time(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.within_time(context, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let closed = Pin::new(&mut self.stream).poll_shutdown(context);
        self.within_time(context, closed)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
    use tokio::runtime::Builder;

    use super::*;

    #[test]
    fn a_write_ends_of_which_nothing_is_taken() {
        let runtime = Builder::new_current_thread().enable_time().build().expect("a runtime");
        runtime.block_on(async {
            let (ours, mut theirs) = duplex(4);
            let mut taking = StallTimeout::new(ours, Duration::from_millis(1));
            taking.write_all(b"room").await.expect("there is room");
            let error = taking.write_all(b"more").await.expect_err("nothing is taken");
            assert_eq!(error.kind(), io::ErrorKind::TimedOut);
            // A client that takes something has the whole time for the next piece.
            let (ours, mut slow) = duplex(4);
            let mut taking = StallTimeout::new(ours, Duration::from_secs(3_600));
            let mut read = [0; 12];
            let (wrote, took) =
                tokio::join!(taking.write_all(b"as it can be"), slow.read_exact(&mut read));
            wrote.expect("it is taken");
            took.expect("it comes");
            assert_eq!((&read, taking.ends.is_none()), (b"as it can be", true));
            let mut first = [0; 4];
            theirs.read_exact(&mut first).await.expect("it was sent");
            assert_eq!(&first, b"room");
        });
    }
}
