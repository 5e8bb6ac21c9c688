//! Three-way merge of one collection: options, indexes, documents.
//!
//! 1. A side that is as the base was gives way to the other as a whole: nothing below is read.
//! 2. Options and each index, by name, are merged as values: what one side changed counts, equal
//!    changes agree. Anything else, as a collection that one side dropped and the other changed, or
//!    that both made with other collations, is a conflict of the schema: it is decided as the
//!    caller asked, or reported.
//! 3. Documents: the trees' differences from the base are interleaved; what both sides changed is
//!    merged field by field, or as the rules say.
//! 4. Documents that the validator or a unique index won't have are held back ([`hold_back`]).
//! 5. Each index starts from a side that has it, ours first, and gets the entries of the documents
//!    that differ between that side and the result.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use frond_db::inside::changed_entries::{self, Duplicate, Refused};
use frond_db::inside::large::{read_document, value_of};
use frond_db::inside::merge_rules::{DocumentRules, MergeRules, MergeSide};
use frond_db::inside::{CatalogEntry, Error, INDEXES_MAX, IndexSpec, lie_alike};
use frond_doc::{DocumentBuf, DocumentBuilder, Value, ValueBuf};
use frond_query::expression::Variables;
use frond_store::{ChunkHash, ChunkStore};
use frond_tree::{Change, Edit, MergeConflict, Tree, TreeError, TreeFormat, Value as TreeValue};
use hold_back::Sides;

use crate::ConflictKind;
use crate::conflict::StoredConflict;
use crate::merge::fields::merge_by_rules;
use crate::merge::notes::MergeNotes;
use crate::three_way::{Side, ThreeWay};

mod hold_back;
mod moved_points;

type Changes<'a> = Box<dyn Iterator<Item = Result<Change, TreeError>> + 'a>;

/// A collection on the three sides; `None` where it doesn't exist.
pub(crate) struct CollectionMerge<'a> {
    pub store: &'a Arc<dyn ChunkStore>,
    /// A merge that makes a larger one is refused.
    pub document_bytes_max: u64,
    pub format: TreeFormat,
    /// The namespace, for messages.
    pub namespace: String,
    pub collection: &'a str,
    pub base: Option<&'a CatalogEntry>,
    pub ours: Option<&'a CatalogEntry>,
    pub theirs: Option<&'a CatalogEntry>,
    /// The side that a document takes where both sides conflict.
    pub prefer: Side,
    /// The call's.
    pub rules: &'a MergeRules,
    /// Conflicts of the schema that were decided before, by id.
    pub decisions: &'a BTreeMap<String, MergeSide>,
    /// Whether rules of fields count.
    pub by_rules: bool,
    /// The variables for what validators evaluate.
    pub variables: Variables,
}

/// The reason why a collection isn't merged.
pub(crate) enum MergeFault {
    /// The merge as a whole is refused, for this reason.
    Refused(String),
    /// It can't be decided: something can't be read or written.
    Failed(Error),
}

impl From<Error> for MergeFault {
    fn from(error: Error) -> MergeFault {
        MergeFault::Failed(error)
    }
}

impl From<TreeError> for MergeFault {
    fn from(error: TreeError) -> MergeFault {
        MergeFault::Failed(error.into())
    }
}

/// The result of merging the documents.
struct MergedDocuments {
    sides: Sides,
    conflicts: Vec<StoredConflict>,
    /// Keys of documents that both sides changed.
    both: BTreeSet<Bytes>,
}

/// The result of merging a collection.
pub(crate) struct MergedCollection {
    pub entry: Option<CatalogEntry>,
    /// The conflicts in the order of documents; the entry has what is preferred there.
    pub conflicts: Vec<StoredConflict>,
    /// Conflicts of the schema that are not decided; the entry has ours there.
    pub schema: Vec<StoredConflict>,
}

impl MergedCollection {
    pub fn whole(entry: Option<&CatalogEntry>, schema: Vec<StoredConflict>) -> MergedCollection {
        let entry = entry.cloned();
        MergedCollection { entry, conflicts: Vec::new(), schema }
    }
}

/// The decision of conflicts of the schema.
pub(super) struct Decide<'a> {
    pub rules: &'a MergeRules,
    pub decisions: &'a BTreeMap<String, MergeSide>,
    pub prefer: Side,
}

