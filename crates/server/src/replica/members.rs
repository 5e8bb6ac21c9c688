//! The members that the set is to have: its configuration, as `rs.conf()` shows it.
//!
//! It is stored as a document of the set, like all other data: each member gets it in its place
//! among the entries, and with a copy. Before the first change there is none, and the members are
//! those with which the set began. The leader brings the library's members to it one at a time
//! ([`crate::member::replacing`]).

use std::sync::Arc;

use frond_db::{AccessChange, AccessKind, Error, Frond};
use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value};
use frond_quorum::MemberId;

use super::{Replica, lock};

/// The setting's name.
const NAME: &str = "ReplicaSetConfiguration";

/// See the module.
#[derive(Clone, PartialEq, Debug)]
pub struct Members {
    /// Rises with each change.
    pub version: i32,
    /// The members, in the order in which they were given.
    pub all: Vec<Host>,
}

/// One of the members.
#[derive(Clone, PartialEq, Debug)]
pub struct Host {
    /// Its number in the set: it keeps that.
    pub id: i32,
    /// `HOST:PORT` by which clients and members reach it.
    pub address: String,
    /// Whether it elects, and counts for a majority.
    pub votes: bool,
    /// 0: it is never the primary; otherwise the member with the greatest one is, in the end.
    pub priority: f64,
    /// Whether clients aren't told of it.
    pub hidden: bool,
    /// Names and values by which read preferences choose members.
    pub tags: Vec<(String, String)>,
}

impl Host {
    /// A member like most: it has a vote, and may be the primary.
    pub fn new(id: i32, address: String) -> Host {
        Host { id, address, votes: true, priority: 1.0, hidden: false, tags: Vec::new() }
    }

    /// Whether it may be the primary.
    pub fn is_electable(&self) -> bool {
        self.votes && 0.0 < self.priority
    }

    fn parse(member: Document<'_>) -> Option<Host> {
        let Value::Int32(id) = member.get("_id")? else { return None };
        let mut host = Host::new(id, member.get("host")?.as_str()?.to_owned());
        host.votes = member.get("votes") != Some(Value::Int32(0));
        host.hidden = member.get("hidden") == Some(Value::Boolean(true));
        if let Some(Value::Double(priority)) = member.get("priority") {
            host.priority = priority;
        }
        for (name, value) in member.get("tags")?.as_document()?.iter() {
            host.tags.push((name.to_owned(), value.as_str()?.to_owned()));
        }
        Some(host)
    }

    /// Appends what is the same in the stored configuration and in the one that clients see.
    pub fn append_to(&self, member: &mut DocumentBuilder) {
        member
            .append("_id", Value::Int32(self.id))
            .append("host", Value::String(&self.address))
            .append("hidden", Value::Boolean(self.hidden))
            .append("priority", Value::Double(self.priority));
        self.append_tags(member);
        member.append("votes", Value::Int32(i32::from(self.votes)));
    }

    /// Appends its tags.
    pub fn append_tags(&self, to: &mut DocumentBuilder) {
        to.begin_document("tags");
        for (name, value) in &self.tags {
            to.append(name, Value::String(value));
        }
        to.end();
    }
}

impl Members {
    /// Those with which a set begins.
    pub fn first<'a>(addresses: impl IntoIterator<Item = &'a String>) -> Members {
        let addresses = addresses.into_iter().cloned();
        let all = (0..).zip(addresses).map(|(id, address)| Host::new(id, address)).collect();
        Members { version: 1, all }
    }

    /// Whether this address is a member's.
    pub fn has(&self, address: &str) -> bool {
        self.at(address).is_some()
    }

    /// The member at an address.
    pub fn at(&self, address: &str) -> Option<&Host> {
        self.all.iter().find(|host| host.address == address)
    }

    /// How many have a vote.
    pub fn voter_count(&self) -> usize {
        self.all.iter().filter(|host| host.votes).count()
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
            host.append_to(document.push_begin_document());
            document.end();
        }
        document.end();
        document.build()
    }

    fn parse(document: Document<'_>) -> Option<Members> {
        let Value::Int32(version) = document.get("version")? else { return None };
        let mut all = Vec::new();
        for member in document.get("members")?.as_array()?.iter() {
            all.push(Host::parse(member.as_document()?)?);
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

    /// Whether a member may be the primary, as far as this one knows.
    pub(crate) fn is_electable(&self, id: MemberId) -> bool {
        let members = self.members();
        let is_electable = |address: String| members.at(&address).is_none_or(Host::is_electable);
        self.address_of(id).is_none_or(is_electable)
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
        let other = Host {
            votes: false,
            priority: 0.0,
            hidden: true,
            tags: vec![("use".to_owned(), "reports".to_owned())],
            ..Host::new(7, "c:1".to_owned())
        };
        members.all.push(other.clone());
        let read = Members::parse(members.to_document().view()).expect("they read");
        assert_eq!(read.all, [Host::new(1, "b:1".to_owned()), other]);
        assert_eq!(read.voter_count(), 1);
        assert!(read.has("b:1") && !read.has("a:1"));
        assert_eq!(Members::parse(DocumentBuf::empty().view()), None);
    }
}
