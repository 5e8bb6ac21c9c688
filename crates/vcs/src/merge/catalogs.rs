//! Three-way merge of whole catalogs: the collections that the other side changed, one by one.
//!
//! 1. Several best common ancestors (a criss-cross) are merged into one base first, and what they
//!    are compared with is made in the same way, as git does.
//! 2. What both sides renamed, or one renamed and the other dropped, is found ([`renames`]), and
//!    names that have another collection than before ([`reused_names`]).
//! 3. For each collection that differs between the base and the other side, `merge_collection`.
//! 4. The reasons for refusing the merge (too many indexes, a document that gets too large) are
//!    reported all at once, and nothing was changed.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use bytes::Bytes;
use frond_db::inside::merge_rules::{MergeRules, MergeSide};
use frond_db::inside::{CatalogEntry, Error, ErrorKind, parse_variables};
use frond_doc::{DocumentBuilder, Value};
use frond_query::Code;
use frond_store::{ChunkHash, ChunkStore, Lifetime, PutFor};
use frond_tree::{Edit, Tree, TreeError, TreeFormat};

use crate::conflict::StoredConflict;
use crate::diff::{ChangedCollection, changed_collections};
use crate::history::base;
use crate::merge::collection::{CollectionMerge, Decide, MergeFault, MergedCollection};
use crate::merge::renames::{self, Work, Works};
use crate::merge::reused_names;
use crate::repository::Repository;
use crate::three_way::{Side, ThreeWay};
use crate::{history, state};

/// Problems named in one error; there may be a million.
const PROBLEMS_NAMED_MAX: usize = 100;

/// The rules for merging catalogs of a database.
pub(crate) struct CatalogMerge<'a> {
    pub database: &'a Repository,
    pub format: TreeFormat,
    /// The call's.
    pub rules: &'a MergeRules,
    /// Conflicts of the schema that were decided before, by id.
    pub decisions: &'a BTreeMap<String, MergeSide>,
    /// Whether rules of fields count, as in every merge that a user asked for.
    pub by_rules: bool,
}

/// The merged catalog, and what did not merge.
pub(crate) struct MergedCatalog {
    pub catalog: Tree,
    pub conflicts: Vec<StoredConflict>,
    /// Conflicts of the schema. If there are any, nothing else counts.
    pub schema: Vec<StoredConflict>,
}

/// The result of merging several bases.
enum MergedBases {
    Tree(Tree),
    /// The base of these must be known first.
    Needs(Vec<ChunkHash>),
}

