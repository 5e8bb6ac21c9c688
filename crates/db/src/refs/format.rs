//! The bytes of a commit chunk. The authority is docs/format/commit.md.
//!
//! References: the catalog's root, then the parents in their order. Payload: a BSON document. The
//! repository's tree format stands in each commit, so that a clone needs nothing beside it.

use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value};
use frond_store::{Chunk, ChunkHash, ChunkKind};
use frond_tree::{Tree, TreeFormat};

use crate::commit_id::{COMMIT_ID_BYTES, CommitId};
use crate::error::Error;

/// The version that is written, and the only one that is read. Stored.
const VERSION: i32 = 0;
/// References before the parents.
const PARENTS_POSITION: usize = 1;

/// A version in history, decoded.
#[derive(Clone, PartialEq, Debug)]
pub struct Commit {
    /// The catalog of the collections.
    pub catalog: Tree,
    /// Chunks of the commits that it was made from; the branch's own comes first.
    pub parents: Vec<ChunkHash>,
    /// The author.
    pub author: String,
    /// The message.
    pub message: String,
    /// The committer, if it is another than the author.
    pub committer: Option<String>,
    /// Milliseconds since 1970; not before any parent's.
    pub timestamp_millis: i64,
    /// The time when the changes were made, if that is another one.
    pub authored_millis: Option<i64>,
    /// 1 + the greatest of the parents', so that no ancestor has as much.
    pub generation: u64,
    /// A policy made it: retention may take it away.
    pub automatic: bool,
    /// It was made by a revert, of this commit.
    pub reverts: Option<CommitId>,
}

/// The id of the commit that lies in the chunk `chunk`.
pub fn id_of(chunk: ChunkHash) -> CommitId {
    let mut id = [0; COMMIT_ID_BYTES];
    id.copy_from_slice(&chunk.0[..COMMIT_ID_BYTES]);
    CommitId(id)
}

impl Commit {
    /// The chunk to store.
    pub fn encode(&self) -> Chunk {
        let mut references = vec![self.catalog.root];
        references.extend_from_slice(&self.parents);
        let format = &self.catalog.format;
        let mut builder = DocumentBuilder::new();
        builder
            .append("version", Value::Int32(VERSION))
            .append("author", Value::String(&self.author))
            .append("message", Value::String(&self.message))
            .append("timestamp", Value::DateTime(self.timestamp_millis));
        if let Some(committer) = &self.committer {
            builder.append("committer", Value::String(committer));
        }
        if let Some(authored) = self.authored_millis {
            builder.append("authored", Value::DateTime(authored));
        }
        if self.automatic {
            builder.append("automatic", Value::Boolean(true));
        }
        if let Some(reverts) = self.reverts {
            builder.append("reverts", Value::String(&reverts.to_string()));
        }
        builder
            .append("generation", Value::Int64(self.generation as i64))
            .append("parents", Value::Int64(self.parents.len() as i64))
            .begin_document("format")
            .append("chunkBytesTarget", Value::Int64(i64::from(format.chunk_bytes_target)))
            .append("inlineBytesMax", Value::Int64(i64::from(format.inline_bytes_max)))
            .append("salt", Value::Int64(format.salt as i64))
            .end();
        Chunk::new(ChunkKind::Commit, &references, builder.build().as_bytes())
    }

    /// Reads a chunk back.
    ///
    /// # Errors
    /// `Damaged` if it is no commit; `Invalid` if it is of a version that this build can't read.
    pub fn decode(chunk: &Chunk) -> Result<Commit, Error> {
        let damaged = |what: &str| damaged(chunk.hash(), what);
        if chunk.kind() != ChunkKind::Commit {
            return Err(damaged(&format!("the chunk is a {:?}", chunk.kind())));
        }
        let payload = DocumentBuf::validated(chunk.payload_bytes())
            .map_err(|error| damaged(&error.to_string()))?;
        let payload = Fields { chunk: chunk.hash(), document: payload.view() };
        payload.check_version()?;
        let references: Vec<ChunkHash> = chunk.references().collect();
        let (Some(root), Some(parents)) = (references.first(), references.get(PARENTS_POSITION..))
        else {
            return Err(damaged("no catalog"));
        };
        if payload.integer("parents")? != parents.len() as i64 {
            return Err(damaged("the number of parents is wrong"));
        }
        let generation = u64::try_from(payload.integer("generation")?)
            .map_err(|_| damaged("wrong generation"))?;
        Ok(Commit {
            catalog: Tree { root: *root, format: payload.tree_format()? },
            parents: parents.to_vec(),
            author: payload.required("author", text)?,
            message: payload.required("message", text)?,
            committer: payload.optional("committer", text)?,
            timestamp_millis: payload.required("timestamp", millis)?,
            authored_millis: payload.optional("authored", millis)?,
            generation,
            automatic: payload.optional("automatic", only_true)?.is_some(),
            reverts: payload.optional("reverts", commit_id)?,
        })
    }
}

