//! `$out` behind stages that choose documents (`$match`, then `$sort`, `$skip` and `$limit`) and
//! such that set or remove outermost fields, or behind none: a collection is copied within its
//! repository.
//!
//! Large documents are copied as their pieces: of each only the fields that the stages ask for are
//! read, and its outermost container is written again where they change one
//! ([`crate::large::stages`]). So the copy follows the number of documents, not their bytes. Any
//! other pipeline, or target, goes the way of all.

use bytes::Bytes;
use frond_doc::{Array, DocumentBuf, DocumentBuilder, Value, ValueBuf};
use frond_engine::Durability;
use frond_query::expression::Variables;
use frond_query::sort::SortPattern;
use frond_query::update::UpdateContext;
use frond_query::{Filter, Update};
use frond_store::budget::Reservation;
use frond_tree::TreeFormat;

use crate::collection::find::Search;
use crate::collection::plan::Order;
use crate::collection::replace::content::{Content, NewDocument};
use crate::collection::scan::{Row, Scan};
use crate::collection::skip::behind;
use crate::database::Database;
use crate::error::Error;
use crate::interrupt::Interrupt;
use crate::large::stages::{OutermostStages, only_field};
use crate::reader::Reader;
use crate::schema::TreeRef;

/// Whether to stop is asked once for so many documents.
const CHECK_COUNT: usize = 64;

/// A copy that a pipeline asks for.
pub(super) struct Copy {
    choice: Choice,
    stages: OutermostStages,
    update: Update,
    context: UpdateContext,
}

impl Copy {
    /// Reads a pipeline that ends in `$out`; `None` if it isn't such a copy. A leading `$match` is
    /// the caller's.
    pub(super) fn of(
        pipeline: Array<'_>,
        variables: &Variables,
        context: UpdateContext,
    ) -> Result<Option<Copy>, Error> {
        let mut stages: Vec<Value<'_>> = pipeline.iter().collect();
        let name_of = |stage: &Value<'_>| {
            stage.as_document().and_then(|stage| Some(only_field(stage)?.0.to_owned()))
        };
        if stages.pop().as_ref().and_then(name_of).as_deref() != Some("$out") {
            return Ok(None);
        }
        if stages.first().and_then(name_of).as_deref() == Some("$match") {
            stages.remove(0);
        }
        let Some(choice) = Choice::take(&mut stages) else { return Ok(None) };
        // How strings compare may decide what an expression gives, or whether it is right.
        if !variables.collation().is_simple() {
            return Ok(None);
        }
        let middle = array_of(&stages);
        let Some(stages) = middle.as_value().as_array() else { return Ok(None) };
        let Some(outermost) = OutermostStages::of(stages) else { return Ok(None) };
        let mut update = Update::parse(Value::Array(stages), None)?;
        update.bind(variables, None)?;
        Ok(Some(Copy { choice, stages: outermost, update, context }))
    }

    /// A document as the copy has it.
    fn copied(
        &self,
        reader: &Reader<'_>,
        format: TreeFormat,
        documents: TreeRef,
        row: Row,
    ) -> Result<NewDocument, Error> {
        let store = &**reader.store();
        let Some(large) = row.large else {
            return self.whole(row.into_whole(reader, documents)?.document);
        };
        let opened = large.in_format(format);
        let changed = self.stages.apply(store, &opened, &|part| -> Result<_, Error> {
            Ok(self.update.apply(part, &self.context)?)
        })?;
        match changed {
            Some(changed) => Ok(NewDocument::Pieces(changed)),
            None => self.whole(row.into_whole(reader, documents)?.document),
        }
    }

    fn whole(&self, document: DocumentBuf) -> Result<NewDocument, Error> {
        let changed = self.update.apply(document.view(), &self.context)?;
        Ok(NewDocument::Whole(changed.unwrap_or(document)))
    }
}

/// Which of the documents that pass the filter are copied: after a `$sort`, `$skip` and `$limit` in
/// this order.
struct Choice {
    order: Option<SortPattern>,
    skip: usize,
    limit: Option<usize>,
}

impl Choice {
    /// Takes these stages from the front; `None` if they aren't understood.
    fn take(stages: &mut Vec<Value<'_>>) -> Option<Choice> {
        let order = match take_first(stages, "$sort") {
            Some(pattern) => Some(SortPattern::parse(pattern.as_document()?).ok()?),
            None => None,
        };
        let mut count = |name: &str| match take_first(stages, name) {
            Some(count) => Some(Some(usize::try_from(count.as_integer()?).ok()?)),
            None => Some(None),
        };
        let (skip, limit) = (count("$skip")?.unwrap_or_default(), count("$limit")?);
        Some(Choice { order, skip, limit })
    }

    /// The outermost fields that decide.
    fn names(&self) -> impl Iterator<Item = &[u8]> {
        let fields = self.order.iter().flat_map(|order| &order.fields);
        fields.map(|field| field.path.split('.').next().unwrap_or_default().as_bytes())
    }

