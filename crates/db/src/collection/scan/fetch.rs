//! Documents fetched and filtered: what each entry that a walk reads gives.
//!
//! Where an index's entry shows that the filter fails, or holds all that is asked for, the document
//! isn't fetched. Documents in the leaves of the collection's own tree are filtered where they lie.

use std::cell::Cell;

use bytes::Bytes;
use frond_doc::{Document, DocumentBuf, DocumentBuilder, key};
use frond_query::large::{Depth, NeededPaths};
use frond_query::metadata::Metadata;
use frond_query::{Filter, examined};
use frond_tree::{Bounds, Content, ContentRef, Entry, Value};

use super::row::{Row, VisitedRow};
use super::seen::SeenDocuments;
use super::text_scores::TextScores;
use crate::catalog::index_entry::{self, EntryParts};
use crate::collection::covered::Cover;
use crate::collection::handles::{LazyLargeDocuments, stored};
use crate::collection::walk::Walk;
use crate::error::Error;
use crate::interrupt::Interrupt;
use crate::large;
use crate::reader::Reader;
use crate::schema::{Index, TreeRef};

/// The entries between two checks whether to stop.
pub(super) const CHECK_COUNT: u64 = 256;

/// The facts about a document that an entry of an index gives without reading the document.
enum ByKey {
    /// It doesn't pass.
    Fails,
    /// All that is asked for: what is shown of it, if it passes.
    Covered(Option<DocumentBuf>),
    /// The document has to be read.
    TooLittle,
}

/// The means by which documents are fetched and filtered.
pub(super) struct Fetch<'a> {
    pub reader: Reader<'a>,
    pub documents: TreeRef,
    pub filter: Filter,
    /// The conditions to test here, where the others are for scripts.
    pub without_scripts: Option<Filter>,
    /// Whether documents that are found may fail the filter.
    pub may_fail: bool,
    /// Large documents are read in part: what the filter asks for, and these outermost fields.
    pub in_part: Option<Vec<Box<[u8]>>>,
    /// Large documents come out with references, and the filter asks this of them.
    pub lazily: Option<(LazyLargeDocuments, NeededPaths)>,
    /// Whether nothing is asked of documents but that they are there, and what is found passes.
    pub counts_only: bool,
    /// For each walk, the parts of its keys that decide whether the filter fails.
    pub covers: Vec<Option<Cover>>,
    /// Asked once for so many documents, whether they pass or not.
    pub interrupt: Interrupt,
    /// The number of entries all walks have read: each of two thousand may be short, and each call
    /// may give one.
    pub steps: Cell<u64>,
    /// The metadata to leave in the documents that come out.
    pub metadata: Metadata,
    /// The scores of documents, if entries hold them.
    pub scores: Scores,
}

/// The source of scores.
pub(super) enum Scores {
    /// From the documents' texts.
    Texts,
    /// From the entry that leads to the document: one term is searched for.
    Entry,
    /// From all entries.
    Entries(TextScores),
}

