//! The bytes of a plain remote's packs and refs. The authority is docs/format/plain-remote.md.
//!
//! Everything here comes from outside: lengths are compared with what is there before they are
//! believed.
//!
//! The refs lie twice in their file, once located from its beginning and once from its end: what
//! damages one of them takes no backup and no branch away.

use std::collections::BTreeMap;

use bytes::Bytes;
use frond_db::inside::refs::format;
use frond_db::inside::{CommitId, Error, system};
use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value};
use frond_store::field::{PREFIX_BYTES, check_prefix, prefix};
use frond_store::{Chunk, ChunkHash, ChunkKind, field};

use crate::TagInfo;
use crate::remote::RemoteState;

const PACK_MAGIC: [u8; 8] = *b"FRNDRP\x1A\n";
const REFS_MAGIC: [u8; 8] = *b"FRNDRR\x1A\n";

const HASH_BYTES: usize = frond_store::chunk::HASH_BYTES;
/// Name of a chunk, offset and bytes of its frame.
const ENTRY_BYTES: usize = HASH_BYTES + 2 * size_of::<u32>();
/// Hash of the entries, offset of the first, their count, magic.
const TRAILER_BYTES: usize = HASH_BYTES + 2 * size_of::<u32>() + PACK_MAGIC.len();

/// The second copy of the refs begins at a multiple of this, so that no page of a disk has parts of
/// both.
const PAGE_BYTES: usize = 4 << 10;
/// The size of the head of each copy of the refs: the hash of the record, and its bytes.
const COPY_HEAD_BYTES: usize = HASH_BYTES + size_of::<u32>();
/// The number of bytes of a pack's name, without what all of them begin with.
const PACK_ID_BYTES: usize = 20;
/// The length of the mark, of the hash of a pack's index.
const PACK_MARK_BYTES: usize = 8;

/// The greatest number of bytes of a file of refs.
pub(crate) const REFS_BYTES_MAX: usize = 64 << 20;

/// The place of a frame in its pack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ChunkLocation {
    pub offset: u32,
    pub bytes: u32,
}

/// A backup of a data directory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BackupInfo {
    /// Its name.
    pub name: String,
    /// The chunk of the engine's state.
    pub root: ChunkHash,
    /// The moment: milliseconds since 1970.
    pub time_millis: i64,
    /// The databases in it.
    pub databases: Vec<String>,
    /// Commits that shallow clones in it lack.
    pub absent: Vec<ChunkHash>,
    /// Chunks of it that could not be read where it was made: it is not whole.
    pub lost: Vec<ChunkHash>,
    /// Whether commits were followed to their parents when it was made. Of one where they weren't,
    /// a dropped database may lack commits that only others name.
    pub has_parents: bool,
}

/// A pack's name, without what all of them begin with.
pub(crate) type PackId = CommitId;

/// The beginning of the hash of a pack's index: what lies under its name and has another one is not
/// what was written.
pub(crate) type PackMark = [u8; PACK_MARK_BYTES];

/// All that the file of refs says.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Refs {
    /// The repository that lies there.
    pub repository: Option<RemoteState>,
    /// Backups, the oldest first.
    pub backups: Vec<BackupInfo>,
    /// The number of collections: a client that looked at the packs before must look again.
    pub collections: u64,
    /// Packs that are about to be removed. They count for nothing.
    pub doomed: Vec<String>,
    /// Packs that the refs may need: one that isn't there, or is another, is damage.
    pub packs: BTreeMap<PackId, Option<PackMark>>,
    /// The pack that was reread last.
    pub reread: Option<PackId>,
    /// The number of changes.
    pub changes: u64,
}

fn damaged(file: &str, what: &str) -> Error {
    Error::damaged(format!("remote: {file}: {what}"))
}

/// The name of some bytes, as a blob's.
pub(crate) fn hash_of(bytes: &[u8]) -> ChunkHash {
    Chunk::new(ChunkKind::Blob, &[], bytes).hash()
}

/// The number at `offset` of bytes that are long enough.
fn number(bytes: &[u8], offset: usize) -> u32 {
    field::u32_at(bytes, offset).unwrap_or_default()
}

/// The beginning of a pack.
pub(crate) fn begin_pack() -> Vec<u8> {
    prefix(PACK_MAGIC).to_vec()
}