impl CatalogMerge<'_> {
    /// Merges three ways, as the rules say. If a side is preferred, the
    /// conflicts are what the other one lost.
    ///
    /// # Errors
    /// If a chunk is damaged or missing, or a schema can't be read.
    pub fn merge(&self, catalogs: ThreeWay<&Tree>) -> Result<MergedCatalog, Error> {
        let prefer = match self.rules.on_conflict {
            Some(MergeSide::Theirs) => Side::Theirs,
            _ => Side::Ours,
        };
        self.merge_catalogs(self.database.frond().engine().store(), catalogs, prefer)
    }

    /// The catalog that was merged, and what it would be with theirs where both sides conflict;
    /// none if that can't be.
    ///
    /// # Errors
    /// As [`CatalogMerge::merge`].
    pub fn both_ways(
        &self,
        catalogs: ThreeWay<&Tree>,
        merged: &MergedCatalog,
    ) -> Result<Vec<ChunkHash>, Error> {
        let store = self.database.frond().engine().store();
        match self.merge_catalogs(store, catalogs, Side::Theirs) {
            Ok(other) if other.schema.is_empty() => {
                Ok(vec![merged.catalog.root, other.catalog.root])
            }
            Ok(_) => Ok(Vec::new()),
            Err(error) if error.kind == ErrorKind::Invalid => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// Returns the catalog that both sides are compared with. Several best common ancestors are
    /// merged into one; where they conflict, the one before them is taken. So a change that each
    /// side took from another of them, or a decision between them, is a conflict again, while any
    /// one of them as the base would decide for the side that took the other. There may be several
    /// ancestors before them again, down to where the branches last had a single best one: a merge
    /// for each round in which both merged each other.
    ///
    /// # Errors
    /// `Damaged` if a commit or a catalog can't be read; `Unavailable` if the store takes no
    /// chunks.
    pub fn base_catalog(
        &self,
        store: &Arc<dyn ChunkStore>,
        bases: &[ChunkHash],
    ) -> Result<Tree, Error> {
        let mut known: HashMap<Vec<ChunkHash>, Tree> = HashMap::new();
        // A list, not the stack: there may be thousands of rounds.
        let mut wanted = vec![bases.to_vec()];
        while let Some(bases) = wanted.pop() {
            match self.merge_bases(store, &bases, &known)? {
                MergedBases::Tree(merged) => {
                    known.insert(bases, merged);
                }
                MergedBases::Needs(before) => wanted.extend([bases, before]),
            }
        }
        known.remove(bases).ok_or_else(|| Error::internal("the base of a merge was not made"))
    }

    /// Merges `bases`, in their order, each with what `known` has as its base.
    fn merge_bases(
        &self,
        store: &Arc<dyn ChunkStore>,
        bases: &[ChunkHash],
        known: &HashMap<Vec<ChunkHash>, Tree>,
    ) -> Result<MergedBases, Error> {
        let mut load = |hash| history::load(&**store, hash);
        let Some(first) = bases.first() else {
            // Branches that were made before the first commit have nothing in common.
            return Ok(MergedBases::Tree(Tree::empty(&**store, self.format)?));
        };
        let mut befores = Vec::new();
        for (done, other) in bases.iter().enumerate().skip(1) {
            let before = base::merge_bases(&bases[..done], *other, &mut load)?;
            match known.get(&before) {
                Some(before) => befores.push((*before, *other)),
                None => return Ok(MergedBases::Needs(before)),
            }
        }
        let mut merged = load(*first)?.catalog;
        for (before, other) in befores {
            let theirs = load(other)?.catalog;
            let sides = ThreeWay::new(&before, &merged, &theirs);
            merged = self.merge_catalogs(store, sides, Side::Base)?.catalog;
        }
        Ok(MergedBases::Tree(merged))
    }

    /// Merges the collections that theirs changed since the base into our catalog.
    fn merge_catalogs(
        &self,
        store: &Arc<dyn ChunkStore>,
        catalogs: ThreeWay<&Tree>,
        prefer: Side,
    ) -> Result<MergedCatalog, Error> {
        let ours = catalogs.ours;
        let mut edits: Vec<Result<(Bytes, Edit), TreeError>> = Vec::new();
        let mut chunks = Vec::new();
        let (mut conflicts, mut schema) = (Vec::new(), Vec::new());
        let mut refused = Vec::new();
        for (name, work) in self.works(store, catalogs, prefer, &mut schema)? {
            self.database.interrupt().check()?;
            let merged = match work {
                Work::Merge(sides) => self.merge_collection(store, &name, &sides, prefer),
                Work::Becomes(entry) => Ok(MergedCollection::whole(entry.as_ref(), Vec::new())),
            };
            let MergedCollection { entry, conflicts: more, schema: own } = match merged {
                Ok(merged) => merged,
                Err(MergeFault::Refused(why)) => {
                    refused.push(why);
                    continue;
                }
                Err(MergeFault::Failed(error)) => return Err(error),
            };
            conflicts.extend(more);
            schema.extend(own);
            if entry == state::catalog_entry(store, ours, &name)? {
                continue;
            }
            let key = Bytes::copy_from_slice(name.as_bytes());
            let chunk = entry.map(|entry| entry.encode());
            let put = chunk.as_ref().map(|chunk| Edit::Put(state::entry_value(chunk)));
            edits.push(Ok((key, put.unwrap_or(Edit::Delete))));
            chunks.extend(chunk);
        }
        refuse(refused)?;
        let store = PutFor::new(&**store, Lifetime::Lasting);
        store.put_many(&chunks)?;
        let catalog = ours.apply(&store, &mut edits.into_iter())?;
        Ok(MergedCatalog { catalog, conflicts, schema })
    }

    /// What becomes of the collections that theirs changed, and of those that were renamed.
    fn works(
        &self,
        store: &Arc<dyn ChunkStore>,
        catalogs: ThreeWay<&Tree>,
        prefer: Side,
        schema: &mut Vec<StoredConflict>,
    ) -> Result<Works, Error> {
        let changed = changed_collections(store, catalogs.base, catalogs.theirs)?;
        let (mut reused, mut renamed) = (Vec::new(), Vec::new());
        // What is carried over a merge that waits is known by its names: it was done one by one.
        if self.by_rules {
            reused = reused_names::find(store, catalogs, &changed)?;
            renamed = renames::find(store, catalogs, &changed, &reused)?;
        }
        let mut works = Works::new();
        for ChangedCollection { name, from, to, .. } in changed {
            let ours = state::catalog_entry(store, catalogs.ours, &name)?;
            works.insert(name, Work::Merge(Box::new(ThreeWay::new(from, ours, to))));
        }
        let decide = Decide { rules: self.rules, decisions: self.decisions, prefer };
        for reused in reused {
            let chosen = reused.conflict().map(|conflict| decide.about(conflict, schema));
            reused.apply(chosen, &mut works);
        }
        for renamed in renamed {
            // Without a conflict it has a name on which both agree.
            let chosen = renamed.conflict().map(|conflict| decide.about(conflict, schema));
            renamed.apply(chosen.unwrap_or(Side::Ours), &mut works);
        }
        Ok(works)
    }

    fn merge_collection(
        &self,
        store: &Arc<dyn ChunkStore>,
        name: &str,
        sides: &ThreeWay<Option<CatalogEntry>>,
        prefer: Side,
    ) -> Result<MergedCollection, MergeFault> {
        let merge = CollectionMerge {
            store,
            // A base is only compared with: it is never stored as a client's document.
            document_bytes_max: match prefer {
                Side::Base => u64::MAX,
                _ => self.database.frond().document_bytes_max(),
            },
            format: self.format,
            namespace: self.database.namespace(name),
            collection: name,
            base: sides.base.as_ref(),
            ours: sides.ours.as_ref(),
            theirs: sides.theirs.as_ref(),
            prefer,
            rules: self.rules,
            decisions: self.decisions,
            by_rules: self.by_rules,
            variables: parse_variables(self.database.frond(), None, self.database.interrupt())?,
        };
        merge.run()
    }
}

/// An error that names `problems`, if there are any.
fn refuse(problems: Vec<String>) -> Result<(), Error> {
    let Some(first) = problems.first() else {
        return Ok(());
    };
    let more = match problems.len() {
        1 => String::new(),
        count => format!(" (and {} more)", count - 1),
    };
    let mut details = DocumentBuilder::new();
    details.begin_array("conflicts");
    for problem in problems.iter().take(PROBLEMS_NAMED_MAX) {
        details.push(Value::String(problem));
    }
    details.end();
    let error = Error::invalid(Code::OperationFailed, format!("can't merge: {first}{more}"));
    Err(error.with_details(details.build()))
}
