//! Documents that are read more than once: in memory while they fit, then in a file.
//!
//! 1. Documents are copied into pieces, whole ones, which never move: a vector that grew would need
//!    its memory twice.
//! 2. When they need more than is allowed, all go to a file, and one piece at a time after that.
//! 3. A document begins with its own length, so they lie one after the other, first those of the
//!    file, then those in memory. Reading takes one buffer, however many there are, and any number
//!    of readers read at once.

use std::sync::Arc;

use bytes::Bytes;
use frond_doc::{Document, DocumentBuf};

use super::spill::{Resources, SpillFile};
use crate::error::QueryError;
use frond_store::budget::{Exceeded, Reservation};

/// Pieces in memory grow up to so many bytes, unless a document alone has more.
const PIECE_BYTES_MAX: usize = 256 << 10;
/// A file is read in pieces of so many bytes.
const BUFFER_BYTES: usize = 64 << 10;
/// The length with which a document begins.
const LENGTH_BYTES: usize = 4;
/// The documents between two checks whether to stop.
const CHECK_COUNT: usize = 256;

/// The documents.
pub(super) struct Spool {
    /// The stage that reads them, for messages.
    stage: &'static str,
    resources: Resources,
    file: Option<Box<dyn SpillFile>>,
    file_bytes: u64,
    /// The pieces behind those of the file.
    pieces: Vec<Vec<u8>>,
    /// The memory of the pieces.
    held_bytes: usize,
    reservation: Reservation,
    count: usize,
}

/// Reads a spool from its beginning.
pub(super) struct SpoolReader {
    spool: Arc<Spool>,
    /// The number of the file's bytes that are or were in the buffer.
    file_offset: u64,
    buffer: Vec<u8>,
    /// The position in the buffer.
    position: usize,
    /// The next piece, and the position in it.
    piece: usize,
    piece_position: usize,
    count: usize,
}

impl Spool {
    /// Holds nothing yet. Documents that take more memory than `resources` allow go to a file.
    pub(super) fn new(stage: &'static str, resources: &Resources) -> Spool {
        Spool {
            stage,
            resources: resources.clone(),
            file: None,
            file_bytes: 0,
            pieces: Vec::new(),
            held_bytes: 0,
            reservation: resources.reservation(),
            count: 0,
        }
    }

    /// As [`Spool::new`], for documents that have `exceeded` the memory already.
    ///
    /// # Errors
    /// 292 if there may be no file.
    pub(super) fn on_disk(
        stage: &'static str,
        resources: &Resources,
        exceeded: Exceeded,
    ) -> Result<Spool, QueryError> {
        let file = resources.spill_of(stage, exceeded)?.create()?;
        Ok(Spool { file: Some(file), ..Spool::new(stage, resources) })
    }

    /// Returns how many documents there are.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Takes a document.
    ///
    /// # Errors
    /// An error of writing the file; 292 if there may be none.
    pub(super) fn push(&mut self, document: Document<'_>) -> Result<(), QueryError> {
        let bytes = document.as_bytes();
        let room = |piece: &Vec<u8>| piece.capacity() - piece.len();
        if self.pieces.last().is_none_or(|piece| room(piece) < bytes.len()) {
            self.begin_piece(bytes.len())?;
        }
        if let Some(piece) = self.pieces.last_mut() {
            piece.extend_from_slice(bytes);
        }
        self.count += 1;
        Ok(())
    }

    /// Makes a piece with room for so many bytes. Pieces double, so that few documents take little
    /// memory.
    fn begin_piece(&mut self, bytes: usize) -> Result<(), QueryError> {
        let before = self.pieces.last().map_or(0, Vec::capacity);
        let mut wanted = (before * 2).min(PIECE_BYTES_MAX).max(bytes);
        if self.file.is_none()
            && let Err(exceeded) = self.reservation.hold(self.held_bytes + wanted)
        {
            self.file = Some(self.resources.spill_of(self.stage, exceeded)?.create()?);
        }
        if let Some(file) = &mut self.file {
            for piece in std::mem::take(&mut self.pieces) {
                file.append(&piece)?;
                self.file_bytes += piece.len() as u64;
            }
            self.held_bytes = 0;
            self.reservation.release();
            self.resources.check()?;
            wanted = PIECE_BYTES_MAX.max(bytes);
        }
        self.held_bytes += wanted;
        self.pieces.push(Vec::with_capacity(wanted));
        Ok(())
    }

    /// Reads them all, in the order in which they came.
    pub(super) fn read(self: &Arc<Spool>) -> SpoolReader {
        SpoolReader {
            spool: Arc::clone(self),
            file_offset: 0,
            buffer: Vec::new(),
            position: 0,
            piece: 0,
            piece_position: 0,
            count: 0,
        }
    }
}

impl SpoolReader {
    /// The next document.
    ///
    /// # Errors
    /// An error of reading the file; that the query is to stop.
    pub(super) fn next_document(&mut self) -> Result<Option<DocumentBuf>, QueryError> {
        self.count += 1;
        if self.count.is_multiple_of(CHECK_COUNT) {
            self.spool.resources.check()?;
        }
        let is_in_file =
            self.position < self.buffer.len() || self.file_offset < self.spool.file_bytes;
        let bytes = if is_in_file {
            self.have(LENGTH_BYTES)?;
            let length = length_at(&self.buffer[self.position..]);
            self.have(length)?;
            self.position += length;
            &self.buffer[self.position - length..self.position]
        } else {
            let Some(piece) = self.spool.pieces.get(self.piece) else { return Ok(None) };
            let rest = &piece[self.piece_position..];
            let length = length_at(rest);
            self.piece_position += length;
            if self.piece_position == piece.len() {
                (self.piece, self.piece_position) = (self.piece + 1, 0);
            }
            &rest[..length]
        };
        Ok(Some(DocumentBuf::from_validated(Bytes::copy_from_slice(bytes))))
    }

    /// Reads on until the buffer holds so many bytes from its position on.
    fn have(&mut self, wanted: usize) -> Result<(), QueryError> {
        let held = self.buffer.len() - self.position;
        if wanted <= held {
            return Ok(());
        }
        self.buffer.drain(..self.position);
        self.position = 0;
        let left = usize::try_from(self.spool.file_bytes - self.file_offset).unwrap_or(usize::MAX);
        let more = (wanted - held).max(BUFFER_BYTES).min(left);
        assert!(wanted <= held + more, "a spool holds what was written to it");
        self.buffer.resize(held + more, 0);
        let file = self.spool.file.as_ref().expect("its bytes were counted");
        file.read_at(self.file_offset, &mut self.buffer[held..])?;
        self.file_offset += more as u64;
        Ok(())
    }
}

/// The length of the document that begins there.
fn length_at(bytes: &[u8]) -> usize {
    let length = bytes.first_chunk::<LENGTH_BYTES>().expect("a document has a length");
    u32::from_le_bytes(*length) as usize
}

impl Iterator for SpoolReader {
    type Item = Result<DocumentBuf, QueryError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_document().transpose()
    }
}
