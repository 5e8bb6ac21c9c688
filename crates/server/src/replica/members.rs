//! The members that the set is to have: its configuration, as `rs.conf()` shows it.
//!
//! It is stored as a document of the set, like all other data: each member gets it in its place
//! among the entries, and with a copy. Before the first change there is none, and the members are
//! those with which the set began. The leader brings the library's members to it one at a time
//! ([`crate::member::replacing`]).

use std::sync::Arc;

use frond_db::{AccessChange, AccessKind, Error, Frond};
use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value};

use super::{Replica, lock};

/// The setting's name.
const NAME: &str = "ReplicaSetConfiguration";

/// See the module.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Members {
    /// Rises with each change.
    pub version: i32,
    /// The members, in the order in which they were given.
    pub all: Vec<Host>,
}

/// One of the members.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Host {
    /// Its number in the set: it keeps that.
    pub id: i32,
    /// `HOST:PORT` by which clients and members reach it.
    pub address: String,
}

impl Members {
    /// Those with which a set begins.
    pub fn first<'a>(addresses: impl IntoIterator<Item = &'a String>) -> Members {
        let addresses = addresses.into_iter().cloned();
        let all = (0..).zip(addresses).map(|(id, address)| Host { id, address }).collect();
        Members { version: 1, all }
    }

    /// Whether this address is a member's.
    pub fn has(&self, address: &str) -> bool {
        self.all.iter().any(|host| host.address == address)
    }

    /// Their addresses.
    pub fn addresses(&self) -> impl Iterator<Item = &String> {
        self.all.iter().map(|host| &host.address)
    }

    /// Reads the set's configuration; `None` if there is none.
    ///
    /// # Errors
    /// An error of reading; `Damaged` if it isn't what was written.
    pub fn read(frond: &Frond) -> Result<Option<Members>, Error> {
        let stored = frond.access_documents(AccessKind::Setting)?;
        let found = stored.iter().find(|it| it.get("_id") == Some(Value::String(NAME)));
        let parse = |found: &DocumentBuf| {
            Members::parse(found.view())
                .ok_or_else(|| Error::damaged("the replica set's configuration isn't one"))
        };
        found.map(parse).transpose()
    }

    /// Has the set have these from now on: a majority knows it when this returns.
    ///
    /// # Errors
    /// An error of writing.
    pub fn write(&self, frond: &Frond) -> Result<(), Error> {
        let (database, name) = (String::new(), NAME.to_owned());
        let document = Some(self.to_document());
        frond.change_access(&[AccessChange { kind: AccessKind::Setting, database, name, document }])
    }

    fn to_document(&self) -> DocumentBuf {
        let mut document = DocumentBuilder::new();
        document
            .append("_id", Value::String(NAME))
            .append("version", Value::Int32(self.version))
            .begin_array("members");
        for host in &self.all {
            document
                .push_begin_document()
                .append("_id", Value::Int32(host.id))
                .append("host", Value::String(&host.address))
                .end();
        }
        document.end();
        document.build()
    }

    fn parse(document: Document<'_>) -> Option<Members> {
        let Value::Int32(version) = document.get("version")? else { return None };
        let mut all = Vec::new();
        for member in document.get("members")?.as_array()?.iter() {
            let member = member.as_document()?;
            let Value::Int32(id) = member.get("_id")? else { return None };
            all.push(Host { id, address: member.get("host")?.as_str()?.to_owned() });
        }
        Some(Members { version, all })
    }
}

impl Replica {
    /// The members, as far as this one knows.
    pub fn members(&self) -> Arc<Members> {
        Arc::clone(&lock(&self.members))
    }

    /// Whether it is one of them, as far as it knows or has heard: one that was away when it was
    /// removed gets no entries any more that would say so.
    pub fn is_member(&self) -> bool {
        let members = self.members();
        members.has(&self.options.own)
            && !lock(&self.peer_statuses).is_without_this(members.version)
    }

    /// Reads them again. Returns whether they are others than before.
    ///
    /// # Errors
    /// As [`Members::read`].
    pub fn read_members(&self, frond: &Frond) -> Result<bool, Error> {
        let identity = self.identity();
        let began: Vec<&String> = match identity.members.is_empty() {
            true => self.options.members.iter().collect(),
            false => identity.members.iter().map(|(address, _)| address).collect(),
        };
        let members = Members::read(frond)?.unwrap_or_else(|| Members::first(began));
        let before = std::mem::replace(&mut *lock(&self.members), Arc::new(members.clone()));
        Ok(*before != members)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_read_back_and_keep_their_numbers() {
        let mut members = Members::first(&["a:1".to_owned(), "b:1".to_owned()]);
        assert_eq!(Members::parse(members.to_document().view()), Some(members.clone()));
        members.all.remove(0);
        members.version = 2;
        let read = Members::parse(members.to_document().view()).expect("they read");
        assert_eq!(read.all, [Host { id: 1, address: "b:1".to_owned() }]);
        assert!(read.has("b:1") && !read.has("a:1"));
        assert_eq!(Members::parse(DocumentBuf::empty().view()), None);
    }
}