    /// Chooses. Of documents that are sorted no more are held than may be chosen, and as many
    /// again; `None` if that is more than `held` allows.
    fn of<'a>(
        &'a self,
        all: impl Iterator<Item = Result<Row, Error>> + 'a,
        mut held: Reservation,
    ) -> Chosen<'a> {
        let is_all = self.limit.is_none() && self.skip == 0;
        let end = self.limit.map_or(usize::MAX, |limit| self.skip.saturating_add(limit));
        // A collection has an order of its own.
        let Some(order) = self.order.as_ref().filter(|_| !is_all) else {
            return Ok(Some(Box::new(behind(all.take(end), self.skip))));
        };
        let row_bytes = |(key, row): &(Bytes, Row)| {
            size_of::<(Bytes, Row)>() + key.len() + row.asked().as_bytes().len()
        };
        let (mut kept, mut bytes): (Vec<(Bytes, Row)>, usize) = (Vec::new(), 0);
        for row in all {
            let row = row?;
            kept.push((order.key(row.asked()), row));
            bytes += kept.last().map_or(0, row_bytes);
            if end.saturating_mul(2).max(CHECK_COUNT) <= kept.len() {
                kept.sort_by(|(left, _), (right, _)| left.cmp(right));
                kept.truncate(end);
                bytes = kept.iter().map(row_bytes).sum();
            }
            if held.hold(bytes).is_err() {
                return Ok(None);
            }
        }
        kept.sort_by(|(left, _), (right, _)| left.cmp(right));
        kept.truncate(end);
        let chosen = kept.into_iter().skip(self.skip);
        Ok(Some(Box::new(chosen.map(move |(_, row)| {
            let _held = &held;
            Ok(row)
        }))))
    }
}

/// The documents that were chosen; `None` if they are too many to be sorted in memory.
type Chosen<'a> = Result<Option<Box<dyn Iterator<Item = Result<Row, Error>> + 'a>>, Error>;

/// The argument of the first stage, which is taken out, if it has that name.
fn take_first<'a>(stages: &mut Vec<Value<'a>>, name: &str) -> Option<Value<'a>> {
    let (found, argument) = only_field(stages.first()?.as_document()?)?;
    (found == name).then(|| {
        stages.remove(0);
        argument
    })
}

/// Where a copy comes from.
pub(super) struct CopySource<'a> {
    pub(super) reader: &'a Reader<'static>,
    pub(super) collection: &'a str,
    pub(super) filter: &'a Filter,
    pub(super) hint: Option<&'a ValueBuf>,
    pub(super) interrupt: &'a Interrupt,
}

impl Database {
    /// Copies what passes the filter into a collection of `target`, and tells whether it did: not
    /// if `target` is another repository, the source is no collection, or too much is to be sorted.
    pub(super) fn copy(
        &self,
        copy: &Copy,
        source: &CopySource<'_>,
        target: &Database,
        collection: &str,
    ) -> Result<bool, Error> {
        // Another repository cuts otherwise.
        if target.repository_name() != self.repository_name() {
            return Ok(false);
        }
        // What the filter asks for must be read by it alone.
        if source.filter.outermost_names().is_none() {
            return Ok(false);
        }
        if self.view(source.reader, source.collection)?.is_some() {
            return Ok(false);
        }
        let found = self.find_collection(source.reader, source.collection)?;
        let search = Search::of(source.filter, source.hint);
        let Some((found, access)) = self.access(source.reader, found, search)? else {
            return Ok(false);
        };
        let format = target.begin_to_exist(target.writable_branch()?, Durability::Synced)?;
        let _session = self.frond().engine().store().session();
        let filter = source.filter.clone();
        let scan = Scan::new(source.reader.clone(), &found, access, filter, &Order::Any);
        let resources = self.frond().resources(false);
        let mut content = Content::new(&resources, source.interrupt);
        let scan = scan.for_update(copy.stages.names().chain(copy.choice.names()));
        let scan = scan.enumerate().map(|(count, row)| {
            if count.is_multiple_of(CHECK_COUNT) {
                source.interrupt.check()?;
            }
            row
        });
        let Some(chosen) = copy.choice.of(scan, resources.reservation())? else { return Ok(false) };
        for row in chosen {
            let row = row?;
            let id_key = row.id_key.clone();
            let document = copy.copied(source.reader, format, found.documents, row)?;
            match &document {
                NewDocument::Whole(document) => target.check_document(document.view())?,
                NewDocument::Pieces(large) => target.check_size(large.bytes())?,
            }
            content.add(&id_key, &document)?;
        }
        target.replace_content(collection, content, Durability::Synced)?;
        Ok(true)
    }
}

fn array_of(values: &[Value<'_>]) -> ValueBuf {
    let mut out = DocumentBuilder::new();
    out.begin_array("");
    for value in values {
        out.push(*value);
    }
    out.end();
    ValueBuf::from_only_field(out.build())
}
