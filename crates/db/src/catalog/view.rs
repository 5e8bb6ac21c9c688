//! The catalog of one version at one moment: HEAD's, with a branch's working entries over it.

use std::collections::BTreeSet;
use std::sync::Arc;

use frond_doc::{DocumentBuf, DocumentBuilder, Value as BsonValue, key};
use frond_engine::TreeId;
use frond_query::index::{FieldKind, IndexShape};
use frond_query::sort::SortField;
use frond_query::{Collation, Projection};
use frond_store::{Chunk, ChunkHash, ChunkKind, ChunkStore};
use frond_tree::{Bounds, Content, Direction, Tree, Value};

use crate::catalog::entry::CatalogEntry;
use crate::database::{self, Database, Target};
use crate::definition::IndexSpec;
use crate::error::Error;
use crate::reader::{Reader, TreeRef};
use crate::system::{self, LiveCollection, Repository, WorkingEntry};

/// A collection that can be read: what it is and where its trees lie.
#[derive(Clone, Debug)]
pub(crate) struct Collection {
    /// Local to this data directory.
    pub uuid: [u8; 16],
    /// As given to `create`.
    pub options: DocumentBuf,
    /// The documents by `_id`.
    pub documents: TreeRef,
    /// All indexes but `_id`'s.
    pub indexes: Vec<Index>,
    /// The order of insertion, of a capped collection: see `collection::capped`.
    pub order: Option<TreeRef>,
}

/// An index that can be read.
#[derive(Clone, Debug)]
pub(crate) struct Index {
    /// As it was asked for.
    pub spec: IndexSpec,
    /// What it files.
    pub shape: Arc<IndexShape>,
    /// What its entries hold of documents.
    pub held: Held,
    /// Its entries.
    pub tree: TreeRef,
}

/// What an index's entries hold of documents besides their keys.
#[derive(Clone, Debug)]
pub(crate) enum Held {
    /// Nothing.
    Nothing,
    /// Some fields: those that are included, those of the key, and `_id`.
    Fields(Arc<Projection>),
    /// All of them, if the document isn't large.
    Document,
}

impl Index {
    /// The index `spec` whose entries lie in `tree`.
    pub fn new(spec: IndexSpec, tree: TreeRef) -> Index {
        let shape =
            spec.shape().expect("a definition is checked when it is made, and when it is read");
        let held = match (spec.clustering, spec.include.is_empty()) {
            (true, _) => Held::Document,
            (false, true) => Held::Nothing,
            (false, false) => Held::Fields(Arc::new(included(&spec, &shape))),
        };
        Index { spec, shape: Arc::new(shape), held, tree }
    }

    /// Paths and directions.
    pub fn fields(&self) -> &[SortField] {
        self.shape.sort_fields()
    }

    /// Cuts the parts of a key of this index off its front.
    pub fn skip_key(&self, rest: &mut &[u8]) -> Result<(), Error> {
        for descending in self.shape.parts() {
            key::skip(rest, *descending)
                .map_err(|error| Error::damaged(format!("key of an index: {error}")))?;
        }
        Ok(())
    }

    /// The outermost fields that decide about its entries; `None` if all may.
    pub fn outermost_names(&self) -> Option<Vec<&[u8]>> {
        if matches!(self.held, Held::Document) {
            return None;
        }
        let mut names = self.shape.outermost_names()?;
        names.extend(self.spec.include.iter().map(|path| match path.split_once('.') {
            Some((first, _)) => first.as_bytes(),
            None => path.as_bytes(),
        }));
        Some(names)
    }
}

