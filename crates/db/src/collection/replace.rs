//! Replacing a collection's whole content at once: `$out`.
//!
//! 1. All documents are read and checked by the collection's validator, their keys sorted, and the trees of documents and
//!    indexes built: in the store, seen by nobody. They are built once, however often the transaction runs. Documents that
//!    are copied from the same repository may come as their pieces ([`super::copy`]).
//! 2. One transaction makes them the bases of new trees, names these in the working entry, and drops
//!    the old ones. It conflicts with every concurrent write to the collection.
//!
//! The collection keeps its options and indexes, as MongoDB's `$out` does. Should they have changed
//! meanwhile, the second step asks for the first again.

use std::collections::BTreeMap;

use bytes::Bytes;
use frond_doc::pieces::LargeDocument;
use frond_doc::{DocumentBuf, Value as BsonValue, key, normalise};
use frond_engine::{Durability, Transaction};
use frond_query::Code;
use frond_query::pipeline::Documents;
use frond_store::ChunkStore;
use frond_tree::{Entry, Tree, TreeError, TreeFormat, Value};

use crate::catalog::build::Builder;
use crate::catalog::{CatalogView, adopt, duplicate};
use crate::contention::{LatchMode, Scope};
use crate::database::Database;
use crate::definition::validation::Validator;
use crate::definition::{IndexSpec, view};
use crate::error::Error;
use crate::interrupt::Interrupt;
use crate::large::{self, value_of};
use crate::name;
use crate::schema::{Index, TreeRef};
use crate::system::{LiveCollection, LiveIndex, WorkingEntry};
use crate::transact::Outcome;

/// What a collection will hold, by the keys of `_id`.
pub(super) type Content = BTreeMap<Bytes, NewDocument>;

/// A document that a collection will hold.
pub(super) enum NewDocument {
    /// All of it.
    Whole(DocumentBuf),
    /// One that is stored already, in the collection's repository.
    Pieces(LargeDocument),
}

impl NewDocument {
    fn value(&self, store: &dyn ChunkStore, format: TreeFormat) -> Result<Value, TreeError> {
        match self {
            NewDocument::Whole(document) => value_of(store, format, document),
            NewDocument::Pieces(large) => Ok(large.value()),
        }
    }

    /// The outermost fields of these names at least, and `_id`; `None`: all.
    fn with_fields(
        &self,
        store: &dyn ChunkStore,
        names: Option<Vec<&[u8]>>,
    ) -> Result<DocumentBuf, Error> {
        match (self, names) {
            (NewDocument::Whole(document), _) => Ok(document.clone()),
            (NewDocument::Pieces(large), None) => Ok(large::read(store, large)?),
            (NewDocument::Pieces(large), Some(mut names)) => {
                if !names.contains(&&b"_id"[..]) {
                    names.push(b"_id");
                }
                Ok(large.project(store, &names)?)
            }
        }
    }
}

/// Trees that hold a collection's new content, for a collection with these options, if there is one.
struct Built {
    options: Option<DocumentBuf>,
    documents: Tree,
    indexes: Vec<(IndexSpec, Tree)>,
}

impl Database {
    /// Replaces the content of `collection`, made where it is absent, by `documents`.
    pub(crate) fn replace_collection(
        &self,
        collection: &str,
        documents: Documents<'_>,
        durability: Durability,
    ) -> Result<(), Error> {
        name::check_collection(self.repository_name(), collection)?;
        let mut content = Content::new();
        for document in documents {
            let document = normalise::for_insert(&document?, || self.frond().new_object_id())?;
            self.check_document(document.view())?;
            let id_key = key::of_value(document.get("_id").unwrap_or(BsonValue::Null));
            if content.contains_key(&id_key) {
                return Err(duplicate::of_id(&self.namespace(collection), document.view()));
            }
            content.insert(id_key, NewDocument::Whole(document));
        }
        self.replace_content(collection, &content, durability)
    }

    /// As `replace_collection`, of documents that were checked.
    pub(super) fn replace_content(
        &self,
        collection: &str,
        content: &Content,
        durability: Durability,
    ) -> Result<(), Error> {
        let branch = self.writable_branch()?;
        let repository = self.begin_to_exist(branch, durability)?;
        // What is put must outlive a collection of garbage that begins before the transaction names it.
        let _session = self.frond().engine().store().session();
        loop {
            let reader = self.reader();
            let found = CatalogView::open(&reader, self)?.collection(collection)?;
            let (options, indexes) = match found {
                Some(found) => (Some(found.options), found.indexes),
                None => (None, Vec::new()),
            };
            if let Some(options) = &options {
                self.check_content(options, content)?;
            }
            let (documents, indexes) =
                self.build_content(collection, repository, content, &indexes)?;
            let built = Built { options, documents, indexes };
            let scope = Scope::collection(self.repository_name(), branch, collection);
            let swapped = self.transact(scope, LatchMode::Replacer, durability, |transaction| {
                let done = self.swap(transaction, branch, collection, &built)?;
                Ok(Outcome::commit_if(done, done))
            })?;
            if swapped {
                return Ok(());
            }
        }
    }

