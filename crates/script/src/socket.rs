//! Documents over a socket whose other end answers within microseconds, mostly.

use std::hint::spin_loop;
use std::io::{self, ErrorKind, Read};
use std::os::unix::net::UnixStream;
use std::sync::LazyLock;
use std::thread;

use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

/// The number of looks whether something has come, before the thread sleeps: to be woken takes
/// longer than a short script. Where there is one core, the other end can't answer meanwhile. To
/// yield would cost whole slices of time on a busy machine.
static LOOKS: LazyLock<usize> = LazyLock::new(|| {
    if thread::available_parallelism().is_ok_and(|it| 1 < it.get()) { 60 } else { 0 }
});

/// The beginning of each document: its length, itself included.
type Length = [u8; 4];

/// The bytes of the next document, of at most `most`. `passed` says of each step how many bytes it
/// brought: none where it is to be taken again.
pub(crate) fn receive<E>(
    socket: &UnixStream,
    most: usize,
    mut passed: impl FnMut(io::Result<usize>) -> Result<usize, E>,
) -> Result<Vec<u8>, E> {
    let mut length: Length = [0; 4];
    fill(socket, &mut length, &mut passed)?;
    let count = u32::from_le_bytes(length) as usize;
    if !(length.len() < count && count <= most) {
        passed(Err(ErrorKind::InvalidData.into()))?;
    }
    let mut bytes = vec![0; count.clamp(length.len(), most)];
    let (head, rest) = bytes.split_at_mut(length.len());
    head.copy_from_slice(&length);
    fill(socket, rest, &mut passed)?;
    Ok(bytes)
}

fn fill<E>(
    socket: &UnixStream,
    into: &mut [u8],
    passed: &mut impl FnMut(io::Result<usize>) -> Result<usize, E>,
) -> Result<(), E> {
    let mut filled = 0;
    while filled < into.len() {
        filled += passed(read(socket, &mut into[filled..]))?;
    }
    Ok(())
}

/// Bytes that came; `UnexpectedEof` at the end.
fn read(mut socket: &UnixStream, into: &mut [u8]) -> io::Result<usize> {
    let some = |count| if count == 0 { Err(ErrorKind::UnexpectedEof.into()) } else { Ok(count) };
    for _ in 0..*LOOKS {
        match recv(socket, &mut *into, RecvFlags::DONTWAIT) {
            Err(Errno::AGAIN | Errno::INTR) => spin_loop(),
            received => return some(received?.0),
        }
    }
    some(socket.read(into)?)
}
