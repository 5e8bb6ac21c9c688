//! The cluster's time in answers, signed where there are users.
//!
//! Clients carry it from server to server. In MongoDB a server moves its clock to a later time that
//! it is sent, if another member has signed it. This one moves no clock by what clients send, so a
//! forged time does no harm here; but a client that passes it on finds it signed, and a time that
//! was forged in this server's name is refused.
//!
//! 1. Each process has a key of its own, with an id that distinguishes it from others' keys.
//! 2. A signature is HMAC-SHA1 of the time's eight bytes, as drivers carry it: 20 bytes.
//! 3. A time that bears this key's id and another signature is refused. Times that other members or
//!    earlier processes signed can't be checked, and are used for nothing.

use frond_db::Error;
use frond_doc::{Binary, Document, DocumentBuilder, Timestamp, Value};
use frond_query::Code;
use ring::hmac;

use crate::scram::random_bytes;

const KEY_BYTES: usize = 20;
const SIGNATURE_BYTES: usize = 20;
const UNSIGNED: [u8; SIGNATURE_BYTES] = [0; SIGNATURE_BYTES];

/// The key by which a process signs.
pub struct ClusterTimeKey {
    /// The id, above zero, which stands for "unsigned".
    id: i64,
    key: hmac::Key,
}

impl ClusterTimeKey {
    /// A new key.
    ///
    /// # Errors
    /// `InternalError` if the system has no random bytes.
    pub fn new() -> Result<ClusterTimeKey, Error> {
        let id = random_bytes(8)?.iter().fold(0_u64, |id, byte| id << 8 | u64::from(*byte));
        let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, &random_bytes(KEY_BYTES)?);
        Ok(ClusterTimeKey { id: (id >> 2) as i64 + 1, key })
    }

    /// Refuses a `$clusterTime` that was forged in this key's name.
    ///
    /// # Errors
    /// `TimeProofMismatch` (204).
    pub fn check(&self, sent: Document<'_>) -> Result<(), Error> {
        let (Some(Value::Timestamp(time)), Some(Value::Document(signature))) =
            (sent.get("clusterTime"), sent.get("signature"))
        else {
            return Ok(());
        };
        if signature.get("keyId").and_then(|id| id.as_integer()) != Some(self.id) {
            return Ok(());
        }
        let hash = match signature.get("hash") {
            Some(Value::Binary(hash)) => hash.bytes,
            _ => &[],
        };
        hmac::verify(&self.key, &time.0.to_be_bytes(), hash).map_err(|_| {
            Error::invalid(Code::TimeProofMismatch, "Proof does not match the cluster time")
        })
    }
}

/// Appends what time it is in the cluster, by which drivers ask for nothing older.
pub fn append(answer: &mut DocumentBuilder, time: Timestamp, key: Option<&ClusterTimeKey>) {
    let tag = key.map(|key| hmac::sign(&key.key, &time.0.to_be_bytes()));
    let hash = tag.as_ref().map_or(&UNSIGNED[..], |tag| tag.as_ref());
    debug_assert!(hash.len() == SIGNATURE_BYTES, "drivers and tools know 20 bytes");
    answer
        .begin_document("$clusterTime")
        .append("clusterTime", Value::Timestamp(time))
        .begin_document("signature")
        .append("hash", Value::Binary(Binary { subtype: 0, bytes: hash }))
        .append("keyId", Value::Int64(key.map_or(0, |key| key.id)))
        .end()
        .end()
        .append("operationTime", Value::Timestamp(time));
}
