//! Goal: a body holds memory only for the bytes that have arrived, and one that makes no progress
//! keeps no others waiting.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::body::Frame;
use tokio::runtime::{Builder, Runtime};

use super::*;

/// A body of these pieces, and whether it stops after them without an end.
struct Pieces {
    left: Vec<Bytes>,
    stops: bool,
}

impl Pieces {
    fn new(count: usize, bytes: usize, stops: bool) -> Pieces {
        Pieces { left: vec![Bytes::from(vec![b' '; bytes]); count], stops }
    }
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.left.pop() {
            Some(piece) => Poll::Ready(Some(Ok(Frame::data(piece)))),
            None if self.stops => Poll::Pending,
            None => Poll::Ready(None),
        }
    }
}

const HOUR: Duration = Duration::from_secs(3_600);
const MEGABYTE: usize = 1 << 20;

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_time().build().expect("a runtime")
}

fn free(memory: &TextMemory) -> usize {
    memory.shares.available_permits()
}

#[test]
fn a_body_holds_what_came_and_not_what_was_announced() {
    runtime().block_on(async {
        let memory = TextMemory::of(1 << 10);
        for (count, bytes, held) in [(0, 0, 0), (1, 60 << 10, 0), (4, 64 << 10, 256)] {
            let body = Pieces::new(count, bytes, false);
            let (text, share) = memory.read_within(body, 96 * MEGABYTE, HOUR).await.expect("read");
            assert_eq!((text.len(), free(&memory)), (count * bytes, (1 << 10) - held));
            drop(share);
            assert_eq!(free(&memory), 1 << 10);
        }
        let body = Pieces::new(2, 10, false);
        assert!(matches!(memory.read(body, 19).await, Err(BodyError::TooLarge)));
    });
}

#[test]
fn a_body_that_stops_ends_and_gives_back_what_it_held() {
    runtime().block_on(async {
        let memory = TextMemory::of(1 << 10);
        let body = Pieces::new(8, 64 << 10, true);
        let read = memory.read_within(body, 96 * MEGABYTE, Duration::from_millis(1)).await;
        assert!(matches!(read, Err(BodyError::Stopped)));
        assert_eq!(free(&memory), 1 << 10);
    });
}

/// All memory is taken: bodies get through one after the other, small ones and answers at once.
#[test]
fn bodies_that_need_more_than_there_is_take_turns() {
    runtime().block_on(async {
        let memory = TextMemory::of(1 << 10);
        let all = memory.hold(10 * MEGABYTE).await;
        assert_eq!(free(&memory), 0);
        let small = memory.read_within(Pieces::new(1, 1_000, false), 1_000, HOUR).await;
        assert!(small.is_ok() && memory.hold(1_000).await.shares.is_none());
        let large = || memory.read_within(Pieces::new(20, MEGABYTE, false), 20 * MEGABYTE, HOUR);
        let lengths = tokio::join!(async { large().await.map(|(text, _)| text.len()) }, async {
            large().await.map(|(text, _)| text.len())
        },);
        assert!(matches!(lengths, (Ok(one), Ok(two)) if one == two && one == 20 * MEGABYTE));
        drop(all);
        assert_eq!((free(&memory), memory.is_waited_for()), (1 << 10, false));
    });
}

/// Where `--memory` leaves the wire little, bodies have no more.
#[test]
fn there_is_no_more_than_the_wire_has() {
    assert_eq!(TextMemory::beside(25 << 20).kilobytes, 25 << 10);
    assert_eq!(TextMemory::beside(usize::MAX).kilobytes, KILOBYTES);
}
