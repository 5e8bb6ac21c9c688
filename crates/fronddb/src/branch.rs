//! Branches, and looking at other versions.

use std::fmt;

use frond_db::Code;
use frond_vcs::BranchInfo;

use crate::{Database, Result};

impl Database {
    /// The branch `name`, made at this version's last commit if there is none yet: a pointer,
    /// however large the database is. Uncommitted changes stay behind.
    ///
    /// ```
    /// use fronddb::{Document, doc};
    /// # let data = tempfile::tempdir()?;
    ///
    /// let frond = fronddb::open(&data)?;
    /// let shop = frond.database("shop")?;
    /// shop.collection::<Document>("items").insert_one(doc! { "_id": 1, "price": 30 })?;
    /// shop.commit("first items")?;
    ///
    /// let sale = shop.branch("sale")?;
    /// assert_eq!(sale.name(), "shop@sale"); // As `frond.database("shop@sale")` opens it.
    /// sale.collection::<Document>("items").delete_one(doc! { "_id": 1 })?;
    /// assert_eq!(shop.collection::<Document>("items").count(doc! {})?, 1);
    /// # Ok::<(), fronddb::Error>(())
    /// ```
    ///
    /// # Errors
    /// `BadValue` if there can't be such a name; `NamespaceExists` if a tag has it;
    /// `NamespaceNotFound` if the database doesn't exist yet.
    pub fn branch(&self, name: &str) -> Result<Database> {
        match self.create_branch(name) {
            Err(error) if error.code() == Code::NamespaceExists => {
                let there = self.checkout(name)?;
                // A tag isn't what was asked for.
                if there.is_read_only() { Err(error) } else { Ok(there) }
            }
            created => created,
        }
    }

    /// As [`Database::branch`], of a branch that mustn't be there yet.
    ///
    /// # Errors
    /// As there; `NamespaceExists` if there is such a branch.
    pub fn create_branch(&self, name: &str) -> Result<Database> {
        self.inner.create_branch(name, None)?;
        self.checkout(name)
    }

    /// This database at another version, opened beside this one: a branch, read and written, or a
    /// tag, a commit's id or an ancestor (`main~2`), read only.
    ///
    /// ```
    /// use fronddb::{Document, doc};
    /// # let data = tempfile::tempdir()?;
    /// # let shop = fronddb::open(&data)?.database("shop")?;
    ///
    /// let items = shop.collection::<Document>("items");
    /// items.insert_one(doc! { "_id": 1 })?;
    /// let first = shop.commit("one item")?;
    /// items.delete_many(doc! {})?;
    /// shop.commit("no items")?;
    ///
    /// let before = shop.checkout("main~1")?; // Or `shop.checkout(first)?`.
    /// assert_eq!(before.head()?, Some(first));
    /// assert_eq!(before.collection::<Document>("items").count(doc! {})?, 1);
    /// # Ok::<(), fronddb::Error>(())
    /// ```
    ///
    /// # Errors
    /// `NamespaceNotFound` if there is no such version.
    pub fn checkout(&self, version: impl fmt::Display) -> Result<Database> {
        // As it stands in a database's name.
        let version = version.to_string().replace('%', "%25");
        let name = format!("{}@{version}", self.inner.name().name);
        Ok(Database::new(self.inner.frond().database(&name)?.into(), &self.settings))
    }

    /// The branches and their last commits, by name.
    ///
    /// # Errors
    /// If the disk fails, or damage.
    pub fn list_branches(&self) -> Result<Vec<BranchInfo>> {
        Ok(self.inner.list_branches()?)
    }

    /// Deletes a branch whose commits are all in the default branch.
    ///
    /// # Errors
    /// `NamespaceNotFound` if there is no such branch; `IllegalOperation` if commits or uncommitted
    /// changes would be lost, or if it is the default branch.
    pub fn delete_branch(&self, name: &str) -> Result<()> {
        Ok(self.inner.delete_branch(name, false)?)
    }

    /// Deletes a branch with whatever is only in it; until garbage is collected that can be undone.
    ///
    /// # Errors
    /// `NamespaceNotFound` if there is no such branch; `IllegalOperation` if it is the default
    /// branch.
    pub fn delete_branch_forced(&self, name: &str) -> Result<()> {
        Ok(self.inner.delete_branch(name, true)?)
    }
}
