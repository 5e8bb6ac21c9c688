//! `findAndModify`.

use frond_doc::pieces::LargeDocument;
use frond_doc::{DocumentBuf, ValueBuf};
use frond_engine::Durability;
use frond_query::metadata::{self, MetadataKind};
use frond_query::{Code, Collation, Filter, Projection};

use crate::collection::parse::{parse_searched, variables_in, with_metadata};
use crate::collection::plan::Order;
use crate::collection::scan::Row;
use crate::collection::stored_functions::prepare_scripts;
use crate::collection::update::{ParsedUpdate, parse_update, upsert};
use crate::collection::write::CollectionWriter;
use crate::collection::{FindAndModify, FindAndModifyReport};
use crate::contention::Scope;
use crate::database::Database;
use crate::error::Error;
use crate::name;
use crate::retry::{Record, Remembered};
use crate::timeseries::{Series, UpdateKind};
use crate::transact::Outcome;
use crate::transaction::IsSame;

/// A request whose parts are parsed.
#[derive(Clone)]
struct Parsed {
    filter: Filter,
    order: Order,
    /// `None` removes.
    update: Option<ParsedUpdate>,
    projection: Option<Projection>,
    hint: Option<ValueBuf>,
    upsert: bool,
    return_new: bool,
    /// Whether the collection's own collation has no say.
    has_collation: bool,
}

/// Changes or removes one document and answers with it.
pub(crate) fn find_and_modify(
    database: &Database,
    collection: &str,
    request: &FindAndModify,
    durability: Durability,
) -> Result<FindAndModifyReport, Error> {
    let branch = database.writable_branch()?;
    name::check_collection(database.repository_name(), collection)?;
    let parsed = parse_find_and_modify(database, request)?;
    let scope = Scope::collection(database.repository_name(), branch, collection);
    // All of a document that others have changed is another one.
    let is_same: IsSame<FindAndModifyReport> = FindAndModifyReport::eq;
    let is_same = parsed.projection.as_ref().map(|_| is_same);
    database.transact_noted(scope, durability, is_same, |transaction, moment| {
        let record = database.retry().map(|write| write.remembered(database.frond(), transaction));
        let record = record.transpose()?;
        if let Some(Record { what: Remembered::Modified(report), .. }) = &record {
            return Ok(Outcome::Discard(FindAndModifyReport { retried: true, ..report.clone() }));
        }
        let mut writer =
            CollectionWriter::open_at(moment, transaction, database, branch, collection)?;
        let collated = parsed.collated(writer.collation());
        let parsed = collated.as_ref().unwrap_or(&parsed);
        let report = modify_first(database, &mut writer, parsed)?;
        let changed = writer.changed();
        if let (Some(write), Some(record), true) = (database.retry(), record, changed) {
            let what = Remembered::Modified(report.clone());
            write.remember(transaction, &Record { what, ..record })?;
        }
        Ok(Outcome::commit_if(changed, report))
    })
}

fn parse_find_and_modify(database: &Database, request: &FindAndModify) -> Result<Parsed, Error> {
    let refuse = |message: &str| Err(Error::invalid(Code::FailedToParse, message));
    if request.update.is_none() && request.upsert {
        return refuse("Cannot specify both upsert=true and remove=true");
    }
    if request.update.is_none() && request.return_new {
        return refuse(
            "Cannot specify both new=true and remove=true; 'remove' always returns the \
             deleted document",
        );
    }
    let variables = variables_in(database, request.variables.as_ref(), database.interrupt())?;
    let collation = request.collation.clone().unwrap_or_default();
    let variables = variables.with_collation(collation.clone());
    let array_filters = request.array_filters.as_ref();
    let update = request.update.as_ref();
    let update =
        update.map(|update| parse_update(database, update, array_filters, &variables, None));
    let projection = request.projection.as_ref().map(DocumentBuf::view);
    let projection = parse_searched(projection, variables.clone())?;
    let shows = projection.as_ref().map(Projection::metadata).unwrap_or_default();
    if shows.contains(MetadataKind::SortKey) {
        let message = "Cannot use a $meta sortKey projection in findAndModify commands.";
        return Err(Error::invalid(Code::BadValue, message));
    }
    let order = Order::parse_search(request.sort.as_ref().map(DocumentBuf::view))?
        .with_collation(&collation);
    let filter = Filter::parse_search(request.filter.view())?.with_variables(variables);
    prepare_scripts(database, &filter)?;
    filter.compute_constants()?;
    if let Some(projection) = &projection {
        projection.compute_constants()?;
    }
    Ok(Parsed {
        filter: with_metadata(filter, &order, projection.as_ref())?,
        order,
        update: update.transpose()?,
        projection,
        hint: request.hint.clone(),
        upsert: request.upsert,
        return_new: request.return_new,
        has_collation: request.collation.is_some(),
    })
}

