//! The catalog of one version at one moment: HEAD's, with a branch's working entries over it.

use std::collections::BTreeSet;

use frond_engine::TreeId;
use frond_store::{ChunkHash, ChunkKind, ChunkStore};
use frond_tree::{Bounds, Content, Direction, Tree, Value};

use crate::database::Database;
use crate::error::Error;
use crate::name::Target;
use crate::reader::Reader;
use crate::refs;
use crate::schema::entry::CatalogEntry;
use crate::schema::{Collection, TreeRef};
use crate::system::{self, RepositoryRecord, WorkingEntry};

/// The catalog of one version at one moment.
pub struct CatalogView<'r> {
    reader: &'r Reader<'r>,
    database: &'r Database,
    repository: Option<RepositoryRecord>,
}

impl<'r> CatalogView<'r> {
    /// Reads what of the catalog is always needed.
    ///
    /// # Errors
    /// `Damaged` if the database's record is no record; as [`Reader::get`].
    pub fn open(reader: &'r Reader<'r>, database: &'r Database) -> Result<CatalogView<'r>, Error> {
        let repository = refs::repository(reader, database.repository_name())?;
        Ok(CatalogView { reader, database, repository })
    }

    /// The commit below the working entries, or the one that this version is.
    ///
    /// # Errors
    /// `Damaged` if the branch's ref or the commit that it names can't be found; as
    /// [`Reader::get`].
    pub fn head(&self) -> Result<Option<ChunkHash>, Error> {
        let name = self.database.repository_name();
        let branch = match self.database.target() {
            Target::Commit(_, chunk) => return Ok(Some(*chunk)),
            Target::Branch(branch) => branch,
        };
        let head = refs::branch_ref(self.reader, name, branch)?.and_then(|head| head.commit);
        let Some(id) = head else {
            return Ok(None);
        };
        let chunk = refs::commit_chunk(self.reader, name, &id)?;
        chunk.map(Some).ok_or_else(|| Error::damaged(format!("HEAD of {branch} is not known")))
    }

    /// The working entry of `collection`, if this is a branch and there is one.
    ///
    /// # Errors
    /// `Damaged` if it is no working entry; as [`Reader::get`].
    pub fn working_entry(&self, collection: &str) -> Result<Option<WorkingEntry>, Error> {
        let Some(branch) = self.database.branch() else {
            return Ok(None);
        };
        let key = system::working_key(self.database.repository_name(), branch, collection);
        let record = self.reader.get_bytes(TreeRef::Live(TreeId::SYSTEM), &key)?;
        record.map(WorkingEntry::decode).transpose()
    }

    /// All working entries of the branch, by name.
    ///
    /// # Errors
    /// As [`CatalogView::working_entry`].
    pub fn working_entries(&self) -> Result<Vec<(String, WorkingEntry)>, Error> {
        match self.database.branch() {
            Some(branch) => {
                let prefix = system::working_prefix(self.database.repository_name(), branch);
                working_entries(self.reader, &prefix)
            }
            None => Ok(Vec::new()),
        }
    }

    /// The collection called `name`.
    ///
    /// # Errors
    /// `Damaged` if an entry, or what leads to it, isn't what was written; as [`Reader::get`].
    pub fn collection(&self, name: &str) -> Result<Option<Collection>, Error> {
        match self.working_entry(name)? {
            Some(WorkingEntry::Live(live)) => Ok(Some(Collection::live(&live))),
            Some(WorkingEntry::Dropped) => Ok(None),
            None => self.committed(name),
        }
    }

    /// The collection called `name` as HEAD has it.
    ///
    /// # Errors
    /// As [`CatalogView::collection`].
    pub fn committed(&self, name: &str) -> Result<Option<Collection>, Error> {
        let (Some(repository), Some(head)) = (&self.repository, self.head()?) else {
            return Ok(None);
        };
        let catalog = committed_catalog(&**self.reader.store(), repository, head)?;
        let store = &**self.reader.store();
        let Some(value) = catalog.get(store, name.as_bytes())? else {
            return Ok(None);
        };
        let entry = read_entry(store, &value)?;
        Ok(Some(Collection::committed(&entry, repository, name)))
    }

    /// The names of all collections, ascending.
    ///
    /// # Errors
    /// As [`CatalogView::collection`].
    pub fn names(&self) -> Result<Vec<String>, Error> {
        let mut names = BTreeSet::new();
        if let (Some(repository), Some(head)) = (&self.repository, self.head()?) {
            let store = self.reader.store();
            let catalog = committed_catalog(&**store, repository, head)?;
            for entry in catalog.range(store, Bounds::all(), Direction::Ascending) {
                names.insert(collection_name(&entry?.key)?);
            }
        }
        for (name, entry) in self.working_entries()? {
            match entry {
                WorkingEntry::Live(_) => names.insert(name),
                WorkingEntry::Dropped => names.remove(&name),
            };
        }
        Ok(names.into_iter().collect())
    }
}

/// The working entries whose keys begin with `prefix`, by what follows it.
///
/// # Errors
/// As [`CatalogView::working_entry`].
pub fn working_entries(
    reader: &Reader<'_>,
    prefix: &[u8],
) -> Result<Vec<(String, WorkingEntry)>, Error> {
    let place = TreeRef::Live(TreeId::SYSTEM);
    let mut entries = Vec::new();
    for entry in reader.range(place, Bounds::prefix(prefix), Direction::Ascending)? {
        let entry = entry?;
        let name = system::name_after(prefix, &entry.key)?;
        entries.push((name, WorkingEntry::decode(reader.read(&entry.value)?)?));
    }
    Ok(entries)
}

/// The catalog's tree of the commit in chunk `commit`: collection name to [`CatalogEntry`]'s chunk.
pub(crate) fn committed_catalog(
    store: &dyn ChunkStore,
    repository: &RepositoryRecord,
    commit: ChunkHash,
) -> Result<Tree, Error> {
    let chunk = store.get(commit)?;
    if chunk.kind() != ChunkKind::Commit || chunk.reference_count() == 0 {
        return Err(Error::damaged(format!("chunk {commit} is not a commit")));
    }
    Ok(Tree { root: chunk.reference(0), format: repository.format() })
}

/// Reads the catalog entry that a value of a catalog's tree names.
///
/// # Errors
/// `Damaged` if the value names no chunk, or the chunk is no catalog entry.
pub fn read_entry(store: &dyn ChunkStore, value: &Value) -> Result<CatalogEntry, Error> {
    match &value.content {
        Content::Chunk { hash, .. } => CatalogEntry::decode(&store.get(*hash)?),
        _ => Err(Error::damaged("a catalog's value names no chunk")),
    }
}

/// The name in a key of a catalog's tree.
///
/// # Errors
/// `Damaged` if it isn't UTF-8.
pub fn collection_name(key: &[u8]) -> Result<String, Error> {
    let name = String::from_utf8(key.to_vec());
    name.map_err(|_| Error::damaged("a catalog names a collection in bytes that aren't UTF-8"))
}
