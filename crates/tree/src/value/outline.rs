//! Moves a long value out of line: one chunk, or a sequence of slices cut by content.
//!
//! Above [`blob_bytes_max`](crate::format::TreeFormat::blob_bytes_max) the value is cut where a
//! rolling hash of the last bytes says (a gear hash: one shift, one look-up and one addition for a
//! byte; Xia et al., FastCDC, USENIX ATC 2016), so that a change in the middle of a long value
//! leaves the slices before and behind it as they were. Slices are a quarter to one times
//! `item_bytes_max` long; the last may be shorter. The gears come from the salt.

use bytes::Bytes;
use frond_store::{Chunk, ChunkKind};

use crate::boundary::{self, Seeded};
use crate::error::TreeError;
use crate::format::TreeFormat;
use crate::levels::Batch;
use crate::sequence::Sequence;
use crate::value::Content;

/// Behind the shortest slice a cut comes once in a quarter of the longest on average; the shortest
/// is a quarter too.
const CUT_DIVISOR: usize = 4;

/// Puts `bytes` out of line and returns where.
pub(crate) fn move_out(
    batch: &mut Batch<'_>,
    format: &TreeFormat,
    bytes: &Bytes,
) -> Result<Content, TreeError> {
    let length = bytes.len() as u64;
    if bytes.len() <= format.blob_bytes_max() {
        let chunk = Chunk::new(ChunkKind::Blob, &[], bytes);
        let hash = chunk.hash();
        batch.put(chunk)?;
        return Ok(Content::Chunk { hash, bytes: length });
    }
    let format = format.of_values();
    let mut slices = Slices { rest: bytes.clone(), cutter: Cutter::new(&format) }.map(Ok);
    let sequence = Sequence::build(batch.store(), format, &mut slices)?;
    Ok(Content::Sequence { root: sequence.root, bytes: length })
}

/// The slices of a long value, one after the other.
struct Slices {
    rest: Bytes,
    cutter: Cutter,
}

impl Iterator for Slices {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        let cut = self.cutter.cut(&self.rest);
        (cut > 0).then(|| self.rest.split_to(cut))
    }
}

struct Cutter {
    gears: [u64; 256],
    slice_bytes_min: usize,
    slice_bytes_max: usize,
    /// A slice ends where the hash is not above this.
    threshold: u64,
}

impl Cutter {
    fn new(format: &TreeFormat) -> Cutter {
        let seed = boundary::seed(format, Seeded::Slice, 0);
        let slice_bytes_max = format.item_bytes_max();
        Cutter {
            gears: std::array::from_fn(|byte| boundary::hash(&[byte as u8], seed)),
            slice_bytes_min: slice_bytes_max / CUT_DIVISOR,
            slice_bytes_max,
            threshold: u64::MAX / (slice_bytes_max / CUT_DIVISOR) as u64,
        }
    }

    /// Returns how long the first slice of `bytes` is; 0 if there are none.
    fn cut(&self, bytes: &[u8]) -> usize {
        let end = bytes.len().min(self.slice_bytes_max);
        // 64 bytes before the shortest slice's end fill the hash: what lies further back is shifted
        // out of it.
        let start = self.slice_bytes_min.saturating_sub(64).min(end);
        let mut hash = 0u64;
        for (position, byte) in bytes[..end].iter().enumerate().skip(start) {
            hash = (hash << 1).wrapping_add(self.gears[usize::from(*byte)]);
            if position + 1 >= self.slice_bytes_min && hash <= self.threshold {
                return position + 1;
            }
        }
        end
    }
}
