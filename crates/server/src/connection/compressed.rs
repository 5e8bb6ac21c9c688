//! Taking messages out of compressed ones.
//!
//! 1. Compressors that `hello` of this server offers may be used by any message; no others, and not
//!    by commands with secrets, which drivers never compress: their sizes would give hints at
//!    these. `hello` may: where an application asks for it by itself, Java's driver compresses it.
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
const NEVER_COMPRESSED: &[&str] =
    &["authenticate", "createUser", "getnonce", "saslContinue", "saslStart", "updateUser"];

/// A message that came compressed.
pub struct Inflated {
    /// The message inside.
    pub received: Received,
    /// The compressor of the client, and of its answer.
    pub compressor: Compressor,
}

/// The reason why nothing was taken out of a message.
pub enum InflateError {
    /// The client gets the error.
    Refused(WireError),
    /// The connection ends.
    Ended(io::Error),
}

impl From<WireError> for InflateError {
    fn from(error: WireError) -> InflateError {
        InflateError::Refused(error)
    }
}

impl From<io::Error> for InflateError {
    fn from(error: io::Error) -> InflateError {
        InflateError::Ended(error)
    }
}

/// Takes out what is inside of a message; `check` is asked now and then whether to go on waiting
/// for memory.
///
/// # Errors
/// The error of `check`; the client's error for a message that can't be taken.
pub fn inflate(
    shared: &Shared,
    received: Received,
    check: impl Fn() -> io::Result<()>,
) -> Result<Inflated, InflateError> {
    let Received { header, message, hold } = received;
    let inside = decode(shared, header, &message)?;
    let bytes = header.bytes + inside.header.bytes;
    let hold = match hold {
        None if bytes <= FREE_BYTES => None,
        None => Some(shared.messages.take(bytes, check)?),
        Some(mut hold) => {
            hold.grow(&shared.messages, bytes, check)?;
            Some(hold)
        }
    };
    let message = inside.inflate(&message)?;
    Ok(take(inside, message, hold)?)
}

/// Decodes a message's header of the one inside, if the compressor was negotiated.
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