fn modify_first(
    database: &Database,
    writer: &mut CollectionWriter<'_>,
    parsed: &Parsed,
) -> Result<FindAndModifyReport, Error> {
    let (filter, order, hint) = (&parsed.filter, &parsed.order, parsed.hint.as_ref());
    if let Some(series) = writer.series() {
        parsed.check_points(series)?;
    }
    let mut found = match filter.metadata().is_empty() {
        true => {
            let row = writer.matching_in_part(filter, order, hint, Some(1))?.pop();
            if let Some(row) = &row
                && let Some(report) = modify_large(writer, parsed, row)?
            {
                return Ok(report);
            }
            row.map(|row| writer.whole(row)).transpose()?
        }
        false => writer.matching(filter, order, hint, Some(1))?.pop(),
    };
    // The search's metadata of the document is shown, and is no part of it.
    let mut carried = DocumentBuf::empty();
    if let Some(found) = &mut found
        && !parsed.filter.metadata().is_empty()
    {
        carried = found.take_metadata();
    }
    let Some(update) = &parsed.update else {
        let Some(found) = found else {
            return Ok(FindAndModifyReport::default());
        };
        writer.remove(&found)?;
        let value = Some(parsed.project(&found.document, &carried)?);
        return Ok(FindAndModifyReport { value, count: 1, ..FindAndModifyReport::default() });
    };
    let Some(found) = found else {
        if !parsed.upsert {
            return Ok(FindAndModifyReport::default());
        }
        let document = upsert(database, writer, update, &parsed.filter)?;
        let value = parsed.return_new.then(|| parsed.project(&document, &carried)).transpose()?;
        let upserted = document.get("_id").map(|id| id.to_buf());
        let report = FindAndModifyReport::default();
        return Ok(FindAndModifyReport { value, count: 1, upserted, ..report });
    };
    let after = update.apply(&parsed.filter, &found)?;
    if let Some(after) = &after {
        writer.replace(&found, after, update.becoming())?;
    }
    let answer = match after {
        Some(after) if parsed.return_new => after,
        _ => found.document,
    };
    let value = Some(parsed.project(&answer, &carried)?);
    let report = FindAndModifyReport::default();
    Ok(FindAndModifyReport { value, updated_existing: true, count: 1, ..report })
}

/// Updates a large document piece by piece, if not all of it is shown; `None` if that isn't so.
fn modify_large(
    writer: &mut CollectionWriter<'_>,
    parsed: &Parsed,
    row: &Row,
) -> Result<Option<FindAndModifyReport>, Error> {
    let (Some(before), Some(update), Some(projection)) =
        (row.large, &parsed.update, &parsed.projection)
    else {
        return Ok(None);
    };
    if update.update.is_replacement() || writer.update_large(row, update, &parsed.filter)?.is_none()
    {
        return Ok(None);
    }
    let shown = match parsed.return_new {
        true => writer.large_at(&row.id_key)?.unwrap_or(before),
        false => before,
    };
    let value = Some(show_large(writer, parsed, projection, &shown)?);
    let report = FindAndModifyReport::default();
    Ok(Some(FindAndModifyReport { value, updated_existing: true, count: 1, ..report }))
}

/// Returns the part of a large document to answer.
fn show_large(
    writer: &CollectionWriter<'_>,
    parsed: &Parsed,
    projection: &Projection,
    shown: &LargeDocument,
) -> Result<DocumentBuf, Error> {
    if let Some(names) = projection.outermost_names() {
        let names: Vec<&[u8]> = names.chain([&b"_id"[..]]).collect();
        return Ok(projection.apply(writer.fields_of(shown, &names)?.view(), &parsed.filter)?);
    }
    let Some((shallow, large)) = writer.shallow_of(shown)? else {
        let whole = writer.whole_of(shown)?;
        return Ok(projection.apply(whole.view(), &parsed.filter)?);
    };
    let projection = projection.reading(&large);
    let opened = large.open_document(&projection.needed_paths(), shallow)?;
    let made = projection.apply(opened.view(), &parsed.filter)?;
    Ok(large.whole(made.view())?.unwrap_or(made))
}

impl Parsed {
    /// The request by the collection's own collation, if that changes anything.
    fn collated(&self, collation: &Collation) -> Option<Parsed> {
        if self.has_collation || collation.is_simple() {
            return None;
        }
        let parsed = self.clone();
        Some(Parsed {
            filter: parsed.filter.with_collation(collation),
            order: parsed.order.with_collation(collation),
            update: parsed.update.map(|update| update.with_collation(collation)),
            projection: parsed.projection.map(|by| by.with_collation(collation)),
            ..parsed
        })
    }

    /// Refuses what isn't done to a point of a time series.
    fn check_points(&self, series: &Series) -> Result<(), Error> {
        let kind = UpdateKind { is_multi: false, is_upsert: self.upsert };
        if let Some(update) = &self.update {
            series.check_update(kind, &self.filter, update.source.as_value())?;
        }
        if !matches!(self.order, Order::Any) {
            let message = "Cannot perform findAndModify with sort on a time-series collection.";
            return Err(Error::invalid(Code::InvalidOptions, message));
        }
        Ok(())
    }

    /// Returns the part of a document to answer; `carried` is the search's metadata of it.
    fn project(&self, document: &DocumentBuf, carried: &DocumentBuf) -> Result<DocumentBuf, Error> {
        let Some(projection) = &self.projection else { return Ok(document.clone()) };
        if carried.view().is_empty() {
            return Ok(projection.apply(document.view(), &self.filter)?);
        }
        let document = metadata::carry(document.clone(), carried);
        Ok(metadata::strip(projection.apply(document.view(), &self.filter)?))
    }
}
