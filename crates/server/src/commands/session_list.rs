//! `$listSessions` and `$listLocalSessions`: the sessions that clients have.
//!
//! There is one server, so its sessions are all there are. There are no users: every session belongs to
//! nobody, whose id is the digest of an empty name, and asking for certain users finds none.

use std::time::Instant;

use frond_db::Error;
use frond_doc::{Binary, DocumentBuf, DocumentBuilder, Value};
use frond_query::Code;

use crate::commands::sources::document_of;
use crate::common::UUID_SUBTYPE;
use crate::fields::Fields;
use crate::request::Request;

/// SHA-256 of no bytes: the user id of sessions without a user.
const NOBODY: [u8; 32] = [
    0xe3, 0xb0, 0xc4, 0x42, 0x98, 0xfc, 0x1c, 0x14, 0x9a, 0xfb, 0xf4, 0xc8, 0x99, 0x6f, 0xb9, 0x24,
    0x27, 0xae, 0x41, 0xe4, 0x64, 0x9b, 0x93, 0x4c, 0xa4, 0x95, 0x99, 0x1b, 0x78, 0x52, 0xb8, 0x55,
];

/// `$listLocalSessions`
pub fn local(
    request: &Request<'_>,
    collection: Option<&str>,
    options: Value<'_>,
) -> Result<Vec<DocumentBuf>, Error> {
    if collection.is_some() {
        let message = "$listLocalSessions must be run against the database with {aggregate: 1}, not \
                       a collection";
        return Err(Error::invalid(Code::InvalidNamespace, message));
    }
    list(request, "$listLocalSessions", options)
}

/// `$listSessions`
pub fn all(
    request: &Request<'_>,
    collection: Option<&str>,
    options: Value<'_>,
) -> Result<Vec<DocumentBuf>, Error> {
    if (request.database_name, collection) != ("config", Some("system.sessions")) {
        let message = "$listSessions may only be run against config.system.sessions";
        return Err(Error::invalid(Code::InvalidNamespace, message));
    }
    list(request, "$listSessions", options)
}

fn list(request: &Request<'_>, stage: &str, options: Value<'_>) -> Result<Vec<DocumentBuf>, Error> {
    let mut fields = Fields::of_part(stage, document_of(stage, options)?)?;
    let all = fields.boolean("allUsers")?;
    let users = fields.array("users")?;
    fields.finish()?;
    if let (true, Some(_)) = (all, &users) {
        let message =
            format!("{stage} may not specify {{allUsers:true}} and {{users:[...]}} together");
        return Err(Error::invalid(Code::UnsupportedFormat, message));
    }
    if users.is_some_and(|users| !users.is_empty()) {
        return Ok(Vec::new());
    }
    let (now, now_millis) = (Instant::now(), request.server.frond.now_millis());
    let told = |(id, used): (crate::common::SessionId, Instant)| {
        let idle = now.saturating_duration_since(used).as_millis();
        let used = now_millis.saturating_sub(i64::try_from(idle).unwrap_or(i64::MAX));
        let mut session = DocumentBuilder::new();
        session
            .begin_document("_id")
            .append("id", Value::Binary(Binary { subtype: UUID_SUBTYPE, bytes: &id.0 }))
            .append("uid", Value::Binary(Binary { subtype: 0, bytes: &NOBODY }))
            .end()
            .append("lastUse", Value::DateTime(used));
        session.build()
    };
    Ok(request.server.sessions.list().into_iter().map(told).collect())
}