/// The fields of a stored commit, or of a document in it. One that isn't as it was written is
/// damage.
struct Fields<'a> {
    chunk: ChunkHash,
    document: Document<'a>,
}

impl<'a> Fields<'a> {
    fn check_version(&self) -> Result<(), Error> {
        match self.document.get("version") {
            Some(Value::Int32(VERSION)) => Ok(()),
            Some(Value::Int32(version)) => Err(unknown_version(self.chunk, version)),
            _ => Err(self.improper("version")),
        }
    }

    fn tree_format(&self) -> Result<TreeFormat, Error> {
        let document = self.required("format", |value| value.as_document())?;
        let format = Fields { chunk: self.chunk, document };
        let small = |name: &str| {
            u32::try_from(format.integer(name)?)
                .map_err(|_| damaged(self.chunk, &format!("wrong {name}")))
        };
        Ok(TreeFormat {
            chunk_bytes_target: small("chunkBytesTarget")?,
            inline_bytes_max: small("inlineBytesMax")?,
            salt: format.integer("salt")? as u64,
        })
    }

    fn integer(&self, name: &str) -> Result<i64, Error> {
        self.required(name, |value| match value {
            Value::Int64(number) => Some(number),
            _ => None,
        })
    }

    /// Applies `read` to a field that each commit has.
    fn required<T>(&self, name: &str, read: impl Fn(Value<'a>) -> Option<T>) -> Result<T, Error> {
        self.optional(name, read)?.ok_or_else(|| self.improper(name))
    }

    /// Applies `read` to a field, if it is there.
    fn optional<T>(
        &self,
        name: &str,
        read: impl Fn(Value<'a>) -> Option<T>,
    ) -> Result<Option<T>, Error> {
        let read = |value| read(value).ok_or_else(|| self.improper(name));
        self.document.get(name).map(read).transpose()
    }

    fn improper(&self, name: &str) -> Error {
        damaged(self.chunk, &format!("no proper field {name}"))
    }
}

fn text(value: Value<'_>) -> Option<String> {
    match value {
        Value::String(text) => Some(text.to_owned()),
        _ => None,
    }
}

fn millis(value: Value<'_>) -> Option<i64> {
    match value {
        Value::DateTime(millis) => Some(millis),
        _ => None,
    }
}

fn only_true(value: Value<'_>) -> Option<()> {
    matches!(value, Value::Boolean(true)).then_some(())
}

fn commit_id(value: Value<'_>) -> Option<CommitId> {
    text(value).and_then(|id| CommitId::parse(&id))
}

fn damaged(chunk: ChunkHash, what: &str) -> Error {
    Error::damaged(format!("commit {chunk}: {what}"))
}

fn unknown_version(chunk: ChunkHash, version: i32) -> Error {
    let message =
        format!("commit {chunk}: format version {version}, but this build reads {VERSION} only");
    Error::invalid(frond_query::Code::UnsupportedFormat, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use frond_doc::document;

    fn example(parents: usize) -> Commit {
        Commit {
            catalog: Tree { root: ChunkHash([0x11; 32]), format: TreeFormat::new(u64::MAX - 4) },
            parents: (0..parents).map(|parent| ChunkHash([parent as u8; 32])).collect(),
            author: "Ada <ada@example.org>".to_owned(),
            message: "first".to_owned(),
            committer: (parents > 0).then(|| "Grace".to_owned()),
            timestamp_millis: 1_767_225_600_000,
            authored_millis: (parents > 1).then_some(5),
            generation: 1,
            automatic: parents > 0,
            reverts: (parents == 1).then_some(CommitId([7; COMMIT_ID_BYTES])),
        }
    }

    #[test]
    fn a_commit_comes_back() {
        for parents in 0..3 {
            let commit = example(parents);
            assert_eq!(Commit::decode(&commit.encode()).expect("what was encoded"), commit);
        }
    }

    #[test]
    fn damaged_commits_are_refused() {
        let good = example(1).encode();
        let references: Vec<ChunkHash> = good.references().collect();
        let check = |kind, references: &[ChunkHash], payload: &[u8], expected| {
            let error = Commit::decode(&Chunk::new(kind, references, payload)).unwrap_err();
            assert_eq!(error.kind, expected, "{error}");
        };
        check(ChunkKind::Blob, &references, good.payload(), ErrorKind::Damaged);
        check(ChunkKind::Commit, &references[..1], good.payload(), ErrorKind::Damaged);
        check(ChunkKind::Commit, &[], good.payload(), ErrorKind::Damaged);
        check(ChunkKind::Commit, &references, b"", ErrorKind::Damaged);
        let later = document! { "version": 1_i32 };
        check(ChunkKind::Commit, &references, later.as_bytes(), ErrorKind::Invalid);
        for cut in 0..good.payload().len() {
            check(ChunkKind::Commit, &references, &good.payload()[..cut], ErrorKind::Damaged);
        }
    }
}
