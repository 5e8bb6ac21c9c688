//! The bytes of a plain remote's packs and refs. The authority is docs/format/plain-remote.md.
//!
//! Everything here comes from outside: lengths are compared with what is there before they are believed.

use std::collections::BTreeMap;

use bytes::Bytes;
use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value};
use frond_store::field::{PREFIX_BYTES, check_prefix, prefix};
use frond_store::{Chunk, ChunkHash, ChunkKind, field};

use crate::error::Error;
use crate::system;
use crate::version::remote::RemoteState;
use crate::version::{TagInfo, format};

const PACK_MAGIC: [u8; 8] = *b"FRNDRP\x1A\n";
const REFS_MAGIC: [u8; 8] = *b"FRNDRR\x1A\n";
/// Codec, reserved, stored bytes, uncompressed bytes.
const FRAME_HEADER_BYTES: usize = 12;
const CODEC_RAW: u8 = 0;
const CODEC_LZ4: u8 = 1;

const HASH_BYTES: usize = frond_store::chunk::HASH_BYTES;
/// Name, offset, bytes.
const ENTRY_BYTES: usize = HASH_BYTES + 2 * size_of::<u32>();
/// Hash of the entries, offset of the first, their count, magic.
const TRAILER_BYTES: usize = HASH_BYTES + 2 * size_of::<u32>() + PACK_MAGIC.len();

/// Most bytes of a file of refs.
pub(crate) const REFS_BYTES_MAX: usize = 64 << 20;

/// Where a frame lies in its pack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    pub offset: u32,
    pub bytes: u32,
}

fn damaged(file: &str, what: &str) -> Error {
    Error::damaged(format!("remote: {file}: {what}"))
}

/// The name of some bytes, as a blob's.
fn hash_of(bytes: &[u8]) -> ChunkHash {
    Chunk::new(ChunkKind::Blob, &[], bytes).hash()
}

/// The number at `offset` of bytes that are long enough.
fn number(bytes: &[u8], offset: usize) -> u32 {
    field::u32_at(bytes, offset).unwrap_or_default()
}

/// A chunk in a pack.
pub(crate) struct Frame;

impl Frame {
    /// Appends a chunk's encoded bytes to a pack, compressed where that saves something.
    pub fn append(pack: &mut Vec<u8>, encoded: &[u8]) -> Place {
        let offset = u32::try_from(pack.len()).expect("a pack is far smaller than 4 GiB");
        let compressed = lz4_flex::block::compress(encoded);
        let (codec, stored) = match compressed.len() < encoded.len() - encoded.len() / 16 {
            true => (CODEC_LZ4, compressed.as_slice()),
            false => (CODEC_RAW, encoded),
        };
        let length = |bytes: &[u8]| {
            let length = u32::try_from(bytes.len()).expect("a chunk is far smaller than 4 GiB");
            length.to_le_bytes()
        };
        pack.extend_from_slice(&[codec, 0, 0, 0]);
        pack.extend_from_slice(&length(stored));
        pack.extend_from_slice(&length(encoded));
        pack.extend_from_slice(stored);
        let bytes = u32::try_from(FRAME_HEADER_BYTES + stored.len());
        Place { offset, bytes: bytes.expect("a chunk is far smaller than 4 GiB") }
    }

    /// The chunk's encoded bytes in a frame.
    pub fn decode(file: &str, place: &Place, frame: &[u8]) -> Result<Bytes, Error> {
        let wrong = |what: &str| damaged(file, &format!("frame at {}: {what}", place.offset));
        let header = frame.get(..FRAME_HEADER_BYTES).ok_or_else(|| wrong("is too short"))?;
        let stored = &frame[FRAME_HEADER_BYTES..];
        let plain_bytes = number(header, 8) as usize;
        if header[1..4] != [0; 3] || number(header, 4) as usize != stored.len() {
            return Err(wrong("has a wrong header"));
        }
        if plain_bytes > frond_store::chunk::CHUNK_BYTES_MAX {
            return Err(wrong("is longer than a chunk may be"));
        }
        let plain = match header[0] {
            CODEC_RAW => stored.to_vec(),
            CODEC_LZ4 => lz4_flex::block::decompress(stored, plain_bytes)
                .map_err(|error| wrong(&error.to_string()))?,
            codec => return Err(wrong(&format!("has the unknown codec {codec}"))),
        };
        if plain.len() != plain_bytes {
            return Err(wrong("is not as long as it says"));
        }
        Ok(plain.into())
    }
}

