//! Sessions: startSession, endSessions, killSessions, killAllSessions, refreshSessions.
//!
//! A client makes its sessions' ids itself; the server learns of a session by the commands in it. What
//! lives in one, cursors and a transaction, ends with it.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

use frond_db::Error;
use frond_doc::{Binary, DocumentBuilder, Value};
use frond_query::Code;

use crate::common::{SessionId, UUID_SUBTYPE, read_session};
use crate::limits::SESSION_TIMEOUT_MINUTES;
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

/// Kills sessions; an empty list means all.
pub fn kill(request: &Request<'_>) -> Answer {
    let sessions = read_sessions(request)?;
    let chosen = (!sessions.is_empty()).then_some(&sessions[..]);
    end_all(request, chosen);
    Ok(DocumentBuilder::new())
}

/// Kills all sessions, or those of the users that are named: there are no users, so nobody has any.
pub fn kill_all(request: &Request<'_>) -> Answer {
    let mut fields = request.fields()?;
    let users = fields.array("killAllSessions")?;
    fields.finish()?;
    if users.is_none_or(|users| users.iter().next().is_none()) {
        end_all(request, None);
    }
    Ok(DocumentBuilder::new())
}

/// Keeps sessions alive.
pub fn refresh(request: &Request<'_>) -> Answer {
    for session in read_sessions(request)? {
        request.server.sessions.touch(session, request.operation.started())?;
    }
    Ok(DocumentBuilder::new())
}

fn read_sessions(request: &Request<'_>) -> Result<Vec<SessionId>, Error> {
    let mut fields = request.fields()?;
    let array = fields.array(request.sent_name)?;
    let array = array.ok_or_else(|| fields.missing(request.sent_name))?;
    fields.finish()?;
    const SESSIONS_MAX: usize = 10_000;
    let sessions: Vec<SessionId> =
        array.iter().take(SESSIONS_MAX + 1).map(read_session).collect::<Result<_, Error>>()?;
    if sessions.len() > SESSIONS_MAX {
        let message = format!("at most {SESSIONS_MAX} sessions can be named at once");
        return Err(Error::invalid(Code::BadValue, message));
    }
    Ok(sessions)
}