/// The offset of a pack's first frame.
pub(crate) const FRAMES_START: usize = PREFIX_BYTES;
/// Returns the bytes behind the frames of a pack of so many chunks.
pub(crate) fn end_bytes(count: usize) -> usize {
    count * ENTRY_BYTES + TRAILER_BYTES
}

/// Checks the beginning of a pack.
pub(crate) fn check_pack_prefix(file: &str, bytes: &[u8]) -> Result<(), Error> {
    Ok(check_prefix(bytes, PACK_MAGIC, &format!("remote: {file}"))?)
}

/// Appends the index of a pack's chunks, which are sorted.
pub(crate) fn end_pack(pack: &mut Vec<u8>, places: &mut [(ChunkHash, ChunkLocation)]) {
    places.sort_unstable_by_key(|(hash, _)| *hash);
    let start = u32::try_from(pack.len()).expect("a pack is far smaller than 4 GiB");
    let mut entries = Vec::with_capacity(places.len() * ENTRY_BYTES);
    for (hash, place) in places.iter() {
        entries.extend_from_slice(&hash.0);
        entries.extend_from_slice(&place.offset.to_le_bytes());
        entries.extend_from_slice(&place.bytes.to_le_bytes());
    }
    let count = u32::try_from(places.len()).expect("a pack holds far fewer chunks");
    pack.extend_from_slice(&entries);
    pack.extend_from_slice(&hash_of(&entries).0);
    pack.extend_from_slice(&start.to_le_bytes());
    pack.extend_from_slice(&count.to_le_bytes());
    pack.extend_from_slice(&PACK_MAGIC);
}

/// Returns how many bytes the index and all that follows it take, as the last bytes of the pack
/// `file` of `bytes` bytes say.
pub(crate) fn index_bytes(file: &str, bytes: u64, tail: &[u8]) -> Result<u64, Error> {
    let trailer = tail.len().checked_sub(TRAILER_BYTES).and_then(|start| tail.get(start..));
    let trailer = trailer.ok_or_else(|| damaged(file, "is too short"))?;
    if trailer[TRAILER_BYTES - PACK_MAGIC.len()..] != PACK_MAGIC {
        return Err(damaged(file, "has no index"));
    }
    let (start, count) = (number(trailer, HASH_BYTES), number(trailer, HASH_BYTES + 4));
    let index_bytes = u64::from(count) * ENTRY_BYTES as u64 + TRAILER_BYTES as u64;
    if (start as usize) < PREFIX_BYTES || u64::from(start) + index_bytes != bytes {
        return Err(damaged(file, "its index is not where it says"));
    }
    Ok(index_bytes)
}

/// The entries of an index that isn't what was written, as they are; `end` begins with them.
pub(crate) fn raw_entries(end: &[u8]) -> Vec<(ChunkHash, ChunkLocation)> {
    let entries = &end[..end.len().saturating_sub(TRAILER_BYTES)];
    entries.chunks_exact(ENTRY_BYTES).map(entry_of).collect()
}

fn entry_of(entry: &[u8]) -> (ChunkHash, ChunkLocation) {
    let mut hash = [0; HASH_BYTES];
    hash.copy_from_slice(&entry[..HASH_BYTES]);
    let place =
        ChunkLocation { offset: number(entry, HASH_BYTES), bytes: number(entry, HASH_BYTES + 4) };
    (ChunkHash(hash), place)
}

/// Reads the index of a pack of `bytes` bytes, which `tail` ends with.
pub(crate) fn read_index(
    file: &str,
    bytes: u64,
    tail: &[u8],
) -> Result<Vec<(ChunkHash, ChunkLocation)>, Error> {
    let too_short = || damaged(file, "is too short");
    let index_bytes = usize::try_from(index_bytes(file, bytes, tail)?).map_err(|_| too_short())?;
    let start = tail.len().checked_sub(index_bytes).ok_or_else(too_short)?;
    let (entries, trailer) = tail[start..].split_at(index_bytes - TRAILER_BYTES);
    if hash_of(entries).0 != trailer[..HASH_BYTES] {
        return Err(damaged(file, "its index is not what was written"));
    }
    let frames_end = u64::from(number(trailer, HASH_BYTES));
    let mut places = Vec::with_capacity(entries.len() / ENTRY_BYTES);
    for entry in entries.chunks_exact(ENTRY_BYTES) {
        let (hash, place) = entry_of(entry);
        let is_inside = PREFIX_BYTES as u64 <= u64::from(place.offset)
            && u64::from(place.offset) + u64::from(place.bytes) <= frames_end;
        if !is_inside {
            return Err(damaged(file, "a frame lies outside of it"));
        }
        places.push((hash, place));
    }
    Ok(places)
}

