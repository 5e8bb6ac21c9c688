//! Users, roles and settings, as documents of the system tree: what they mean is the server's
//! business.
//!
//! They belong to the data directory, not to a database's versions: no commit, diff, clone or push
//! has them, a dropped database leaves its users behind (as MongoDB does it), and a backup of the
//! directory takes them along.

use frond_doc::DocumentBuf;
use frond_engine::{Durability, TreeId};
use frond_query::Code;
use frond_tree::{Bounds, Direction, Value as TreeValue};

use crate::error::Error;
use crate::frond::Frond;
use crate::interrupt::Interrupt;
use crate::reader::Reader;
use crate::schema::TreeRef;
use crate::system;
pub use crate::system::AccessKind;

/// The largest document of a user or a role.
pub const ACCESS_BYTES_MAX: usize = 256 << 10;

/// A document that changes.
#[derive(Clone, PartialEq, Debug)]
pub struct AccessChange {
    /// The kind of document that changes.
    pub kind: AccessKind,
    /// The database that the user or role belongs to.
    pub database: String,
    /// Its name there.
    pub name: String,
    /// The new document; `None` if it is removed.
    pub document: Option<DocumentBuf>,
}

impl Frond {
    /// The documents of all users, or roles, in the order of their databases and names.
    ///
    /// # Errors
    /// An error of reading.
    pub fn access_documents(&self, kind: AccessKind) -> Result<Vec<DocumentBuf>, Error> {
        let reader = Reader::now(self.engine());
        let bounds = Bounds::prefix(&system::access_prefix(kind));
        let mut documents = Vec::new();
        for entry in reader.range(TreeRef::Live(TreeId::SYSTEM), bounds, Direction::Ascending)? {
            documents.push(system::record(reader.read(&entry?.value)?)?);
        }
        Ok(documents)
    }

    /// The document of one.
    ///
    /// # Errors
    /// An error of reading.
    pub fn access_document(
        &self,
        kind: AccessKind,
        database: &str,
        name: &str,
    ) -> Result<Option<DocumentBuf>, Error> {
        let reader = Reader::now(self.engine());
        let key = system::access_key(kind, database, name);
        let value = reader.get(TreeRef::Live(TreeId::SYSTEM), &key)?;
        value.map(|value| system::record(reader.read(&value)?)).transpose()
    }

    /// Changes such documents, all or none. They are durable when this returns. The caller takes
    /// care that no other thread changes them meanwhile.
    ///
    /// # Errors
    /// `BadValue` if a name holds a NUL, `BSONObjectTooLarge` for a document above
    /// [`ACCESS_BYTES_MAX`]; what a write may meet.
    pub fn change_access(&self, changes: &[AccessChange]) -> Result<(), Error> {
        let mut transaction = self.engine().begin();
        for change in changes {
            if change.database.contains('\0') || change.name.contains('\0') {
                let message = "names of users, roles and databases hold no NULs";
                return Err(Error::invalid(Code::BadValue, message));
            }
            let key = system::access_key(change.kind, &change.database, &change.name);
            let Some(document) = &change.document else {
                transaction.delete(TreeId::SYSTEM, key)?;
                continue;
            };
            let bytes = document.as_bytes().len();
            if bytes > ACCESS_BYTES_MAX {
                let message = format!(
                    "the document of {}.{} has {bytes} bytes, at most {ACCESS_BYTES_MAX} are allowed",
                    change.database, change.name
                );
                return Err(Error::invalid(Code::BSONObjectTooLarge, message));
            }
            let value = TreeValue::inline(document.clone().into_bytes());
            transaction.put(TreeId::SYSTEM, key, value)?;
        }
        self.commit(transaction, Durability::Synced, &Interrupt::default())
    }
}

#[cfg(test)]
mod tests {
    use frond_doc::document;
    use frond_testkit::SimDisk;

    use super::*;
    use crate::frond::FrondOptions;

    fn change(kind: AccessKind, name: &str, document: Option<DocumentBuf>) -> AccessChange {
        AccessChange { kind, database: "shop".to_owned(), name: name.to_owned(), document }
    }

    /// Written documents are there after a crash, of each kind apart, and no database or commit has
    /// them.
    #[test]
    fn documents_outlive_a_crash_and_belong_to_no_database() {
        let disk = SimDisk::new(1);
        let frond = Frond::open_bare(&disk.machine(), FrondOptions::default()).expect("opens");
        let ann = document! { "user": "ann", "pad": "x".repeat(20_000).as_str() };
        let role = document! { "role": "ann" };
        let all = [
            change(AccessKind::User, "ann", Some(ann.clone())),
            change(AccessKind::User, "bob", Some(document! { "user": "bob" })),
            change(AccessKind::Role, "ann", Some(role.clone())),
        ];
        frond.change_access(&all).expect("written");
        frond.change_access(&[change(AccessKind::User, "bob", None)]).expect("written");
        assert_eq!(
            frond.access_documents(AccessKind::User).expect("read"),
            std::slice::from_ref(&ann)
        );
        assert!(frond.list_databases().expect("read").is_empty());
        drop(frond);
        let frond = Frond::open_bare(&disk.machine(), FrondOptions::default()).expect("opens");
        assert_eq!(frond.access_documents(AccessKind::User).expect("read"), [ann]);
        assert_eq!(frond.access_documents(AccessKind::Role).expect("read"), [role]);
        assert!(frond.access_documents(AccessKind::Secret).expect("read").is_empty());
    }

    #[test]
    fn names_with_nuls_and_floods_are_refused() {
        let frond = Frond::open_bare(&SimDisk::new(1).machine(), FrondOptions::default());
        let frond = frond.expect("opens");
        let large = document! { "pad": "x".repeat(ACCESS_BYTES_MAX).as_str() };
        for wrong in [
            change(AccessKind::User, "a\0b", Some(document! {})),
            change(AccessKind::Role, "a", Some(large)),
        ] {
            let good = change(AccessKind::User, "good", Some(document! {}));
            assert!(frond.change_access(&[good, wrong]).is_err());
        }
        assert!(frond.access_documents(AccessKind::User).expect("read").is_empty());
    }
}
