//! Logins: a client logs in at the default line; at other lines the router vouches for the user
//! with its key.
//!
//! The router never learns a password and decides nothing by itself. The server of each line
//! decides what a user may do: there the connection is that user's, with the roles that the user
//! has there. That it is the user is what the router's key proves: the mechanism is SCRAM-SHA-256
//! of the user's name with the key in the password's place ([`MECHANISM`]), so server and router
//! prove to one another that they know it, and it never travels.

use std::io;

use frond_doc::{Binary, Document, DocumentBuf, Value, document};

use super::upstream::{Upstream, is_ok};
use crate::client::payload;
use crate::replica::key::ClusterKey;
use crate::scram::{Login, Mechanism};

/// The mechanism by which a router logs in for a user.
pub const MECHANISM: &str = crate::scram::OF_ROUTERS;

/// A user who has logged in.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Identity {
    /// The database that the user belongs to.
    pub database: String,
    /// The user's name.
    pub user: String,
}

impl Identity {
    /// The user of `DATABASE.NAME`.
    pub fn parse(text: &str) -> Option<Identity> {
        let (database, user) = text.split_once('.')?;
        (!database.is_empty() && !user.is_empty())
            .then(|| Identity { database: database.to_owned(), user: user.to_owned() })
    }
}

/// Returns the user who has logged in, according to a `connectionStatus`.
pub(super) fn identity_of(status: Document<'_>) -> Option<Identity> {
    let users = status.get("authInfo")?.as_document()?.get("authenticatedUsers")?.as_array()?;
    let user = users.iter().next()?.as_document()?;
    Some(Identity {
        database: user.get("db")?.as_str()?.to_owned(),
        user: user.get("user")?.as_str()?.to_owned(),
    })
}

/// Logs a connection in as a user, by the router's key.
///
/// # Errors
/// `PermissionDenied` if the server refuses, or can't prove that it knows the key; what the socket
/// says.
pub(super) async fn act_as(
    upstream: &mut Upstream,
    identity: &Identity,
    key: &ClusterKey,
) -> io::Result<()> {
    let denied = |why: String| io::Error::new(io::ErrorKind::PermissionDenied, why);
    let secret = key.text();
    let (login, first) = Login::begin(Mechanism::Sha256, &identity.user, &secret)
        .map_err(|error| denied(error.message))?;
    let options = document! { "skipEmptyExchange": true };
    let first = Value::Binary(Binary { subtype: 0, bytes: first.as_bytes() });
    let start = document! {
        "saslStart": 1_i32, "mechanism": MECHANISM, "payload": first, "options": &options,
    };
    let answer = upstream.command(&identity.database, start.view()).await?;
    check(&answer, identity)?;
    let number = answer.get("conversationId").and_then(|id| id.as_integer()).unwrap_or(0);
    let challenge = payload(&answer).to_vec();
    // It takes milliseconds of a processor.
    let proof = tokio::task::spawn_blocking(move || login.prove(&challenge)).await;
    let proof = proof.map_err(io::Error::other)?;
    let proof = proof.map_err(|_| denied("its login is no SCRAM".to_owned()))?;
    let message = Value::Binary(Binary { subtype: 0, bytes: proof.message.as_bytes() });
    let go_on = document! {
        "saslContinue": 1_i32, "conversationId": number, "payload": message,
    };
    let answer = upstream.command(&identity.database, go_on.view()).await?;
    check(&answer, identity)?;
    match payload(&answer) == proof.expected.as_bytes() {
        true => Ok(()),
        false => Err(denied("the server doesn't know the router's key".to_owned())),
    }
}

fn check(answer: &DocumentBuf, identity: &Identity) -> io::Result<()> {
    if is_ok(answer.view()) {
        return Ok(());
    }
    let why = answer.get("errmsg").and_then(|message| message.as_str()).unwrap_or_default();
    let Identity { database, user } = identity;
    let message = format!(
        "the router can't act for {user}@{database} there ({why}): is there such a user, and is it \
         started with --router-key?"
    );
    Err(io::Error::new(io::ErrorKind::PermissionDenied, message))
}
