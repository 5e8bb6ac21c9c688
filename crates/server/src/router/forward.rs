//! Forwards a message to a line's leader, and returns the answer.
//!
//! 1. It waits for a leader, and for a connection. An attempt that fails until then has done
//!    nothing, so it is repeated until [`LEADER_WAIT_MAX`] is over.
//! 2. A member that says that it doesn't lead has done nothing either: the next leader is found and
//!    asked. Within a transaction that answer is the client's, since its statements are lost.
//! 3. A connection that ends before the answer came, or a leader that is deposed while it works,
//!    leaves it unknown whether the message was acted on. The driver gets this as an error, with
//!    the label by which it sends again what the line knows by its number: the router itself never
//!    sends twice.

use std::sync::Arc;
use std::time::Duration;

use frond_db::Error;
use frond_doc::Document;
use frond_query::Code;
use tokio::time::{Instant, sleep};

use super::frames::{answer_body, wants_no_answer};
use super::line::Line;
use super::login::Identity;
use super::routed_request::{LEADER_WAIT_MAX, RoutedRequest};
use super::shared::Shared;
use super::upstream::is_ok;

const PAUSE: Duration = Duration::from_millis(20);

/// An error that the router answers with, and its labels.
pub(super) struct Refusal {
    pub error: Error,
    pub labels: &'static [&'static str],
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        Refusal { error, labels: &[] }
    }
}

/// Returns the refusal that a line can't be reached, or has left a request without an answer.
fn unreachable(line: &Line, why: &str, labels: &'static [&'static str]) -> Refusal {
    let message = format!("the line {}: {why}", line.name);
    Refusal { error: Error::invalid(Code::HostUnreachable, message), labels }
}

/// Sends a message to a line's leader and returns the answer; `None` if the sender wants none.
///
/// # Errors
/// `HostUnreachable` if there is no leader, or none that answers.
pub(super) async fn forward(
    shared: &Shared,
    line: &Arc<Line>,
    identity: Option<&Identity>,
    message: &[u8],
    ask: &RoutedRequest<'_>,
) -> Result<Option<Vec<u8>>, Refusal> {
    forward_within(shared, line, identity, message, ask, LEADER_WAIT_MAX).await
}

/// As [`forward`], where it may take so long to find a leader.
///
/// # Errors
/// As [`forward`].
pub(super) async fn forward_within(
    shared: &Shared,
    line: &Arc<Line>,
    identity: Option<&Identity>,
    message: &[u8],
    ask: &RoutedRequest<'_>,
    wait: Duration,
) -> Result<Option<Vec<u8>>, Refusal> {
    let end = Instant::now() + wait;
    let labels = ask.labels_when_lost();
    loop {
        let leader = line.leader(end).await;
        let leader = leader.ok_or_else(|| unreachable(line, "nobody leads it", labels))?;
        let taken = shared.pool.take(line, &leader, identity, shared.key.as_ref()).await;
        let mut upstream = match taken {
            Ok(upstream) => upstream,
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                let error = Error::invalid(Code::AuthenticationFailed, error.to_string());
                return Err(error.into());
            }
            Err(error) => {
                line.doubt(&leader);
                if Instant::now() >= end {
                    return Err(unreachable(line, &error.to_string(), labels));
                }
                sleep(PAUSE).await;
                continue;
            }
        };
        if wants_no_answer(message) {
            // No client waits to hear what goes wrong.
            if upstream.send(message).await.is_ok() {
                shared.pool.put(&leader, identity, upstream);
            }
            return Ok(None);
        }
        let answer = tokio::select! {
            answer = upstream.exchange(message) => answer.map_err(|error| error.to_string()),
            () = line.deposed(&leader) => Err("another member leads it now".to_owned()),
        };
        let answer = match answer {
            Ok(answer) => answer,
            Err(why) => {
                line.doubt(&leader);
                let why = format!("{why} before it answered: it may have done what was asked");
                return Err(unreachable(line, &why, labels));
            }
        };
        shared.pool.put(&leader, identity, upstream);
        if answer_body(&answer).is_ok_and(did_not_lead) {
            line.doubt(&leader);
            if !ask.in_transaction() && Instant::now() < end {
                sleep(PAUSE).await;
                continue;
            }
        }
        return Ok(Some(answer));
    }
}

/// Whether a member answers that it does nothing, since it doesn't lead.
fn did_not_lead(answer: Document<'_>) -> bool {
    let code = answer.get("code").and_then(|code| code.as_integer());
    let code = code.and_then(|code| i32::try_from(code).ok()).map(Code::of);
    !is_ok(answer) && matches!(code, Some(Code::NotWritablePrimary | Code::NotPrimaryNoSecondaryOk))
}