/// The beginning of a pack.
pub(crate) fn begin_pack() -> Vec<u8> {
    prefix(PACK_MAGIC).to_vec()
}

/// Appends the index of a pack's chunks, which are sorted; returns the name of the index.
pub(crate) fn end_pack(pack: &mut Vec<u8>, places: &mut [(ChunkHash, Place)]) -> ChunkHash {
    places.sort_unstable_by_key(|(hash, _)| *hash);
    let start = u32::try_from(pack.len()).expect("a pack is far smaller than 4 GiB");
    let mut entries = Vec::with_capacity(places.len() * ENTRY_BYTES);
    for (hash, place) in places.iter() {
        entries.extend_from_slice(&hash.0);
        entries.extend_from_slice(&place.offset.to_le_bytes());
        entries.extend_from_slice(&place.bytes.to_le_bytes());
    }
    let hash = hash_of(&entries);
    let count = u32::try_from(places.len()).expect("a pack holds far fewer chunks");
    pack.extend_from_slice(&entries);
    pack.extend_from_slice(&hash.0);
    pack.extend_from_slice(&start.to_le_bytes());
    pack.extend_from_slice(&count.to_le_bytes());
    pack.extend_from_slice(&PACK_MAGIC);
    hash
}

/// Reads the index of a pack of `bytes` bytes, which `read` reads pieces of.
pub(crate) fn read_index(
    file: &str,
    bytes: u64,
    read: &mut dyn FnMut(u64, usize) -> Result<Vec<u8>, Error>,
) -> Result<Vec<(ChunkHash, Place)>, Error> {
    let too_short = || damaged(file, "is too short");
    let least = (PREFIX_BYTES + TRAILER_BYTES) as u64;
    let trailer_at = bytes.checked_sub(TRAILER_BYTES as u64).ok_or_else(too_short)?;
    if bytes < least {
        return Err(too_short());
    }
    check_prefix(&read(0, PREFIX_BYTES)?, PACK_MAGIC, file)?;
    let trailer = read(trailer_at, TRAILER_BYTES)?;
    if trailer[TRAILER_BYTES - PACK_MAGIC.len()..] != PACK_MAGIC {
        return Err(damaged(file, "has no index"));
    }
    let (start, count) = (number(&trailer, HASH_BYTES), number(&trailer, HASH_BYTES + 4));
    let index_bytes = u64::from(count) * ENTRY_BYTES as u64;
    if (start as usize) < PREFIX_BYTES || u64::from(start) + index_bytes != trailer_at {
        return Err(damaged(file, "its index is not where it says"));
    }
    // It is within the file, so it fits.
    let index_bytes = usize::try_from(index_bytes).map_err(|_| too_short())?;
    let entries = read(u64::from(start), index_bytes)?;
    if hash_of(&entries).0 != trailer[..HASH_BYTES] {
        return Err(damaged(file, "its index is not what was written"));
    }
    let mut places = Vec::with_capacity(count as usize);
    for entry in entries.chunks_exact(ENTRY_BYTES) {
        let mut hash = [0; HASH_BYTES];
        hash.copy_from_slice(&entry[..HASH_BYTES]);
        let place =
            Place { offset: number(entry, HASH_BYTES), bytes: number(entry, HASH_BYTES + 4) };
        if u64::from(place.offset) + u64::from(place.bytes) > u64::from(start) {
            return Err(damaged(file, "a frame lies outside of it"));
        }
        places.push((ChunkHash(hash), place));
    }
    Ok(places)
}

