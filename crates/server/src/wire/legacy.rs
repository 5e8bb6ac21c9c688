//! OP_QUERY and OP_REPLY: how drivers say their first hello to a server that they don't know.
//!
//! ```text
//! OP_QUERY: 4 flags, namespace ended by zero, 4 skip, 4 count, query, perhaps a projection
//! OP_REPLY: 4 flags, 8 cursor id, 4 starting from, 4 count, documents
//! ```

use bytes::Bytes;
use frond_doc::{Document, DocumentBuf};

use crate::wire::error::WireError;
use crate::wire::header::{self, HEADER_BYTES, OperationCode};
use crate::wire::reader::Reader;

/// The reply flag "the server understands the await flag", which MongoDB always sets.
const AWAIT_CAPABLE: i32 = 8;

/// An OP_QUERY, decoded.
#[derive(Clone, PartialEq, Debug)]
pub struct LegacyQuery {
    /// `database.collection`; a command's collection is `$cmd`.
    pub namespace: String,
    /// The query: a command, where the collection is `$cmd`.
    pub query: DocumentBuf,
}

/// An OP_REPLY, decoded.
#[derive(Clone, PartialEq, Debug)]
pub struct LegacyReply {
    /// The documents of the answer.
    pub documents: Vec<DocumentBuf>,
}

impl LegacyQuery {
    /// Reads a whole message, its header included (which was decoded before).
    ///
    /// # Errors
    /// `WireError` names the field that isn't there or isn't what it must be.
    pub fn decode(mut message: Bytes) -> Result<LegacyQuery, WireError> {
        let mut reader = skip_header(&mut message)?;
        reader.i32("the query's flags")?;
        let namespace = reader.name("the query's namespace")?;
        reader.i32("the query's skip")?;
        reader.i32("the query's count")?;
        let query = reader.document("the query")?;
        if !reader.is_empty() {
            reader.document("the query's projection")?;
        }
        Ok(LegacyQuery { namespace, query })
    }

    /// Writes the message, header included.
    pub fn encode(&self, request_id: i32) -> Vec<u8> {
        let mut out = header::begin(request_id, 0, OperationCode::Query);
        out.extend_from_slice(&0_i32.to_le_bytes());
        out.extend_from_slice(self.namespace.as_bytes());
        out.push(0);
        out.extend_from_slice(&0_i32.to_le_bytes());
        out.extend_from_slice(&(-1_i32).to_le_bytes());
        out.extend_from_slice(self.query.as_bytes());
        header::finish(out)
    }

    /// The database, if this is a command.
    pub fn command_database(&self) -> Option<&str> {
        self.namespace.strip_suffix(".$cmd")
    }

    /// The command, which some drivers wrap as `{$query: {...}, $readPreference: {...}}`.
    pub fn command(&self) -> Document<'_> {
        let wrapped = self.query.iter().next().filter(|(name, _)| *name == "$query");
        wrapped.and_then(|(_, value)| value.as_document()).unwrap_or(self.query.view())
    }
}

impl LegacyReply {
    /// Reads a whole message, its header included (which was decoded before).
    ///
    /// # Errors
    /// `WireError` names the field that isn't there or isn't what it must be.
    pub fn decode(mut message: Bytes) -> Result<LegacyReply, WireError> {
        let mut reader = skip_header(&mut message)?;
        reader.i32("the reply's flags")?;
        reader.i64("the reply's cursor")?;
        reader.i32("the reply's start")?;
        reader.i32("the reply's count")?;
        let mut documents = Vec::new();
        while !reader.is_empty() {
            documents.push(reader.document("a document of the reply")?);
        }
        Ok(LegacyReply { documents })
    }

    /// Writes an answer of one document, header included.
    pub fn encode_one(document: Document<'_>, request_id: i32, response_to: i32) -> Vec<u8> {
        let mut out = header::begin(request_id, response_to, OperationCode::Reply);
        out.extend_from_slice(&AWAIT_CAPABLE.to_le_bytes());
        out.extend_from_slice(&0_i64.to_le_bytes());
        out.extend_from_slice(&0_i32.to_le_bytes());
        out.extend_from_slice(&1_i32.to_le_bytes());
        out.extend_from_slice(document.as_bytes());
        header::finish(out)
    }
}

fn skip_header(message: &mut Bytes) -> Result<Reader, WireError> {
    if message.len() < HEADER_BYTES {
        return Err(WireError::Truncated { end: message.len(), field: "the header" });
    }
    Ok(Reader::new(message.split_off(HEADER_BYTES), HEADER_BYTES))
}

#[cfg(test)]
mod tests {
    use frond_doc::document;

    use super::*;

    #[test]
    fn a_query_survives_and_every_truncation_is_an_error() {
        let query = LegacyQuery {
            namespace: "admin.$cmd".to_owned(),
            query: document! { "isMaster": 1_i32, "helloOk": true },
        };
        let bytes = query.encode(4);
        assert_eq!(LegacyQuery::decode(Bytes::from(bytes.clone())), Ok(query.clone()));
        assert_eq!(query.command_database(), Some("admin"));
        for end in 0..bytes.len() {
            let cut = Bytes::copy_from_slice(&bytes[..end]);
            assert!(matches!(LegacyQuery::decode(cut), Err(WireError::Truncated { .. })), "{end}");
        }
    }

    #[test]
    fn a_wrapped_command_is_found() {
        let command = document! { "ping": 1_i32 };
        let namespace = "shop.things".to_owned();
        let query = LegacyQuery { namespace, query: document! { "$query": &command } };
        assert_eq!(query.command(), command.view());
        assert_eq!(query.command_database(), None);
    }

    #[test]
    fn a_reply_survives() {
        let document = document! { "ok": 1.0 };
        let bytes = LegacyReply::encode_one(document.view(), 1, 2);
        let reply = LegacyReply::decode(Bytes::from(bytes));
        assert_eq!(reply, Ok(LegacyReply { documents: vec![document] }));
    }
}
