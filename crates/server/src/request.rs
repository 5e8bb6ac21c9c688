//! One command as its handler sees it.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use frond_db::memory_queue::MemoryShare;
use frond_db::retry::StatementIds;
use frond_db::{Database, Error, ReadPoint, RetryKey, RetryableWrite};
use frond_doc::{Document, DocumentBuf, DocumentBuilder, Timestamp, Value};
use frond_query::Code;
use frond_vcs::Repository;

use crate::answer_memory::AnswerMemory;
pub use crate::authorization::split_namespace;
use crate::authorization::{AuthorizationRequest, RequiredRights};
use crate::common_fields::Common;
use crate::common_fields::Part;
use crate::cursors::Parking;
use crate::fields::Fields;
use crate::held_commits::HeldCommits;
use crate::kept_documents::KeptRoom;
use crate::limits::WRITE_BATCH_MAX;
use crate::operations::Operation;
use crate::peer::{Peer, Rights};
use crate::shared::Shared;
use crate::transactions::Current;
use crate::wire::DocumentSequence;

/// The result of a handler: the answer's fields without `ok`.
pub type Answer = Result<DocumentBuilder, Error>;

/// One command as its handler sees it.
pub struct Request<'a> {
    /// The server.
    pub server: &'a Shared,
    /// The client's connection.
    pub peer: &'a Arc<Peer>,
    /// The command's name in the table.
    pub name: &'static str,
    /// The rights that a client needs to run it.
    pub needs: RequiredRights,
    /// The name by which the client called it: perhaps an alias.
    pub sent_name: &'a str,
    /// `$db`.
    pub database_name: &'a str,
    /// The command.
    pub body: Document<'a>,
    /// Documents that came beside it, each list for the field of its name.
    pub sequences: &'a [DocumentSequence],
    /// Its session, concerns and so on.
    pub common: Common,
    /// Its entry among the running commands.
    pub operation: Arc<Operation>,
    /// The rights of the client; `None` where the server doesn't check them.
    pub rights: Option<Arc<Rights>>,
    /// The transaction that it runs in.
    pub current: Option<Current>,
    /// The moment at which it reads, if it asks for one.
    pub moment: Option<ReadPoint>,
    /// Whether the answer has statements that failed.
    pub has_write_errors: Cell<bool>,
    /// The memory that a large answer holds.
    pub share: &'a RefCell<Option<MemoryShare>>,
    /// Lets it wait without a thread.
    pub parking: &'a Parking,
    /// Takes the commit on which its answer rests.
    pub commits: &'a HeldCommits,
}

