//! `frond import --dump`: what mongodump wrote, a directory or an archive.
//!
//! 1. A directory with `.bson` or `.metadata.json` files is a database's, called as the directory
//!    is unless `--database` says otherwise; of any other, each directory in it is one. So is an
//!    archive's only database; of several, `--database` names the one that is wanted.
//! 2. Of each collection the metadata say how it was made and which indexes it has; its documents
//!    lie in the file beside them, or in the archive's blocks. All may be compressed
//!    (`mongodump --gzip`).
//! 3. A collection is made, filled, and then indexed; views come last, when what they look at is
//!    there. The server's own collections (`system.…`) and databases stay out, which is reported.
//! 4. The documents of a time series are buckets, under another name: they are inserted so.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use frond_db::name::{is_internal, percent_decode};
use frond_doc::{DocumentBuf, DocumentBuilder, Value, extended_json};

use crate::failure::Failure;
use crate::input::archive::{ArchivedCollection, Namespace};
use crate::input::compressed;

/// The longest text of metadata: a thousand indexes and a validator are far shorter.
const METADATA_BYTES_MAX: u64 = 16 << 20;
/// The suffix of the names of a collection's two files, without that of compression.
const DOCUMENTS: &str = ".bson";
const METADATA: &str = ".metadata.json";
/// The prefix of collections that hold the buckets of time series.
pub const BUCKETS: &str = "system.buckets.";

/// A collection in a dump.
pub struct DumpedCollection {
    /// Its database.
    pub database: String,
    /// Its name.
    pub name: String,
    /// The name of its database where it was dumped, and the collection that its documents are
    /// inserted into: its own, or its buckets'.
    pub dumped_as: Namespace,
    /// Its documents' file; a view has none, and neither has what lies in an archive.
    pub documents: Option<PathBuf>,
    /// The options that `create` took.
    options: DocumentBuf,
    /// The indexes that `createIndexes` took, that of `_id` too.
    indexes: Vec<DocumentBuf>,
}

impl DumpedCollection {
    /// Whether it is a view.
    pub fn is_view(&self) -> bool {
        self.options.get("viewOn").is_some()
    }

    /// Whether its documents are the buckets of a time series.
    pub fn is_series(&self) -> bool {
        self.dumped_as.1.starts_with(BUCKETS)
    }

    /// The command that makes it.
    pub fn create(&self) -> DocumentBuf {
        let mut command = DocumentBuilder::new();
        command.append("create", Value::String(&self.name));
        for (name, value) in self.options.iter() {
            // The index of `_id` is made with the collection; ids of collections are the server's.
            if !["idIndex", "uuid"].contains(&name) {
                command.append(name, value);
            }
        }
        command.build()
    }

    /// The command that makes its indexes, if it has any but that of `_id`.
    pub fn create_indexes(&self) -> Option<DocumentBuf> {
        let is_own = |index: &&DocumentBuf| index.get("name") != Some(Value::String("_id_"));
        let own: Vec<&DocumentBuf> = self.indexes.iter().filter(is_own).collect();
        if own.is_empty() {
            return None;
        }
        let mut command = DocumentBuilder::new();
        command.append("createIndexes", Value::String(&self.name)).begin_array("indexes");
        for index in own {
            command.push_begin_document();
            // Older dumps name the collection in each.
            for (name, value) in index.iter().filter(|(name, _)| *name != "ns") {
                command.append(name, value);
            }
            command.end();
        }
        command.end();
        Some(command.build())
    }
}

/// A dump, as it will be imported.
#[derive(Default)]
pub struct Dump {
    /// Views last.
    pub collections: Vec<DumpedCollection>,
    /// The names of collections that are left out.
    pub left_out: Vec<String>,
}

/// Finds what is in the dump `directory`: all of it, or the database and the collection of these
/// names; a single database's directory is imported as `database`.
///
/// # Errors
/// [`Failure::Failed`] if it can't be read, or isn't one.
pub fn find(
    directory: &Path,
    database: Option<&str>,
    collection: Option<&str>,
) -> Result<Dump, Failure> {
    let mut dump = Dump::default();
    let own = files_of(directory)?;
    if own.is_empty() {
        for path in entries(directory)?.into_iter().filter(|path| path.is_dir()) {
            let name = name_of(&path);
            let name = percent_decode(&name).unwrap_or(name);
            if database.is_none_or(|database| database == name) {
                dump.add_files(&name, files_of(&path)?)?;
            }
        }
    } else {
        let absolute = std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
        let named = name_of(&absolute);
        dump.add_files(database.unwrap_or(&named), own)?;
    }
    dump.finish(&directory.display().to_string(), collection)
}

/// Reads the collections of an archive from its beginning; otherwise as [`find`]. An archive's only
/// database is imported as `database`.
///
/// # Errors
/// [`Failure::Failed`] if its metadata can't be read, or nothing is left.
pub fn of_archive(
    archived: Vec<ArchivedCollection>,
    database: Option<&str>,
    collection: Option<&str>,
) -> Result<Dump, Failure> {
    let names = archived.iter().map(|one| one.namespace.0.as_str());
    let databases: BTreeSet<&str> = names.filter(|name| !is_internal(name)).collect();
    let is_only = databases.len() == 1;
    let mut dump = Dump::default();
    for ArchivedCollection { namespace, metadata } in &archived {
        let dumped = &namespace.0;
        let name = match database {
            Some(requested) if is_only && !is_internal(dumped) => requested,
            Some(requested) if requested != dumped => continue,
            _ => dumped,
        };
        let place = format!("{dumped}.{}", namespace.1);
        dump.add(name, namespace.clone(), parse_metadata(&place, metadata)?, None);
    }
    dump.finish("the archive", collection)
}