impl Decide<'_> {
    /// Returns the side that counts; ours, and `schema` gets the conflict, where that isn't
    /// decided.
    pub fn about(&self, conflict: StoredConflict, schema: &mut Vec<StoredConflict>) -> Side {
        let decided = self.decisions.get(&conflict.id()).copied().or(self.rules.on_conflict);
        match decided {
            _ if self.prefer == Side::Base => Side::Base,
            Some(MergeSide::Ours) => Side::Ours,
            Some(MergeSide::Theirs) => Side::Theirs,
            None => {
                schema.push(conflict);
                Side::Ours
            }
        }
    }
}

impl CollectionMerge<'_> {
    /// Merges.
    ///
    /// # Errors
    /// [`MergeFault::Refused`] if the result would break a limit, or an index that was decided for
    /// can't have the documents; [`MergeFault::Failed`] if a tree can't be read, or the store takes
    /// no chunks.
    pub fn run(&self) -> Result<MergedCollection, MergeFault> {
        let mut schema = Vec::new();
        let looks_at_equal = match self.ours {
            Some(ours) => self.document_rules(&ours.options)?.looks_at_equal_changes(),
            None => false,
        };
        if self.theirs == self.base || (self.ours == self.theirs && !looks_at_equal) {
            return Ok(MergedCollection::whole(self.ours, schema));
        }
        if self.ours == self.base {
            return Ok(MergedCollection::whole(self.theirs, schema));
        }
        let alike = self.ours.zip(self.theirs).filter(|(ours, theirs)| {
            // Under other keys, documents of the two have nothing to do with each other; by another
            // collation, what is one `_id` here may be two there.
            let collation =
                |entry: &CatalogEntry| entry.options.get("collation").map(ValueBuf::from);
            lie_alike(ours.series().as_ref(), theirs.series().as_ref())
                && collation(ours) == collation(theirs)
        });
        let alike = match alike {
            Some((ours, theirs)) if self.are_points_moved(ours, theirs)? => None,
            alike => alike,
        };
        let Some((ours, theirs)) = alike else {
            return Ok(self.choose_whole(schema));
        };
        let options = self.merge_options(ours, theirs, &mut schema);
        let mut specs = self.merge_specs(ours, theirs, &mut schema).map_err(MergeFault::Refused)?;
        if !schema.is_empty() {
            // Nothing is merged before that is decided.
            return Ok(MergedCollection::whole(self.ours, schema));
        }
        let rules = self.document_rules(&options)?;
        let MergedDocuments { mut sides, mut conflicts, both } =
            self.merge_documents(ours, theirs, &rules)?;
        let entries = [ours, theirs];
        self.hold_back_invalid(&mut sides, &options, entries, both, &mut conflicts)?;
        let trees = loop {
            let duplicates =
                match self.merge_indexes(&mut sides, &specs, entries, &mut conflicts)? {
                    Ok(trees) => break trees,
                    Err(duplicates) => duplicates,
                };
            if let Some(why) = self.leave_out(&mut specs, duplicates, &mut schema) {
                return Err(MergeFault::Refused(why));
            }
            if !schema.is_empty() {
                return Ok(MergedCollection::whole(self.ours, schema));
            }
        };
        assert_eq!(trees.len(), specs.len(), "each index of what is merged has its tree");
        let roots = trees.iter().map(|tree| tree.root);
        let indexes = specs.into_iter().zip(roots).collect();
        let entry = Some(CatalogEntry::new(options, sides.merged.root, indexes));
        Ok(MergedCollection { entry, conflicts, schema })
    }

    /// Takes one side's collection whole, as is decided: the two can't be merged.
    fn choose_whole(&self, mut schema: Vec<StoredConflict>) -> MergedCollection {
        let entries = ThreeWay::new(self.base, self.ours, self.theirs);
        let described = entries.map(|entry| entry.map(description));
        let kind = ConflictKind::Collection;
        let lost = StoredConflict::of_schema(self.collection, kind, "", described.clone());
        let chosen = self.decide(kind, "", described, &mut schema);
        let mut merged = MergedCollection::whole(entries.on(chosen), schema);
        if chosen == Side::Theirs && !self.by_rules {
            merged.conflicts.push(lost);
        }
        merged
    }

    /// Whether points of a time series were moved by both sides.
    fn are_points_moved(&self, ours: &CatalogEntry, theirs: &CatalogEntry) -> Result<bool, Error> {
        let (Some(series), Some(base)) = (ours.series(), self.base) else { return Ok(false) };
        let [base, ours, theirs] = [base, ours, theirs].map(|it| it.documents_tree(self.format));
        moved_points::are_moved_by_both(self.store, &series, &base, [&ours, &theirs])
    }

    fn document_rules(&self, options: &DocumentBuf) -> Result<DocumentRules, Error> {
        let mut rules = self.rules.of_collection(self.collection, options)?;
        if !self.by_rules {
            rules.fields.clear();
        }
        Ok(rules)
    }

    /// Decides about indexes that came from theirs and that our documents don't fit: reported as a
    /// conflict, left out, or, if they must stay, a reason in words to refuse the merge.
    fn leave_out(
        &self,
        specs: &mut Vec<IndexSpec>,
        duplicates: Vec<Refused>,
        schema: &mut Vec<StoredConflict>,
    ) -> Option<String> {
        let names: BTreeSet<&str> = duplicates.iter().map(|(spec, _)| &spec.name[..]).collect();
        for name in names {
            let position = specs.iter().position(|spec| spec.name == name)?;
            let described = ThreeWay::new(None, None, Some(specs[position].to_document()));
            if self.decide(ConflictKind::Index, name, described, schema) == Side::Theirs {
                let (_, duplicate) = duplicates.iter().find(|(spec, _)| spec.name == name)?;
                return Some(format!(
                    "an index of theirs can't have our documents, change them first: {}",
                    duplicate.error.message
                ));
            }
            specs.remove(position);
        }
        None
    }

    /// Returns the side that counts where both sides changed a part of the schema.
    fn decide(
        &self,
        kind: ConflictKind,
        name: &str,
        sides: ThreeWay<Option<DocumentBuf>>,
        schema: &mut Vec<StoredConflict>,
    ) -> Side {
        let conflict = StoredConflict::of_schema(self.collection, kind, name, sides);
        let Self { rules, decisions, prefer, .. } = *self;
        Decide { rules, decisions, prefer }.about(conflict, schema)
    }

    fn merge_options(
        &self,
        ours: &CatalogEntry,
        theirs: &CatalogEntry,
        schema: &mut Vec<StoredConflict>,
    ) -> DocumentBuf {
        let sides = ThreeWay::new(self.base, Some(ours), Some(theirs));
        let sides = sides.map(|side| side.map(|side| &side.options));
        let merged = sides.agreed().unwrap_or_else(|| {
            let described = sides.map(|side| side.cloned());
            sides.on(self.decide(ConflictKind::Options, "", described, schema))
        });
        merged.unwrap_or(&ours.options).clone()
    }

    fn merge_specs(
        &self,
        ours: &CatalogEntry,
        theirs: &CatalogEntry,
        schema: &mut Vec<StoredConflict>,
    ) -> Result<Vec<IndexSpec>, String> {
        let base = self.base.map(specs).unwrap_or_default();
        let (ours, theirs) = (specs(ours), specs(theirs));
        let mut merged: Vec<IndexSpec> = Vec::new();
        let only_theirs = theirs.keys().filter(|name| !ours.contains_key(*name));
        for name in ours.keys().chain(only_theirs) {
            let sides = ThreeWay::new(&base, &ours, &theirs).map(|side| side.get(name).copied());
            let chosen = sides.agreed().unwrap_or_else(|| {
                let described = sides.map(|side| side.map(IndexSpec::to_document));
                sides.on(self.decide(ConflictKind::Index, name, described, schema))
            });
            merged.extend(chosen.cloned());
        }
        self.merge_twins(&mut merged, &ours, schema);
        // The index of `_id` counts, too.
        if merged.len() >= INDEXES_MAX && self.prefer != Side::Base {
            return Err(format!(
                "collection {} got more than {INDEXES_MAX} indexes",
                self.namespace
            ));
        }
        Ok(merged)
    }

    /// Decides between two names that the sides gave to the same index.
    fn merge_twins(
        &self,
        merged: &mut Vec<IndexSpec>,
        ours: &BTreeMap<&str, &IndexSpec>,
        schema: &mut Vec<StoredConflict>,
    ) {
        let mut position = 0;
        while let Some(spec) = merged.get(position).cloned() {
            let before = &merged[..position];
            let twin = before.iter().position(|before| before.is_same_index(&spec));
            let Some(twin) = twin else {
                position += 1;
                continue;
            };
            let is_ours = ours.contains_key(spec.name.as_str());
            let (our, their) = if is_ours { (position, twin) } else { (twin, position) };
            let mut names = [&merged[our].name, &merged[their].name];
            names.sort();
            let name = format!("{} = {}", names[0], names[1]);
            let described = [our, their].map(|at| Some(merged[at].to_document()));
            let [our_spec, their_spec] = described;
            let described = ThreeWay::new(None, our_spec, their_spec);
            let goes = match self.decide(ConflictKind::Index, &name, described, schema) {
                Side::Base => {
                    [position, twin].into_iter().max_by_key(|at| merged[*at].name.clone())
                }
                Side::Ours => Some(their),
                Side::Theirs => Some(our),
            };
            merged.remove(goes.unwrap_or(position));
            position = 0;
        }
    }

    /// Merges the documents; the preferred side's stays where both conflict. Refused if a document
    /// would become too large to be one.
    fn merge_documents(
        &self,
        ours: &CatalogEntry,
        theirs: &CatalogEntry,
        rules: &DocumentRules,
    ) -> Result<MergedDocuments, MergeFault> {
        let base = match self.base {
            Some(base) => base.documents_tree(self.format),
            None => Tree::empty(&**self.store, self.format)?,
        };
        let (ours, theirs) = (ours.documents_tree(self.format), theirs.documents_tree(self.format));
        let mut conflicts = Vec::new();
        let mut summed = Vec::new();
        if rules.looks_at_equal_changes() {
            let sides = ThreeWay::new(&base, &ours, &theirs);
            summed = self.merge_equal_changes(sides, rules, &mut conflicts)?;
        }
        let (mut too_large, mut both) = (None, BTreeSet::new());
        let mut resolve = |conflict: MergeConflict| {
            both.insert(conflict.key.clone());
            let merged = self.merge_document(conflict, rules, &mut conflicts)?;
            let Some(merged) = merged else { return Ok(None) };
            let Some(document) = merged else { return Ok(Some(Edit::Delete)) };
            let bytes = document.as_bytes().len() as u64;
            if bytes > self.document_bytes_max {
                too_large.get_or_insert(bytes);
            }
            Ok(Some(Edit::Put(value_of(&**self.store, self.format, &document)?)))
        };
        let mut noted = MergeNotes::default();
        let mut note = |key: &Bytes, from: Option<&TreeValue>, to: Option<&TreeValue>| {
            noted.note(key, from, to);
        };
        let sides = [&base, &ours, &theirs];
        let merged = Tree::merge_noting(self.store, sides, &mut resolve, &mut note)?;
        noted.finish(&ours, &merged);
        let merged = merged.apply(&**self.store, &mut summed.into_iter().map(Ok))?;
        if let Some(bytes) = too_large {
            return Err(MergeFault::Refused(format!(
                "a document of collection {} would have {bytes} bytes, at most {} are allowed",
                self.namespace, self.document_bytes_max
            )));
        }
        let sides = Sides { base, ours, theirs, merged, noted };
        Ok(MergedDocuments { sides, conflicts, both })
    }

    /// Merges documents that both sides changed to the same, which the trees' merge passes over:
    /// they may conflict, or have fields that add up. Returns what differs from ours.
    fn merge_equal_changes(
        &self,
        sides: ThreeWay<&Tree>,
        rules: &DocumentRules,
        conflicts: &mut Vec<StoredConflict>,
    ) -> Result<Vec<(Bytes, Edit)>, Error> {
        let ThreeWay { base, ours, theirs } = sides;
        let mut edits = Vec::new();
        let mut ours = base.diff(self.store, ours).peekable();
        for theirs in base.diff(self.store, theirs) {
            let theirs = theirs?;
            while let Some(Ok(before)) = ours.peek()
                && before.key < theirs.key
            {
                ours.next();
            }
            let Some(our) =
                ours.next_if(|our| our.as_ref().map_or(true, |our| our.key == theirs.key))
            else {
                continue;
            };
            let our = our?;
            if our.to == theirs.to {
                let (key, base, theirs) = (our.key, our.from, theirs.to);
                let conflict = MergeConflict { key: key.clone(), base, ours: our.to, theirs };
                let merged = self.merge_document(conflict, rules, conflicts)?;
                if let Some(Some(document)) = merged {
                    let value = value_of(&**self.store, self.format, &document)?;
                    edits.push((key, Edit::Put(value)));
                }
            }
        }
        debug_assert!(edits.is_sorted_by(|left, right| left.0 < right.0), "a diff is in order");
        Ok(edits)
    }

    /// The document in the place of ours, `Some(None)` if it goes; `None` if ours stays.
    fn merge_document(
        &self,
        conflict: MergeConflict,
        rules: &DocumentRules,
        conflicts: &mut Vec<StoredConflict>,
    ) -> Result<Option<Option<DocumentBuf>>, TreeError> {
        let read = |value: &Option<TreeValue>| {
            value.as_ref().map(|value| read_document(&**self.store, value)).transpose()
        };
        let (base, ours) = (read(&conflict.base)?, read(&conflict.ours)?);
        let theirs = read(&conflict.theirs)?;
        let merged = {
            let sides = ThreeWay::new(&base, &ours, &theirs);
            let sides = sides.map(|side| side.as_ref().map(DocumentBuf::view));
            merge_by_rules(sides, self.prefer, rules)
        };
        let edit = (merged.document != ours).then_some(merged.document);
        if let Some(paths) = merged.conflict {
            let collection = self.collection.to_owned();
            let (kind, id_key) = (ConflictKind::Document, conflict.key);
            conflicts.push(StoredConflict { collection, kind, id_key, paths, base, ours, theirs });
        }
        Ok(edit)
    }

    /// The indexes `specs` over `documents`, each from the tree of the first side that has it, and
    /// what unique ones refuse: the trees are of no use then.
    pub fn change_indexes(
        &self,
        specs: &[IndexSpec],
        entries: [&CatalogEntry; 2],
        sides: &Sides,
    ) -> Result<(Vec<Tree>, Vec<Refused>), Error> {
        let mut trees: Vec<Option<Tree>> = vec![None; specs.len()];
        let mut duplicates = Vec::new();
        for side in entries {
            let tree_of = |spec: &IndexSpec| {
                let (_, root) = side.indexes.iter().find(|(known, _)| known == spec)?;
                Some(spec.tree(*root, self.format))
            };
            let left = specs.iter().enumerate().filter(|(position, _)| trees[*position].is_none());
            let found: Vec<(usize, &IndexSpec, Tree)> = left
                .filter_map(|(position, spec)| Some((position, spec, tree_of(spec)?)))
                .collect();
            if found.is_empty() {
                continue;
            }
            let indexes: Vec<(&IndexSpec, Tree)> =
                found.iter().map(|(_, spec, tree)| (*spec, *tree)).collect();
            let from = side.documents_tree(self.format);
            let changes: Changes<'_> = match sides.noted.between(&from, &sides.merged) {
                Some(noted) => Box::new(noted.iter().cloned().map(Ok)),
                None => Box::new(from.diff(self.store, &sides.merged)),
            };
            let (changed, refused) =
                changed_entries::apply_all(self.store, &indexes, changes, &self.namespace)?;
            let named = |duplicate: Duplicate| (indexes[duplicate.index].0.clone(), duplicate);
            duplicates.extend(refused.into_iter().map(named));
            assert_eq!(changed.len(), found.len(), "each index has its tree");
            for ((position, ..), tree) in found.iter().zip(changed) {
                trees[*position] = Some(tree);
            }
        }
        let missing = || Error::internal("an index is on neither side of a merge");
        let trees = trees.into_iter().map(|tree| tree.ok_or_else(missing));
        Ok((trees.collect::<Result<_, Error>>()?, duplicates))
    }
}

/// Returns the description of a collection that one side dropped.
pub(super) fn description(entry: &CatalogEntry) -> DocumentBuf {
    let mut builder = DocumentBuilder::new();
    builder.append("options", Value::from(&entry.options)).begin_array("indexes");
    for (spec, _) in &entry.indexes {
        builder.push(Value::from(&spec.to_document()));
    }
    builder.end();
    builder.build()
}

fn specs(entry: &CatalogEntry) -> BTreeMap<&str, &IndexSpec> {
    entry.indexes.iter().map(|(spec, _): &(_, ChunkHash)| (spec.name.as_str(), spec)).collect()
}