impl<'a> Request<'a> {
    /// The command's fields, to be taken one by one.
    ///
    /// # Errors
    /// As [`Fields::of_command`].
    pub fn fields(&self) -> Result<Fields<'a>, Error> {
        Fields::of_command(self.name, self.body)
    }

    /// The fields of a command that has none of its own, checked.
    ///
    /// # Errors
    /// As [`Fields::finish`].
    pub fn no_fields(&self) -> Result<(), Error> {
        self.fields()?.finish()
    }

    /// The command, to ask what else who has `rights` may do.
    pub fn authorization<'b>(&'b self, rights: &'b Rights) -> AuthorizationRequest<'b> {
        AuthorizationRequest {
            server: self.server,
            rights,
            name: self.name,
            database: self.database_name,
            body: self.body,
            sequences: self.sequences,
            noted: None,
        }
    }

    /// The database that the command is for.
    ///
    /// # Errors
    /// `InvalidNamespace` (73); `NamespaceNotFound` (26) if there is no such branch or revision.
    pub fn database(&self) -> Result<Repository, Error> {
        self.database_named(self.database_name)
    }

    /// The database of a command about its versions: it must exist.
    ///
    /// # Errors
    /// As [`Request::database`]; `NamespaceNotFound` (26) if the database doesn't exist.
    pub fn existing_database(&self) -> Result<Repository, Error> {
        let database = self.database()?;
        database.check_exists()?;
        Ok(database)
    }

    /// The time of the moment at which it reads, for the answer.
    pub fn read_time(&self) -> Option<Timestamp> {
        self.moment.as_ref().map(ReadPoint::time)
    }

    /// Refuses what isn't kept as it was at the moment that the command asks for.
    ///
    /// # Errors
    /// `InvalidOptions`.
    pub fn refuse_moment(&self, what: &str) -> Result<(), Error> {
        if self.moment.is_none() {
            return Ok(());
        }
        let message = format!(
            "{what} cannot run with a readConcern other than 'local'. Current readConcern: \
             {{ level: \"snapshot\" }}"
        );
        Err(Error::invalid(Code::InvalidOptions, message))
    }

    /// Another database, in the same transaction, or at the same moment.
    ///
    /// # Errors
    /// `InvalidNamespace` if there is no such branch or revision: drivers take `NamespaceNotFound`
    /// for an empty collection.
    pub fn database_named(&self, name: &str) -> Result<Repository, Error> {
        let frond = &self.server.frond;
        frond.check_used_here(name.split('@').next().unwrap_or(name))?;
        let found = match (&self.current, &self.moment) {
            (Some(current), _) => current.transaction.database(name),
            (None, Some(moment)) => frond.database_at(name, moment),
            (None, None) => frond.database_while(name, &self.operation.interrupt()),
        };
        let database = found.map_err(|error| match error.code {
            Code::NamespaceNotFound => Error { code: Code::InvalidNamespace, ..error },
            _ => error,
        })?;
        let database = database.interruptible(self.operation.interrupt());
        Ok(Repository::from(match &self.rights {
            Some(rights) => database.for_user_with(Arc::clone(&rights.user_roles)),
            None => database,
        }))
    }

    /// The database for a write: if the client may send it again, what its statements do is
    /// remembered under these names.
    ///
    /// # Errors
    /// As [`Request::database`].
    pub fn database_for_write(&self, statements: StatementIds) -> Result<Database, Error> {
        Ok(self.for_write(&*self.database()?, statements))
    }

    /// As [`Request::database_for_write`], of a database that is open.
    pub fn for_write(&self, database: &Database, statements: StatementIds) -> Database {
        match self.common.part {
            Some(Part::Write { session, number }) => {
                let key = RetryKey { session: session.stored(), number };
                database.retryable(RetryableWrite { key, statements })
            }
            _ => database.clone(),
        }
    }

    /// The memory for the answer.
    pub fn room(&self) -> AnswerMemory<'_> {
        AnswerMemory {
            answers: &self.server.answers,
            waiting_max: self.server.workers.count().div_ceil(2),
            kept: KeptRoom { memory: &self.server.kept_documents, files: &self.server.kept_files },
            share: self.share,
            operation: &self.operation,
        }
    }

    /// The value of the command's own field: `find: "things"`.
    pub fn argument(&self) -> Value<'a> {
        self.body.iter().next().map_or(Value::Null, |(_, value)| value)
    }

    /// The same of a command whose table takes a string there, and nothing else.
    pub fn own_text(&self) -> &'a str {
        let text = self.argument().as_str();
        debug_assert!(text.is_some(), "the table of {} takes more than strings", self.name);
        text.unwrap_or_default()
    }

    /// The same of a command whose table takes a document there, and nothing else.
    pub fn own_document(&self) -> Document<'a> {
        let document = self.argument().as_document();
        debug_assert!(document.is_some(), "the table of {} takes more than documents", self.name);
        document.unwrap_or(Document::empty())
    }

    /// The collection that the command names.
    ///
    /// # Errors
    /// As [`collection_name`].
    pub fn collection(&self) -> Result<&'a str, Error> {
        collection_name(self.database_name, self.argument())
    }

    /// The collection that a command names which makes or changes it.
    ///
    /// # Errors
    /// As [`collection_name`] and [`check_writable`].
    pub fn writable_collection(&self) -> Result<&'a str, Error> {
        let name = self.collection()?;
        check_writable(self.database_name, name)?;
        Ok(name)
    }

    /// `database.collection`.
    pub fn namespace(&self, collection: &str) -> String {
        [self.database_name, ".", collection].concat()
    }

    /// Takes the documents of a write: from the sequence beside the command, or else from its array
    /// field `name`.
    ///
    /// # Errors
    /// `TypeMismatch` (14) for what is no array of documents; 40414 if there are none.
    pub fn documents(
        &self,
        fields: &mut Fields<'a>,
        name: &'static str,
    ) -> Result<Vec<DocumentBuf>, Error> {
        documents(self.name, self.sequences, fields, name)
    }
}

