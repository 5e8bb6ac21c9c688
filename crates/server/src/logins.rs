//! Reports how logins end: counts them, and writes them to the log and the audit log, all in one
//! place, whatever the mechanism.

use std::time::Duration;

use frond_db::Error;

use crate::access::UserName;
use crate::audit;
use crate::log::LoginLine;
use crate::peer::{Conversation, Peer};
use crate::shared::Shared;

/// A login that has ended.
pub struct EndedLogin<'a> {
    /// The user, as far as the client named one.
    pub user: Option<&'a UserName>,
    /// The mechanism, as the client called it.
    pub mechanism: &'a str,
    /// Whether it began within a `hello`.
    pub is_speculative: bool,
    /// The time that it took.
    pub time: Duration,
}

impl<'a> EndedLogin<'a> {
    /// Describes the end of a login of several messages.
    pub fn of(conversation: &'a Conversation) -> EndedLogin<'a> {
        EndedLogin {
            user: Some(&conversation.user),
            mechanism: conversation.mechanism,
            is_speculative: conversation.is_speculative,
            time: conversation.begun.elapsed(),
        }
    }

    /// Reports that it went well.
    pub fn report_success(&self, server: &Shared, peer: &Peer) {
        server.usage.logins().count_successful(self.mechanism, self.is_speculative);
        server.log.write_login(peer, &self.line(None));
        audit::login(server, peer, (self.user, self.mechanism), None);
    }

    /// Reports that it failed: `error` to the client, `reason` to the operator.
    pub fn report_failure(&self, server: &Shared, peer: &Peer, error: &Error, reason: &Error) {
        server.log.write_login(peer, &self.line(Some(reason)));
        audit::login(server, peer, (self.user, self.mechanism), Some(error));
    }

    fn line(&self, failure: Option<&'a Error>) -> LoginLine<'a> {
        LoginLine {
            user: self.user,
            mechanism: self.mechanism,
            is_speculative: self.is_speculative,
            time: self.time,
            failure,
        }
    }
}
