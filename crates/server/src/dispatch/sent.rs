//! A command as it was sent: which one it is, whether it is well formed, and whether it may run.

use std::sync::Arc;

use frond_db::{DatabaseName, Error};
use frond_doc::{Document, DocumentBuf, Value};

use super::checks::{
    check_allowed, check_sequences, check_size, command_not_found, command_of, database_of,
};
use super::failure::{Failure, labels};
use crate::audit::{self, Watched};
use crate::authorization;
use crate::commands::Command;
use crate::common_fields::{Common, Part};
use crate::concerns;
use crate::fields::refuse_duplicates;
use crate::member::gate;
use crate::peer::{Peer, Rights};
use crate::shared::Shared;
use crate::tables;
use crate::wire::DocumentSequence;

/// A command as it was sent.
#[derive(Clone, Copy)]
pub(super) struct ReceivedCommand<'a> {
    pub command: &'static Command,
    /// The name by which the client called it: perhaps an alias.
    pub name: &'a str,
    pub database: &'a str,
    pub body: Document<'a>,
    sequences: &'a [DocumentSequence],
}

/// A command that may run.
pub(super) struct Admitted<'a> {
    /// Its session, concerns and so on.
    pub common: Common,
    /// The rights of the client; `None` where the server doesn't check them.
    pub rights: Option<Arc<Rights>>,
    /// The command as the audit log watches it.
    pub watched: Option<Watched<'a>>,
}

impl<'a> Admitted<'a> {
    /// Finds the command and lets it in, unless something is wrong with it, the client may not run
    /// it, or the server takes no more; what `was_let_in` before is let in again.
    ///
    /// # Errors
    /// All of that.
    pub fn read(
        server: &'a Shared,
        peer: &'a Peer,
        sent: ReceivedCommand<'a>,
        was_let_in: bool,
    ) -> Result<Admitted<'a>, Failure> {
        if !was_let_in {
            server.drain.check().map_err(|error| sent.failure(sent.part(), error))?;
        }
        let common = sent.check(server, peer)?;
        if !was_let_in {
            let gate = gate::check(server, sent.command, sent.body, &common);
            gate.map_err(|error| sent.failure(common.part, error))?;
        }
        let (rights, watched) = sent.authorized(server, peer)?;
        Ok(Admitted { common, rights, watched })
    }
}

impl<'a> ReceivedCommand<'a> {
    /// Finds the command that a document asks for. `database` is given where it doesn't stand in
    /// it.
    ///
    /// # Errors
    /// `CommandNotFound` (59); a field that stands there twice; no database; `BSONObjectTooLarge`
    /// (10334).
    pub fn read(
        server: &Shared,
        (document, sequences): (&'a DocumentBuf, &'a [DocumentSequence]),
        database: Option<&'a str>,
    ) -> Result<ReceivedCommand<'a>, Error> {
        let body = document.view();
        let Some((name, _)) = body.iter().next() else { return Err(command_not_found("")) };
        let command = command_of(server, name)?;
        refuse_duplicates(command.name, body)?;
        let database = match database {
            Some(database) => database,
            None => database_of(body)?,
        };
        check_size(server, body)?;
        Ok(ReceivedCommand { command, name, database, body, sequences })
    }

    /// Checks its fields by its table, and reads those that all commands have.
    fn check(&self, server: &Shared, peer: &Peer) -> Result<Common, Error> {
        let ReceivedCommand { command, database, body, sequences, .. } = *self;
        check_sequences(command, sequences)?;
        let table = tables::find(command.name).unwrap_or(&tables::UNSUPPORTED);
        tables::check(table, body, sequences)?;
        let mut common = Common::read(body)?;
        common.own(peer.digest())?;
        if let Some(key) = &server.cluster_time_key
            && let Some(Value::Document(time)) = body.get("$clusterTime")
        {
            key.check(time)?;
        }
        DatabaseName::check_sent(database)?;
        check_allowed(command, database)?;
        common.api.check(command.name, body, &server.api_rules)?;
        concerns::check(command, body, &common)?;
        concerns::apply_defaults(server, command.name, &mut common)?;
        Ok(common)
    }

    /// Returns the client's rights, if they suffice, and the command as the audit log watches it. A
    /// refusal is reported to the audit log here.
    fn authorized(
        &self,
        server: &'a Shared,
        peer: &'a Peer,
    ) -> Result<(Option<Arc<Rights>>, Option<Watched<'a>>), Error> {
        let ReceivedCommand { command, database, body, sequences, .. } = *self;
        let watched = audit::watch(server, peer, command.name, (database, body))?;
        let needs = (command.name, command.needs);
        match authorization::check(server, peer, needs, (database, body, sequences)) {
            Ok(rights) => Ok((rights, watched)),
            Err(error) => {
                if let Some(watched) = watched {
                    watched.end(Some(&error));
                }
                Err(error)
            }
        }
    }

    /// Returns the part of a transaction that it is, if that can be read.
    fn part(&self) -> Option<Part> {
        Common::read(self.body).ok().and_then(|common| common.part)
    }

    /// Its error, with labels.
    pub fn failure(&self, part: Option<Part>, error: Error) -> Failure {
        let labels = labels(self.command, part, &error);
        Failure::new(error, &labels)
    }
}
