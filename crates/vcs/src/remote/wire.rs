//! Refs as they travel between a client and a server: BSON, read with the distrust that is due to
//! it.

use bytes::Bytes;
use frond_db::inside::{Error, system};
use frond_doc::{DocumentBuf, DocumentBuilder, Value};
use frond_store::ChunkHash;

use crate::refs::ref_name;
use crate::remote::plain::format as refs;
use crate::remote::{RefUpdate, RemoteState};

const HASH_BYTES: usize = frond_store::chunk::HASH_BYTES;

impl RemoteState {
    /// Appends the refs to a record; one without them is read as that of no repository.
    pub fn append_to(&self, record: &mut DocumentBuilder) {
        refs::append_repository(record, self);
    }

    /// Reads what `append_to` wrote.
    ///
    /// # Errors
    /// `Damaged` if it is something else.
    pub fn decode(record: &DocumentBuf) -> Result<Option<RemoteState>, Error> {
        refs::decode_repository(record.view())
    }
}

impl RefUpdate {
    /// The update as it is sent.
    pub fn encode(&self) -> Bytes {
        let mut record = DocumentBuilder::new();
        record
            .append("salt", Value::Int64(self.salt as i64))
            .append("defaultBranch", Value::String(&self.default_branch))
            .append("branch", Value::String(&self.branch));
        let subtype = system::SUBTYPE_GENERIC;
        if let Some(expected) = &self.expected {
            system::append_bytes(&mut record, "expected", subtype, &expected.0);
        }
        system::append_bytes(&mut record, "new", subtype, &self.new.0);
        record.append("force", Value::Boolean(self.force));
        let commits: Vec<u8> = self.commits.iter().flat_map(|hash| hash.0).collect();
        system::append_bytes(&mut record, "commits", subtype, &commits);
        record.begin_array("tags");
        for (tag, chunk) in &self.tags {
            record.push(Value::from(&refs::encode_tag(tag, *chunk)));
        }
        record.end();
        record.build().into_bytes()
    }

    /// Reads what was sent.
    ///
    /// # Errors
    /// `Damaged` if it is no update; `BadValue` if a name is none that a branch or tag can have.
    pub fn decode(bytes: Bytes) -> Result<RefUpdate, Error> {
        let record = DocumentBuf::validated(bytes)
            .map_err(|error| Error::damaged(format!("an update of refs: {error}")))?;
        let wrong = |name: &str| Error::damaged(format!("an update of refs has no proper {name}"));
        let text =
            |name: &str| record.get(name).and_then(system::as_string).ok_or_else(|| wrong(name));
        let hash = |name: &str| refs::hash_field(record.view(), name);
        let commits = match record.get("commits") {
            Some(Value::Binary(binary)) if binary.bytes.len() % HASH_BYTES == 0 => {
                decode_hashes(binary.bytes)
            }
            _ => return Err(wrong("commits")),
        };
        let tags = record.get("tags").and_then(|tags| tags.as_array());
        let tags = tags.ok_or_else(|| wrong("tags"))?;
        let mut decoded = Vec::new();
        for tag in tags.iter() {
            let tag = tag.as_document().ok_or_else(|| wrong("tags"))?;
            decoded.push(refs::decode_tag(tag)?);
        }
        let update = RefUpdate {
            salt: record
                .get("salt")
                .and_then(|salt| salt.as_integer())
                .ok_or_else(|| wrong("salt"))? as u64,
            default_branch: text("defaultBranch")?,
            branch: text("branch")?,
            expected: record
                .get("expected")
                .map(|_| hash("expected").ok_or_else(|| wrong("expected")))
                .transpose()?,
            new: hash("new").ok_or_else(|| wrong("new"))?,
            force: record.get("force").is_some_and(|force| force.is_truthy()),
            commits,
            tags: decoded,
        };
        let tags = update.tags.iter().map(|(tag, _)| &tag.name);
        for name in [&update.default_branch, &update.branch].into_iter().chain(tags) {
            ref_name::check_name(name)?;
        }
        Ok(update)
    }
}

/// The names in bytes that are one after the other; what is too short for one is left.
pub fn decode_hashes(bytes: &[u8]) -> Vec<ChunkHash> {
    let hash = |bytes: &[u8]| {
        let mut hash = [0; HASH_BYTES];
        hash.copy_from_slice(bytes);
        ChunkHash(hash)
    };
    bytes.chunks_exact(HASH_BYTES).map(hash).collect()
}

/// Names, one after the other.
pub fn encode_hashes(hashes: &[ChunkHash]) -> Vec<u8> {
    hashes.iter().flat_map(|hash| hash.0).collect()
}