/// The file of refs.
pub(crate) fn encode_refs(state: &RemoteState) -> Vec<u8> {
    let mut record = DocumentBuilder::new();
    record.append("salt", Value::Int64(state.salt as i64));
    record.append("defaultBranch", Value::String(&state.default_branch));
    record.begin_array("branches");
    for (name, head) in &state.branches {
        let mut branch = DocumentBuilder::new();
        branch.append("name", Value::String(name));
        system::append_bytes(&mut branch, "commit", system::SUBTYPE_GENERIC, &head.0);
        record.push(Value::from(&branch.build()));
    }
    record.end().begin_array("tags");
    for (tag, chunk) in state.tags.values() {
        let mut builder = DocumentBuilder::new();
        builder.append("name", Value::String(&tag.name));
        system::append_bytes(&mut builder, "commit", system::SUBTYPE_GENERIC, &chunk.0);
        for (name, text) in [("message", &tag.message), ("author", &tag.author)] {
            if let Some(text) = text {
                builder.append(name, Value::String(text));
            }
        }
        builder.append("time", Value::DateTime(tag.time_millis));
        record.push(Value::from(&builder.build()));
    }
    record.end();
    let record = record.build();
    let mut bytes = prefix(REFS_MAGIC).to_vec();
    bytes.extend_from_slice(&hash_of(record.as_bytes()).0);
    bytes.extend_from_slice(record.as_bytes());
    bytes
}

/// Reads a file of refs.
pub(crate) fn decode_refs(bytes: &[u8]) -> Result<RemoteState, Error> {
    let wrong = |what: &str| damaged("REFS", what);
    check_prefix(bytes, REFS_MAGIC, "REFS")?;
    let hash = bytes.get(PREFIX_BYTES..PREFIX_BYTES + HASH_BYTES);
    let record = bytes.get(PREFIX_BYTES + HASH_BYTES..).unwrap_or_default();
    if hash != Some(&hash_of(record).0) {
        return Err(wrong("is not what was written"));
    }
    let record = DocumentBuf::validated(Bytes::copy_from_slice(record))
        .map_err(|error| wrong(&error.to_string()))?;
    let commit = |part: Document<'_>| match part.get("commit") {
        Some(Value::Binary(binary)) => <[u8; HASH_BYTES]>::try_from(binary.bytes).ok(),
        _ => None,
    };
    let named = |part: Document<'_>| -> Result<(String, ChunkHash), Error> {
        let name = part.get("name").and_then(system::as_string);
        let hash = commit(part).map(ChunkHash);
        name.zip(hash).ok_or_else(|| wrong("a ref has no proper name or commit"))
    };
    let parts = |name: &str| {
        let array = record.get(name).and_then(|value| value.as_array());
        let array = array.ok_or_else(|| wrong("has no branches or no tags"))?;
        Ok::<_, Error>(array.iter().filter_map(|part| part.as_document()).collect::<Vec<_>>())
    };
    let branches: BTreeMap<String, ChunkHash> =
        parts("branches")?.into_iter().map(named).collect::<Result<_, _>>()?;
    let mut tags = BTreeMap::new();
    for part in parts("tags")? {
        let (name, chunk) = named(part)?;
        let Some(Value::DateTime(time_millis)) = part.get("time") else {
            return Err(wrong("a tag has no time"));
        };
        let tag = TagInfo {
            name: name.clone(),
            commit: format::id_of(chunk),
            message: part.get("message").and_then(system::as_string),
            author: part.get("author").and_then(system::as_string),
            time_millis,
        };
        tags.insert(name, (tag, chunk));
    }
    let salt = record.get("salt").and_then(|value| value.as_integer());
    let default_branch = record.get("defaultBranch").and_then(system::as_string);
    let (Some(salt), Some(default_branch)) = (salt, default_branch) else {
        return Err(wrong("has no salt or no default branch"));
    };
    Ok(RemoteState { salt: salt as u64, default_branch, branches, tags })
}

#[cfg(test)]
mod tests;