/// The mark of the pack that `tail` ends, whose index was read or written.
pub(crate) fn mark_of(tail: &[u8]) -> Option<PackMark> {
    let trailer = tail.len().checked_sub(TRAILER_BYTES)?;
    tail[trailer..].first_chunk().copied()
}

/// Returns where the second copy of a record begins.
fn second_copy(record_bytes: usize) -> usize {
    (PREFIX_BYTES + COPY_HEAD_BYTES + record_bytes).next_multiple_of(PAGE_BYTES)
}

/// The file of refs: prefix, hash, length, record; zeros; and the same from the end.
pub(crate) fn encode_refs(refs: &Refs) -> Vec<u8> {
    let record = encode_record(refs);
    let hash = hash_of(record.as_bytes()).0;
    let length = u32::try_from(record.as_bytes().len()).expect("refs are far smaller than 4 GiB");
    let mut bytes = prefix(REFS_MAGIC).to_vec();
    bytes.extend_from_slice(&hash);
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(record.as_bytes());
    bytes.resize(second_copy(record.as_bytes().len()), 0);
    bytes.extend_from_slice(record.as_bytes());
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(&hash);
    bytes.extend_from_slice(&prefix(REFS_MAGIC));
    bytes
}

fn encode_record(refs: &Refs) -> DocumentBuf {
    let mut record = DocumentBuilder::new();
    if let Some(state) = &refs.repository {
        append_repository(&mut record, state);
    }
    record.begin_array("backups");
    for backup in &refs.backups {
        let mut builder = DocumentBuilder::new();
        builder.append("name", Value::String(&backup.name));
        let subtype = system::SUBTYPE_GENERIC;
        system::append_bytes(&mut builder, "root", subtype, &backup.root.0);
        builder.append("time", Value::DateTime(backup.time_millis)).begin_array("databases");
        for name in &backup.databases {
            builder.push(Value::String(name));
        }
        builder.end();
        let absent: Vec<u8> = backup.absent.iter().flat_map(|hash| hash.0).collect();
        system::append_bytes(&mut builder, "absent", subtype, &absent);
        let lost: Vec<u8> = backup.lost.iter().flat_map(|hash| hash.0).collect();
        system::append_bytes(&mut builder, "lost", subtype, &lost);
        if backup.has_parents {
            builder.append("parents", Value::Boolean(true));
        }
        record.push(Value::from(&builder.build()));
    }
    record.end().append("collections", Value::Int64(refs.collections as i64));
    record.begin_array("doomed");
    for name in &refs.doomed {
        record.push(Value::String(name));
    }
    record.end();
    let packs: Vec<u8> = refs.packs.keys().flat_map(|pack| pack.0).collect();
    system::append_bytes(&mut record, "packs", system::SUBTYPE_GENERIC, &packs);
    let marks: Vec<u8> = refs.packs.values().flat_map(|mark| mark.unwrap_or_default()).collect();
    system::append_bytes(&mut record, "marks", system::SUBTYPE_GENERIC, &marks);
    let reread: Vec<u8> = refs.reread.iter().flat_map(|pack| pack.0).collect();
    system::append_bytes(&mut record, "reread", system::SUBTYPE_GENERIC, &reread);
    record.append("changes", Value::Int64(refs.changes as i64));
    record.build()
}

/// Appends the refs of a repository to a record: as they lie in a file, and as they travel.
pub(crate) fn append_repository(record: &mut DocumentBuilder, state: &RemoteState) {
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
        record.push(Value::from(&encode_tag(tag, *chunk)));
    }
    record.end();
}

/// A tag as it lies in a file of refs, and as it travels.
pub(crate) fn encode_tag(tag: &TagInfo, chunk: ChunkHash) -> DocumentBuf {
    let mut builder = DocumentBuilder::new();
    builder.append("name", Value::String(&tag.name));
    system::append_bytes(&mut builder, "commit", system::SUBTYPE_GENERIC, &chunk.0);
    for (name, text) in [("message", &tag.message), ("author", &tag.author)] {
        if let Some(text) = text {
            builder.append(name, Value::String(text));
        }
    }
    builder.append("time", Value::DateTime(tag.time_millis));
    builder.build()
}