/// The two files of a collection.
#[derive(Default)]
struct Files {
    documents: Option<PathBuf>,
    metadata: Option<PathBuf>,
}

impl Dump {
    fn add_files(&mut self, database: &str, files: BTreeMap<String, Files>) -> Result<(), Failure> {
        for (stem, files) in with_buckets(files) {
            let metadata = match &files.metadata {
                Some(path) => read_metadata(path)?,
                None => Metadata::default(),
            };
            let decoded = || percent_decode(&stem).unwrap_or_else(|| stem.clone());
            let name = metadata.name.clone().unwrap_or_else(decoded);
            let dumped_as = (database.to_owned(), name);
            self.add(database, dumped_as, metadata, files.documents);
        }
        Ok(())
    }

    fn add(
        &mut self,
        database: &str,
        dumped_as: Namespace,
        metadata: Metadata,
        documents: Option<PathBuf>,
    ) {
        let Metadata { options, indexes, .. } = metadata;
        let name = dumped_as.1.clone();
        let is_own = name.starts_with("system.") && name != "system.js";
        if is_own || is_internal(&dumped_as.0) {
            self.left_out.push(format!("{database}.{name}"));
            return;
        }
        let dumped_as = match options.get("timeseries") {
            Some(_) => (dumped_as.0, format!("{BUCKETS}{name}")),
            None => dumped_as,
        };
        let documents = documents.filter(|_| options.get("viewOn").is_none());
        let database = database.to_owned();
        self.collections.push(DumpedCollection {
            database,
            name,
            dumped_as,
            documents,
            options,
            indexes,
        });
    }

    /// Selects `collection`, and puts views last.
    fn finish(mut self, place: &str, collection: Option<&str>) -> Result<Dump, Failure> {
        if let Some(collection) = collection {
            self.collections.retain(|found| found.name == collection);
        }
        if self.collections.is_empty() {
            let what = format!("{place} holds no such collection of a dump");
            return Err(Failure::failed(what));
        }
        self.collections.sort_by_key(DumpedCollection::is_view);
        Ok(self)
    }
}

/// The same files, those of buckets with the metadata of their time series.
fn with_buckets(mut files: BTreeMap<String, Files>) -> BTreeMap<String, Files> {
    let series: Vec<String> =
        files.keys().filter_map(|stem| stem.strip_prefix(BUCKETS)).map(str::to_owned).collect();
    for name in series {
        if files.get(&name).is_none_or(|found| found.documents.is_some()) {
            continue;
        }
        let buckets = files.remove(&format!("{BUCKETS}{name}"));
        if let (Some(found), Some(buckets)) = (files.get_mut(&name), buckets) {
            found.documents = buckets.documents;
        }
    }
    files
}

/// The files of a database's directory, by what their names begin with.
fn files_of(directory: &Path) -> Result<BTreeMap<String, Files>, Failure> {
    let mut files: BTreeMap<String, Files> = BTreeMap::new();
    for path in entries(directory)?.into_iter().filter(|path| path.is_file()) {
        let name = name_of(&path);
        let name = compressed::plain_name(&name);
        if let Some(stem) = name.strip_suffix(METADATA) {
            files.entry(stem.to_owned()).or_default().metadata = Some(path);
        } else if let Some(stem) = name.strip_suffix(DOCUMENTS) {
            files.entry(stem.to_owned()).or_default().documents = Some(path);
        }
    }
    // mongodump --oplog writes a file beside the databases: it is no collection, and has no
    // metadata.
    files.retain(|stem, found| stem != "oplog" || found.metadata.is_some());
    Ok(files)
}

fn entries(directory: &Path) -> Result<Vec<PathBuf>, Failure> {
    let failed = |error| Failure::file(&directory.display().to_string(), &error);
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        paths.push(entry.map_err(failed)?.path());
    }
    paths.sort_unstable();
    Ok(paths)
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The description of a collection beside its documents.
struct Metadata {
    options: DocumentBuf,
    indexes: Vec<DocumentBuf>,
    /// The collection's name, where it is given.
    name: Option<String>,
}

impl Default for Metadata {
    fn default() -> Metadata {
        Metadata { options: DocumentBuf::empty(), indexes: Vec::new(), name: None }
    }
}

fn read_metadata(path: &Path) -> Result<Metadata, Failure> {
    let place = path.display().to_string();
    let failed = |error| Failure::file(&place, &error);
    let file = File::open(path).map_err(failed)?;
    let mut text = String::new();
    let reader = compressed::plain(file).map_err(failed)?;
    reader.take(METADATA_BYTES_MAX).read_to_string(&mut text).map_err(failed)?;
    parse_metadata(&place, &text)
}

fn parse_metadata(place: &str, text: &str) -> Result<Metadata, Failure> {
    if text.is_empty() {
        return Ok(Metadata::default());
    }
    let metadata = extended_json::parse(text)
        .map_err(|error| Failure::failed(format!("metadata of {place}: {error}")))?;
    let document = |value: Value<'_>| value.as_document().map(|document| document.to_buf());
    let options = metadata.get("options").and_then(document).unwrap_or_else(DocumentBuf::empty);
    let indexes = metadata.get("indexes").and_then(|indexes| indexes.as_array());
    let indexes = indexes.iter().flat_map(|indexes| indexes.iter()).filter_map(document).collect();
    let name = metadata.get("collectionName").and_then(|name| name.as_str()).map(str::to_owned);
    Ok(Metadata { options, indexes, name })
}
