//! Taking messages out of compressed ones.
//!
//! 1. What `hello` of this server offers may be used by any message; in no other way, and not by
//!    those commands that drivers never compress: their sizes would tell of what is secret in them.
//! 2. The memory for what comes out is taken from the [`MessageMemory`] before anything comes out,
//!    by the length that is announced; the compressed message is let go of as soon as it is
//!    inflated.
//!
//! [`MessageMemory`]: crate::message_memory::MessageMemory

use std::io;

use bytes::Bytes;

use crate::connection::incoming::Received;
use crate::limits::FREE_BYTES;
use crate::message_memory::MessageReservation;
use crate::shared::Shared;
use crate::wire::{Compressed, Compressor, Header, Message, WireError};

/// Commands that never come compressed.
const NEVER_COMPRESSED: &[&str] = &[
    "authenticate",
    "createUser",
    "getnonce",
    "hello",
    "isMaster",
    "ismaster",
    "saslContinue",
    "saslStart",
    "updateUser",
];

/// A message that came compressed.
pub struct Inflated {
    /// What was inside.
    pub received: Received,
    /// How the client compresses, and its answer is to be compressed.
    pub compressor: Compressor,
}

/// Takes out what is inside of a message; `check` is asked now and then whether to go on waiting
/// for memory.
///
/// # Errors
/// What `check` says. The inner error is for the client.
pub fn inflate(
    shared: &Shared,
    received: Received,
    check: impl Fn() -> io::Result<()>,
) -> io::Result<Result<Inflated, WireError>> {
    let Received { header, message, hold } = received;
    let inside = match decode(shared, header, &message) {
        Ok(inside) => inside,
        Err(error) => return Ok(Err(error)),
    };
    let bytes = header.bytes + inside.header.bytes;
    let hold = match hold {
        None if bytes <= FREE_BYTES => None,
        None => Some(shared.messages.take(bytes, check)?),
        Some(mut hold) => {
            hold.grow(&shared.messages, bytes, check)?;
            Some(hold)
        }
    };
    let inflated = inside.inflate(&message).and_then(|message| take(inside, message, hold));
    Ok(inflated)
}

/// What a message says of the one inside, if that may come so.
fn decode(shared: &Shared, header: Header, message: &[u8]) -> Result<Compressed, WireError> {
    let inside = Compressed::decode(header, message)?;
    match shared.compressors.contains(&inside.compressor) {
        true => Ok(inside),
        false => Err(WireError::NotNegotiated(inside.compressor.name())),
    }
}

fn take(
    inside: Compressed,
    message: Bytes,
    hold: Option<MessageReservation>,
) -> Result<Inflated, WireError> {
    if let Some(name) = Message::peek_command(&message)
        && NEVER_COMPRESSED.contains(&name)
    {
        return Err(WireError::NeverCompressed(name.to_owned()));
    }
    let received = Received { header: inside.header, message, hold };
    Ok(Inflated { received, compressor: inside.compressor })
}
