//! A pool of large buffers: the kernel clears each page of a fresh one.

use std::sync::{Mutex, MutexGuard};

/// Buffers that are not in use.
pub(crate) struct BufferPool {
    count_max: usize,
    bytes_max: usize,
    kept: Mutex<Vec<Vec<u8>>>,
}

impl BufferPool {
    /// Keeps at most `count_max`, none that is larger than `bytes_max`.
    pub(crate) fn new(count_max: usize, bytes_max: usize) -> BufferPool {
        BufferPool { count_max, bytes_max, kept: Mutex::default() }
    }

    fn kept(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.kept.lock().expect("no panic while the lock is held")
    }

    /// A buffer with whatever was in it; an empty one if there is none.
    pub(crate) fn take(&self) -> Vec<u8> {
        self.kept().pop().unwrap_or_default()
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

    /// Keeps `buffer` for the next caller that takes one.
    pub(crate) fn give_back(&self, buffer: Vec<u8>) {
        let mut kept = self.kept();
        if kept.len() < self.count_max && buffer.capacity() <= self.bytes_max {
            kept.push(buffer);
        }
    }
}