/// The documents of a write: from the sequence beside the command, or else from its array field
/// `name`.
///
/// # Errors
/// `InvalidLength` if there are none or too many; `TypeMismatch` if one is no document.
pub fn documents(
    command: &str,
    sequences: &[DocumentSequence],
    fields: &mut Fields<'_>,
    name: &str,
) -> Result<Vec<DocumentBuf>, Error> {
    let documents = match sequences.iter().find(|sequence| sequence.name == name) {
        Some(sequence) => sequence.documents.clone(),
        None => {
            let array = fields.array(name)?.ok_or_else(|| fields.missing(name))?;
            documents_of(array.iter(), &format!("{command}.{name}"))?
        }
    };
    if documents.is_empty() || documents.len() > WRITE_BATCH_MAX {
        let message = format!(
            "Write batch sizes must be between 1 and {WRITE_BATCH_MAX}. Got {} operations.",
            documents.len()
        );
        return Err(Error::invalid(Code::InvalidLength, message));
    }
    Ok(documents)
}

fn documents_of<'a>(
    values: impl Iterator<Item = Value<'a>>,
    path: &str,
) -> Result<Vec<DocumentBuf>, Error> {
    let mut documents = Vec::new();
    for (position, value) in values.enumerate() {
        let Some(document) = value.as_document() else {
            let found = value.element_type().alias();
            let message = format!(
                "BSON field '{path}.{position}' is the wrong type '{found}', expected type 'object'"
            );
            return Err(Error::invalid(Code::TypeMismatch, message));
        };
        if documents.len() > WRITE_BATCH_MAX {
            break; // The caller refuses so many.
        }
        documents.push(document.to_buf());
    }
    Ok(documents)
}

/// A collection's name from a command's field.
///
/// # Errors
/// `InvalidNamespace` (73) if it is no string, or no name.
pub fn collection_name<'a>(database: &str, value: Value<'a>) -> Result<&'a str, Error> {
    let Some(name) = value.as_str() else {
        let found = value.element_type().alias();
        let message = format!("collection name has invalid type {found}");
        return Err(Error::invalid(Code::InvalidNamespace, message));
    };
    check_collection_name(database, name)?;
    Ok(name)
}

/// Checks a collection's name by MongoDB's rules.
///
/// # Errors
/// `InvalidNamespace` (73).
pub fn check_collection_name(database: &str, name: &str) -> Result<(), Error> {
    if name.is_empty() || name.starts_with('.') || name.contains(['\0', '$']) {
        let message = format!("Invalid namespace specified '{database}.{name}'");
        return Err(Error::invalid(Code::InvalidNamespace, message));
    }
    Ok(())
}

/// Refuses writes to names that MongoDB keeps for itself.
///
/// # Errors
/// `InvalidNamespace` (73).
pub fn check_writable(database: &str, name: &str) -> Result<(), Error> {
    if name.starts_with("system.") && name != "system.js" {
        let message = format!("Invalid system namespace: {database}.{name}");
        return Err(Error::invalid(Code::InvalidNamespace, message));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_collections() {
        for (name, expected) in [
            ("things", true),
            ("system.profile", true),
            ("a.b", true),
            ("", false),
            (".a", false),
            ("a$b", false),
            ("a\0b", false),
        ] {
            assert_eq!(collection_name("test", Value::String(name)).is_ok(), expected, "{name:?}");
        }
        assert!(collection_name("test", Value::Int32(1)).is_err());
        assert!(check_writable("admin", "system.users").is_err());
        assert!(check_writable("test", "system.profile").is_err());
        assert!(check_writable("admin", "system.js").is_ok());
        assert!(check_writable("test", "systems").is_ok());
        assert_eq!(split_namespace("a.b.c").expect("two parts"), ("a", "b.c"));
        assert!(split_namespace("a.").is_err());
        assert!(split_namespace(".b").is_err());
        assert!(split_namespace("a").is_err());
    }
}