/// The chunk that the field `name` names.
pub(crate) fn hash_field(part: Document<'_>, name: &str) -> Option<ChunkHash> {
    match part.get(name) {
        Some(Value::Binary(binary)) => {
            <[u8; HASH_BYTES]>::try_from(binary.bytes).ok().map(ChunkHash)
        }
        _ => None,
    }
}

/// Reads a tag.
pub(crate) fn decode_tag(part: Document<'_>) -> Result<(TagInfo, ChunkHash), Error> {
    let wrong = || damaged("REFS", "a tag has no proper name, commit or time");
    let (name, chunk) = named(part).ok_or_else(wrong)?;
    let Some(Value::DateTime(time_millis)) = part.get("time") else { return Err(wrong()) };
    let text = |name: &str| part.get(name).and_then(system::as_string);
    let (message, author) = (text("message"), text("author"));
    let commit = format::id_of(chunk);
    Ok((TagInfo { name, commit, message, author, time_millis }, chunk))
}

fn named(part: Document<'_>) -> Option<(String, ChunkHash)> {
    part.get("name").and_then(system::as_string).zip(hash_field(part, "commit"))
}

/// The documents of an array.
fn parts<'a>(record: Document<'a>, name: &str) -> Result<Vec<Document<'a>>, Error> {
    let array = record.get(name).and_then(|value| value.as_array());
    let array = array.ok_or_else(|| damaged("REFS", &format!("has no {name}")))?;
    Ok(array.iter().filter_map(|part| part.as_document()).collect())
}

/// Reads the refs of a repository, if the record has one.
pub(crate) fn decode_repository(record: Document<'_>) -> Result<Option<RemoteState>, Error> {
    let wrong = |what: &str| damaged("REFS", what);
    let Some(salt) = record.get("salt") else { return Ok(None) };
    let default_branch = record.get("defaultBranch").and_then(system::as_string);
    let (Some(salt), Some(default_branch)) = (salt.as_integer(), default_branch) else {
        return Err(wrong("has no proper salt or no default branch"));
    };
    let mut branches = BTreeMap::new();
    for part in parts(record, "branches")? {
        let (name, head) = named(part).ok_or_else(|| wrong("a ref has no name or commit"))?;
        branches.insert(name, head);
    }
    let mut tags = BTreeMap::new();
    for part in parts(record, "tags")? {
        let (tag, chunk) = decode_tag(part)?;
        tags.insert(tag.name.clone(), (tag, chunk));
    }
    Ok(Some(RemoteState { salt: salt as u64, default_branch, branches, tags }))
}

/// The record of the copy that is located from the beginning.
fn first_copy(bytes: &[u8]) -> Result<&[u8], Error> {
    check_prefix(bytes, REFS_MAGIC, "REFS")?;
    let wrong = || damaged("REFS", "is not what was written");
    let head = bytes.get(PREFIX_BYTES..PREFIX_BYTES + COPY_HEAD_BYTES).ok_or_else(wrong)?;
    let rest = &bytes[PREFIX_BYTES + COPY_HEAD_BYTES..];
    let record = rest.get(..number(head, HASH_BYTES) as usize).ok_or_else(wrong)?;
    if head[..HASH_BYTES] == hash_of(record).0 { Ok(record) } else { Err(wrong()) }
}

/// The record of the copy that is located from the end.
fn last_copy(bytes: &[u8]) -> Result<&[u8], Error> {
    let wrong = || damaged("REFS", "its end is not what was written");
    let (rest, suffix) =
        bytes.split_at_checked(bytes.len().saturating_sub(PREFIX_BYTES)).ok_or_else(wrong)?;
    check_prefix(suffix, REFS_MAGIC, "REFS")?;
    let head = rest.len().checked_sub(COPY_HEAD_BYTES).ok_or_else(wrong)?;
    let (rest, head) = rest.split_at(head);
    let start = rest.len().checked_sub(number(head, 0) as usize).ok_or_else(wrong)?;
    let record = &rest[start..];
    if head[size_of::<u32>()..] == hash_of(record).0 { Ok(record) } else { Err(wrong()) }
}