impl Fetch<'_> {
    /// Returns the document of an entry of the documents' own tree, if it passes.
    pub(super) fn of_document(&self, walk: &mut Walk, entry: Entry) -> Result<Option<Row>, Error> {
        if self.counts_only {
            return Ok(Some(nothing_of(entry.key)));
        }
        walk.documents_examined += 1;
        examined::report(0, 1);
        self.passing(entry.key, &entry.value)
    }

    /// Returns the document at a place of a capped collection, if it passes; a place whose document
    /// was erased has none.
    pub(super) fn of_place(&self, walk: &mut Walk, place: &Entry) -> Result<Option<Row>, Error> {
        let id_key = self.reader.read(&place.value)?;
        match self.reader.get(self.documents, &id_key)? {
            Some(value) => self.of_document(walk, Entry { key: id_key, value }),
            None => Ok(None),
        }
    }

    /// Shows the documents that are left of the range that is read and pass; answers whether
    /// `visit` wants more.
    pub(super) fn lend(
        &self,
        walk: &mut Walk,
        visit: &mut dyn FnMut(VisitedRow<'_>) -> Result<bool, Error>,
    ) -> Result<bool, Error> {
        let (mut examined, mut returned) = (0_u64, 0_u64);
        let mut continues = true;
        if let Some(entries) = walk.documents_left().filter(|_| self.lends()) {
            while continues && entries.step()? {
                examined += 1;
                examined::report(0, 1);
                self.step()?;
                let Some(entry) = entries.entry_ref() else { break };
                if let ContentRef::Inline(bytes) = entry.content {
                    let document = Document::from_validated(bytes);
                    if self.passes(document)? {
                        returned += 1;
                        continues = visit(VisitedRow::InPlace(document))?;
                    }
                } else if let Some(entry) = entries.entry()
                    && let Some(found) = self.passing(entry.key, &entry.value)?
                {
                    returned += 1;
                    continues = visit(VisitedRow::Owned(found))?;
                }
            }
        }
        walk.documents_examined += examined;
        walk.returned += returned;
        Ok(continues)
    }

    /// The next document that passes of the range that is read; `None` if none is left in it.
    pub(super) fn next_inline(&self, walk: &mut Walk) -> Result<Option<Row>, Error> {
        let mut examined = 0_u64;
        let mut next = None;
        if let Some(entries) = walk.documents_left().filter(|_| self.lends()) {
            while next.is_none() && entries.step()? {
                examined += 1;
                examined::report(0, 1);
                self.step()?;
                let Some(lent) = entries.entry_ref() else { break };
                let is_inline = match lent.content {
                    ContentRef::Inline(bytes) => {
                        if !self.passes(Document::from_validated(bytes))? {
                            continue;
                        }
                        true
                    }
                    ContentRef::Chunk { .. } | ContentRef::Sequence { .. } => false,
                };
                let Some(Entry { key, value }) = entries.entry() else { break };
                next = match value.content {
                    Content::Inline(bytes) if is_inline => {
                        Some(Row::whole(key, DocumentBuf::from_validated(bytes), None))
                    }
                    content => self.passing(key, &Value { content, ..value })?,
                };
            }
        }
        walk.documents_examined += examined;
        walk.returned += u64::from(next.is_some());
        Ok(next)
    }

    /// Counts an entry that is read, in whatever range and call, and asks now and then whether to
    /// go on.
    pub(super) fn step(&self) -> Result<(), Error> {
        let steps = self.steps.get() + 1;
        self.steps.set(steps);
        if steps.is_multiple_of(CHECK_COUNT) { self.interrupt.check() } else { Ok(()) }
    }

    /// Returns the document of an entry of an index, if it passes.
    pub(super) fn of_entry(
        &self,
        walk: &mut Walk,
        place: usize,
        entry: Entry,
        seen: &mut Option<SeenDocuments>,
    ) -> Result<Option<Row>, Error> {
        let Some(index) = &walk.index else { return Ok(None) };
        let cover = self.covers[place].as_ref();
        let needs_content = index.spec.unique
            || index.is_cut(&entry.key)
            || !self.counts_only && (walk.cover != Cover::Nothing || cover.is_some());
        let content = match needs_content {
            true => self.reader.read(&entry.value)?,
            false => Bytes::new(),
        };
        let id_key = index_entry::id_key_of(index, &entry.key, &content)?;
        if seen.as_ref().is_some_and(|seen| seen.contains(&id_key)) {
            return Ok(None);
        }
        let mut remember = || match seen {
            Some(seen) => seen.insert(&id_key).map(|_| ()),
            None => Ok(()),
        };
        let must_filter = walk.leaves_unchecked(&entry.key);
        if self.counts_only && !must_filter {
            remember()?;
            return Ok(Some(nothing_of(id_key)));
        }
        match self.by_key(walk, (index, cover), &entry.key, &content)? {
            ByKey::Fails => return Ok(None),
            ByKey::Covered(document) => {
                remember()?;
                return Ok(document.map(|document| match self.counts_only {
                    true => nothing_of(id_key),
                    false => Row::part(id_key, document, None),
                }));
            }
            ByKey::TooLittle => remember()?,
        }
        let Some(value) = self.reader.get(self.documents, &id_key)? else {
            // A cursor of a transaction may be read on after the transaction removed the document.
            if self.reader.may_change() {
                return Ok(None);
            }
            return Err(Error::damaged("an index names an absent document"));
        };
        walk.documents_examined += 1;
        examined::report(0, 1);
        if must_filter && !self.local_filter().try_matches(self.reader.document(&value)?.view())? {
            return Ok(None);
        }
        if self.counts_only {
            return Ok(Some(nothing_of(id_key)));
        }
        self.passing(id_key, &value)
    }

    fn by_key(
        &self,
        walk: &Walk,
        (index, cover): (&Index, Option<&Cover>),
        key: &Bytes,
        content: &Bytes,
    ) -> Result<ByKey, Error> {
        if walk.cover == Cover::Nothing && cover.is_none() {
            return Ok(ByKey::TooLittle);
        }
        let parts: EntryParts = index_entry::cut(index, key, content)?;
        if let Some(cover) = cover
            && let Some(document) = cover.document(index, key, &parts)?
            && !self.filter.try_matches(document.view())?
        {
            return Ok(ByKey::Fails);
        }
        let Some(document) = walk.cover.document(index, key, &parts)? else {
            return Ok(ByKey::TooLittle);
        };
        let passes = match walk.leaves_unchecked(key) {
            true => self.local_filter().try_matches(document.view())?,
            false => self.passes(document.view())?,
        };
        Ok(ByKey::Covered(passes.then_some(document)))
    }

    /// Checks whether the whole key of an entry, which may have been cut, lies between `min` and
    /// `max`.
    pub(super) fn lies_between(
        &self,
        between: &Bounds,
        index: Option<&Index>,
        entry_key: &Bytes,
        row: &Row,
    ) -> Result<bool, Error> {
        let document = || row.clone().into_whole(&self.reader, self.documents);
        let key = match index {
            Some(index) if index.is_cut(entry_key) => {
                let document = document()?.document;
                let whole = index_entry::whole_key(index, entry_key, &row.id_key, document.view())?;
                whole.map_or_else(|| entry_key.clone(), |whole| whole.key.into())
            }
            None if key::is_id_cut(entry_key) => {
                let document = document()?.document;
                document.get("_id").map_or_else(|| entry_key.clone(), key::of_value)
            }
            _ => entry_key.clone(),
        };
        let Bounds { start, end } = between;
        let is_behind_start = start.as_ref().is_none_or(|start| *start <= key);
        Ok(is_behind_start && end.as_ref().is_none_or(|end| key < *end))
    }

    fn passes(&self, document: Document<'_>) -> Result<bool, Error> {
        Ok(!self.may_fail || self.local_filter().try_matches(document)?)
    }

    /// Returns the conditions to test where documents are fetched.
    fn local_filter(&self) -> &Filter {
        self.without_scripts.as_ref().unwrap_or(&self.filter)
    }

    /// The document, if it passes.
    fn passing(&self, id_key: Bytes, value: &Value) -> Result<Option<Row>, Error> {
        let passes = self.passes_by_pieces(value)?;
        if passes == Some(false) {
            return Ok(None);
        }
        let row = self.document_of(id_key, value, passes.is_none())?;
        if passes.is_none() && !self.passes(row.fields())? {
            return Ok(None);
        }
        if row.is_whole() {
            return Ok(Some(row));
        }
        let row = match &self.lazily {
            Some((lazily, _)) => row.opened(lazily)?,
            None => row,
        };
        if self.lazily.is_some() && self.in_part.is_some() {
            return Ok(Some(row.with_read(|fields| self.part_of(fields))));
        }
        if self.lazily.is_some() || self.in_part.is_some() {
            return Ok(Some(row));
        }
        Ok(Some(row.into_whole(&self.reader, self.documents)?.into()))
    }

    /// Has the filter open what it looks at in large documents, if only a part of them is wanted.
    pub(super) fn open_for_filter(&mut self) {
        if !self.may_fail || self.filter.runs_scripts() {
            return;
        }
        let large = stored(self.reader.store());
        self.filter = self.filter.clone().with_large(&large);
        let mut names = NeededPaths::default();
        for name in self.in_part.iter().flatten() {
            names.field(&String::from_utf8_lossy(name)).look(Depth::Whole);
        }
        let lazily = LazyLargeDocuments::new(&large, false).with_needed(&names);
        let lazily = match self.filter.paths() {
            Some(_) => lazily.only(&[]),
            None => lazily,
        };
        self.lazily = Some((lazily, self.filter.needed_paths()));
    }

    /// `_id` and the outermost fields that were asked for of large documents.
    fn part_of(&self, fields: Document<'_>) -> DocumentBuf {
        let mut part = DocumentBuilder::new();
        for element in fields.elements() {
            let mut needed = self.in_part.iter().flatten();
            if element.name == b"_id" || needed.any(|name| **name == *element.name) {
                part.append_element(&element);
            }
        }
        part.build()
    }

    /// The fields of a large document that are read before it is known whether it passes; `None`:
    /// all.
    fn names_at_first(&self) -> Option<impl Iterator<Item = &[u8]>> {
        self.filter.outermost_names().filter(|_| self.in_part.is_some() || self.may_fail)
    }

    /// The document, or what the filter asks for, if it `asks`, of a large one.
    fn document_of(&self, id_key: Bytes, value: &Value, is_filtered: bool) -> Result<Row, Error> {
        let large = large::head(value);
        if let (Some(large), Some((lazily, needed))) = (large, &self.lazily) {
            if self.reader.may_be_undone(self.documents, &id_key)? {
                return Ok(Row::whole(id_key, self.reader.large_document(&large)?, Some(large)));
            }
            let nothing = NeededPaths::default();
            let needed = if is_filtered { needed } else { &nothing };
            let fields = lazily.read(&self.reader, &large, needed)?;
            return Ok(Row::part(id_key, fields, Some(large)));
        }
        let names = self.names_at_first().filter(|_| is_filtered || self.in_part.is_some());
        let (Some(large), Some(names)) = (large, names) else {
            return Ok(Row::whole(id_key, self.reader.document(value)?, large));
        };
        let mut wanted: Vec<&[u8]> = vec![b"_id"];
        let more = self.in_part.iter().flatten().map(|name| &**name);
        wanted.extend(names.filter(|_| is_filtered).chain(more));
        wanted.sort_unstable();
        wanted.dedup();
        let fields = self.reader.project(&large, &wanted)?;
        Ok(Row::part(id_key, fields, Some(large)))
    }
}