    /// Makes the repository if it isn't there, so that its trees' format is known.
    pub(crate) fn begin_to_exist(
        &self,
        branch: &str,
        durability: Durability,
    ) -> Result<TreeFormat, Error> {
        let scope = Scope::branch(self.repository_name(), branch);
        self.transact(scope, LatchMode::Writer, durability, |transaction| {
            let repository = adopt::ensure_repository(transaction, self, branch)?;
            Ok(Outcome::Commit(repository.format()))
        })
    }

    /// Checks all by the validator that the options name.
    fn check_content(&self, options: &DocumentBuf, content: &Content) -> Result<(), Error> {
        let store = &**self.frond().engine().store();
        let validator = Validator::of_options(options.view(), self.frond().now_millis())?;
        let Some(validator) = validator.filter(|_| self.validates()) else { return Ok(()) };
        for document in content.values() {
            let names = validator.outermost_names();
            validator.check(None, document.with_fields(store, names)?.view())?;
        }
        Ok(())
    }

    /// The trees of documents and of each index.
    fn build_content(
        &self,
        collection: &str,
        format: TreeFormat,
        content: &Content,
        indexes: &[Index],
    ) -> Result<(Tree, Vec<(IndexSpec, Tree)>), Error> {
        let store = &**self.frond().engine().store();
        let mut entries = content.iter().map(|(key, document)| {
            Ok(Entry { key: key.clone(), value: document.value(store, format)? })
        });
        let documents = Tree::load(store, format, &mut entries)?;
        let namespace = self.namespace(collection);
        let mut built = Vec::new();
        for index in indexes {
            let indexed =
                |document: &NewDocument| document.with_fields(store, index.outermost_names());
            let mut documents =
                content.iter().map(|(key, document)| Ok((key.clone(), indexed(document)?)));
            let builder = Builder {
                frond: self.frond(),
                format,
                namespace: &namespace,
                interrupt: &Interrupt::default(),
                progress: None,
            };
            let find = |id_key: &[u8]| content.get(id_key).map(indexed).transpose();
            let tree = builder.index_tree(index, &mut documents, &find)?;
            built.push((index.spec.clone(), tree));
        }
        Ok((documents, built))
    }

    /// Swaps the new trees in; `false` if options or indexes are others than those that they were
    /// built for.
    fn swap(
        &self,
        transaction: &mut Transaction,
        branch: &str,
        name: &str,
        built: &Built,
    ) -> Result<bool, Error> {
        let engine = self.frond().engine();
        adopt::ensure_repository(transaction, self, branch)?;
        let found = adopt::find(transaction, self, branch, name)?;
        let (uuid, options, old) = match found {
            Some(found) => {
                view::refuse(found.options.view(), &self.namespace(name))?;
                if found.order.is_some() {
                    let message = format!(
                        "namespace '{}' is capped so it can't be used for $out",
                        self.namespace(name)
                    );
                    return Err(Error::invalid(Code::Location(17152), message));
                }
                let specs = found.indexes.iter().map(|index| &index.spec);
                if built.options.as_ref() != Some(&found.options) {
                    return Ok(false);
                }
                if !specs.eq(built.indexes.iter().map(|(spec, _)| spec)) {
                    return Ok(false);
                }
                (found.uuid, found.options.clone(), found.trees())
            }
            None if built.indexes.is_empty() => {
                (self.frond().new_uuid(), DocumentBuf::empty(), Vec::new())
            }
            None => return Ok(false),
        };
        for tree in old {
            if let TreeRef::Live(id) = tree {
                transaction.drop_tree(id)?;
            }
        }
        let mut place = |tree: Tree| {
            let id = engine.reserve_tree_id();
            transaction.set_base(id, tree).map(|()| id)
        };
        let documents = place(built.documents)?;
        let mut indexes = Vec::new();
        for (spec, tree) in &built.indexes {
            indexes.push(LiveIndex { spec: spec.clone(), tree: place(*tree)? });
        }
        let live = LiveCollection { uuid, options, documents, indexes, order: None };
        adopt::put_entry(transaction, self, branch, name, &WorkingEntry::Live(live))?;
        Ok(true)
    }
}