/// The projection to what an index with included fields holds: of paths of which one lies below
/// another, the outer.
fn included(spec: &IndexSpec, shape: &IndexShape) -> Projection {
    let keys = shape.fields().iter().filter(|field| field.kind != FieldKind::Wildcard);
    let mut paths: Vec<&str> = spec.include.iter().map(String::as_str).collect();
    paths.extend(keys.map(|field| field.path.as_str()));
    paths.sort_unstable();
    let mut outer: Vec<&str> = Vec::new();
    for path in paths {
        let below = |above: &&str| {
            path.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        if !outer.iter().any(below) {
            outer.push(path);
        }
    }
    let mut projection = DocumentBuilder::new();
    for path in outer {
        projection.append(path, BsonValue::Int32(1));
    }
    Projection::parse(projection.build().view()).expect("paths of fields make a projection")
}

impl Collection {
    /// A collection in the engine's trees.
    pub fn live(live: &LiveCollection) -> Collection {
        let index =
            |index: &system::LiveIndex| Index::new(index.spec.clone(), TreeRef::Live(index.tree));
        Collection {
            uuid: live.uuid,
            options: live.options.clone(),
            documents: TreeRef::Live(live.documents),
            indexes: live.indexes.iter().map(index).collect(),
            order: live.order.map(TreeRef::Live),
        }
    }

    /// A collection as a commit of `repository` has it under `name`.
    pub fn committed(entry: &CatalogEntry, repository: &Repository, name: &str) -> Collection {
        let format = repository.format();
        let index = |(spec, root): &(IndexSpec, ChunkHash)| {
            Index::new(spec.clone(), TreeRef::Committed(spec.tree(*root, format)))
        };
        Collection {
            uuid: uuid_of_committed(repository, name),
            options: entry.options.clone(),
            documents: TreeRef::Committed(entry.documents_tree(format)),
            indexes: entry.indexes.iter().map(index).collect(),
            order: None,
        }
    }

    /// How strings compare where a request doesn't say.
    pub fn collation(&self) -> Result<Collation, Error> {
        match self.options.get("collation") {
            Some(BsonValue::Document(specification)) => Ok(Collation::parse(specification)?),
            _ => Ok(Collation::SIMPLE),
        }
    }

    /// All trees: the documents', then each index's, then the order's.
    pub fn trees(&self) -> Vec<TreeRef> {
        let indexes = self.indexes.iter().map(|index| index.tree);
        std::iter::once(self.documents).chain(indexes).chain(self.order).collect()
    }
}

/// A collection that no branch of this data directory has written has no record that could hold a
/// UUID: it is derived from the repository's, and kept when the collection is adopted.
fn uuid_of_committed(repository: &Repository, name: &str) -> [u8; 16] {
    let mut bytes = repository.uuid.to_vec();
    bytes.extend_from_slice(name.as_bytes());
    let hash = Chunk::new(ChunkKind::Blob, &[], &bytes).hash();
    let mut uuid = [0; 16];
    uuid.copy_from_slice(&hash.0[..16]);
    uuid[6] = (uuid[6] & 0x0f) | 0x80;
    uuid[8] = (uuid[8] & 0x3f) | 0x80;
    uuid
}

/// The catalog of one version at one moment.
pub(crate) struct CatalogView<'r> {
    reader: &'r Reader<'r>,
    database: &'r Database,
    repository: Option<Repository>,
}

impl<'r> CatalogView<'r> {
    /// Reads what of the catalog is always needed.
    pub fn open(reader: &'r Reader<'r>, database: &'r Database) -> Result<CatalogView<'r>, Error> {
        let repository = database::repository(reader, database.repository_name())?;
        Ok(CatalogView { reader, database, repository })
    }

    /// The commit below the working entries, or the one that this version is.
    pub fn head(&self) -> Result<Option<ChunkHash>, Error> {
        let name = self.database.repository_name();
        let branch = match self.database.target() {
            Target::Commit(_, chunk) => return Ok(Some(*chunk)),
            Target::Branch(branch) => branch,
        };
        let head = database::branch_ref(self.reader, name, branch)?.and_then(|head| head.commit);
        let Some(id) = head else {
            return Ok(None);
        };
        let chunk = database::commit_chunk(self.reader, name, &id)?;
        chunk.map(Some).ok_or_else(|| Error::damaged(format!("HEAD of {branch} is not known")))
    }

    /// The working entry of `collection`, if this is a branch and there is one.
    pub fn working_entry(&self, collection: &str) -> Result<Option<WorkingEntry>, Error> {
        let Some(branch) = self.database.branch() else {
            return Ok(None);
        };
        let key = system::working_key(self.database.repository_name(), branch, collection);
        let record = self.reader.get_bytes(TreeRef::Live(TreeId::SYSTEM), &key)?;
        record.map(WorkingEntry::decode).transpose()
    }

    /// All working entries of the branch, by name.
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
    pub fn collection(&self, name: &str) -> Result<Option<Collection>, Error> {
        match self.working_entry(name)? {
            Some(WorkingEntry::Live(live)) => Ok(Some(Collection::live(&live))),
            Some(WorkingEntry::Dropped) => Ok(None),
            None => self.committed(name),
        }
    }

    /// The collection called `name` as HEAD has it.
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
pub(crate) fn working_entries(
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
    repository: &Repository,
    commit: ChunkHash,
) -> Result<Tree, Error> {
    let chunk = store.get(commit)?;
    if chunk.kind() != ChunkKind::Commit || chunk.reference_count() == 0 {
        return Err(Error::damaged(format!("chunk {commit} is not a commit")));
    }
    Ok(Tree { root: chunk.reference(0), format: repository.format() })
}

/// Reads the catalog entry that a value of a catalog's tree names.
pub(crate) fn read_entry(store: &dyn ChunkStore, value: &Value) -> Result<CatalogEntry, Error> {
    match &value.content {
        Content::Chunk { hash, .. } => CatalogEntry::decode(&store.get(*hash)?),
        _ => Err(Error::damaged("a catalog's value names no chunk")),
    }
}

/// The name in a key of a catalog's tree.
pub(crate) fn collection_name(key: &[u8]) -> Result<String, Error> {
    let name = String::from_utf8(key.to_vec());
    name.map_err(|_| Error::damaged("a catalog names a collection in bytes that aren't UTF-8"))
}