/// The document that has `value`, if it passes `filter`; large ones are read as
/// [`Scan::for_update`] does.
pub(crate) fn passing(
    reader: Reader<'_>,
    documents: TreeRef,
    filter: &Filter,
    id_key: Bytes,
    value: &Value,
) -> Result<Option<Row>, Error> {
    for_update(reader, documents, filter, true).passing(id_key, value)
}

/// As [`passing`], of a document whose key shows that it passes.
pub(crate) fn known_to_pass(
    reader: Reader<'_>,
    documents: TreeRef,
    filter: &Filter,
    id_key: Bytes,
    value: &Value,
) -> Result<Option<Row>, Error> {
    for_update(reader, documents, filter, false).passing(id_key, value)
}

fn for_update<'a>(
    reader: Reader<'a>,
    documents: TreeRef,
    filter: &Filter,
    may_fail: bool,
) -> Fetch<'a> {
    let mut fetch = Fetch {
        reader,
        documents,
        filter: filter.clone(),
        without_scripts: None,
        may_fail,
        in_part: Some(Vec::new()),
        lazily: None,
        counts_only: false,
        covers: Vec::new(),
        interrupt: Interrupt::default(),
        steps: Cell::new(0),
        metadata: Metadata::default(),
        scores: Scores::Texts,
    };
    fetch.open_for_filter();
    fetch
}

/// Returns a row for a request that needs nothing of documents.
fn nothing_of(id_key: Bytes) -> Row {
    Row::part(id_key, DocumentBuf::empty(), None)
}