/// Reads a file of refs. Also returns what is wrong with one of the two copies in it, if the other
/// is whole.
pub(crate) fn decode_refs(bytes: &[u8]) -> Result<(Refs, Option<Error>), Error> {
    let (first, last) = (first_copy(bytes), last_copy(bytes));
    // Beside two whole copies there are zeros only.
    let is_bare = |record: &[u8]| {
        let (start, end) =
            (PREFIX_BYTES + COPY_HEAD_BYTES + record.len(), second_copy(record.len()));
        bytes.len() == end + start && bytes[start..end].iter().all(|byte| *byte == 0)
    };
    match (first, last) {
        (Ok(record), Ok(_)) if is_bare(record) => Ok((decode_record(record)?, None)),
        (Ok(record), Ok(_)) => {
            let error = damaged("REFS", "has something between its two copies");
            Ok((decode_record(record)?, Some(error)))
        }
        (Ok(record), Err(error)) | (Err(error), Ok(record)) => {
            Ok((decode_record(record)?, Some(error)))
        }
        (Err(error), Err(_)) => Err(error),
    }
}

/// The packs of some names in a row.
fn pack_ids(record: Document<'_>, name: &str) -> Result<Vec<PackId>, Error> {
    let Some(Value::Binary(binary)) = record.get(name) else {
        return Err(damaged("REFS", &format!("has no {name}")));
    };
    let id = |bytes: &[u8]| {
        let mut id = [0; PACK_ID_BYTES];
        id.copy_from_slice(bytes);
        CommitId(id)
    };
    Ok(binary.bytes.chunks_exact(PACK_ID_BYTES).map(id).collect())
}

/// The packs that the refs may need. Refs that were written before there were marks have none.
fn marked_packs(record: Document<'_>) -> Result<BTreeMap<PackId, Option<PackMark>>, Error> {
    let packs = pack_ids(record, "packs")?;
    let marks = match record.get("marks") {
        Some(Value::Binary(binary)) => binary.bytes,
        _ => &[],
    };
    let (marks, _) = marks.as_chunks::<PACK_MARK_BYTES>();
    let mark = |position: usize| marks.get(position).copied().filter(|mark| *mark != [0; 8]);
    Ok(packs.into_iter().enumerate().map(|(position, id)| (id, mark(position))).collect())
}

fn decode_backup(part: Document<'_>) -> Result<BackupInfo, Error> {
    let wrong = |what: &str| damaged("REFS", what);
    let name = part.get("name").and_then(system::as_string);
    let (Some(name), Some(root), Some(Value::DateTime(time_millis))) =
        (name, hash_field(part, "root"), part.get("time"))
    else {
        return Err(wrong("a backup has no proper name, root or time"));
    };
    let (Some(Value::Binary(absent)), Some(Value::Binary(lost))) =
        (part.get("absent"), part.get("lost"))
    else {
        return Err(wrong("a backup has no list of absent commits, or of lost chunks"));
    };
    let decode = crate::remote::decode_hashes;
    let (absent, lost) = (decode(absent.bytes), decode(lost.bytes));
    let has_parents = part.get("parents") == Some(Value::Boolean(true));
    let databases = texts(part, "databases")?;
    Ok(BackupInfo { name, root, time_millis, databases, absent, lost, has_parents })
}

fn texts(record: Document<'_>, name: &str) -> Result<Vec<String>, Error> {
    let array = record.get(name).and_then(|value| value.as_array());
    let array = array.ok_or_else(|| damaged("REFS", &format!("has no {name}")))?;
    Ok(array.iter().filter_map(system::as_string).collect())
}

fn decode_record(record: &[u8]) -> Result<Refs, Error> {
    let wrong = |what: &str| damaged("REFS", what);
    let record = DocumentBuf::validated(Bytes::copy_from_slice(record))
        .map_err(|error| wrong(&error.to_string()))?;
    let record = record.view();
    let backups = parts(record, "backups")?.into_iter().map(decode_backup);
    let count = |name: &str| {
        let count = record.get(name).and_then(|value| value.as_integer());
        count.and_then(|count| u64::try_from(count).ok())
    };
    Ok(Refs {
        repository: decode_repository(record)?,
        backups: backups.collect::<Result<_, _>>()?,
        collections: count("collections").ok_or_else(|| wrong("has no count of collections"))?,
        doomed: texts(record, "doomed")?,
        packs: marked_packs(record)?,
        reread: pack_ids(record, "reread")?.pop(),
        changes: count("changes").ok_or_else(|| wrong("has no count of changes"))?,
    })
}

#[cfg(test)]
mod tests;
