//! Sessions: startSession, endSessions, killSessions, killAllSessions, refreshSessions.
//!
//! A client makes its sessions' ids itself; the server learns of a session by the commands in it.
//! Cursors and a transaction that live in a session end with it.

use std::collections::HashSet;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

use frond_db::Error;
use frond_doc::{Binary, DocumentBuilder, Value};
use frond_query::Code;

use crate::access::{Action, Target, UserName};
use crate::common_fields::{SessionId, UUID_SUBTYPE, UserDigest, read_session};
use crate::limits::SESSION_TIMEOUT_MINUTES;
use crate::peer::Rights;
use crate::request::{Answer, Request};
use crate::transactions;

/// Makes a session's id for clients that don't.
pub fn start(request: &Request<'_>) -> Answer {
    request.no_fields()?;
    let id = random_uuid();
    let mut answer = DocumentBuilder::new();
    answer
        .begin_document("id")
        .append("id", Value::Binary(Binary { subtype: UUID_SUBTYPE, bytes: &id }))
        .end()
        .append("timeoutMinutes", Value::Int32(SESSION_TIMEOUT_MINUTES));
    Ok(answer)
}

/// Sixteen random bytes, marked as a random UUID (RFC 9562, version 4).
fn random_uuid() -> [u8; 16] {
    // The keys of a hash map are the one source of random bytes that the standard library has.
    let keys = RandomState::new();
    let mut id = [0; 16];
    id[..8].copy_from_slice(&keys.hash_one(0_u64).to_le_bytes());
    id[8..].copy_from_slice(&keys.hash_one(1_u64).to_le_bytes());
    id[6] = id[6] & 0x0f | 0x40;
    id[8] = id[8] & 0x3f | 0x80;
    id
}

/// Ends sessions: their cursors are closed, their transactions aborted.
pub fn end(request: &Request<'_>) -> Answer {
    let sessions = read_sessions(request)?;
    end_all(request, Some(&sessions));
    Ok(DocumentBuilder::new())
}

fn end_all(request: &Request<'_>, sessions: Option<&[SessionId]>) {
    let server = request.server;
    for slot in server.sessions.open_in(sessions) {
        transactions::abort_slot(server, &slot);
    }
    server.cursors.kill_sessions(sessions);
}

/// Kills sessions of one's own, or of others for a client that may; an empty list means all of
/// one's own.
pub fn kill(request: &Request<'_>) -> Answer {
    let mut sessions = read_sessions(request)?;
    if sessions.is_empty() {
        match &request.rights {
            None => end_all(request, None),
            Some(rights) => end_users(request, &[rights.login.digest]),
        }
        return Ok(DocumentBuilder::new());
    }
    if let Some(rights) = &request.rights {
        let kills_any = rights.grants.allow(Action::KillAnySession, Target::Cluster);
        if kills_any {
            // An id without a user is meant whosever it is.
            let known = request.server.sessions.list().into_iter().map(|(session, _)| session);
            let named: HashSet<[u8; 16]> = sessions.iter().map(|session| session.id).collect();
            sessions.extend(known.filter(|session| named.contains(&session.id)));
        }
    }
    end_all(request, Some(&sessions));
    Ok(DocumentBuilder::new())
}

/// Kills all sessions, or those of the users that are named.
pub fn kill_all(request: &Request<'_>) -> Answer {
    let mut fields = request.fields()?;
    let users = fields.array("killAllSessions")?;
    fields.finish()?;
    let named = users.iter().flat_map(|users| users.iter());
    let named = named.map(|user| UserName::read(user, request.database_name));
    let named = named.collect::<Result<Vec<UserName>, Error>>()?;
    if named.is_empty() {
        end_all(request, None);
    } else {
        let digests: Vec<UserDigest> =
            named.iter().map(|user| UserDigest::of(&user.to_string())).collect();
        end_users(request, &digests);
    }
    Ok(DocumentBuilder::new())
}

/// Ends the sessions of users.
fn end_users(request: &Request<'_>, users: &[UserDigest]) {
    let known = request.server.sessions.list().into_iter().map(|(session, _)| session);
    let sessions: Vec<SessionId> = known.filter(|session| users.contains(&session.user)).collect();
    end_all(request, Some(&sessions));
}

/// Keeps sessions alive.
pub fn refresh(request: &Request<'_>) -> Answer {
    for session in read_sessions(request)? {
        request.server.sessions.touch(session, request.operation.started())?;
    }
    Ok(DocumentBuilder::new())
}

/// A session that a client names: its own, unless it says whose and may.
fn own(request: &Request<'_>, session: SessionId) -> Result<SessionId, Error> {
    let user = request.peer.digest();
    if session.user == user || session.user == UserDigest::ANONYMOUS {
        return Ok(SessionId { user, ..session });
    }
    let may = |rights: &Rights| rights.grants.allow(Action::KillAnySession, Target::Cluster);
    if request.rights.as_ref().is_none_or(|rights| may(rights)) {
        return Ok(session);
    }
    let message = "Unauthorized to set user digest in LogicalSessionId";
    Err(Error::invalid(Code::Unauthorized, message))
}

fn read_sessions(request: &Request<'_>) -> Result<Vec<SessionId>, Error> {
    let mut fields = request.fields()?;
    let array = fields.array(request.sent_name)?;
    let array = array.ok_or_else(|| fields.missing(request.sent_name))?;
    fields.finish()?;
    const SESSIONS_MAX: usize = 10_000;
    let sessions: Vec<SessionId> = array
        .iter()
        .take(SESSIONS_MAX + 1)
        .map(|named| own(request, read_session(named)?))
        .collect::<Result<_, Error>>()?;
    if sessions.len() > SESSIONS_MAX {
        let message = format!("at most {SESSIONS_MAX} sessions can be named at once");
        return Err(Error::invalid(Code::BadValue, message));
    }
    Ok(sessions)
}
