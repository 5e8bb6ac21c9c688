//! `$listSessions` and `$listLocalSessions`: the sessions that clients have.
//!
//! There is one server, so its sessions are all there are. A session belongs to the user of the
//! connection that it was first used on; a client that hasn't logged in has the digest of an empty
//! name.

use std::time::Instant;

use frond_db::Error;
use frond_doc::{Binary, DocumentBuf, DocumentBuilder, Value};
use frond_query::Code;

use crate::access::UserName;
use crate::commands::sources::document_of;
use crate::common_fields::{SessionId, UUID_SUBTYPE, UserDigest};
use crate::fields::Fields;
use crate::request::Request;

/// `$listLocalSessions`
///
/// # Errors
/// `InvalidNamespace` (73) on a collection; what an option can't be.
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
///
/// # Errors
/// `InvalidNamespace` (73) on any other collection; what an option can't be.
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
    let named = users.iter().flat_map(|users| users.iter());
    let named = named.map(|user| UserName::read(user, request.database_name));
    let named = named.collect::<Result<Vec<UserName>, Error>>()?;
    let mut wanted: Option<Vec<UserDigest>> = None;
    if !named.is_empty() {
        wanted = Some(named.iter().map(|user| UserDigest::of(&user.to_string())).collect());
    } else if let (Some(rights), false) = (&request.rights, all) {
        wanted = Some(vec![rights.login.digest]);
    }
    let (now, now_millis) = (Instant::now(), request.server.frond.now_millis());
    let describe = |(session_id, used): (SessionId, Instant)| {
        let idle = now.saturating_duration_since(used).as_millis();
        let used = now_millis.saturating_sub(i64::try_from(idle).unwrap_or(i64::MAX));
        let mut session = DocumentBuilder::new();
        session
            .begin_document("_id")
            .append("id", Value::Binary(Binary { subtype: UUID_SUBTYPE, bytes: &session_id.id }))
            .append("uid", Value::Binary(Binary { subtype: 0, bytes: &session_id.user.0 }))
            .end()
            .append("lastUse", Value::DateTime(used));
        session.build()
    };
    let is_wanted = |(session, _): &(SessionId, Instant)| {
        wanted.as_ref().is_none_or(|users| users.contains(&session.user))
    };
    Ok(request.server.sessions.list().into_iter().filter(is_wanted).map(describe).collect())
}
