//! A database at another line, which this server fetches while it moves here: by the wire protocol,
//! from that line's leader, as the user who asked for the move.
//!
//! With `--auth` the server logs in there as a router does, by the key that both know: a user who
//! may not move a database there doesn't by this way either.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use frond_db::Error;
use frond_doc::{Binary, DocumentBuf, DocumentBuilder, Value};
use frond_query::Code;
use frond_store::{Chunk, ChunkHash};
use frond_vcs::remote::{RefUpdate, Remote, RemoteState, decode_hashes, encode_hashes, frame};

use crate::client::{Client, ClientError, ClientTls};
use crate::replica::key::ClusterKey;

/// A server that says nothing for so long is given up: it may be frozen.
const ANSWER_MAX: Duration = Duration::from_secs(30);
/// Hashes that are asked for together.
const HASHES_MAX: usize = 10_000;
/// An answer ends with the chunk that reaches this.
const ANSWER_BYTES: usize = 4 << 20;
/// The most that the chunks of an answer take.
const CHUNKS_BYTES_MAX: usize = ANSWER_BYTES + 2 * frond_vcs::remote::CHUNK_BYTES_MAX;

/// See the module.
pub struct LineRemote {
    database: String,
    client: Mutex<Client>,
}

/// The login of a server at another line.
pub struct RouterLogin<'a> {
    /// The key that servers and routers of both lines know.
    pub key: &'a ClusterKey,
    /// The user's database.
    pub database: &'a str,
    /// The user.
    pub user: &'a str,
}

impl LineRemote {
    /// Connects to a line's leader.
    ///
    /// # Errors
    /// `HostUnreachable` if it doesn't answer; what it refuses.
    pub fn connect(
        address: &str,
        tls: Option<&ClientTls>,
        login: Option<&RouterLogin<'_>>,
        database: &str,
    ) -> Result<LineRemote, Error> {
        let mut client = Client::connect_by(address, tls).map_err(failed)?;
        client.set_read_timeout(Some(ANSWER_MAX)).map_err(failed)?;
        if let Some(RouterLogin { key, database, user }) = login {
            client.log_in_by_router_key(database, user, key).map_err(failed)?;
        }
        Ok(LineRemote { database: database.to_owned(), client: Mutex::new(client) })
    }

    fn step(&self, step: &str, more: &[(&str, Value<'_>)]) -> Result<DocumentBuf, Error> {
        let mut command = DocumentBuilder::new();
        command.append("frondHandOver", Value::String(&self.database));
        command.append("step", Value::String(step));
        for (name, value) in more {
            command.append(name, *value);
        }
        let mut client = self.client.lock().unwrap_or_else(PoisonError::into_inner);
        client.command("admin", command.build().view()).map_err(failed)
    }
}

fn failed(error: ClientError) -> Error {
    let code = match &error {
        ClientError::Command { code, .. } => Code::of(*code),
        ClientError::Server { .. } => Code::AuthenticationFailed,
        ClientError::Connection { .. } | ClientError::Answer { .. } => Code::HostUnreachable,
    };
    Error::invalid(code, error.to_string())
}

/// Appends a remote's refs, for the answer of a step.
pub fn append_refs(answer: &mut DocumentBuilder, state: Option<&RemoteState>) {
    answer.begin_document("refs");
    if let Some(state) = state {
        state.append_to(answer);
    }
    answer.end();
}

/// The first of the chunks that are asked for, as many as an answer holds.
///
/// # Errors
/// As [`Remote::get_many`].
pub fn append_chunks(
    answer: &mut DocumentBuilder,
    remote: &dyn Remote,
    hashes: &[u8],
) -> Result<(), Error> {
    let hashes = decode_hashes(hashes);
    let (mut chunks, mut bytes) = (Vec::new(), 0);
    for batch in hashes.chunks(64) {
        for chunk in remote.get_many(batch)? {
            bytes += chunk.encoded().len();
            chunks.push(chunk);
            if ANSWER_BYTES <= bytes {
                break;
            }
        }
        if ANSWER_BYTES <= bytes {
            break;
        }
    }
    let frames = frame::encode(&chunks, frame::FrameEffort::Quick);
    answer.append("chunks", Value::Binary(Binary { subtype: 0, bytes: &frames }));
    Ok(())
}

impl Remote for LineRemote {
    fn state(&self) -> Result<Option<RemoteState>, Error> {
        let answer = self.step("refs", &[])?;
        let refs = answer.get("refs").and_then(|refs| refs.as_document());
        let refs = refs.ok_or_else(|| Error::damaged("the line told no refs"))?;
        RemoteState::decode(&refs.to_buf())
    }

    fn has_many(&self, hashes: &[ChunkHash]) -> Result<Vec<bool>, Error> {
        // Chunks are only fetched from there, never sent back.
        Ok(vec![false; hashes.len()])
    }

    fn get_many(&self, hashes: &[ChunkHash]) -> Result<Vec<Chunk>, Error> {
        let mut chunks: Vec<Chunk> = Vec::with_capacity(hashes.len());
        while let Some(wanted) = hashes.get(chunks.len()..).filter(|rest| !rest.is_empty()) {
            let wanted = &wanted[..wanted.len().min(HASHES_MAX)];
            let names = encode_hashes(wanted);
            let names = Value::Binary(Binary { subtype: 0, bytes: &names });
            let answer = self.step("chunks", &[("hashes", names)])?;
            let frames = match answer.get("chunks") {
                Some(Value::Binary(frames)) => frames.bytes,
                _ => return Err(Error::damaged("the line sent no chunks")),
            };
            let found = frame::decode_all("a line's answer", frames, CHUNKS_BYTES_MAX)?;
            let is_wanted = !found.is_empty()
                && found.len() <= wanted.len()
                && found.iter().map(Chunk::hash).eq(wanted[..found.len()].iter().copied());
            if !is_wanted {
                return Err(Error::damaged("the line sent other chunks than were asked for"));
            }
            chunks.extend(found);
        }
        Ok(chunks)
    }

    fn put_many(&self, _: &[Chunk]) -> Result<(), Error> {
        Err(only_read())
    }

    fn update(&self, _: &RefUpdate) -> Result<(), Error> {
        Err(only_read())
    }
}

fn only_read() -> Error {
    Error::invalid(Code::IllegalOperation, "a database is fetched from a line, never sent to it")
}
