//! MongoDB's wire protocol as pure functions over bytes: used by the server and by the client.
//!
//! A message is a header ([`header`]) and a body that its operation code names: OP_MSG
//! ([`message`]) for everything, OP_QUERY and OP_REPLY ([`legacy`]) for a driver's first hello
//! only. OP_COMPRESSED ([`compression`]) has an OP_MSG inside.
//!
//! *Invariants*
//! 1. No function here reads past the bytes that it was given, trusts a length in them, or takes
//!    more memory than a small multiple of them.
//! 2. Every document that a function returns was validated.

pub mod compression;
pub mod crc32c;
pub mod error;
pub mod header;
pub mod legacy;
pub mod message;
mod reader;

pub use compression::{COMPRESSED_HEADER_BYTES, Compressed, Compressor};
pub use error::WireError;
pub use header::{HEADER_BYTES, Header, MESSAGE_BYTES_MAX, OperationCode};
pub use legacy::{LegacyQuery, LegacyReply};
pub use message::{DocumentSequence, Flags, Message};
