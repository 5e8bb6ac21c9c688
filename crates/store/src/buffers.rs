//! Large buffers that are used again and again: the kernel clears each page of a fresh one.

use std::sync::Mutex;

/// So many are kept, for as many threads that read or put chunks at once.
const COUNT_MAX: usize = 8;
/// Larger ones aren't kept: a batch of trees' chunks is about 1 MiB.
const BYTES_MAX: usize = 4 << 20;

/// Buffers that nobody uses now.
#[derive(Default)]
pub(crate) struct Buffers(Mutex<Vec<Vec<u8>>>);

impl Buffers {
    /// A buffer with whatever was in it; an empty one if there is none.
    pub(crate) fn take(&self) -> Vec<u8> {
        self.0.lock().expect("no panic while the lock is held").pop().unwrap_or_default()
    }

    /// Lends `work` a buffer of `bytes`, with whatever was in it.
    pub(crate) fn with<T>(&self, bytes: usize, work: impl FnOnce(&mut [u8]) -> T) -> T {
        let mut buffer = self.take();
        if buffer.len() < bytes {
            buffer.resize(bytes, 0);
        }
        let done = work(&mut buffer[..bytes]);
        self.give_back(buffer);
        done
    }

    /// Keeps `buffer` for the next who takes one.
    pub(crate) fn give_back(&self, buffer: Vec<u8>) {
        let mut buffers = self.0.lock().expect("no panic while the lock is held");
        if buffers.len() < COUNT_MAX && buffer.capacity() <= BYTES_MAX {
            buffers.push(buffer);
        }
    }
}
