//! The protocol between a client and a server. Version 0: not frozen.
//!
//! | REQUEST | BODY | ANSWER |
//! |---|---|---|
//! | `GET /v0/db/DATABASE` | | BSON: `{lease, salt?, defaultBranch?, branches?, tags?}` |
//! | `POST /v0/db/DATABASE/has` | names of chunks, 32 bytes each | a byte for each: 1 if it is there |
//! | `POST /v0/db/DATABASE/get` | names of chunks | frames with the first of them: one at least |
//! | `POST /v0/db/DATABASE/put` | frames | nothing |
//! | `POST /v0/db/DATABASE/update` | BSON: where the branch goes | nothing |
//! | `POST /v0/db/DATABASE/end` | | nothing: the lease ends |
//! | `POST /v0/backup` | | BSON: `{lease, root, time, databases, absent}` |
//! | `POST /v0/backup/get` | names of chunks | frames |
//! | `POST /v0/backup/end` | | nothing: the lease ends |
//!
//! All carry the header `frond-protocol: 0`, which no web page can send without asking; a request
//! that a page sent (`origin`, `sec-fetch-site`) is refused, and without tokens so is one whose
//! `host` is no loopback name or address. All but those that give one carry a lease in the header
//! `frond-lease`. With tokens each request carries `authorization: Bearer TOKEN`. Errors are
//! answered with a status and BSON: `{kind, message}`.

use frond_vcs::remote::CHUNK_BYTES_MAX;
use hyper::StatusCode;

/// The beginning of the paths.
pub const ROOT: &str = "v0";
/// The header of each request, and its value.
pub const PROTOCOL_HEADER: &str = "frond-protocol";
/// See [`PROTOCOL_HEADER`].
pub const PROTOCOL_VERSION: &str = "0";
/// Names the lease.
pub const LEASE_HEADER: &str = "frond-lease";
/// The content type of BSON.
pub const BSON: &str = "application/bson";
/// The content type of frames and names.
pub const BYTES: &str = "application/octet-stream";
/// A lease that its client has not used for so long ends.
pub const LEASE_SECONDS: u64 = 120;
/// As [`LEASE_SECONDS`], where there is no room for another lease: the client that held it may be
/// gone without a word.
pub const LEASE_CROWDED_SECONDS: u64 = 20;
/// The lease that a request names is not known: take another.
pub const LEASE_GONE: StatusCode = StatusCode::GONE;

/// The greatest number of names in a request.
pub const NAMES_MAX: usize = 4_096;
/// An answer ends when the chunks in it have grown to this; so does a request that puts chunks.
pub const CHUNKS_BYTES_TARGET: usize = 4 << 20;
/// The greatest number of uncompressed bytes of chunks in a message.
pub const CHUNKS_BYTES_MAX: usize = CHUNKS_BYTES_TARGET + CHUNK_BYTES_MAX;
/// The greatest number of bytes of a message with chunks: what can't be compressed has frames
/// around it.
pub const MESSAGE_BYTES_MAX: usize = CHUNKS_BYTES_MAX + (1 << 20);
/// The greatest number of bytes of an update of refs: names of commits, 32 bytes each, and tags.
pub const UPDATE_BYTES_MAX: usize = 16 << 20;
