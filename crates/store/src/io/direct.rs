//! Reads past the system's page cache (direct I/O), where the system can.
//!
//! For caches that keep in memory what they read: the system's cache would hold it, too, and where
//! memory is short, finding room for it costs more of a processor than all the rest of the read. (A
//! control group of 512 MB, 2.2 GB read at random, 8.7 KB at once: 3.7 to 5.2 µs of a processor
//! instead of 9.6 to 10.0 with 32 threads, 22 to 40 instead of 41 to 45 with one, and 10 to 40 %
//! more reads a second. A fault of 4 KB in a mapped file takes 7.8 to 8.3 and 19.)
//!
//! Such a read begins and ends with a sector, in the file and in memory. The second handle that it
//! needs is opened at the first one; a system or a disk that doesn't take it is read as usual from
//! then on.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The sizes of sectors, in the order in which they are tried.
const SECTOR_BYTES: [usize; 2] = [512, 4096];

/// The other handle of a file.
#[derive(Default)]
pub(super) struct Direct {
    handle: OnceLock<Option<File>>,
    /// The number of `SECTOR_BYTES` that were refused.
    refused: AtomicUsize,
}

impl Direct {
    /// Reads `bytes` bytes of `file` from `offset`, and returns where in `buffer` they are; `None`
    /// if it can't be done.
    pub(super) fn read(
        &self,
        file: &File,
        offset: u64,
        bytes: usize,
        buffer: &mut Vec<u8>,
    ) -> io::Result<Option<Range<usize>>> {
        let Some(handle) = self.handle.get_or_init(|| open(file)) else { return Ok(None) };
        loop {
            let refused = self.refused.load(Ordering::Relaxed);
            let Some(sector) = SECTOR_BYTES.get(refused) else { return Ok(None) };
            match read_sectors(handle, *sector, offset, bytes, buffer) {
                Err(error) if is_refusal(&error) => {
                    self.refused.fetch_max(refused + 1, Ordering::Relaxed);
                }
                done => return done.map(Some),
            }
        }
    }
}

fn is_refusal(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported)
}

/// Opens it by the handle's own name, since that of the file may be gone or another's.
#[cfg(target_os = "linux")]
fn open(file: &File) -> Option<File> {
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::OpenOptionsExt;

    /// `O_DIRECT`, which isn't the same everywhere.
    const FLAG: i32 = match () {
        () if cfg!(any(target_arch = "arm", target_arch = "aarch64")) => 0o200_000,
        () if cfg!(any(target_arch = "powerpc", target_arch = "powerpc64")) => 0o400_000,
        () => 0o40_000,
    };
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    File::options().read(true).custom_flags(FLAG).open(path).ok()
}

#[cfg(not(target_os = "linux"))]
fn open(_file: &File) -> Option<File> {
    None
}

fn read_sectors(
    file: &File,
    sector: usize,
    offset: u64,
    bytes: usize,
    buffer: &mut Vec<u8>,
) -> io::Result<Range<usize>> {
    let before = (offset % sector as u64) as usize;
    let wanted = before + bytes;
    let whole = wanted.next_multiple_of(sector);
    if buffer.len() < whole + sector {
        buffer.resize(whole + sector, 0);
    }
    let start = buffer.as_ptr().align_offset(sector);
    let sectors = buffer.get_mut(start..).and_then(|aligned| aligned.get_mut(..whole));
    let sectors = sectors.ok_or(io::ErrorKind::InvalidInput)?;
    let mut read = 0;
    while read < wanted {
        match file.read_at(&mut sectors[read..], offset - before as u64 + read as u64) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => read += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(start + before..start + wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_that_takes_no_such_reads_is_distinguished_from_one_that_fails() {
        let check = |kind: io::ErrorKind, expected| {
            assert_eq!(is_refusal(&kind.into()), expected, "{kind}");
        };
        check(io::ErrorKind::InvalidInput, true);
        check(io::ErrorKind::Unsupported, true);
        check(io::ErrorKind::UnexpectedEof, false);
        check(io::ErrorKind::Other, false);
    }

    /// By a usual handle, which every disk has.
    #[test]
    fn sectors_are_read_with_a_buffer_of_any_length() {
        let path = std::env::current_exe().expect("a test has a program");
        let (file, content) = (File::open(&path).expect("ours"), std::fs::read(&path));
        let content = content.expect("ours");
        let mut buffer = Vec::new();
        for sector in SECTOR_BYTES {
            for (offset, bytes) in [(0, 1), (511, 2), (513, 9_000), (4_095, 4_098), (7, 0)] {
                let read = read_sectors(&file, sector, offset as u64, bytes, &mut buffer);
                assert_eq!(buffer[read.expect("read")], content[offset..offset + bytes]);
            }
        }
    }
}
